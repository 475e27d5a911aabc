"""Coverage of the 95 % intervals of PGP on Model 1 over 400 data sets.

The exact coverages (closed forms over 1000 data sets) are known; a sampled one must lie within 3 binomial standard
errors. With six of them the false-alarm rate is about 1.6 %; seeds are fixed.
"""

import numpy as np
import pytest

import orthocal as oc
from orthocal.examples import MODEL1

DATA_SETS = 400
EXACT = {
    ("functional", 0.5): 0.997,
    ("functional", 1.5): 0.956,
    ("functional", 2.5): 0.946,
    ("finite", 0.5): 0.959,
    ("finite", 1.5): 0.951,
    ("finite", 2.5): 0.947,
}


def covered(projection: str, nu: float, data_set: int) -> bool:
    # data sets other than those behind the exact figures
    x, y = MODEL1.simulate(np.random.default_rng(50_000 + data_set))
    method = oc.methods.Projected(oc.bias.GP(nu=nu, sd=1.0, lengthscale=0.5), projection)
    posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=1000, seed=data_set, progress=False)
    low, high = np.quantile(posterior.theta, [0.025, 0.975])
    return bool(low < MODEL1.theta_star[0] < high)


@pytest.mark.slow
@pytest.mark.parametrize(("projection", "nu"), EXACT)
def test_coverage_in_model_1(projection, nu):
    share = float(np.mean([covered(projection, nu, data_set) for data_set in range(DATA_SETS)]))
    print(f"coverage of {projection}, nu {nu}: {share:.4f}")
    exact = EXACT[projection, nu]
    assert abs(share - exact) < 3 * np.sqrt(exact * (1 - exact) / DATA_SETS)


def wrong_coverage(data_set) -> bool:
    """The finite constraint with equal weights: it targets the loss at the data points, not over the domain."""
    x, y = MODEL1.simulate(np.random.default_rng(50_000 + data_set))
    problem = MODEL1.problem(x, y)
    problem.volumes = np.full(len(x), 1 / len(x))
    method = oc.methods.Projected(oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5), "finite")
    posterior = oc.calibrate(problem, method, draws=500, seed=data_set, progress=False)
    low, high = np.quantile(posterior.theta, [0.025, 0.975])
    return bool(low < MODEL1.theta_star[0] < high)


@pytest.mark.slow
def test_equal_weights_do_not_cover():
    """Negative control: without the cells' volumes the finite projection covers theta* in about 59 % of data sets."""
    share = np.mean([wrong_coverage(data_set) for data_set in range(100)])
    assert 0.4 < share < 0.78
