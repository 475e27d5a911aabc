"""Public problems that nobody here wrote, with all defaults, beside what other programs say.

The data are read from a folder beside the repository, and the tests are skipped where it is not there; their sources
are in docs/real-problems.md.
"""

import numpy as np
import pytest

import orthocal as oc
from real_problems import DATA, REAL_PROBLEMS, aluminium

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="needs the folder of public data sets beside the repository")


def fitted(problem, draws=500):
    return oc.calibrate(problem, draws=draws, seed=1, progress=False)


def interval(posterior, name):
    return np.quantile(posterior.data["posterior"][name].values, [0.025, 0.975])


def mean_sd(posterior, name):
    values = posterior.data["posterior"][name].values
    return values.mean(), values.std()


def test_ball_drop():
    """surmise without a bias: 8.16 ± .20."""
    posterior = fitted(REAL_PROBLEMS["ball_drop"]())
    assert posterior.check().ok
    mean, sd = mean_sd(posterior, "g")
    assert mean == pytest.approx(8.3, abs=0.2)
    assert 0.15 < sd < 0.3


def test_bayarri_with_one_parameter():
    """The L2 value is .6406."""
    posterior = fitted(REAL_PROBLEMS["bayarri_with_one_parameter"]())
    low, high = interval(posterior, "u")
    assert low < 0.6406 < high
    assert high - low < 0.12
    assert posterior.check().ok


def test_bayarri_with_two_parameters():
    """The L2 values are 1.559 and 2.677."""
    posterior = fitted(REAL_PROBLEMS["bayarri_with_two_parameters"]())
    for name, value in (("M", 1.559), ("U", 2.677)):
        low, high = interval(posterior, name)
        assert low < value < high
    assert posterior.check().ok


def test_chaboche():
    """OpenTURNS, Gaussian linear calibration: 748.5 ± 5.3 MPa, 2691 ± 154, 7.78 ± .78."""
    posterior = fitted(REAL_PROBLEMS["chaboche"]())
    for name, mean, sd in (("R", 748.5e6, 5.3e6), ("C", 2691e6, 154e6), ("gamma", 7.78, 0.78)):
        found = mean_sd(posterior, name)
        assert found[0] == pytest.approx(mean, abs=0.25 * sd)
        assert found[1] == pytest.approx(sd, rel=0.15)
    # least squares alone is six prior sds away
    assert any("without the priors" in finding.message for finding in posterior.check())


def test_population():
    """Logistic growth: a = .0274; with correlated errors .0262."""
    posterior = fitted(REAL_PROBLEMS["population"]())
    assert 0.0255 < mean_sd(posterior, "a")[0] < 0.0285
    assert posterior.check().ok


@pytest.mark.slow
def test_common_cold():
    """PINTS: v = .270 ± .016, S0 = 41.0 ± 1.3. The noise of the two counts is nearly opposite."""
    problem = REAL_PROBLEMS["common_cold"]()
    sd = np.sqrt(np.diag(problem.noise.cov))
    assert -0.95 < problem.noise.cov[0, 1] / sd.prod() < -0.7
    with pytest.warns(oc.OrthocalWarning, match="calls of the simulator"):
        posterior = fitted(problem, draws=250)
    low, high = interval(posterior, "v")
    assert 0.24 < mean_sd(posterior, "v")[0] < 0.30
    assert low < 0.270 < high
    assert 38 < mean_sd(posterior, "S0")[0] < 44


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*calls of the simulator")
def test_aluminium():
    """impala without a bias, noise sampled: A = 229 ± 33, C = .0063 ± .0014, m = 1.077 ± .055.

    With a variance a curve and no prior worth mentioning, a Metropolis sampler written for this problem alone has
    A = 233.4 ± 7.1, m = 1.369 ± .011.
    """
    alone = oc.calibrate(aluminium(noise_cov="sample"), "none", draws=500, seed=1, progress=False)
    for name, mean, sd in (("A", 229, 33), ("C", 0.0063, 0.0014), ("m", 1.077, 0.055)):
        found = mean_sd(alone, name)
        assert found[0] == pytest.approx(mean, abs=0.25 * sd)
        assert found[1] == pytest.approx(sd, rel=0.2)
    by_curve = aluminium(noise_cov=oc.GroupNoise("curve", sample=True))
    without, with_bias = (oc.calibrate(by_curve, name, draws=500, seed=1, progress=False) for name in ("none", "gp"))
    assert mean_sd(without, "A") == pytest.approx((233.4, 7.1), rel=0.15)
    assert mean_sd(without, "m")[0] == pytest.approx(1.369, abs=0.01)
    assert not without.check().ok
    assert mean_sd(with_bias, "A")[0] == pytest.approx(229, abs=5)
