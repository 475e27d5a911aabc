"""Every bias prior through the whole calibration: missing cells, several outcomes, sampled noise, odd field data.

Field data that are few, degenerate or of an odd size work, or are refused with a message that says what to do. Their
truth is 2 x + size sin(5 u), u = x as a share of the domain; what is checked is that the posterior is not absurd, with
fixed seeds: its coverage is checked elsewhere.
"""

import functools

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import largest_error, line, short, two_outcomes, with_holes
from orthocal.errors import InputError
from orthocal.examples import MODEL1, TWO_OUTCOMES

PRIORS = {
    "gp": oc.bias.GP(),
    "bart": oc.bias.BART(trees=20),
    "softbart": oc.bias.SoftBART(trees=5),
    "bmars": oc.bias.BMARS(),
    "bnn": oc.bias.BNN(hidden=5),
}
METHODS = ("pgp", "pbart", "psoftbart", "pbmars", "pbnn")
short_run = functools.partial(short, draws=20, seed=3)
RUN = {"draws": 40, "warmup": 25, "chains": 2, "seed": 1}
#: the projection of sin(5 x) on x over [0, 1]
SINE = 3 * (np.sin(5) / 25 - np.cos(5) / 5)


def calibrated(method, x, truth, noise_sd, noise_cov, prior_sd=10.0, domain=None):
    """The posterior and the posterior mean of model + bias at the data; draws must be finite and orthogonal."""
    y = truth + noise_sd * np.random.default_rng(0).standard_normal(len(x))
    problem = oc.Problem(x, y, line, {"t": stats.norm(0, prior_sd)}, domain or oc.Box(0, 1), noise_cov=noise_cov)
    posterior = oc.calibrate(problem, method, **RUN)
    drawn = posterior.predict()
    for values in (posterior.theta, drawn["model"].values, drawn["bias"].values):
        assert np.isfinite(values).all()
    assert largest_error(posterior) < 1e-10
    return posterior, (drawn["model"] + drawn["bias"]).mean(("chain", "draw")).values[:, 0]


def stored(posterior):
    return posterior.data["bias"]["bias"].values


def rms(values):
    return float(np.sqrt(np.mean(values**2)))


def rng():
    return np.random.default_rng(3)


#: inputs, and the upper corner of the domain
INPUTS = {
    "duplicated": (np.repeat(rng().random((6, 1)), 5, axis=0), 1),
    "five points": (rng().random((5, 1)), 1),
    "thirty inputs": (rng().random((40, 30)), 1),
    "more inputs than points": (rng().random((20, 30)), 1),
    "integers": (rng().integers(0, 10, (30, 1)), 9),
    "a column of integers": (np.column_stack([rng().random(30), rng().integers(0, 4, 30)]), [1, 3]),
    "a constant column": (np.column_stack([rng().random(30), np.full(30, 0.5)]), 1),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", INPUTS)
def test_odd_inputs_work(case, method):
    x, upper = INPUTS[case]
    width = np.ravel(upper)[0]
    truth = 2 * x[:, 0] + np.sin(5 * x[:, 0] / width)
    posterior, fit = calibrated(method, x, truth, 0.2, 0.04, domain=oc.Box(0, upper))
    assert abs(posterior.theta.mean() - (2 + SINE / width)) < 5 * posterior.theta.std()
    # of five points trees can make two leaves at most
    assert rms(fit - truth) < (4 if case == "five points" else 1.5) * 0.2


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_input_works_in_a_given_domain(method):
    """Nothing tells theta from the bias but the prior: only their sum is checked."""
    x = np.full((10, 1), 0.5)
    posterior, fit = calibrated(method, x, 2 * x[:, 0] + 1, 0.2, 0.04)
    assert rms(fit - 2) < 0.3
    assert 0 < posterior.theta.std() < 2


@pytest.mark.parametrize("method", METHODS)
def test_a_constant_input_without_a_domain_is_refused(method):
    x = np.column_stack([rng().random(10), np.full(10, 0.5)])
    with pytest.raises(InputError, match=r"input 2 of x is constant: give the domain as oc.Box\(lower, upper\)"):
        oc.calibrate(oc.Problem(x, x[:, 0], line, {"t": stats.norm(0, 10)}, noise_cov=0.04), method, **RUN)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1e6, 1e-9])
@pytest.mark.parametrize("line_too", [True, False], ids=["in that unit", "on a line of size 1"])
def test_bias_and_noise_of_an_odd_size(size, line_too, method):
    x = rng().random((30, 1))
    slope = 2 * size if line_too else 2.0
    truth = slope * x[:, 0] + size * np.sin(5 * x[:, 0])
    prior_sd = 10 * (size if line_too else max(size, 1))
    posterior, fit = calibrated(method, x, truth, 0.2 * size, 0.04 * size**2, prior_sd)
    assert abs(posterior.theta.mean() - (slope + size * SINE)) < 5 * posterior.theta.std()
    assert 0.02 * size < posterior.theta.std() < 0.2 * size
    assert rms(fit - truth) < 0.2 * size


@pytest.mark.parametrize("method", METHODS)
def test_a_bias_far_below_the_noise(method):
    x = rng().random((30, 1))
    truth = 2 * x[:, 0] + 1e-9 * np.sin(5 * x[:, 0])
    posterior, fit = calibrated(method, x, truth, 2e-10, 0.04)
    assert abs(posterior.theta.mean() - 2) < 0.2
    assert 0.02 < posterior.theta.std() < 0.2
    assert rms(fit - truth) < 0.2
    # so much less scatter than noise does not go unnoticed
    assert "noise" in {finding.topic for finding in posterior.check().problems}


