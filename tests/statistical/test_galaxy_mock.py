"""The mock galaxy through the whole way: runs, emulator, calibration; do the intervals hold theta*?"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc
from orthocal.galaxy import PARAMETERS, mock_galaxy, theta_star

pytestmark = pytest.mark.slow

DATA_SETS, RUNS, MORE_RUNS = 20, 400, 60
OUTCOMES = ("v", "sigma", "h3", "h4")


@pytest.fixture(scope="module")
def galaxy():
    return mock_galaxy("full")


@pytest.fixture(scope="module")
def emulator(galaxy, tmp_path_factory):
    """As ``orthocal galaxy mock --full`` makes it: runs over the priors, then more where the posterior is."""
    store = tmp_path_factory.mktemp("galaxy") / "runs.db"
    spread = oc.design(priors(galaxy), RUNS)
    runs = oc.campaign(galaxy.model, spread, galaxy.x, store=store, progress=False)
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
    best = theta_star(galaxy.model, galaxy.truth, galaxy.errors, starts=[emulated_minimum(galaxy, emulator)]).theta
    held = []
    for seed in range(DATA_SETS):
        posterior = oc.calibrate(problem_of(galaxy, emulator, seed), method, draws=500, seed=seed, progress=False)
        # the joint projection knows the curvature, and has nothing to warn of
        assert method == "pgp" or "curvature" not in {one.topic for one in posterior.check()}
        low, high = np.quantile(posterior.theta.reshape(-1, 3), [0.025, 0.975], axis=0)
        held.append((low < best) & (best < high))
    counts = np.sum(held, axis=0)
    together = int(np.all(held, axis=1).sum())
    print(f"{method}: theta* = {best.round(4)}: held {counts} times of {DATA_SETS}, all three {together} times")
    assert together >= 17


@pytest.mark.filterwarnings("ignore:.*no runs nearby")
def test_all_outcomes_say_more_than_each_alone(galaxy, emulator):
    """M/L and the dark-matter fraction are narrower in the joint posterior than in that of any single outcome."""
    comparison = oc.compare_outcomes(problem_of(galaxy, emulator, 0), "pgp", draws=500, seed=1, progress=False)
    sds = comparison.summary()["sd"].unstack()
    print(sds)
    for name in ("ml", "f_dm"):
        assert all(sds.loc[name, "all together"] < sds.loc[name, outcome] for outcome in OUTCOMES)
