"""The field data as one Gaussian, for any hyperparameters: y - f(theta_tilde) = G u + b - G lambda(b) + e.

u = theta - theta_tilde has the Gaussian part of theta's prior, or is flat; b is a Gaussian process in each whitened
outcome, and lambda(b) has the coefficients of its projection on G. With C the covariance of b - G lambda(b) + e,

    log p(y) = -(log|C| + log|M| + z'C^-1 z - h'M^-1 h) / 2,   M = G'C^-1 G + V^-1,   h = G'C^-1 z + V^-1 m.

A cell of y is in units of its outcome's noise sd, so that a missing one is left out and nothing else changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from ...arrays import Array, BoolArray, IntArray, unique_rows
from ...bias import GP
from ...problem.problem import Problem
from ...regression.gaussian_process import correlation, jittered_cholesky
from .regress import Linear
from .unknowns import Unknowns

#: a prior of theta that says less than this share of what exact data would, leaves the hyperparameters alone
WEAK_PRIOR = 1e-3

#: numbers of the matrices that are in memory together
BLOCK = 10_000_000


class GaussianDraws(NamedTuple):
    """theta - theta_tilde (s, p); y_R - f(theta_tilde) and b at data and nodes, (s, n + m, q), all whitened."""

    moved: Array
    real: Array
    bias: Array


@dataclass(frozen=True)
class GaussianLaw:
    """Everything given hyperparameters that does not depend on y, with b = L w and w ~ N(0, I).

    Attributes
    ----------
    roots
        L of each outcome.
    design
        b less its projection at the cells from w, (c, w).
    noise_root, lower
        Roots of the noise's covariance and of C, (c, c).
    """

    roots: list[Array]
    design: Array
    noise_root: Array
    lower: Array

    @cached_property
    def precision_root(self) -> Array:
        """A root of the precision of w given the residual, (w, w)."""
        sd = np.diag(self.noise_root)
        independent = np.count_nonzero(self.noise_root) == len(sd)
        white = self.design / sd[:, None] if independent else solve_triangular(self.noise_root, self.design, lower=True)
        return np.asarray(cholesky(white.T @ white + np.eye(white.shape[1]), lower=True))

    @cached_property
    def gain(self) -> Array:
        """What takes the residual at the cells to E(w | y), (w, c)."""
        return np.asarray(cho_solve((self.lower, True), self.design).T)

    @cached_property
    def spread(self) -> Array:
        """R with R'R = Cov(w | y), (w, w)."""
        return np.asarray(solve_triangular(self.precision_root, np.eye(len(self.precision_root)), lower=True))


