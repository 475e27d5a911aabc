"""Draws of a fitted Gaussian process as functions with gradients, pathwise (Wilson and others, JMLR 2021).

A draw of target = beta' h(u) + Z(u) given the runs is a draw of the prior, corrected by what it misses of the runs:

    f_s(u) = z(u) + beta_s' h(u) + k(u, U) K^-1 (y - z(U) - e - H beta_s),   e ~ N(0, noise),

beta_s the least-squares trend of y - z(U) - e. Its mean is the prediction, its covariance that of the prediction's
error, the trend's included. The prior draw is a sum of cosines whose frequencies follow the kernel's spectral density:

    z(u) = sd sum_i sqrt(2 / D  p(w_i) / q(w_i)) g_i cos(w_i' u + phase_i),   g_i ~ N(0, 1)

What the runs leave is the work of frequencies that they do not resolve, which p seldom has. So the frequencies are
drawn from a mixture q of p stretched by 1, 2, 4, ..., up to beyond what the runs resolve.

What a process calls noise is the simulator's own, unless replicates tell that it is not: structure that the runs do not
resolve. It is added as a process of that variance whose length-scales are such that each run has a volume of its own:
longer ones the runs would have seen. Beside a bias its slope moves theta, of which a constant would have none.

Where runs are few, sd, length-scales and noise variance are drawn first, for each draw its own.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.linalg import cho_solve, solve_triangular
from scipy.special import logsumexp

from ...arrays import Array
from .lazy_sequence import Lazy, Room

#: frequencies of each octave, and most octaves; the tail of the squared exponential's density ends sooner
FREQUENCIES, MOST_OCTAVES, MOST_GAUSSIAN = 128, 9, 4
#: smoothness of what the runs do not resolve
ROUGH_NU = 2.5
#: for the draws of all emulators that are in use: to make one takes two hundred times as long as to call it
ROOM = Room(512 * 2**20)


class Process(Protocol):
    """What of a process a draw needs: see ``emulators/gp.py``."""

    @property
    def members(self) -> list[int]: ...
    @property
    def nu(self) -> float: ...
    @property
    def sd(self) -> float: ...
    @property
    def lengthscale(self) -> Array: ...
    @property
    def trend(self) -> Array: ...
    @property
    def lower(self) -> Array: ...
    @property
    def trend_root(self) -> Array: ...


P = TypeVar("P", bound=Process)


class Kriged(Protocol[P]):
    """Predictions at inputs (M, k) by processes that were learnt from rows."""

    inputs: Array
    processes: list[P]
    lengthscales: Array

    def predict(self, inputs: Array) -> Array: ...
    def gradient(self, inputs: Array) -> Array: ...
    def rough_var(self, process: P) -> float:
        """What of a process's noise is the targets' own."""

    def redrawn(self, rng: np.random.Generator) -> Kriged[P]:
        """With hyperparameters that are drawn, where the rows leave them uncertain."""

    def moved(self, trend: Array, alpha: Array) -> Kriged[P]:
        """With something added to the trends (t, r) and to what takes k(u, rows) to the targets, (r, N)."""


class Waves(NamedTuple):
    """sqrt(2 / D p / q) cos(frequencies u + phases): (D, k), (D,) and (D,)."""

    frequencies: Array
    phases: Array
    sizes: Array

    def at(self, inputs: Array) -> Array:
        """At inputs (M, k), (M, D)."""
        return np.asarray(np.cos(inputs @ self.frequencies.T + self.phases) * self.sizes)

    def slopes(self, row: Array) -> Array:
        """The derivative at one row (k,), (D, k)."""
        return np.asarray((-np.sin(self.frequencies @ row + self.phases) * self.sizes)[:, None] * self.frequencies)


def waves(rng: np.random.Generator, nu: float, lengthscale: Array, octaves: int) -> Waves:
    """Cosines whose weighted sums with N(0, 1) have the covariance k(r)."""
    k = len(lengthscale)
    stretch = 2.0 ** np.repeat(np.arange(octaves), FREQUENCIES)
    unit = rng.standard_normal((len(stretch), k))
    if nu != np.inf:
        unit *= np.sqrt(2 * nu / rng.chisquare(2 * nu, len(unit)))[:, None]
    unit *= stretch[:, None]
    squares = np.sum(unit**2, axis=1)
    # p in units of q, all strata weighing the same
    scales = 2.0 ** np.arange(octaves)
    others = _log_density(squares[:, None] / scales**2, nu, k) - k * np.log(scales)
    log_ratio = _log_density(squares, nu, k) + np.log(octaves) - logsumexp(others, axis=1)
    phases = rng.uniform(0, 2 * np.pi, len(unit))
    return Waves(unit / lengthscale, phases, np.sqrt(2 * np.exp(log_ratio) / len(unit)))


def _log_density(squares: Array, nu: float, k: int) -> Array:
    """Of frequencies in units of 1 / lengthscale, but for a constant: normal, or Student's t of 2 nu degrees."""
    if nu == np.inf:
        return -squares / 2
    return np.asarray(-(nu + k / 2) * np.log1p(squares / (2 * nu)))


