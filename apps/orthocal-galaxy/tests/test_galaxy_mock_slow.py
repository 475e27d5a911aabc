"""The mock galaxy through the whole way: runs, emulator, calibration; do the intervals hold theta*?"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc
from orthocal_galaxy import PARAMETERS, mock_galaxy, theta_star

pytestmark = pytest.mark.slow

DATA_SETS, RUNS, MORE_RUNS = 20, 400, 60
OUTCOMES = ("v", "sigma", "h3", "h4")


@pytest.fixture(scope="module")
def galaxy():
    return mock_galaxy("full")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return tmp_path_factory.mktemp("galaxy") / "runs.db"


@pytest.fixture(scope="module")
def spread(galaxy):
    """A design over the priors."""
    return oc.design(priors(galaxy), RUNS)


@pytest.fixture(scope="module")
def runs(galaxy, spread, store):
    return oc.campaign(galaxy.model, spread, galaxy.x, store=store, progress=False)


@pytest.fixture(scope="module")
def emulator(galaxy, spread, runs, store):
    """As ``orthocal galaxy mock --full`` makes it: runs over the priors, then more where the posterior is."""
    first = problem_of(galaxy, oc.emulate(runs, "gp", progress=False), DATA_SETS)
    posterior = oc.calibrate(first, "pgp", draws=250, seed=1, progress=False)
    plan = pd.concat([spread, oc.next_runs(posterior, runs, MORE_RUNS, progress=False)])
    return oc.emulate(oc.campaign(galaxy.model, plan, galaxy.x, store=store, progress=False), "gp", progress=False)


def priors(galaxy):
    return {name: stats.uniform(low, high - low) for name, (low, high) in galaxy.prior_box.items()}


def problem_of(galaxy, emulator, seed):
    y = galaxy.noisy(np.random.default_rng([7, seed]))
    equal = oc.Points(galaxy.x, np.ones(len(galaxy.x)))
    return oc.Problem(galaxy.x, y, emulator, priors(galaxy), equal, y_err=galaxy.errors, outcome_names=OUTCOMES)


def emulated_minimum(galaxy, emulator):
    """Where the loss of the emulator is least: a start for the search with the model itself."""
    low, high = np.array([galaxy.prior_box[name] for name in PARAMETERS]).T

    def residual(unit):
        return ((emulator(galaxy.x, low + unit * (high - low)) - galaxy.truth) / galaxy.errors).ravel()

    fits = [least_squares(residual, np.full(3, share), bounds=(0, 1), diff_step=1e-3) for share in (0.4, 0.5, 0.6)]
    return low + min(fits, key=lambda fit: fit.cost).x * (high - low)


@pytest.mark.parametrize("method", ["gp", "pgp"])
def test_joint_intervals_hold_the_best_theta(galaxy, emulator, method):
    """All three parameters in at least 17 of 20: where each has .95, and all three .91, that fails by chance in 10 %.

    With weights that were fitted to noisier data the three are held in 16, without the last runs in 15.
    """
    best = best_theta(galaxy, emulator)
    held = []
    for seed in range(DATA_SETS):
        posterior = oc.calibrate(problem_of(galaxy, emulator, seed), method, draws=500, seed=seed, progress=False)
        # the joint projection knows the curvature, and has nothing to warn of
        assert method == "pgp" or "curvature" not in {one.topic for one in posterior.check()}
        held.append(inside(posterior, best))
    assert together(method, best, held) >= 17


@pytest.mark.filterwarnings("ignore::orthocal.OrthocalWarning")
def test_with_its_draws_an_emulator_of_runs_over_the_priors_is_enough(galaxy, runs):
    """All three parameters in at least 18 of 20, the target; it is 19, and with the emulator's mean alone 12.

    The data sets have one emulator, and the count depends on it: 18 and 19 with two designs, and 6 of 7 with two more.
    """
    emulator = oc.emulate(runs, "gp", progress=False)
    best = best_theta(galaxy, emulator)
    held = []
    for seed in range(DATA_SETS):
        problem = problem_of(galaxy, emulator, seed)
        posterior = oc.calibrate(problem, draws=64, seed=seed, progress=False, emulator_draws=32)
        held.append(inside(posterior, best))
    assert together("gp, 400 runs", best, held) >= 18


def best_theta(galaxy, emulator):
    return theta_star(galaxy.model, galaxy.truth, galaxy.errors, starts=[emulated_minimum(galaxy, emulator)]).theta


def inside(posterior, best):
    low, high = np.quantile(posterior.theta.reshape(-1, 3), [0.025, 0.975], axis=0)
    return (low < best) & (best < high)


def together(title, best, held):
    counts, count = np.sum(held, axis=0), int(np.all(held, axis=1).sum())
    print(f"{title}: theta* = {best.round(4)}: held {counts} times of {DATA_SETS}, all three {count} times")
    return count


@pytest.mark.filterwarnings("ignore:.*no runs nearby")
def test_all_outcomes_say_more_than_each_alone(galaxy, emulator):
    """M/L and the dark-matter fraction are narrower in the joint posterior than in that of any single outcome."""
    comparison = oc.compare_outcomes(problem_of(galaxy, emulator, 0), "pgp", draws=500, seed=1, progress=False)
    sds = comparison.summary()["sd"].unstack()
    print(sds)
    for name in ("ml", "f_dm"):
        assert all(sds.loc[name, "all together"] < sds.loc[name, outcome] for outcome in OUTCOMES)
