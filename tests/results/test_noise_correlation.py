"""What a posterior says and predicts where errors are correlated between rows, said or not."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short

N = 150
T = (np.arange(N) + 0.5) / N
C = np.exp(-np.abs(T[:, None] - T) * N / 4)
METHOD = oc.methods.Joint(oc.bias.GP(sd=1.0, lengthscale=0.5))


def problem_of(noise_cov, y=None, t=T, **changes):
    if y is None:
        y = 2 * T + 0.2 * np.linalg.cholesky(C) @ np.random.default_rng(4).standard_normal(N)
    settings = {"domain": oc.Box(0, 1), "input_names": "t", "starts": 2, **changes}
    return oc.Problem(t, y, lambda t, theta: theta[0] * t, {"a": stats.norm(0, 10)}, noise_cov=noise_cov, **settings)


def said(posterior):
    return [one for one in posterior.check() if one.topic == "correlated errors"]


@pytest.fixture(scope="module")
def told():
    return short(problem_of(oc.CorrelatedNoise("t", length=4 / N, sd=0.2)), METHOD, draws=200)


def test_errors_that_were_taken_for_independent():
    posterior = short(problem_of(0.04), METHOD)
    (finding,) = said(posterior)
    assert finding.level == "problem"
    assert "correlated along t" in finding.message
    assert "cannot be told apart by one series" in finding.message
    # what it should be is sqrt(a'R a), a the weights of least squares: 2.4 times what the fit says
    factor = float(finding.message.rsplit(" ", 1)[1])
    assert 1.7 < factor < 3.5
    assert 'oc.CorrelatedNoise("t", length=' in finding.advice
    assert 'kind = "ar1", column = "t", length = ' in finding.in_files().advice


def test_errors_that_were_said_to_be_correlated(told):
    (finding,) = said(told)
    assert finding.level == "fine"
    assert "150 are worth" in finding.message
    independent = short(problem_of(0.04), METHOD)
    assert told.theta.std() > 2 * independent.theta.std()


def test_series_at_the_same_x_tell_errors_from_a_bias():
    """A rough bias that all series share is no error; errors of their own are."""
    n, count = 40, 4
    t, series = np.tile(T[:n] * N / n, count), np.repeat(np.arange(count), n)
    rng = np.random.default_rng(8)
    own = np.linalg.cholesky(C[:n, :n])
    rough = np.tile(own @ rng.standard_normal(n), count)
    white = rng.standard_normal(n * count)
    shared = short(problem_of(0.04, 2 * t + 0.2 * (rough + white), t=t, groups=series), METHOD)
    assert said(shared) == []
    errors = np.concatenate([own @ rng.standard_normal(n) for _ in range(count)])
    (finding,) = said(short(problem_of(0.04, 2 * t + 0.2 * errors, t=t, groups=series), METHOD))
    assert "series of y at the same x differ" in finding.message


def test_errors_along_the_order_of_the_rows():
    rng = np.random.default_rng(5)
    order = rng.permutation(N)
    y = 2 * T[order] + 0.2 * np.linalg.cholesky(C) @ rng.standard_normal(N)
    (finding,) = said(short(problem_of(0.04, y, t=T[order]), METHOD))
    assert "the order of the rows" in finding.message


def test_predicted_observations_go_together(told):
    observed = told.predict()
    noise = (observed["observation"] - observed["mean"]).values.reshape(-1, N)
    assert np.corrcoef(noise[:, 70], noise[:, 71])[0, 1] == pytest.approx(C[70, 71], abs=0.12)
    new = told.predict(np.array([0.3, 0.3 + 2 / N, 0.9]))
    noise = (new["observation"] - new["mean"]).values.reshape(-1, 3)
    assert noise.std() == pytest.approx(0.2, rel=0.15)
    found = np.corrcoef(noise.T)
    # an error of a correlation r is (1 - r^2) / 20 here
    assert found[0, 1] == pytest.approx(np.exp(-0.5), abs=0.15)
    assert abs(found[0, 2]) < 0.25


def test_leave_one_out_is_that_of_a_row_given_the_others(told):
    fitted = told.record.at_data("model") + told.record.at_data("bias")
    residual = told.record.y[:, 0] - fitted[1, 7, :, 0]
    R = 0.04 * C
    expected = []
    for i in (0, 50, 149):
        others = np.arange(N) != i
        gain = np.linalg.solve(R[np.ix_(others, others)], R[others, i])
        var = R[i, i] - gain @ R[others, i]
        expected.append(stats.norm.logpdf(residual[i], gain @ residual[others], np.sqrt(var)))
    found = told.data["log_likelihood"]["y"].values[1, 7, [0, 50, 149]]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_a_file_holds_all_of_it(told, tmp_path):
    told.save(tmp_path / "fit.nc")
    loaded = oc.load(tmp_path / "fit.nc", simulator=lambda t, theta: theta[0] * t)
    assert str(loaded.check()) == str(told.check())
    new = np.array([0.1, 0.2])
    np.testing.assert_array_equal(loaded.predict(new)["observation"], told.predict(new)["observation"])