@pytest.mark.parametrize("method", METHODS)
def test_a_bias_far_above_the_noise(method):
    x = rng().random((30, 1))
    truth = 2 * x[:, 0] + 1e6 * np.sin(5 * x[:, 0])
    posterior, fit = calibrated(method, x, truth, 0.2, 0.04, prior_sd=1e7)
    # steps and straight lines between 30 points cannot be right to the noise, so neither can theta
    assert abs(posterior.theta.mean() - (2 + 1e6 * SINE)) < 5 * posterior.theta.std() + 0.05 * 1e6
    assert rms(fit - truth) < 1 or "noise" in {finding.topic for finding in posterior.check().problems}


@pytest.mark.parametrize("method", [method for method in METHODS if method != "psoftbart"])
def test_scatter_far_above_the_given_noise(method):
    """The unit of the noise was mistaken. A prior follows the scatter, or the findings say that it does not.

    Soft BART is left out: it follows the scatter with trees that go anywhere between the points, and theta with them.
    """
    x = rng().random((30, 1))
    truth = 2 * x[:, 0] + 1e6 * np.sin(5 * x[:, 0])
    posterior, fit = calibrated(method, x, truth, 2e5, 0.04, prior_sd=1e7)
    assert abs(posterior.theta.mean() - (2 + 1e6 * SINE)) < 0.3 * 1e6
    misfit = fit - posterior.data["observed_data"]["y"].values
    assert rms(misfit) < 1 or "noise" in {finding.topic for finding in posterior.check().problems}


@pytest.mark.parametrize("projection", ["functional", pytest.param("finite", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PRIORS)
class TestTwoOutcomesWithMissingCells:
    def test_the_bias_is_orthogonal_in_the_metric(self, name, projection):
        x, y = two_outcomes()
        problem = TWO_OUTCOMES.problem(x, with_holes(y), loss_weight="identity")
        posterior = short_run(problem, oc.methods.Projected(PRIORS[name], projection))
        assert largest_error(posterior) < 1e-10
        assert np.isfinite(posterior.theta).all()
        bias = stored(posterior)
        assert bias.shape == (2, 20, len(x), 2)
        assert np.isfinite(bias).all()
        if projection == "finite":
            # from the definition, in the outcomes' units: sum_i v_i b(x_i)' W g(x_i) = 0
            gradient = problem.simulator.gradient(x, problem.theta_tilde)
            inner = np.einsum("csnk,n,nkp->csp", bias, problem.volumes, gradient)
            size = np.sqrt(np.einsum("csnk,n->cs", bias**2, problem.volumes))
            length = np.sqrt(np.einsum("n,nkp->p", problem.volumes, gradient**2))
            assert np.max(np.abs(inner[..., 0]) / size / length[0]) < 1e-10

    def test_predictions_at_the_data_are_the_stored_ones_also_from_a_file(self, name, projection, tmp_path):
        x, y = two_outcomes()
        method = oc.methods.Projected(PRIORS[name], projection)
        posterior = short_run(TWO_OUTCOMES.problem(x, with_holes(y)), method, draws=10)
        loaded = oc.load(posterior.save(tmp_path / "fit.nc"), TWO_OUTCOMES.simulator)
        for one in (posterior, loaded):
            np.testing.assert_allclose(one.predict(x)["bias"].values, stored(posterior), atol=2e-4)


@pytest.mark.parametrize("name", PRIORS)
def test_sampled_noise(name):
    x, y = two_outcomes(n=80)
    problem = TWO_OUTCOMES.problem(x, with_holes(y), noise_cov="sample")
    posterior = short_run(problem, oc.methods.Joint(PRIORS[name]), draws=100)
    noise = posterior.data["posterior"]["noise_cov"].values
    assert noise.shape == (2, 100, 2, 2)
    assert (np.linalg.eigvalsh(noise) > 0).all()
    np.testing.assert_allclose(np.sqrt(noise[:, :, [0, 1], [0, 1]].mean(axis=(0, 1))), 0.2, rtol=0.35)
    # to where Gauss-Newton steps end
    assert largest_error(posterior) < 1e-6
    drawn = posterior.predict(np.array([[0.5]]), draws=50)
    assert np.isfinite(drawn["observation"].values).all()


@pytest.mark.parametrize(
    ("name", "draws", "least_ess", "most_rhat", "sds"),
    [
        ("pgp", 250, 500, 1.02, (0.03, 0.06)),
        ("pbart", 1000, 2000, 1.01, (0.035, 0.06)),
        ("psoftbart", 100, 100, 1.1, (0.025, 0.07)),
        ("pbmars", 200, 200, 1.03, (0.025, 0.06)),
        ("pbnn", 100, 100, 1.1, (0.025, 0.07)),
    ],
)
def test_model_1(name, draws, least_ess, most_rhat, sds):
    x, y = MODEL1.simulate(np.random.default_rng(1))
    posterior = oc.calibrate(MODEL1.problem(x, y), name, draws=draws, seed=1)
    summary = posterior.summary()
    assert summary["ess_bulk"].min() > least_ess
    assert summary["r_hat"].max() < most_rhat
    assert sds[0] < summary["sd"].item() < sds[1]
    assert abs(summary["mean"].item() - MODEL1.theta_star[0]) < 4 * summary["sd"].item()
    assert largest_error(posterior) < 1e-10
    np.testing.assert_allclose(posterior.predict(x)["bias"], stored(posterior), atol=1e-5 if name == "pgp" else 1e-10)