class GaussianModel:
    """The cells of y that are observed, or a ``part`` (n, q) of them, given hyperparameters v of ``unknowns``.

    Parameters
    ----------
    fit
        What takes the place of f(theta_tilde), (n, q), where theta is not in the model.
    pull
        lambda of a bias that was seen as 0 at the data, with the variance sd^2 n / lambda at each of the n rows.
    """

    def __init__(
        self,
        problem: Problem,
        linear: Linear,
        prior: GP,
        unknowns: Unknowns,
        nodes: Array,
        part: BoolArray | None = None,
        fit: Array | None = None,
        pull: float | None = None,
    ) -> None:
        data, noise = problem.data, problem.noise
        cells = data.observed if part is None else part
        self._nu, self._labelled, self._unknowns = prior.nu, tuple(data.labels.columns), unknowns
        self._row, self._outcome = np.nonzero(cells)
        used: IntArray = np.arange(data.n)
        if part is not None:
            used, self._row = np.unique(self._row, return_inverse=True)
        self._points, (at_data, at_nodes) = unique_rows(data.x[used], nodes)
        self._everywhere, self._m = np.concatenate([at_data, at_nodes]), len(nodes)
        counts = np.ones(data.n) if problem.rows is None else problem.rows.repeats.counts
        share = np.bincount(at_data, counts[used], len(self._points)) / counts[used].sum()
        # variances at the points, in units of the bias's
        self._seen_var = None if pull is None else 1 / (pull * share)
        self._at_cells = at_data[self._row]
        sd = np.sqrt(np.diag(noise.cov))
        # from whitened outcomes to cells
        self._mix = (noise.unwhitener / sd[:, None])[self._outcome]
        self._same_row = np.nonzero(self._row[:, None] == self._row)
        self._z = ((problem.complete_y - (problem.fit if fit is None else fit)) / sd)[cells]
        # theta in units of the gradients' lengths
        self._unit, self._pull = linear.unit, linear.pull * linear.unit
        self._slopes = np.concatenate([linear.at_data[used], linear.at_nodes]) * linear.unit
        self._gradient = np.einsum("ck,ckp->cp", self._mix, self._slopes[self._row])
        self._precision = linear.precision * np.outer(linear.unit, linear.unit)
        information = np.sum(self._gradient**2, axis=0)
        weak = bool((np.diag(self._precision) < WEAK_PRIOR * information).all())
        # a flat u does not feel what is taken from b along G; nor is there a difference where nothing is taken
        self._flat = (weak or not linear.coefficients.any()) and pull is None
        # lambda(b) from b at the distinct points, (q, p, u)
        coefficients = (linear.coefficients / linear.unit[:, None]).reshape(len(linear.unit), len(nodes), data.q)
        taken = np.zeros((len(self._points), data.q, len(linear.unit)))
        np.add.at(taken, at_nodes, np.moveaxis(coefficients, 0, 2))
        self._taken = np.moveaxis(taken, 0, 2)
        self._given = np.zeros((len(self._row), len(self._row)))
        if not unknowns.noise:
            self._given += noise.between_cells(cells) / np.outer(sd[self._outcome], sd[self._outcome])
        relative = np.ones(cells.shape) if noise.relative is None else noise.relative.copy()
        place = np.full(cells.shape, -1)
        place[cells] = np.arange(len(self._row))
        suspects = [cell for cell in unknowns.suspects if cells[cell]]
        self._outlying = np.array([cell in suspects for cell in unknowns.suspects], dtype=bool)
        self._suspects = np.array([place[cell] for cell in suspects], dtype=np.intp)
        for cell in suspects:
            relative[cell] = 1.0
        self._relative = relative[cells]
        self._group = np.zeros(len(self._row), dtype=np.intp) if noise.groups is None else noise.groups[used][self._row]

    def evidence(self, vectors: Array) -> Array:
        """log p(y | v) up to a constant for each v (m, k), (m,); -inf where rounding leaves no covariance."""
        if len(vectors) > 1 and len(vectors) * len(self._z) ** 2 > BLOCK:
            return np.concatenate([self.evidence(part) for part in np.array_split(vectors, 2)])
        slopes, left, log_det = self._whitened(vectors)
        information = np.swapaxes(slopes, 1, 2) @ slopes + self._precision
        pull = np.einsum("mcp,mc->mp", slopes, left) + self._pull
        # NaN where rounding leaves no root
        with np.errstate(invalid="ignore"):
            explained = np.sum(pull * np.linalg.solve(information, pull[..., None])[..., 0], axis=1)
            found = -0.5 * (log_det + np.linalg.slogdet(information)[1] + np.sum(left**2, axis=1) - explained)
        return np.where(np.isfinite(found), found, -np.inf)

    def information(self, vectors: Array) -> tuple[Array, Array]:
        """G'C^-1 G (m, p, p) and G'C^-1 z (m, p) for each v, G in units of the gradients' lengths."""
        each = [self._whitened(v[None]) for v in vectors]
        found = [(slopes[0].T @ slopes[0], slopes[0].T @ left[0]) for slopes, left, _ in each]
        return np.stack([H for H, _ in found]), np.stack([h for _, h in found])

    def _whitened(self, vectors: Array) -> tuple[Array, Array, Array]:
        """L^-1 G (m, c, p), L^-1 z (m, c) and log|C| (m,), with C = L L' for each v."""
        c, p = self._gradient.shape
        beside = np.column_stack([self._gradient, self._z])
        whole = np.zeros((len(vectors), c + p + 1, c + p + 1))
        whole[:, :c, :c] = [self._covariance(v) for v in vectors]
        whole[:, c:, :c] = beside.T
        # the last rows of its Cholesky root are L^-1 [G, z], whatever large number stands in the corner
        whole[:, np.arange(c, c + p + 1), np.arange(c, c + p + 1)] = 1e200
        root = _roots(whole)
        slopes, left = np.swapaxes(root[:, c:-1, :c], 1, 2), root[:, -1, :c]
        return slopes, left, 2 * np.log(np.diagonal(root, axis1=1, axis2=2)[:, :c]).sum(axis=1)

    def _covariance(self, v: Array) -> Array:
        """C, (c, c)."""
        whole = self._noise(v)
        for k, own in enumerate(self._unknowns.log_sd_and_lengths(v)):
            mix = self._mix[:, k]
            both = np.outer(mix, mix)
            if self._flat:
                whole += both * self._kernel(own, self._points[self._at_cells])
                continue
            kernel = self._kernel(own, self._points)
            along = self._taken[k] @ kernel
            cross = self._gradient @ (along[:, self._at_cells] * mix)
            whole += both * kernel[self._at_cells[:, None], self._at_cells] - cross - cross.T
            whole += self._gradient @ (along @ self._taken[k].T) @ self._gradient.T
        return whole

    def _kernel(self, log_values: Array, x: Array) -> Array:
        """Covariance of b at x, (u, u)."""
        sd, lengths = np.exp(log_values[0]), np.exp(log_values[1:])
        whole = correlation(x, x, lengths, self._nu, self._labelled)
        if self._seen_var is not None:
            whole = whole - whole @ np.linalg.solve(whole + np.diag(self._seen_var), whole)
        return np.asarray(sd**2 * whole)

    def _noise(self, v: Array) -> Array:
        """Covariance of the cells' noise."""
        whole = self._given.copy()
        if self._unknowns.noise:
            cov = self._unknowns.noise_cov(v)
            first, second = self._same_row
            relative = self._relative.copy()
            relative[self._suspects] = np.exp(self._unknowns.log_outlying(v)[self._outlying])
            each = cov[self._group[first]] if cov.ndim == 3 else cov
            between = np.sum((self._mix[first, None] @ each)[:, 0] * self._mix[second], axis=1)
            whole[first, second] += between * relative[first] * relative[second]
        return np.asarray(whole)

    def law(self, v: Array) -> GaussianLaw:
        """Everything given v that does not depend on y."""
        each = self._unknowns.log_sd_and_lengths(v)
        roots = [jittered_cholesky(self._kernel(own, self._points))[0] for own in each]
        columns = [
            self._mix[:, [k]] * root[self._at_cells] - self._gradient @ (self._taken[k] @ root)
            for k, root in enumerate(roots)
        ]
        design, noise = np.hstack(columns), self._noise(v)
        return GaussianLaw(roots, design, cholesky(noise, lower=True), cholesky(design @ design.T + noise, lower=True))

    def draw(self, rngs: list[np.random.Generator], counts: IntArray, v: Array) -> GaussianDraws:
        """Exact independent draws given y and v, ``counts`` of them by each generator: u, then w given u."""

        def normal(width: int) -> Array:
            return normals(rngs, counts, width)

        law = self.law(v)
        weighted = cho_solve((law.lower, True), self._gradient).T
        values, vectors = np.linalg.eigh(weighted @ self._gradient + self._precision)
        root = vectors / np.sqrt(np.maximum(values, np.finfo(float).tiny))
        u = ((weighted @ self._z + self._pull) @ root + normal(len(values))) @ root.T
        # of few draws: neither the gain nor the spread is needed whole
        white = cho_solve((law.lower, True), (self._z - u @ self._gradient.T).T).T @ law.design
        turned = solve_triangular(law.precision_root, normal(white.shape[1]).T, lower=True, trans=1)
        return self._at_points(u, white + turned.T, law.roots)

    def theta_var(self, v: Array) -> Array:
        """Variance of theta given y and v, (p,)."""
        white = solve_triangular(self.law(v).lower, self._gradient, lower=True)
        return np.asarray(np.diag(np.linalg.inv(white.T @ white + self._precision)) * self._unit**2)

    def from_priors(self, rngs: list[np.random.Generator], counts: IntArray, law: GaussianLaw) -> tuple[Array, Array]:
        """White noise w of b (s, w), and what b and e leave of z, (s, c)."""
        white = normals(rngs, counts, law.design.shape[1])
        return white, self._z - white @ law.design.T - normals(rngs, counts, len(self._z)) @ law.noise_root.T

    def drawn_white(self, rng: np.random.Generator, law: GaussianLaw, left: Array) -> Array:
        """w, (w,), given what theta leaves at the cells, where nothing is taken from b."""
        return np.asarray(law.gain @ left + rng.standard_normal(len(law.gain)) @ law.spread)

    def values(self, law: GaussianLaw, white: Array) -> Array:
        """b = L w at data and nodes, (n + m, q)."""
        return np.asarray(self._at_points(np.zeros((1, len(self._unit))), white[None], law.roots).bias[0])

    def node_roots(self, law: GaussianLaw) -> Array:
        """The rows of L that are the nodes', (m, q, w)."""
        n, blocks = len(self._everywhere) - self._m, law.roots
        ends = np.cumsum([len(root) for root in blocks])
        found = np.zeros((self._m, len(blocks), ends[-1]))
        for k, (root, end) in enumerate(zip(blocks, ends, strict=True)):
            found[:, k, end - len(root) : end] = root[self._everywhere[n:]]
        return found

    def _at_points(self, u: Array, white: Array, roots: list[Array]) -> GaussianDraws:
        values = _at_distinct(white, roots)
        taken = np.sum([own @ part.T for own, part in zip(values, self._taken, strict=True)], axis=0)
        bias = self._in_order(values)
        real = bias + np.einsum("xkp,sp->sxk", self._slopes, u - taken)
        return GaussianDraws(u * self._unit, real, bias)

    def at_all_points(self, white: Array, roots: list[Array]) -> Array:
        """b at data and nodes, (s, n + m, q), from white noise (s, w)."""
        return self._in_order(_at_distinct(white, roots))

    def _in_order(self, values: list[Array]) -> Array:
        """Of each outcome at the distinct points (s, u), at data and nodes, (s, n + m, q)."""
        return np.stack([own[:, self._everywhere] for own in values], axis=-1)


def _at_distinct(white: Array, roots: list[Array]) -> list[Array]:
    """b of each outcome at the distinct points, (s, u), from white noise (s, w)."""
    ends = np.cumsum([len(root) for root in roots])[:-1]
    return [own @ root.T for own, root in zip(np.split(white, ends, axis=1), roots, strict=True)]


def normals(rngs: list[np.random.Generator], counts: IntArray, width: int) -> Array:
    """``counts`` rows of normal numbers by each generator, (s, width)."""
    return np.concatenate([rng.standard_normal((count, width)) for rng, count in zip(rngs, counts, strict=True)])


def _roots(matrices: Array) -> Array:
    """Cholesky roots (m, u, u), NaN where there is none."""
    try:
        return np.linalg.cholesky(matrices)
    except np.linalg.LinAlgError:
        if len(matrices) == 1:
            return np.full_like(matrices, np.nan)
        return np.concatenate([_roots(half) for half in np.array_split(matrices, 2)])
