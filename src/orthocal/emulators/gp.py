"""Gaussian-process regression with a linear trend, a length-scale for every input, and an analytic gradient."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import logsumexp

from ..arrays import Array, IntArray, repeated_rows
from ..errors import InputError
from ..machine.threads import one_blas_thread
from ..progress import progress_bar
from ..regression.gaussian_process import correlation, jittered_cholesky, radial_correlation, radial_slope
from .base import Layout, ListedRegressor, listed
from .gp_hyperparameters import few, likeliest, likely
from .lazy_sequence import Lazy, Room
from .replicates import MergedRuns, merged_runs, trend_basis, trend_size

#: exact regression beyond this takes minutes and gigabytes
MOST_ROWS = 4000
#: components that have hyperparameters of their own, and how fast the groups of the later ones grow
ALONE, GROWTH = 10, 1.5
#: sets of hyperparameters over which left-out runs are averaged
OTHERS = 16


@listed
@dataclass(frozen=True)
class GP(ListedRegressor):
    """target = beta_0 + beta' u + Z(u) + e, Z ~ GP(0, sd^2 k(.; lengthscale)), e ~ N(0, noise variance).

    The coefficients beta have flat priors; sd, length-scales and noise variance are by restricted marginal likelihood,
    for each target its own. The noise takes up what a simulator with random numbers adds. Inputs that repeat are
    replicates: what they scatter is known to be noise, whose variance may then depend on u (``replicates.py``).

    Parameters
    ----------
    nu
        Smoothness: 1.5, 2.5, inf for the squared exponential, or None (default) for 2.5 or inf, whichever is likelier.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 10)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.GP(nu=2.5), progress=False)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 1e-3)
    True
    >>> oc.emulators.GP(nu=0.5)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: nu=0.5: give 1.5, 2.5 or inf, or None to choose; a gradient must exist
    """

    nu: float | None = None

    name: ClassVar[str] = "gp"
    words: ClassVar[str] = "a Gaussian process with a linear trend"
    layout: ClassVar[Layout] = "components"

    def __post_init__(self) -> None:
        if self.nu not in (None, 1.5, 2.5, np.inf):
            raise InputError(f"nu={self.nu}: give 1.5, 2.5 or inf, or None to choose; a gradient must exist")

    def fit(self, inputs: Array, targets: Array) -> FittedGP:
        return self._fit(inputs, targets, [[i] for i in range(targets.shape[1])])

    def fit_components(self, inputs: Array, targets: Array) -> FittedGP:
        """As ``fit``, for targets in order of falling importance: later ones share hyperparameters with neighbours.

        Parameters
        ----------
        inputs, targets
            As for ``fit``.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> inputs = np.linspace(0, 1, 12)[:, None]
        >>> targets = np.hstack([np.sin(6 * inputs), np.cos(6 * inputs)])
        >>> oc.emulators.GP(nu=2.5).fit_components(inputs, targets).predict(inputs).shape
        (12, 2)
        """
        return self._fit(inputs, targets, _neighbours(targets.shape[1]))

    def _fit(self, inputs: Array, targets: Array, groups: list[list[int]]) -> FittedGP:
        repeats = repeated_rows(inputs)
        distinct = inputs if repeats is None else inputs[repeats.first]
        if len(distinct) > MOST_ROWS:
            raise InputError(
                f"an exact Gaussian process of {len(distinct)} rows is too large, {MOST_ROWS} are the most: take "
                "another emulator ('bart', 'mlp' or 'forest'), fewer runs, or runs at common points, of which only the "
                "number of runs counts"
            )
        # one BLAS thread: the result must not depend on their number
        with one_blas_thread():
            processes = [
                _fitted_process(inputs, targets[:, members], members, self.nu)
                for members in progress_bar(groups, "emulator")
            ]
        return FittedGP(distinct, processes, targets.shape[1])


class Process(NamedTuple):
    """The process of the targets ``members``, which share hyperparameters, and what predictions need.

    alpha (N, c) and trend (t, c) belong to them; the covariance of the rows is lower lower', that of the trend's
    estimate (trend_root trend_root')^-1. A row is a distinct input, where there may be replicates: ``row_noise_var``
    (N,) is the noise variance of their mean, ``noise_var`` that of one run, times r(u) where they are uneven.
    """

    members: list[int]
    runs: MergedRuns
    nu: float
    sd: float
    lengthscale: Array
    noise_var: float
    trend: Array
    alpha: Array
    lower: Array
    trend_root: Array
    row_noise_var: Array

    @property
    def scatter_known(self) -> bool:
        """Whether replicates tell this noise from what the process does not explain."""
        return self.runs.known

    def run_var(self, inputs: Array) -> Array:
        """Noise variance of one run at inputs (M, k), (M,)."""
        uneven = self.runs.uneven
        return np.asarray(self.noise_var * (np.ones(len(inputs)) if uneven is None else uneven.at(inputs)))

    def likely(self, rng: np.random.Generator) -> Array:
        """Log hyperparameters in the place of these, as likely as the runs make them, (draws, k + 2)."""
        start = np.log([self.sd, *self.lengthscale, self.noise_var])
        return likely(self.runs, self.nu, start, len(self.trend), rng)


class FittedGP:
    """Predictions at inputs (M, k): a mean, its gradient and a variance for each of r targets."""

    def __init__(self, inputs: Array, processes: list[Process], r: int) -> None:
        self.inputs = inputs
        # by smoothness, so that those that have the same are neighbours
        self.processes = sorted(processes, key=lambda process: process.nu)
        nus = [process.nu for process in self.processes]
        self._alike = [(nu, slice(nus.index(nu), nus.index(nu) + nus.count(nu))) for nu in dict.fromkeys(nus)]
        # one row a process or target, one column a row of the inputs: sums run along the memory
        self._precision = np.stack([process.lengthscale**-2 for process in self.processes])
        self._columns = np.ascontiguousarray(inputs.T)
        self._process_of = np.empty(r, dtype=np.intp)
        self._alpha = np.empty((r, len(inputs)))
        self._trend = np.empty((len(processes[0].trend), r))
        for i, process in enumerate(self.processes):
            self._process_of[process.members] = i
            self._alpha[process.members] = process.sd**2 * process.alpha.T
            self._trend[:, process.members] = process.trend
        self.lengthscales = self._precision[self._process_of] ** -0.5

    def predict(self, inputs: Array) -> Array:
        means = trend_basis(inputs, len(self._trend)) @ self._trend
        for row, mean in zip(inputs, means, strict=True):
            k = self._radial(radial_correlation, (row[:, None] - self._columns) ** 2)
            mean += np.einsum("rn,rn->r", k[self._process_of], self._alpha)
        return np.asarray(means)

    def gradient(self, inputs: Array) -> Array:
        """d mean / d inputs, (M, r, k)."""
        gradients = np.empty((len(inputs), len(self._alpha), inputs.shape[1]))
        gradients[:] = self._trend[1:].T if len(self._trend) > 1 else 0.0
        for row, gradient in zip(inputs, gradients, strict=True):
            parts = row[:, None] - self._columns
            slopes = self._radial(radial_slope, parts**2)
            change = (slopes[self._process_of] * self._alpha) @ parts.T
            gradient -= change * self._precision[self._process_of]
        return gradients

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the mean, (M, r).

        Without replicates the noise counts as well: it may be what the process does not explain of the simulator.
        """
        var = np.empty((len(inputs), len(self._process_of)))
        for process in self.processes:
            explained, of_trend = self._explained(process, inputs)
            own = process.sd**2 - (explained**2).sum(axis=0) + (of_trend**2).sum(axis=0)
            left = 0.0 if process.scatter_known else process.noise_var
            var[:, process.members] = (np.maximum(own, 0.0) + left)[:, None]
        return var

    @property
    def scatter_known(self) -> bool:
        """Whether replicates tell how a single run scatters about the mean."""
        return any(process.scatter_known for process in self.processes)

    def scatter_var(self, inputs: Array) -> Array:
        """Variance of a single run's target about its mean function, (M, r), as far as replicates tell it."""
        var = np.zeros((len(inputs), len(self._process_of)))
        for process in self.processes:
            if process.scatter_known:
                var[:, process.members] = process.run_var(inputs)[:, None]
        return var

    def covariance(self, process: Process, inputs: Array) -> Array:
        """Covariance of the error of the mean of one of a process's targets, (M, M), without noise."""
        explained, of_trend = self._explained(process, inputs)
        own = process.sd**2 * correlation(inputs, inputs, process.lengthscale, process.nu)
        return np.asarray(own - explained.T @ explained + of_trend.T @ of_trend)

    def left_out(self, rows: IntArray) -> tuple[Array, Array]:
        """What is missed of these rows when each is left out, the trend learnt anew, and its variance: (c, r) each.

        Hyperparameters are as they were found from all, or, where these are few, as likely as all make them.
        """
        if not few(self.inputs):
            return self.left_out_as_it_is(rows)
        rng = np.random.default_rng(0)
        each = [self.redrawn(rng).left_out_as_it_is(rows) for _ in range(OTHERS)]
        errors, variances = (np.stack(parts) for parts in zip(*each, strict=True))
        return errors.mean(axis=0), variances.mean(axis=0) + errors.var(axis=0)

    def left_out_as_it_is(self, rows: IntArray) -> tuple[Array, Array]:
        """e_i = (Q y)_i / Q_ii, variance 1 / Q_ii, Q = K^-1 - K^-1 H (H'K^-1 H)^-1 H'K^-1 (Dubrule 1983)."""
        errors, variances = np.empty((2, len(rows), len(self._process_of)))
        for process in self.processes:
            some = np.zeros((len(self.inputs), len(rows)))
            some[rows, np.arange(len(rows))] = 1.0
            own = solve_triangular(process.lower, some, lower=True)
            whitened = solve_triangular(process.lower, trend_basis(self.inputs, len(process.trend)), lower=True)
            of_trend = solve_triangular(process.trend_root, whitened.T @ own, lower=True)
            precision = np.sum(own**2, axis=0) - np.sum(of_trend**2, axis=0)
            errors[:, process.members] = process.alpha[rows] / precision[:, None]
            variances[:, process.members] = 1 / precision[:, None]
        return errors, variances

    def draws(self, count: int, rng: np.random.Generator) -> Lazy[GPDraw]:
        """Joint draws of the targets as functions of the inputs; their mean and variance are those above.

        Of few rows, they have hyperparameters of their own, and so vary more.
        """
        return gp_draws(self, count, rng)

    @cached_property
    def _likely(self) -> list[Array]:
        """Of each process, draws of its log hyperparameters: the same for whoever asks."""
        with one_blas_thread():
            processes = progress_bar(self.processes, "hyperparameters")
            return [process.likely(np.random.default_rng(i)) for i, process in enumerate(processes)]

    def redrawn(self, rng: np.random.Generator) -> FittedGP:
        """The same with hyperparameters as likely as the rows make them; where these are many, with the likeliest."""
        if not few(self.inputs):
            return self
        with one_blas_thread():
            processes = [
                _process(one.members, one.runs, one.nu, values[rng.integers(len(values))])
                for one, values in zip(self.processes, self._likely, strict=True)
            ]
        return FittedGP(self.inputs, processes, len(self._alpha))

    @staticmethod
    def rough_var(process: Process) -> float:
        """What of the noise is the targets' own, finer than the runs resolve: all that ``variance`` counts.

        A draw has it as a process of its own: see ``GPDraw``.
        """
        return 0.0 if process.scatter_known else process.noise_var

    def moved(self, trend: Array, alpha: Array) -> FittedGP:
        """The same with something added to the trends (t, r) and to what takes k(u, rows) to the targets, (r, N)."""
        other = copy(self)
        other._trend, other._alpha = self._trend + trend, self._alpha + alpha
        # predictions need no more, and the matrices of a draw's own would take hundreds of times as much memory
        other.processes = []
        return other

    def _radial(self, function: Callable[[Array, float], Array], squared_parts: Array) -> Array:
        """A function of the distance for each process, (processes, N), from squared differences (k, N)."""
        squared = self._precision @ squared_parts
        return np.vstack([function(squared[which], nu) for nu, which in self._alike])

    def _explained(self, process: Process, inputs: Array) -> tuple[Array, Array]:
        """A and B with Cov = K - A'A + B'B: what the runs explain, (N, M), and what the trend's error adds, (t, M)."""
        k = process.sd**2 * correlation(self.inputs, inputs, process.lengthscale, process.nu)
        explained = solve_triangular(process.lower, k, lower=True)
        whitened = solve_triangular(process.lower, trend_basis(self.inputs, len(process.trend)), lower=True)
        left = trend_basis(inputs, len(process.trend)).T - whitened.T @ explained
        return explained, solve_triangular(process.trend_root, left, lower=True)


def _neighbours(count: int) -> list[list[int]]:
    """The first components alone, later ones in groups that grow."""
    groups, start, size = [], 0, 1.0
    while start < count:
        size = size if start < ALONE else size * GROWTH
        end = min(count, start + int(size))
        groups.append(list(range(start, end)))
        start = end
    return groups


def _fitted_process(inputs: Array, targets: Array, members: list[int], nu: float | None) -> Process:
    runs = merged_runs(inputs, targets)
    chosen, values = likeliest(runs, (2.5, np.inf) if nu is None else (nu,), trend_size(runs.values.x))
    return _process(members, runs, chosen, values)


def _process(members: list[int], runs: MergedRuns, nu: float, values: Array) -> Process:
    """With given smoothness, and the log of sd, length-scales and noise variance, (k + 2,)."""
    inputs, targets = runs.values.x, runs.values.z
    var, noise_var, lengthscale = float(np.exp(2 * values[0])), float(np.exp(values[-1])), np.exp(values[1:-1])
    row_noise_var = noise_var * runs.values.relative_var
    covariance = var * correlation(inputs, inputs, lengthscale, nu)
    covariance[np.diag_indices_from(covariance)] += row_noise_var
    lower, _ = jittered_cholesky(covariance)
    basis = trend_basis(inputs, trend_size(inputs))
    whitened = solve_triangular(lower, basis, lower=True)
    trend_root = cholesky(whitened.T @ whitened, lower=True)
    trend = cho_solve((trend_root, True), whitened.T @ solve_triangular(lower, targets, lower=True))
    return Process(
        members,
        runs,
        nu,
        float(np.sqrt(var)),
        lengthscale,
        noise_var,
        trend=trend,
        alpha=cho_solve((lower, True), targets - basis @ trend),
        lower=lower,
        trend_root=trend_root,
        row_noise_var=row_noise_var,
    )


# Draws of a fitted Gaussian process as functions with gradients, pathwise (Wilson and others, JMLR 2021).
#
# A draw of target = beta' h(u) + Z(u) given the runs is a draw of the prior, corrected by what it misses of the runs:
#
#     f_s(u) = z(u) + beta_s' h(u) + k(u, U) K^-1 (y - z(U) - e - H beta_s),   e ~ N(0, noise),
#
# beta_s the least-squares trend of y - z(U) - e. Its mean is the prediction, its covariance that of the prediction's
# error, the trend's included. The prior draw is a sum of cosines whose frequencies follow the kernel's spectral
# density:
#
#     z(u) = sd sum_i sqrt(2 / D  p(w_i) / q(w_i)) g_i cos(w_i' u + phase_i),   g_i ~ N(0, 1)
#
# What the runs leave is the work of frequencies that they do not resolve, which p seldom has. So the frequencies are
# drawn from a mixture q of p stretched by 1, 2, 4, ..., up to beyond what the runs resolve.
#
# What a process calls noise is the simulator's own, unless replicates tell that it is not: structure that the runs do
# not resolve. It is added as a process of that variance whose length-scales are such that each run has a volume of its
# own: longer ones the runs would have seen. Beside a bias its slope moves theta, of which a constant would have none.
#
# Where runs are few, sd, length-scales and noise variance are drawn first, for each draw its own.

#: frequencies of each octave, and most octaves; the tail of the squared exponential's density ends sooner
FREQUENCIES, MOST_OCTAVES, MOST_GAUSSIAN = 128, 9, 4
#: smoothness of what the runs do not resolve
ROUGH_NU = 2.5
#: for the draws of all emulators that are in use: to make one takes two hundred times as long as to call it
ROOM = Room(512 * 2**20)


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


def gp_draws(fitted: FittedGP, count: int, rng: np.random.Generator) -> Lazy[GPDraw]:
    """``count`` draws, each made when it is asked for: of many components all together would take gigabytes."""
    makers = [partial(GPDraw, fitted, int(seed)) for seed in rng.integers(0, 2**63, count)]
    return Lazy(makers, ROOM, _bytes_of)


def _bytes_of(draw: GPDraw) -> int:
    return draw.nbytes


class GPDraw:
    """One of them, a function of inputs (M, k) with r targets."""

    def __init__(self, fitted: FittedGP, seed: int) -> None:
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
