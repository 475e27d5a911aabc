"""Orthogonality: the projection of the bias away from the gradients of the simulator.

With g_j = df/dt_j at theta_tilde and <u, v> = ∫ u' W v dP_x,

    functional    b* = b - sum_j lambda_j g_j,  Q lambda = eta,  Q_jl = <g_j, g_l>,  eta_j = <b, g_j>
    finite        b* = b - S A (A' S A)^-1 A' b,  A = the columns w_i W g_j(x_i),  S = Cov(b | y) at the data

Both take away a combination of p directions with coefficients that are linear in b, and that is how they are
coded: b* = b - D (C' b). Everything here is in whitened coordinates, where the metric W becomes T^-T W T^-1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from .advice import JOINT
from .arrays import Array
from .errors import IdentifiabilityError

#: sensitivities whose smallest singular value (of unit columns) is below this cannot be told apart
COLLINEAR = 1e-6


class ProjectionKind(StrEnum):
    """Where the bias is orthogonal to the gradients: over the domain, on the data points, at the draw's own theta
    over the domain, or nowhere.
    """

    FUNCTIONAL = "functional"
    FINITE = "finite"
    JOINT = "joint"
    NONE = "none"


class ProjectedBias(NamedTuple):
    """A projected bias: at the data (c, n, q), coefficients (c, p) and the relative error of <b*, g_j> = 0, (c,)."""

    bias: Array
    coefficient: Array
    error: Array


@dataclass(frozen=True)
class Projection:
    """b* = b - D (C' b), for bias draws at the data points followed by the nodes.

    Attributes
    ----------
    directions
        D at the data, (n q, p).
    constraint, own_directions
        C and D at the points where the constraint lives (nodes or data), (k q, p).
    gradients
        Columns that give <b, g_j> / |g_j| at these points, (k q, p).
    metric
        w_k W at these points, (k, q, q): |b|^2 = sum_k b_k' metric_k b_k.
    natural
        (p, p): turns C' b into the coefficients that ``predict`` needs: lambda, or A' b.
    finite
        Whether the constraint lives on the data points.
    """

    directions: Array
    constraint: Array
    own_directions: Array
    gradients: Array
    metric: Array
    natural: Array
    finite: bool

    def apply(self, bias: Array) -> ProjectedBias:
        """Project draws (c, n + m, q), or (c, n, q) where the constraint lives on the data."""
        c, q = len(bias), bias.shape[2]
        n = len(self.directions) // q
        at_data = bias[:, :n].reshape(c, -1)
        own = at_data if self.finite else bias[:, n:].reshape(c, -1)
        coefficient = own @ self.constraint
        left = own - coefficient @ self.own_directions.T
        # a second pass takes away the rounding error of the first
        second = left @ self.constraint
        left -= second @ self.own_directions.T
        coefficient += second
        projected = at_data - coefficient @ self.directions.T
        cells = own.reshape(c, len(self.metric), q)
        size = np.sqrt(np.einsum("ckq,kqr,ckr->c", cells, self.metric, cells))
        error = np.abs(left @ self.gradients).max(axis=1) / np.where(size > 0, size, 1.0)
        return ProjectedBias(projected.reshape(c, n, q), coefficient @ self.natural.T, error)


@dataclass(frozen=True)
class Sensitivity:
    """The gradients at theta_tilde as vectors of the constraint's space.

    Attributes
    ----------
    gram
        Q, (p, p).
    triangle
        R of g = h R with <h_j, h_l> = delta_jl, (p, p).
    lengths
        |g_j|, (p,).
    singular, vectors
        Singular values of the gradients scaled to length one, the largest first, (p,), and their right singular
        vectors, the rows of (p, p).
    """

    gram: Array
    triangle: Array
    lengths: Array
    singular: Array
    vectors: Array

    @property
    def weakest(self) -> float:
        """Smallest singular value: 1 for orthogonal sensitivities, 0 for collinear ones."""
        return float(self.singular[-1])

    @property
    def open(self) -> Array:
        """Rows of ``vectors`` along which the simulator does not change, (k, p)."""
        return np.asarray(self.vectors[self.singular < COLLINEAR])

    @property
    def basis(self) -> Array:
        """Directions of theta along which it changes by orthogonal functions, (p, r)."""
        return np.asarray(self.vectors[self.singular >= COLLINEAR].T / self.lengths[:, None])

    def require_told_apart(self, names: tuple[str, ...]) -> None:
        """Refuse parameters of which the simulator answers to a combination only."""
        if self.weakest < COLLINEAR:
            raise IdentifiabilityError(
                f"the sensitivities of the parameters {', '.join(repr(names[j]) for j in loaded(self.vectors[-1]))} "
                "are collinear at the best fit: the simulator answers to a combination of them only. Fix one of them, "
                "calibrate the combination, or take " + JOINT + ", which leaves the others to their priors"
            )


def loaded(vector: Array) -> list[int]:
    """The parameters that a direction (p,) is made of."""
    return [int(j) for j in np.flatnonzero(np.abs(vector) > 0.1 * np.abs(vector).max())]


def gram_matrix(gradient: Array, weights: Array, metric: Array) -> Array:
    """Q_jl = <g_j, g_l>, (p, p), from gradients (k, q, p)."""
    return np.asarray(np.einsum("k,kqi,qr,krj->ij", weights, gradient, metric, gradient))


def sensitivity(
    gradient: Array,
    weights: Array,
    metric: Array,
    names: tuple[str, ...],
    floor: Array | float = 0.0,
    refusing: bool = True,
) -> Sensitivity:
    """Q and its factors from gradients (k, q, p), weights (k,) and the metric (q, q).

    A gradient of length ``floor`` (p,) or less counts as none: what finite differences leave of a zero. To have none is
    an error, or, without ``refusing``, a direction that the simulator does not answer to.
    """
    root = np.linalg.cholesky(metric)
    scaled = np.einsum("k,kqp,qr->krp", np.sqrt(weights), gradient, root).reshape(-1, gradient.shape[2])
    lengths = np.linalg.norm(scaled, axis=0)
    none = lengths <= floor
    if not refusing:
        scaled, lengths = np.where(none, 0.0, scaled), np.where(none, 1.0, lengths)
    for j in np.flatnonzero(none & refusing):
        raise IdentifiabilityError(
            f"parameter {names[j]!r} has no effect on the simulator at the best fit: the data cannot determine it. "
            "Leave it out, or check that the simulator uses it"
        )
    if len(scaled) < len(names):
        raise IdentifiabilityError(f"{len(names)} parameters need at least as many nodes, there are {len(scaled)}")
    _, singular, vectors = np.linalg.svd(scaled / lengths, full_matrices=False)
    triangle = np.linalg.qr(scaled)[1]
    return Sensitivity(gram_matrix(gradient, weights, metric), triangle, lengths, singular, vectors)


def functional_projection(
    at_data: Array, at_nodes: Array, weights: Array, metric: Array, sensitivities: Sensitivity
) -> Projection:
    """The functional projection, from gradients at the data (n, q, p) and at the nodes (m, q, p)."""
    p = at_data.shape[2]

    def orthonormal(gradient: Array) -> Array:
        return np.asarray(solve_triangular(sensitivities.triangle, gradient.reshape(-1, p).T, trans=1).T)

    weighted = weights[:, None, None] * metric
    own = orthonormal(at_nodes)
    constraint = np.einsum("kqr,krp->kqp", weighted, own.reshape(at_nodes.shape)).reshape(-1, p)
    lengths = np.sqrt(np.diag(sensitivities.gram))
    gradients = np.einsum("kqr,krp->kqp", weighted, at_nodes).reshape(-1, p) / lengths
    natural = solve_triangular(sensitivities.triangle, np.eye(p))
    return Projection(orthonormal(at_data), constraint, own, gradients, weighted, natural, finite=False)


def finite_projection(at_data: Array, volumes: Array, metric: Array, factor: Array) -> Projection:
    """The finite projection, from gradients at the data (n, q, p), cell volumes (n,) and ``factor`` (n q, r).

    ``factor`` is any F with F F' = S, the posterior covariance of the bias at the data.
    """
    p = at_data.shape[2]
    weighted = volumes[:, None, None] * metric
    A = np.einsum("kqr,krp->kqp", weighted, at_data).reshape(-1, p)
    orthogonal, triangle = np.linalg.qr(factor.T @ A)
    # S A (A' S A)^-1 = F O R^-T with F' A = O R
    directions = solve_triangular(triangle, (factor @ orthogonal).T).T
    lengths = np.sqrt(np.einsum("kqp,kqr,krp->p", at_data, weighted, at_data))
    return Projection(directions, A, directions, A / lengths, weighted, np.eye(p), finite=True)


class Continuation(NamedTuple):
    """A projection away from the points that it was made for: b*(x) = b(x) - D(x) c, with the draw's coefficients c.

    ``directions`` maps x (m, d) to D, (m, q, p), whitened.
    """

    directions: Callable[[Array], Array]

    def apply(self, x: Array, bias: Array, coefficient: Array) -> Array:
        """b* at x from b there, (c, s, m, q), and the coefficients (c, s, p)."""
        return np.asarray(bias - np.einsum("mkp,csp->csmk", self.directions(x), coefficient))


def functional_continuation(gradient: Callable[[Array], Array], whitener: Array) -> Continuation:
    """The directions of the functional projection are the gradients at theta_tilde, wherever they are asked for."""
    return Continuation(lambda x: np.einsum("kl,mlp->mkp", whitener, gradient(x)))


def extended_continuation(at_data: Array, extended: Callable[[int, Array, Array], Array]) -> Continuation:
    """Those of the finite projection continue as the Gaussian process does, from the data, (n, q, p).

    ``extended(k, values, x)`` continues functions of outcome k, (n, p) at the data, to x.
    """
    outcomes = range(at_data.shape[1])
    return Continuation(lambda x: np.stack([extended(k, at_data[:, k], x) for k in outcomes], axis=1))


def regressed_continuation(constraint: Array, draws_at: Callable[[Array], Array]) -> Continuation:
    """The same for any prior: the regression of b(x), (r, m, q), on the constraints (r, p), over reference draws."""

    def directions(x: Array) -> Array:
        bias = draws_at(x)
        centred = (bias - bias.mean(axis=0)).reshape(len(bias), -1)
        solved = np.linalg.lstsq(constraint, centred / np.sqrt(len(bias) - 1), rcond=None)[0]
        return np.moveaxis(solved.reshape(-1, *bias.shape[1:]), 0, -1)

    return Continuation(directions)


def quadrature_error(fine: Array, coarse: Array) -> float:
    """The largest difference of two Gram matrices, relative to the gradients' lengths."""
    # what has no effect has no error
    lengths = np.sqrt(np.where(np.diag(fine) > 0, np.diag(fine), 1.0))
    return float(np.max(np.abs(fine - coarse) / np.outer(lengths, lengths)))
