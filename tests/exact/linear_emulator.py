"""An emulator that is linear in theta and in Gaussian coefficients: theta_1 x + theta_2 x^2 + H(x) a, a ~ N(0, S)."""

import numpy as np

S = np.array([[0.09, 0.03], [0.03, 0.04]])


def known(x):
    return np.stack([x, x**2], axis=1)


def unknown(x):
    return np.stack([np.sin(4 * x), np.cos(3 * x)], axis=1)


class LinearEmulator:
    """The mean, and draws whose coefficients have the moments of N(0, S) exactly."""

    parameter_names, has_variance, has_draws = ("a", "b"), True, True

    def __init__(self, added=(0.0, 0.0)):
        self.added = np.asarray(added)

    def __call__(self, x, theta):
        column = np.ravel(x)
        return (known(column) @ theta + unknown(column) @ self.added)[:, None]

    def gradient(self, x, theta):
        return known(np.ravel(x))[:, None, :]

    def variance(self, x, theta):
        own = unknown(np.ravel(x))
        return np.einsum("nj,jk,nk->n", own, S, own)[:, None]

    def outside(self, theta):
        return np.zeros(len(theta), dtype=bool)

    def draws(self, count, seed):
        raw = np.random.default_rng(seed).standard_normal((count, 2))
        raw -= raw.mean(axis=0)
        white = raw @ np.linalg.inv(np.linalg.cholesky(raw.T @ raw / count)).T
        return [LinearEmulator(one) for one in white @ np.linalg.cholesky(S).T]
