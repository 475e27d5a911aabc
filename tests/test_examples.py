"""The test problems: their theta* from the definition, by quadrature."""

import numpy as np
import pytest
from scipy.optimize import least_squares, minimize_scalar

from orthocal.examples import (
    FIN,
    MODEL1,
    MODEL2,
    MODEL3,
    TWO_OUTCOMES,
    TWO_OUTCOMES_PRECISION,
    TWO_OUTCOMES_SECOND,
    curved,
    saturation,
)

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)
X = (NODES[:, None] + 1) / 2


def closest(model, W):
    def loss(t):
        difference = (model.truth(X) - model.simulator(X, np.array([t]))).reshape(len(X), -1)
        return np.einsum("nk,kl,nl,n->", difference, W, difference, WEIGHTS)

    return minimize_scalar(loss, bounds=(2, 5), method="bounded", options={"xatol": 1e-10}).x


def test_theta_star_of_model_1():
    assert closest(MODEL1, np.eye(1)) == pytest.approx(MODEL1.theta_star[0], abs=1e-6)


def test_theta_star_of_two_outcomes_depends_on_the_weight():
    assert closest(TWO_OUTCOMES, np.eye(2)) == pytest.approx(TWO_OUTCOMES.theta_star[0], abs=1e-6)
    assert closest(TWO_OUTCOMES, np.linalg.inv(TWO_OUTCOMES.noise_cov)) == pytest.approx(
        TWO_OUTCOMES_PRECISION, abs=1e-6
    )
    assert closest(TWO_OUTCOMES, np.diag([0.0, 1.0])) == pytest.approx(TWO_OUTCOMES_SECOND, abs=1e-6)


@pytest.mark.parametrize("model", [FIN, saturation(1, 2), curved(0.5), curved(-0.5)], ids=lambda model: model.name)
def test_theta_star_of_our_own(model):
    fine = ((np.arange(20_000) + 0.5) / 20_000)[:, None]
    start = np.array(model.theta_star) * 1.05 + 0.01
    found = least_squares(lambda t: model.simulator(fine, t) - model.truth(fine), start, xtol=1e-14, ftol=1e-14)
    np.testing.assert_allclose(found.x, model.theta_star, atol=1e-5)


def test_uneven_points_come_from_their_distribution():
    x, y = saturation(1, 2).simulate(np.random.default_rng(0), 2000)
    assert x.shape == (2000, 1)
    assert y.shape == (2000,)
    # the mean of Beta(1, 2) is 1/3; five standard errors
    assert abs(x.mean() - 1 / 3) < 5 * x.std() / np.sqrt(2000)
    assert len(FIN.simulate(np.random.default_rng(0))[0]) == 30


def test_the_noise_has_its_covariance():
    """20000 rows: the relative error of a covariance is about 0.01."""
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(
        np.cov(y - TWO_OUTCOMES.truth(x), rowvar=False), [[0.04, 0.012], [0.012, 0.04]], rtol=0.06
    )


@pytest.mark.parametrize("model", [MODEL1, MODEL2, MODEL3, TWO_OUTCOMES, curved(0.3)], ids=lambda model: model.name)
def test_gradients_agree_with_differences(model):
    x, y = model.simulate(np.random.default_rng(0), 20)
    problem = model.problem(x, y)
    theta = np.array(model.theta_star) * 1.1
    np.testing.assert_allclose(
        problem.simulator.gradient(x, theta), problem.simulator.difference_gradient(x, theta), rtol=1e-6, atol=1e-8
    )
