"""Coverage of theta* = argmin sum_k w_k (truth_k - f_k)^2 over random problems of outputs without inputs."""

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc

pytestmark = pytest.mark.slow

#: random problems; each gives about three parameters
PROBLEMS = 150


def random_problem(rng):
    """A curved simulator with one to five parameters, 8 to 12 outputs of any unit, and biases of 0 to 10 noise sds."""
    q, p = int(rng.integers(8, 13)), int(rng.integers(1, 6))
    units, design = 10.0 ** rng.uniform(-4, 6, q), rng.normal(size=(q, p))
    bend = rng.normal(size=(q, p))

    def simulator(theta):
        return units * (design @ theta + 0.1 * np.sin(bend @ theta))

    sd = units * rng.uniform(0.05, 0.3, q)
    truth = simulator(rng.normal(size=p)) + sd * rng.choice([0.0, 1.0, 3.0, 10.0]) * rng.normal(size=q)
    star = least_squares(lambda theta: (truth - simulator(theta)) / sd, np.zeros(p)).x
    y = truth + sd * rng.normal(size=q)
    priors = {f"t{j}": stats.norm(0, 10) for j in range(p)}
    return oc.Problem(None, y, simulator, priors, y_err=sd, starts=8), star, (truth, sd)


@pytest.fixture(scope="module")
def covered():
    """Whether 95 % intervals hold theta*, and whether those of the outputs hold the truth, problem after problem."""
    theta, outputs = [], []
    for seed in range(PROBLEMS):
        problem, star, (truth, _) = random_problem(np.random.default_rng([15, 8, seed]))
        posterior = oc.calibrate(problem, draws=500, chains=2, seed=seed, progress=False)
        low, high = np.quantile(posterior.theta, [0.025, 0.975], axis=(0, 1))
        theta.append((low < star) & (star < high))
        low, high = np.quantile(posterior.predict()["mean"].values[:, :, 0], [0.025, 0.975], axis=(0, 1))
        outputs.append((low < truth) & (truth < high))
    return np.concatenate(theta), np.concatenate(outputs)


def test_theta_star_is_covered(covered):
    """About 450 intervals: a share outside of .92 to .975 has a probability of about .01 if all is right."""
    share = covered[0].mean()
    assert 0.92 < share < 0.975, f"{share:.3f} of {covered[0].size}"


def test_the_real_outputs_are_covered(covered):
    """By model + bias; where all biases are zero, shrinking them covers more than 95 %."""
    share = covered[1].mean()
    assert 0.92 < share < 0.985, f"{share:.3f} of {covered[1].size}"
