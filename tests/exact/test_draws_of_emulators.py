"""Draws of an emulator in the joint projection: the closed form of a linear emulator with Gaussian coefficients.

    f(x, theta) = theta_1 x + theta_2 x^2 + a_1 sin(4 x) + a_2 cos(3 x),  a ~ N(0, S),  y = f + b + e

With z = (y_R, a), y_R its Gaussian regression with a flat trend and a independent of it, theta = A (y_R - H a) is
linear in z, and a prior N(m, V) of theta is one more observation of z. The draws' a have the mean 0 and the covariance
S exactly, so that 4000 draws of y_R have the error of 4000 draws: 4 standard errors fail by chance in one of 10^4.
"""

import numpy as np
import pytest
from linear_emulator import LinearEmulator, S, known, unknown
from scipy import stats

import orthocal as oc

N, NOISE_SD, SD, LENGTH, DRAWS = 40, 0.1, 0.4, 0.5, 1000
WIDE, NARROW = (np.zeros(2), np.array([50.0, 50.0])), (np.array([1.2, -0.2]), np.array([0.15, 0.4]))


def kernel(a, b, sd):
    r = np.sqrt(3) * np.abs(a[:, None] - b) / LENGTH
    return sd**2 * (1 + r) * np.exp(-r)


def closed_form(problem, prior, sd=SD):
    """Mean and covariance of z = (y_R at data and nodes, a), and the rows that take z to theta."""
    x, nodes = problem.data.x[:, 0], problem.rule.nodes[:, 0]
    every, basis = np.concatenate([x, nodes]), known(np.concatenate([x, nodes]))
    noisy = np.linalg.inv(kernel(x, x, sd) + NOISE_SD**2 * np.eye(N))
    gain = kernel(every, x, sd) @ noisy
    cov_beta = np.linalg.inv(basis[:N].T @ noisy @ basis[:N])
    beta = cov_beta @ basis[:N].T @ noisy @ problem.data.y[:, 0]
    left = basis - gain @ basis[:N]
    mean = left @ beta + gain @ problem.data.y[:, 0]
    cov = kernel(every, every, sd) - gain @ kernel(x, every, sd) + left @ cov_beta @ left.T
    weighted = basis[N:] * problem.rule.weights[:, None]
    project = np.linalg.solve(weighted.T @ basis[N:], weighted.T)
    to_theta = np.hstack([np.zeros((2, N)), project, -project @ unknown(nodes)])
    whole = np.zeros((len(every) + 2, len(every) + 2))
    whole[:-2, :-2], whole[-2:, -2:] = cov, S
    mean = np.append(mean, np.zeros(2))
    gain = whole @ to_theta.T @ np.linalg.inv(to_theta @ whole @ to_theta.T + np.diag(prior[1] ** 2))
    return mean + gain @ (prior[0] - to_theta @ mean), whole - gain @ to_theta @ whole, to_theta


@pytest.fixture(scope="module")
def field_data():
    rng = np.random.default_rng(3)
    x = rng.random(N)
    return x, 1.4 * x - 0.6 * x**2 + 0.2 * np.sin(9 * x) + NOISE_SD * rng.standard_normal(N)


def posterior_of(field_data, prior, emulator_draws=16):
    priors = {name: stats.norm(m, sd) for name, m, sd in zip("ab", *prior, strict=True)}
    problem = oc.Problem(*field_data, LinearEmulator(), priors, domain=oc.Box(0, 1), noise_cov=NOISE_SD**2, starts=2)
    method = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=SD, lengthscale=LENGTH))
    return problem, oc.calibrate(problem, method, draws=DRAWS, seed=4, progress=False, emulator_draws=emulator_draws)


