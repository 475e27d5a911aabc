"""200 random problems, fitted with all defaults: nothing crashes, intervals are right, what is off is said.

False alarms: the pooled coverage of about 850 parameters has a standard error of .0075 where it is .95; the limits
.92 and .97 are 4 and 2.7 of them away.
"""

import warnings
from functools import cache

import numpy as np
import pytest
from random_problems import random_case

import orthocal as oc

pytestmark = pytest.mark.slow

PROBLEMS = 200


class Fit:
    def __init__(self, seed):
        case = random_case(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            posterior = oc.calibrate(case.problem, draws=250, seed=seed, progress=False)
            self.findings = posterior.check()
        theta = posterior.record.theta.reshape(-1, len(case.theta_star))
        lower, upper = np.quantile(theta, (0.025, 0.975), axis=0)
        room = 1e-6 * np.maximum(theta.std(axis=0), 1e-12 * np.abs(case.theta_star))
        self.covered = (lower - room <= case.theta_star) & (case.theta_star <= upper + room)
        self.moves = theta.std(axis=0) > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            self.distance = np.abs(theta.mean(axis=0) - case.theta_star) / theta.std(axis=0)
        self.traits = case.traits


@cache
def fits():
    return [Fit(seed) for seed in range(PROBLEMS)]


def test_no_chain_is_constant():
    still = [fit.traits for fit in fits() if not fit.moves.all() and fit.findings.ok]
    assert not still


def test_the_intervals_are_right():
    covered = np.concatenate([fit.covered for fit in fits()])
    for trait in ("bound", "fails in a corner", "replicates", "uneven noise", "noise estimated", "missing cells"):
        part = np.concatenate([fit.covered for fit in fits() if trait in fit.traits])
        print(f"{trait}: {part.mean():.3f} of {len(part)}")
    print(f"all: {covered.mean():.3f} of {len(covered)}")
    assert 0.92 <= covered.mean() <= 0.97


def test_what_is_far_off_is_said():
    far = [fit for fit in fits() if (fit.distance > 4).any()]
    said = [fit for fit in far if any(one.level != "fine" for one in fit.findings)]
    loud = [fit for fit in far if not fit.findings.ok]
    print(f"{len(far)} fits are off by more than 4 sds, {len(loud)} of them with a problem")
    for fit in far:
        print(fit.traits, fit.distance.round(1), [one.topic for one in fit.findings.problems])
    assert len(loud) >= 0.8 * len(far), said
