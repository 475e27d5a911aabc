"""Theta that a constraint excludes, or at which the simulator fails: every method's draws have the law of what is left.

The simulator is linear and the prior Gaussian, so without a bias the posterior is a Gaussian cut off at a line; its
mean and covariance come from many draws of it. With a smooth bias of almost no size the other methods have the same.

False alarms: |z| > 4.5 has probability 7e-6 for each mean compared; seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError

X = np.linspace(0, 1, 20)
Y = 0.8 + 0.9 * X + 0.1 * np.random.default_rng(0).standard_normal(20)
PRIORS = {"a": stats.norm(0.5, 0.3), ("b", "c"): stats.multivariate_normal([0.5, 0], [[0.25, 0.1], [0.1, 0.2]])}
PRIOR_PRECISION = np.linalg.inv(np.array([[0.09, 0, 0], [0, 0.25, 0.1], [0, 0.1, 0.2]]))
EDGE = 1.64
GP = {"nu": 2.5, "sd": 1e-3, "lengthscale": 1.0}
METHODS = {
    "none": oc.methods.NoBias(),
    "ko": oc.methods.KO(**GP),
    "sgasp": oc.methods.SGaSP(**GP),
    "ogp": oc.methods.OGP(**GP),
    "gp": oc.methods.Joint(oc.bias.GP(**GP)),
    "pgp": oc.methods.Projected(oc.bias.GP(**GP)),
    "slice": oc.methods.Projected(oc.bias.GP(**GP), kernel=oc.kernels.Slice()),
    "hmc": oc.methods.Projected(oc.bias.GP(**GP), kernel=oc.kernels.HMC()),
    "adaptive": oc.methods.Projected(oc.bias.GP(**GP), kernel=oc.kernels.AdaptiveMetropolis()),
}


def design(x):
    return np.column_stack([np.ones(len(x)), x, (x - 0.5) ** 2])


def works(x, theta):
    if theta[0] + theta[1] >= EDGE:
        raise RuntimeError("no such thing")
    return design(x) @ theta


def strict(x, theta):
    assert theta[0] + theta[1] < EDGE, "called where theta is not allowed"
    return design(x) @ theta


CASES = {
    "constraint": (strict, f"a + b < {EDGE}"),
    "function": (strict, lambda t: t[0] + t[1] < EDGE),
    "fails": (works, None),
}


def problem(case, **options):
    simulator, constraint = CASES[case]
    options = {"domain": oc.Box(0, 1), "noise_cov": 0.01, "starts": 4, "constraint": constraint} | options
    return oc.Problem(X, Y, simulator, PRIORS, **options)


def cut_off():
    """Mean and sd of the Gaussian posterior that is left of the line."""
    precision = design(X).T @ design(X) / 0.01 + PRIOR_PRECISION
    mean = np.linalg.solve(precision, design(X).T @ Y / 0.01 + PRIOR_PRECISION @ [0.5, 0.5, 0])
    draws = np.random.default_rng(1).multivariate_normal(mean, np.linalg.inv(precision), 400_000)
    left = draws[draws[:, 0] + draws[:, 1] < EDGE]
    return left.mean(axis=0), left.std(axis=0), len(left) / len(draws)


FAST = {("gp", "constraint"), ("gp", "fails")}


@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[pytest.mark.slow] * ((name, case) not in FAST))
        for name in METHODS
        for case in ("constraint", "fails")
    ],
)
def test_the_law_of_what_is_left(name, case):
    mean, sd, left = cut_off()
    assert 0.3 < left < 0.9
    posterior = oc.calibrate(problem(case), METHODS[name], draws=400, seed=2, progress=False)
    theta = posterior.theta.reshape(-1, 3)
    assert (theta[:, 0] + theta[:, 1] < EDGE).all()
    table, notes = posterior.summary(), posterior.record.run_facts
    size = table["ess_bulk"].to_numpy()
    if name == "gp":
        # a draw that was resampled counts once
        size = np.minimum(size, notes.weighted_draws)
        assert notes.impossible == pytest.approx(1 - left, abs=4.5 * np.sqrt(left * (1 - left) / 1600))
    z = (theta.mean(axis=0) - mean) / (sd / np.sqrt(size))
    assert np.abs(z).max() < 4.5
    assert np.abs(theta.std(axis=0) / sd - 1).max() < 4.5 / np.sqrt(2 * size.min())
    found = [finding for finding in posterior.check() if finding.topic in ("constraint", "simulator")]
    words = "%) failed" if case == "fails" else f"restricted to a + b < {EDGE}"
    assert any(words in finding.message for finding in found)


@pytest.mark.slow
def test_pcal_leaves_out_what_is_impossible():
    for case in ("constraint", "fails"):
        posterior = oc.calibrate(problem(case), "pcal", draws=100, chains=2, seed=2, progress=False)
        assert (posterior.theta[..., 0] + posterior.theta[..., 1] < EDGE).all()
        assert 0.1 < posterior.record.run_facts.impossible < 0.9
        assert any("left out" in finding.message for finding in posterior.check())


@pytest.mark.parametrize("method", ["gp", pytest.param("pcal", marks=pytest.mark.slow)])
def test_data_that_contradict_the_constraint_are_an_error_or_a_problem(method):
    with pytest.raises(InputError, match=r"allowed theta in .* only"):
        oc.calibrate(
            problem("constraint", constraint="a + b < 0.3"), method, draws=50, chains=2, seed=1, progress=False
        )


def test_few_draws_that_are_left_are_a_problem():
    posterior = oc.calibrate(problem("constraint", constraint="a + b < 1.57"), "gp", draws=200, seed=1, progress=False)
    finding = next(one for one in posterior.check() if one.topic == "impossible theta")
    assert finding.level == "problem"
    assert posterior.record.run_facts.weighted_draws < 400


def test_a_fit_on_the_edge_is_said():
    posterior = oc.calibrate(problem("constraint", constraint="a + b < 1.58"), "pgp", draws=20, seed=1, progress=False)
    assert any(one.level == "problem" and "edge of what it allows" in one.message for one in posterior.check())


def test_the_constraint_is_saved_with_the_posterior(tmp_path):
    for case, text in (("constraint", f"a + b < {EDGE}"), ("function", "a function")):
        posterior = oc.calibrate(problem(case), "none", draws=10, warmup=10, seed=1, progress=False)
        posterior.save(tmp_path / "fit.nc")
        loaded = oc.load(tmp_path / "fit.nc")
        assert loaded.record.constraint == text
        assert any(text in finding.message for finding in loaded.check())
    assert oc.load(tmp_path / "fit.nc", simulator=strict).predict(X[:3], draws=2).sizes["point"] == 3


@pytest.mark.slow
def test_several_outcomes_missing_cells_and_pandas():
    import pandas as pd

    rng = np.random.default_rng(3)
    y = pd.DataFrame({"v": Y, "w": 2 * Y + 0.1 * rng.standard_normal(20)})
    y.iloc[3, 1] = np.nan
    two = oc.Problem(
        pd.Series(X, name="x"),
        y,
        lambda x, t: np.column_stack([strict(x, t), 2 * strict(x, t)]),
        PRIORS,
        oc.Box(0, 1),
        [0.01, 0.01],
        starts=4,
        constraint=f"a + b < {EDGE}",
    )
    for method in ("gp", "pgp", "ko"):
        posterior = oc.calibrate(two, method, draws=20, warmup=30, chains=2, seed=1, progress=False)
        assert (posterior.theta[..., 0] + posterior.theta[..., 1] < EDGE).all()