def octaves_of(process: Process, rows: int) -> int:
    """So many that the last goes beyond the frequencies that so many rows resolve in the unit cube."""
    resolved = np.pi * float(process.lengthscale.max()) * rows ** (1 / len(process.lengthscale))
    most = MOST_GAUSSIAN if process.nu == np.inf else MOST_OCTAVES
    return int(np.clip(2 + np.ceil(np.log2(resolved)), 1, most))


def unresolved(lengthscale: Array, rows: int) -> Array:
    """Length-scales of what so many rows in the unit cube do not resolve: a row for each volume of theirs, or fewer."""
    share = (rows * float(np.prod(lengthscale))) ** (-1 / len(lengthscale))
    return np.asarray(lengthscale * min(share, 1.0))


def gp_draws(fitted: Kriged[P], count: int, rng: np.random.Generator) -> Lazy[GPDraw]:
    """``count`` draws, each made when it is asked for: of many components all together would take gigabytes."""
    makers = [partial(GPDraw, fitted, int(seed)) for seed in rng.integers(0, 2**63, count)]
    return Lazy(makers, ROOM, _bytes_of)


def _bytes_of(draw: GPDraw) -> int:
    return draw.nbytes


class GPDraw:
    """One of them, a function of inputs (M, k) with r targets."""

    def __init__(self, fitted: Kriged[P], seed: int) -> None:
        rng, r = np.random.default_rng(seed), len(fitted.lengthscales)
        fitted = fitted.redrawn(rng)
        trends, alphas = np.empty((len(fitted.processes[0].trend), r)), np.empty((r, len(fitted.inputs)))
        each: list[Waves] = []
        self._weights: list[tuple[list[int], slice, Array]] = []
        start = 0

        def add(members: list[int], own: Waves, weights: Array) -> None:
            nonlocal start
            self._weights.append((members, slice(start, start + len(own.phases)), weights))
            each.append(own)
            start += len(own.phases)

        for process in fitted.processes:
            own = waves(rng, process.nu, process.lengthscale, octaves_of(process, len(fitted.inputs)))
            weights = process.sd * rng.standard_normal((len(process.members), len(own.phases)))
            trend, alpha = _correction(process, fitted.inputs, own.at(fitted.inputs) @ weights.T, rng)
            trends[:, process.members], alphas[process.members] = trend, process.sd**2 * alpha.T
            add(process.members, own, weights)
            rough_var = fitted.rough_var(process)
            if rough_var > 0:
                own = waves(rng, ROUGH_NU, unresolved(process.lengthscale, len(fitted.inputs)), 1)
                add(process.members, own, np.sqrt(rough_var) * rng.standard_normal((len(process.members), FREQUENCIES)))
        self._waves = Waves(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
        self._kriged = fitted.moved(trends, alphas)
        of_waves = [own for _, _, own in self._weights]
        self.nbytes = sum(int(values.nbytes) for values in (*self._waves, *of_waves, trends, alphas))

    def predict(self, inputs: Array) -> Array:
        values = self._kriged.predict(inputs)
        cosines = self._waves.at(inputs)
        for members, own, weights in self._weights:
            values[:, members] += cosines[:, own] @ weights.T
        return np.asarray(values)

    def gradient(self, inputs: Array) -> Array:
        """d draw / d inputs, (M, r, k)."""
        gradients = self._kriged.gradient(inputs)
        for row, gradient in zip(inputs, gradients, strict=True):
            slopes = self._waves.slopes(row)
            for members, own, weights in self._weights:
                gradient[members] += weights @ slopes[own]
        return gradients


def _correction(process: Process, rows: Array, prior: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Trend (t, c) and alpha (N, c) of what a prior draw, (N, c) at the rows, misses of rows that are all 0."""
    # the noise of each row as the covariance has it, with what was added to make it invertible
    noise_var = np.maximum(np.sum(process.lower**2, axis=1) - process.sd**2, 0.0)
    missed = -prior - np.sqrt(noise_var)[:, None] * rng.standard_normal(prior.shape)
    basis = np.hstack([np.ones((len(rows), 1)), rows])[:, : len(process.trend)]
    whitened = solve_triangular(process.lower, basis, lower=True)
    pulled = solve_triangular(process.lower, missed, lower=True)
    trend = cho_solve((process.trend_root, True), whitened.T @ pulled)
    return trend, cho_solve((process.lower, True), missed - basis @ trend)
