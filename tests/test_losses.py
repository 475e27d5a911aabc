"""Other losses of the joint projection, against theta* of the true process by a scan of each loss.

A posterior mean is within 4 posterior sds of theta*: the chance to be farther by accident is 6 in 100 000 a case.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

import orthocal as oc

X = (np.arange(100) + 0.5) / 100
FINE = np.linspace(0, 1, 20001)
NOISE = 0.05


def real(x):
    """A sine with a narrow bump that no t can follow: the losses disagree about it."""
    return np.sin(2 * x) + np.exp(-(((x - 0.8) / 0.05) ** 2))


def simulator(x, theta):
    return theta[0] * x + 0.05 * theta[0] ** 2 * x**2


def huber(r, k=2 * NOISE):
    return np.where(np.abs(r) < k, r**2, 2 * k * np.abs(r) - k**2)


def power(residual, weights):
    return weights @ np.abs(residual[:, 0]) ** 1.5


LOSSES = {
    "squared": ("squared", np.square),
    "absolute": ("absolute", np.abs),
    "huber": (oc.losses.Huber(2.0), huber),
    "own": (power, lambda r: np.abs(r) ** 1.5),
}


def problem(**changes):
    y = real(X) + NOISE * np.random.default_rng(0).standard_normal(len(X))
    settings = {"domain": oc.Box(0, 1, nodes=60), "noise_cov": NOISE**2, "starts": 4, **changes}
    return oc.Problem(X, y, simulator, {"t": stats.norm(0, 10)}, **settings)


def calibrated(loss, **changes):
    method = oc.methods.Joint(oc.bias.GP(), loss)
    return oc.calibrate(problem(**changes), method, draws=250, seed=1, progress=False)


def closest(rho):
    """theta* of the true process."""
    found = minimize_scalar(lambda t: np.mean(rho(real(FINE) - simulator(FINE, [t]))), bounds=(0, 3), method="bounded")
    return found.x


@pytest.mark.parametrize("name", LOSSES)
def test_theta_is_where_the_loss_of_the_real_process_is_least(name):
    loss, rho = LOSSES[name]
    posterior = calibrated(loss)
    mean, sd = posterior.theta.mean(), posterior.theta.std()
    assert abs(mean - closest(rho)) < 4 * sd
    # the negative control: another loss has another theta*
    other = np.abs if name == "squared" else np.square
    assert abs(mean - closest(other)) > 2 * sd
    assert not [one for one in posterior.check().problems if one.topic in ("orthogonality", "projection")]
    assert posterior.record.run_facts.simulator_calls < 2 * posterior.theta.size


@pytest.mark.parametrize("loss", ["absolute", oc.losses.Huber(1.0)], ids=["absolute", "huber"])
def test_the_unit_of_the_outcome_does_not_matter(loss):
    one = calibrated(loss)
    y = 1000 * (real(X) + NOISE * np.random.default_rng(0).standard_normal(len(X)))
    other = oc.Problem(
        X,
        y,
        lambda x, t: 1000 * simulator(x, t),
        {"t": stats.norm(0, 10)},
        domain=oc.Box(0, 1, nodes=60),
        noise_cov=(1000 * NOISE) ** 2,
        starts=4,
    )
    scaled = oc.calibrate(other, oc.methods.Joint(loss=loss), draws=250, seed=1, progress=False)
    assert np.allclose(one.theta, scaled.theta, atol=1e-4 * one.theta.std())


def test_for_huge_k_hubers_loss_is_the_squared_one():
    assert np.allclose(calibrated(oc.losses.Huber(1e6)).theta, calibrated("squared").theta, atol=1e-8)


def test_several_outcomes_count_by_their_size_in_w():
    """Outcome 2 is a copy of outcome 1: all losses see the same simulator as with one."""
    y = real(X) + NOISE * np.random.default_rng(0).standard_normal(len(X))
    prior = oc.bias.GP(sd=0.5, lengthscale=0.1)
    twice = oc.Problem(
        X,
        np.column_stack([y, y]),
        lambda x, t: np.column_stack([simulator(x, t)] * 2),
        {"t": stats.norm(0, 10)},
        domain=oc.Box(0, 1, nodes=60),
        noise_cov=[2 * NOISE**2] * 2,
        starts=4,
    )
    one = problem()
    for loss in ("absolute", oc.losses.Huber(2.0)):
        alone, both = (
            oc.calibrate(two, oc.methods.Joint(prior, loss), draws=500, seed=1, progress=False).theta
            for two in (one, twice)
        )
        assert abs(alone.mean() - both.mean()) < 4 * np.hypot(alone.std(), both.std()) / np.sqrt(100)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ("cubic", 'give "squared", "absolute"'),
        (3, 'give "squared", "absolute"'),
        (oc.losses.Huber, 'give "squared", "absolute"'),
    ],
)
def test_what_is_no_loss_is_refused(loss, words):
    with pytest.raises(oc.OrthocalError, match=words):
        oc.methods.Joint(loss=loss)


@pytest.mark.parametrize("k", [0, -1, np.inf, "2", True])
def test_hubers_k_is_a_positive_number(k):
    with pytest.raises(oc.OrthocalError, match="Huber's loss turns"):
        oc.losses.Huber(k)


def test_a_loss_that_is_no_number_is_named():
    with pytest.raises(oc.OrthocalError, match="returned ndarray"):
        calibrated(lambda residual: residual**2)


def test_the_loss_is_kept_with_the_results(tmp_path):
    posterior = calibrated(oc.losses.Huber(2.0))
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"))
    assert loaded.record.method["loss"] == {"kind": "huber", "k": 2.0}
    assert "loss is stationary" in str(loaded.check())
