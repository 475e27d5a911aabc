"""Draws of an emulator whose own best fit is on a bound of the prior: theta is where the draws are closest."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

#: of the emulator's slope, and of the field data
SLOPE_SD, NOISE_SD = 0.2, 0.01


class Line:
    """rate x, and draws rate a x whose slopes a are uncertain."""

    parameter_names, has_variance, has_draws = ("rate",), True, True

    def __init__(self, slope=1.0):
        self.slope = slope

    def __call__(self, x, theta):
        return self.slope * theta[0] * np.reshape(x, (-1, 1))

    def gradient(self, x, theta):
        return self.slope * np.reshape(x, (-1, 1, 1))

    def variance(self, x, theta):
        return (SLOPE_SD * theta[0] * np.reshape(x, (-1, 1))) ** 2

    def outside(self, theta):
        return np.zeros(len(theta), dtype=bool)

    def draws(self, count, seed):
        # evenly over the normal law: which of them are steep enough is no chance
        return [Line(1 + SLOPE_SD * z) for z in stats.norm.ppf((np.arange(count) + 0.5) / count)]


@pytest.mark.parametrize("rate", [0.8, 1.1], ids=["inside", "beyond the bound"])
def test_draws_of_an_emulator_that_ends_on_a_bound(rate):
    """Of y = rate x the draw with the slope a says rate / a, or the bound where that is beyond it."""
    x = np.linspace(0.1, 1, 30)
    y = rate * x + NOISE_SD * np.random.default_rng(1).standard_normal(30)
    problem = oc.Problem(x, y, Line(), {"rate": stats.uniform(0, 1)}, domain=oc.Box(0, 1), noise_cov=NOISE_SD**2)
    theta = oc.calibrate(problem, "gp", draws=64, seed=1, progress=False).theta.ravel()
    slopes = 1 + SLOPE_SD * stats.norm.ppf((np.arange(64) + 0.5) / 64)
    expected = np.minimum(rate / slopes, 1)
    # beyond the bound what the draws of y_R add is cut off as well: a few noise sds of 256 draws
    assert np.quantile(theta, [0.05, 0.25]) == pytest.approx(np.quantile(expected, [0.05, 0.25]), abs=0.03)
    assert theta.std() == pytest.approx(expected.std(), rel=0.15)
