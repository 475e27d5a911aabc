"""A regressor for emulators, to copy: a quadratic response surface.

Inside the package: a file in ``emulators/``, its settings a subclass of ``ListedRegressor`` with ``name`` and ``words``
under ``@listed``, and a line in its ``__init__.py``. Outside give the object, ``oc.emulate(runs, Quadratic())``.
"""

import numpy as np


class Quadratic:
    """t(u) = sum_k c_k m_k(u), m the monomials of degree 0, 1 and 2 of the inputs, c by least squares."""

    # "components": a row a run, inputs theta, targets the principal components of the output;
    # "stacked": a row a run and point, inputs (x, theta)
    layout = "components"

    # inputs (N, k) in the unit cube, targets (N, r) with mean 0 and sd 1
    def fit(self, inputs, targets):
        design = monomials(inputs)
        coefficients, *_ = np.linalg.lstsq(design, targets)
        return FittedQuadratic(coefficients, design, targets)


class FittedQuadratic:
    """What was learnt. ``predict`` is all that is needed."""

    def __init__(self, coefficients, design, targets):
        self.coefficients = coefficients
        freedom = max(1, len(design) - design.shape[1])
        self.error_var = np.sum((targets - design @ coefficients) ** 2, axis=0) / freedom
        self.covariance = np.linalg.pinv(design.T @ design)

    def predict(self, inputs):
        return monomials(inputs) @ self.coefficients

    # optional, (M, r, k): without it the predictions count as a step function
    def gradient(self, inputs):
        return np.einsum("mtk,tr->mrk", slopes(inputs), self.coefficients)

    # optional, (M, r): without it nobody knows the emulator's error
    def variance(self, inputs):
        own = monomials(inputs)
        leverage = np.einsum("mt,tu,mu->m", own, self.covariance, own)
        return (1 + leverage)[:, None] * self.error_var

    # optional: `draws(count, rng)`, functions that may be the one that was learnt, for oc.methods.Joint


def monomials(u):
    """1, u_i and u_i u_j, (m, t)."""
    i, j = np.triu_indices(u.shape[1])
    return np.hstack([np.ones((len(u), 1)), u, u[:, i] * u[:, j]])


def slopes(u):
    """Their derivatives, (m, t, k)."""
    k = u.shape[1]
    i, j = np.triu_indices(k)
    unit = np.eye(k)
    products = unit[i] * u[:, j, None] + unit[j] * u[:, i, None]
    return np.concatenate([np.zeros((len(u), 1, k)), np.tile(unit, (len(u), 1, 1)), products], axis=1)
