"""Public problems that nobody here wrote, with all defaults, beside what other programs say.

The data are read from a folder beside the repository, and the tests are skipped where it is not there; their sources
are in docs/real-problems.md.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import solve_ivp

import orthocal as oc

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "reality"

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of public data sets beside the repository")


def columns(name):
    table = pd.read_csv(DATA / f"{name}.csv").to_numpy(dtype=float)
    return table[:, 0], table[:, 1:].squeeze()


def fitted(problem, draws=500):
    return oc.calibrate(problem, draws=draws, seed=1, progress=False)


def interval(posterior, name):
    return np.quantile(posterior.data["posterior"][name].values, [0.025, 0.975])


def mean_sd(posterior, name):
    values = posterior.data["posterior"][name].values
    return values.mean(), values.std()


def test_ball_drop():
    """surmise without a bias: 8.16 ± .20."""
    x, y = columns("ball_drop")
    posterior = fitted(oc.Problem(x, y, lambda h, t: np.sqrt(2 * h / t[0]), {"g": stats.uniform(6, 9)}))
    assert posterior.check().ok
    mean, sd = mean_sd(posterior, "g")
    assert mean == pytest.approx(8.3, abs=0.2)
    assert 0.15 < sd < 0.3


def test_bayarri_with_one_parameter():
    """The L2 value is .6406."""
    x, y = columns("bayarri")
    domain = oc.Box(0, 3.01)
    posterior = fitted(oc.Problem(x, y, lambda x, t: 5 * np.exp(-t[0] * x), {"u": stats.uniform(0, 10)}, domain))
    low, high = interval(posterior, "u")
    assert low < 0.6406 < high
    assert high - low < 0.12
    assert posterior.check().ok


def test_bayarri_with_two_parameters():
    """The L2 values are 1.559 and 2.677."""
    x, y = columns("bayarri")
    priors = {"M": stats.uniform(0, 7), "U": stats.uniform(0, 7)}
    posterior = fitted(oc.Problem(x, y, lambda x, t: t[0] + 5 * np.exp(-t[1] * x), priors, oc.Box(0, 3.01)))
    for name, value in (("M", 1.559), ("U", 2.677)):
        low, high = interval(posterior, name)
        assert low < value < high
    assert posterior.check().ok


def test_chaboche():
    """OpenTURNS, Gaussian linear calibration: 748.5 ± 5.3 MPa, 2691 ± 154, 7.78 ± .78."""
    x, y = columns("chaboche")
    priors = {"R": stats.norm(7e8, 7e7), "C": stats.norm(2.5e9, 2.5e8), "gamma": stats.norm(8, 0.8)}
    problem = oc.Problem(x, y, lambda e, t: t[0] - t[1] * np.expm1(-t[2] * e) / t[2], priors, noise_cov=1e14)
    posterior = fitted(problem)
    for name, mean, sd in (("R", 748.5e6, 5.3e6), ("C", 2691e6, 154e6), ("gamma", 7.78, 0.78)):
        found = mean_sd(posterior, name)
        assert found[0] == pytest.approx(mean, abs=0.25 * sd)
        assert found[1] == pytest.approx(sd, rel=0.15)
    # least squares alone is six prior sds away
    assert any("without the priors" in finding.message for finding in posterior.check())


def test_population():
    """Logistic growth: a = .0274; with correlated errors .0262."""
    year, millions = columns("us_population")

    def growth(year, theta):
        a, by0 = theta[0], np.exp(theta[1]) * 3.9e6
        return 3.9 * a / (by0 + (a - by0) * np.exp(-a * (year - 1790)))

    priors = {"a": stats.norm(0.03, 0.01), "c": stats.norm(-22.6, 1)}
    posterior = fitted(oc.Problem(year, millions, growth, priors))
    assert 0.0255 < mean_sd(posterior, "a")[0] < 0.0285
    assert posterior.check().ok


@pytest.mark.slow
def test_common_cold():
    """PINTS: v = .270 ± .016, S0 = 41.0 ± 1.3. The noise of the two counts is nearly opposite."""
    day, y = columns("common_cold")

    def epidemic(day, theta):
        g, v, s0 = theta
        times, place = np.unique(day, return_inverse=True)
        run = solve_ivp(
            lambda _, u: [-g * u[0] * u[1], g * u[0] * u[1] - v * u[1], v * u[1]],
            (1, times[-1]),
            [s0, 1, 0],
            t_eval=times,
            rtol=1e-8,
            atol=1e-8,
        )
        return run.y[1:, place].T

    priors = {"g": stats.uniform(0, 1), "v": stats.uniform(0, 1), "S0": stats.uniform(20, 80)}
    problem = oc.Problem(day, y, epidemic, priors)
    sd = np.sqrt(np.diag(problem.noise.cov))
    assert -0.95 < problem.noise.cov[0, 1] / sd.prod() < -0.7
    with pytest.warns(oc.OrthocalWarning, match="calls of the simulator"):
        posterior = fitted(problem, draws=250)
    low, high = interval(posterior, "v")
    assert 0.24 < mean_sd(posterior, "v")[0] < 0.30
    assert low < 0.270 < high
    assert 38 < mean_sd(posterior, "S0")[0] < 44
