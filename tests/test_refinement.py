"""Where to run next: in the posterior's region, not twice at a place, and to more use than points spread evenly."""

from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import uniform

import orthocal as oc
from orthocal.emulators.error_reduction import Errors, best_runs
from orthocal.errors import InputError
from orthocal.refinement import _influence

X = np.linspace(0, 1, 15)
PRIORS = {"a": uniform(0, 1), "b": uniform(0, 1)}
TRUTH = np.array([0.31, 0.64])


def simulate(x, theta):
    return np.sin(4 * theta[0] * x + 6 * theta[1]) + np.cos(7 * theta[1] * x) * theta[0]


def runs_at(theta):
    return oc.RunTable(theta, np.stack([simulate(X, one) for one in np.asarray(theta)]), X, ["a", "b"])


def posterior_of(runs, emulator="gp"):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, 60)
    y = simulate(x, TRUTH) + rng.normal(0, 0.05, 60)
    problem = oc.Problem(x, y, oc.emulate(runs, emulator), PRIORS, oc.Box(0, 1), noise_cov=0.0025, starts=[TRUTH])
    return oc.calibrate(problem, draws=200, seed=1, progress=False)


@pytest.fixture(scope="module")
def runs():
    return runs_at(oc.design(PRIORS, 16, seed=1).to_numpy())


@pytest.fixture(scope="module")
def posterior(runs):
    return posterior_of(runs)


def test_they_lie_where_the_posterior_is(posterior, runs):
    chosen = oc.next_runs(posterior, runs, 5)
    assert list(chosen.columns) == ["a", "b"]
    draws = posterior.theta.reshape(-1, 2)
    deviation = np.abs(chosen.to_numpy() - draws.mean(axis=0)) / draws.std(axis=0)
    assert (deviation < 6).all()
    assert len(np.unique(chosen.to_numpy(), axis=0)) == 5
    assert chosen.equals(oc.next_runs(posterior, runs, 5))


@pytest.mark.slow
def test_they_help_more_than_runs_spread_evenly(posterior, runs):
    """The best fit with four more runs, beside four points of the design: nearer to that of the simulator itself."""
    exact = oc.Problem(
        posterior.data["constant_data"]["x"].values,
        posterior.data["observed_data"]["y"].values,
        simulate,
        PRIORS,
        oc.Box(0, 1),
        noise_cov=0.0025,
        starts=[TRUTH],
    ).theta_tilde
    spread = oc.design(PRIORS, 32, seed=1).to_numpy()[16:20]
    errors = []
    for more in (oc.next_runs(posterior, runs, 4).to_numpy(), spread):
        longer = runs_at(np.vstack([runs.theta, more]))
        theta_tilde = posterior_of(longer).data["constant_data"]["theta_tilde"].values
        errors.append(np.abs(theta_tilde - exact).max())
    assert errors[0] < 0.5 * errors[1]


def test_runs_with_points_of_their_own(runs, posterior):
    rng = np.random.default_rng(0)
    x = [np.sort(rng.uniform(0, 1, 8)) for _ in runs.theta]
    ragged = oc.RunTable(
        runs.theta, [simulate(own, one) for own, one in zip(x, runs.theta, strict=True)], x, ["a", "b"]
    )
    assert len(oc.next_runs(posterior, ragged, 3)) == 3


@pytest.mark.slow
def test_they_are_the_design_of_a_campaign(posterior, runs, tmp_path):
    chosen = oc.next_runs(posterior, runs, 2)
    more = oc.campaign(simulate, chosen, x=X, store=tmp_path / "runs.db", jobs=1, progress=False)
    assert np.array_equal(more.theta, chosen.to_numpy())


def test_refused(posterior, runs):
    with pytest.raises(InputError, match="n=0"):
        oc.next_runs(posterior, runs, 0)
    other = oc.RunTable(runs.theta, runs.output, X, ["a", "c"])
    with pytest.raises(InputError, match="the posterior is about a, b, the runs about a, c"):
        oc.next_runs(posterior, other, 2)


