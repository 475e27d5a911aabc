"""The best fit against plain least squares from 200 starts, on 30 problems of six kinds and on six real ones."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc
from real_problems import DATA, REAL_PROBLEMS

pytestmark = pytest.mark.slow


def two_decays(x, t):
    return t[0] * np.exp(-t[1] * x) + t[2] * np.exp(-t[3] * x)


def wave(x, t):
    return t[0] * np.sin(t[1] * x + t[2])


def logistic(x, t):
    return t[0] / (1 + np.exp(-t[1] * (x - t[2])))


def cosines(x, t):
    return np.cos(np.pi * np.outer(x, np.arange(8))) @ t


def hill(x, t):
    return t[0] * x ** t[1] / (t[2] ** t[1] + x ** t[1])


def failing_peak(x, t):
    return t[0] * np.exp(-t[1] * (x - t[2]) ** 2) if t[0] > 0.2 else np.full(len(x), np.nan)


#: simulator, priors, truth
KINDS = [
    (two_decays, [stats.norm(0, 3), stats.uniform(0, 20), stats.norm(0, 3), stats.uniform(0, 20)], [2, 1.5, -1, 9]),
    (wave, [stats.norm(0, 2), stats.uniform(0, 30), stats.uniform(-3.2, 6.4)], [1.3, 11, 0.4]),
    (logistic, [stats.norm(1, 1), stats.lognorm(1, scale=10), stats.uniform(0, 1)], [1.5, 15, 0.6]),
    (cosines, [stats.norm(0, 2)] * 8, [0.1, -0.1, 0.6, 0.1, -0.5, 0.4, 1.3, 0.9]),
    (hill, [stats.gamma(2), stats.uniform(0.5, 8), stats.uniform(0.05, 2)], [2, 3, 0.4]),
    (failing_peak, [stats.uniform(0, 5), stats.lognorm(1, scale=20), stats.uniform(-1, 3)], [2, 30, 0.5]),
]


def plain(problem, starts):
    """The least criterion of descents from so many starts, and the calls that they took."""
    criterion, parameters, before = problem._criterion, problem.parameters, problem.simulator.calls
    best = np.inf
    for start in parameters.starts(starts):
        if np.isfinite(criterion.value(start)):
            fit = least_squares(
                criterion.residual,
                start,
                jac=criterion.jacobian,
                bounds=(parameters.lower, parameters.upper),
                x_scale=parameters.spread,
                ftol=1e-12,
                xtol=1e-12,
                gtol=1e-14,
                max_nfev=200,
            )
            best = min(best, 2 * fit.cost)
    return best, problem.simulator.calls - before


@pytest.mark.parametrize("kind", range(len(KINDS)), ids=[kind[0].__name__ for kind in KINDS])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_never_worse_and_takes_at_most_twice_the_calls_of_32_starts(kind, seed):
    simulator, priors, truth = KINDS[kind]
    rng = np.random.default_rng([kind, seed])
    n = int(rng.integers(10, 200))
    x = np.sort(rng.random(n))
    y = simulator(x, np.array(truth)) + 0.3 * rng.normal() * np.sin(7 * x) + 0.1 * rng.standard_normal(n)
    parameters = {f"t{j}": prior for j, prior in enumerate(priors)}
    problem = oc.Problem(x, y, simulator, parameters, oc.Box(0, 1, nodes=30), noise_cov=0.01)
    compare(problem, f"{simulator.__name__} {seed}")


def compare(problem, name):
    """Never worse by more than one per cent, with at most twice the calls of 32 starts."""
    mine = problem._criterion.value(problem.theta_tilde)
    calls = problem.simulator.calls
    few, calls_of_few = plain(problem, 32)
    many, _ = plain(problem, 200)
    print(f"{name}: {mine:.6g}, of 200 starts {many:.6g}; calls {calls / calls_of_few:.2f}")
    assert mine <= 1.01 * min(few, many)
    assert calls <= 2 * calls_of_few


@pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of public data sets beside the repository")
@pytest.mark.parametrize("name", REAL_PROBLEMS)
def test_the_same_on_real_problems(name):
    compare(REAL_PROBLEMS[name](), name)