@pytest.mark.parametrize("prior", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_posterior_is_the_closed_form(field_data, prior):
    problem, posterior = posterior_of(field_data, prior)
    mean, cov, to_theta = closed_form(problem, prior)
    expected, sds = to_theta @ mean, np.sqrt(np.diag(to_theta @ cov @ to_theta.T))
    theta = posterior.theta.reshape(-1, 2)
    count = len(theta)
    assert (np.abs(theta.mean(axis=0) - expected) < 4 * sds / np.sqrt(count)).all()
    assert (np.abs(theta.std(axis=0) / sds - 1) < 4 / np.sqrt(2 * count)).all()
    correlation = (to_theta @ cov @ to_theta.T)[0, 1] / sds.prod()
    assert np.corrcoef(theta.T)[0, 1] == pytest.approx(correlation, abs=4 * (1 - correlation**2) / np.sqrt(count))


@pytest.mark.parametrize("prior", [WIDE, NARROW], ids=["wide", "narrow"])
def test_model_and_bias_are_the_closed_forms(field_data, prior):
    """The emulator's own part of the model, H a, goes with theta."""
    problem, posterior = posterior_of(field_data, prior)
    mean, cov, to_theta = closed_form(problem, prior)
    x = problem.data.x[:, 0]
    to_model = known(x) @ to_theta
    to_model[:, -2:] += unknown(x)
    to_real = np.eye(N, len(mean))
    model = posterior.data["model"]["model"].values.reshape(-1, N)
    real = model + posterior.data["bias"]["bias"].values.reshape(-1, N)
    for found, rows in ((model, to_model), (real, to_real)):
        sds = np.sqrt(np.einsum("ij,jk,ik->i", rows, cov, rows))
        # the largest of 40: 5 standard errors
        assert np.abs((found.mean(axis=0) - rows @ mean) / sds).max() < 5 / np.sqrt(len(found))
        assert np.abs(found.std(axis=0) / sds - 1).max() < 5 / np.sqrt(2 * len(found))


def test_without_draws_the_emulators_part_is_missing(field_data):
    """The negative control."""
    problem, posterior = posterior_of(field_data, WIDE, emulator_draws=0)
    _, cov, to_theta = closed_form(problem, WIDE)
    sds = np.sqrt(np.diag(to_theta @ cov @ to_theta.T))
    assert (posterior.theta.reshape(-1, 2).std(axis=0) < 0.8 * sds).all()


def waves(x):
    return np.stack([np.sin(12 * x), np.cos(9 * x)], axis=1)


class SlopedEmulator(LinearEmulator):
    """Its draws differ in their gradients: e_k = waves(x) D_k (theta - centre)."""

    def __init__(self, centre, sloped=((0.0, 0.0), (0.0, 0.0))):
        super().__init__()
        self.centre, self.sloped = centre, np.asarray(sloped)

    def __call__(self, x, theta):
        return super().__call__(x, theta) + (waves(np.ravel(x)) @ self.sloped @ (theta - self.centre))[:, None]

    def gradient(self, x, theta):
        return super().gradient(x, theta) + (waves(np.ravel(x)) @ self.sloped)[:, None, :]

    def draws(self, count, seed):
        sloped = 0.1 * np.random.default_rng(seed).standard_normal((count, 2, 2))
        self.made = [SlopedEmulator(self.centre, one) for one in sloped]
        return self.made


@pytest.mark.parametrize("sd", [SD, 0.02], ids=["bias", "hardly a bias"])
def test_errors_of_the_gradient_count(field_data, sd):
    """theta = A (y_R - m) + A_k (m + (1 - G A) (y_R - m) - f_k), m the mean of y_R: what is along G is along G_k.

    5 standard errors of the moments of 4000 draws, where the draws of the emulator are given. What is uncertain about
    y_R along G is not projected on gradients with errors: without a bias the sds of A_k y_R would be too small.
    """
    priors = {name: stats.norm(0, 50) for name in "ab"}
    # no errors at the best fit itself, beside which those of the gradient would be little
    emulator = SlopedEmulator(posterior_of(field_data, WIDE, 0)[0].theta_tilde)
    problem = oc.Problem(*field_data, emulator, priors, domain=oc.Box(0, 1), noise_cov=NOISE_SD**2, starts=2)
    method = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=sd, lengthscale=LENGTH))
    theta = oc.calibrate(problem, method, draws=DRAWS, seed=4, progress=False, emulator_draws=16).theta.reshape(-1, 2)
    mean, cov, to_theta = closed_form(problem, WIDE, sd)
    nodes, weights = problem.rule.nodes[:, 0], problem.rule.weights[:, None]
    real, real_cov, A = mean[N:-2], cov[N:-2, N:-2], to_theta[:, N:-2]
    centres, within, short = [], [], []
    for one in emulator.made:
        dG = waves(nodes) @ one.sloped
        G = known(nodes) + dG
        own = np.linalg.solve((G * weights).T @ G, (G * weights).T)
        centres.append(own @ (real + dG @ emulator.centre))
        both = A + own @ (np.eye(len(nodes)) - known(nodes) @ A)
        within.append(both @ real_cov @ both.T)
        short.append(own @ real_cov @ own.T)
    between = np.cov(np.transpose(centres), bias=True)
    sds, short_sds = (np.sqrt(np.diag(np.mean(one, axis=0) + between)) for one in (within, short))
    assert (np.abs(theta.mean(axis=0) - np.mean(centres, axis=0)) < 5 * sds / np.sqrt(len(theta))).all()
    assert (np.abs(theta.std(axis=0) / sds - 1) < 5 / np.sqrt(2 * len(theta))).all()
    assert sd == SD or (short_sds < 0.8 * sds).all()