def test_an_error_moves_theta_on_the_transformed_scale():
    """By differences of log f: how a change of f along a component moves the least-squares theta."""

    def decay(x, theta):
        return (1 + theta[0]) * np.exp(-theta[1] * x)

    design = oc.design(PRIORS, 16, seed=1).to_numpy()
    table = oc.RunTable(design, np.stack([decay(X, one) for one in design]), X, ["a", "b"])
    emulator = oc.emulate(table, "gp", layout="components", progress=False)
    y = decay(X, TRUTH) * np.exp(0.05 * np.random.default_rng(2).standard_normal(15))
    problem = oc.Problem(X, y, emulator, PRIORS, oc.Box(0, 1), 0.0025, starts=[TRUTH], transform="log")
    posterior = oc.calibrate(problem, "none", draws=50, chains=2, seed=1, progress=False)
    draws = posterior.theta.reshape(-1, 2)
    centre, h = draws.mean(axis=0), 1e-4
    logs = [np.log(emulator(X, centre + step)[:, 0]) for step in h * np.vstack([np.eye(2), -np.eye(2)])]
    slopes = np.stack([(logs[j] - logs[j + 2]) / (2 * h) for j in range(2)], axis=1)
    (found,) = _influence(posterior, emulator, X[:, None], draws)
    ((_, functions, _),) = emulator.functions(X[:, None])
    here = emulator(X, centre)[:, 0]
    for r, component in enumerate(functions):
        error = (np.log(here + h * component) - np.log(here - h * component)) / (2 * h)
        moved = np.linalg.lstsq(slopes, error, rcond=None)[0] * emulator.scores[0].scale[r] / draws.std(axis=0)
        np.testing.assert_allclose(found[:, r], moved, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("constraint", ["a + b < 0.96", lambda theta: bool(theta[0] + theta[1] < 0.96)])
def test_they_are_allowed_by_the_constraint(posterior, runs, constraint):
    rng = np.random.default_rng(5)
    x = rng.uniform(0, 1, 60)
    y = simulate(x, TRUTH) + rng.normal(0, 0.05, 60)
    problem = oc.Problem(
        x, y, posterior.emulator, PRIORS, oc.Box(0, 1), noise_cov=0.0025, starts=[TRUTH], constraint=constraint
    )
    chosen = oc.next_runs(oc.calibrate(problem, draws=100, seed=1, progress=False), runs, 5)
    assert (chosen["a"] + chosen["b"] < 0.96).all()


def test_the_best_run_is_taken_then_the_best_beside_it():
    """By conditioning Gaussians outright: each choice leaves least of the mean variance over the sample, weighted."""
    rng = np.random.default_rng(0)
    sample, candidates, errors = 5, 9, []
    for importance, run_var in ((1.0, np.full(candidates, 0.5)), (0.3, np.geomspace(0.01, 30, candidates))):
        root = rng.standard_normal((14, 14)) * np.geomspace(0.2, 3, 14)[:, None]
        errors.append(Errors(root @ root.T, run_var, importance))

    def left(runs):
        """What these runs leave of the criterion."""
        total = 0.0
        for one in errors:
            K, rows = one.covariance, sample + np.array(runs, dtype=int)
            known = K[np.ix_(rows, rows)] + np.diag(one.run_var[rows - sample])
            after = K - K[:, rows] @ np.linalg.solve(known, K[rows])
            total += one.importance * np.diag(after)[:sample].mean()
        return total

    chosen = [number for number, _ in islice(best_runs(errors, sample), 4)]
    for k in range(4):
        others = [one for one in range(candidates) if one not in chosen[:k]]
        assert chosen[k] == min(others, key=lambda one: left([*chosen[:k], one]))


def test_an_outcome_with_less_noise_counts_for_more():
    """(G' S^-1 G)^-1 G' S^-1 for two outcomes with a noise covariance, each component's sd in posterior sds."""

    def both(x, theta):
        return np.column_stack([theta[0] + theta[1] * x, np.exp(theta[0] * x)])

    design = oc.design(PRIORS, 12, seed=1).to_numpy()
    table = oc.RunTable(design, np.stack([both(X, one) for one in design]), X, ["a", "b"])
    emulator = oc.emulate(table, "gp", layout="components", progress=False)
    noise_cov = np.array([[0.01, 0.015], [0.015, 0.09]])
    draws = np.random.default_rng(0).normal(TRUTH, [0.02, 0.05], (50, 2))
    record = SimpleNamespace(transforms=None, y=both(X, TRUTH), noise_cov=noise_cov)
    found = _influence(SimpleNamespace(record=record), emulator, X[:, None], draws)
    G = emulator.gradient(X[:, None], draws.mean(axis=0))
    weighted = np.einsum("kl,nlp->nkp", np.linalg.inv(noise_cov), G)
    A = np.linalg.solve(np.einsum("nkp,nkr->pr", weighted, G), weighted.reshape(30, 2).T).reshape(2, 15, 2)
    for k, functions in enumerate(emulator.functions(X[:, None])):
        sds = emulator.scores[k].scale
        np.testing.assert_allclose(found[k], A[:, :, k] @ functions.functions.T * sds / draws.std(axis=0)[:, None])
