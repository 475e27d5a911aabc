"""The noise of the field data: its covariance, known or estimated, and the whitening it defines.

Whitened coordinates are T y with T = P^(-1/2) V^(-1/2), where Sigma_F = V^(1/2) P V^(1/2), V the variances and
P the correlations. Unlike Sigma_F^(-1/2) or a Cholesky factor, T follows both a change of an outcome's unit and
a change of the outcomes' order.

What an observation says about the whitened outcomes is a precision matrix of its own: the identity for a complete row
with the covariance Sigma_F, another one for a row with missing cells or with errors of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...advice import NOISE_COV
from ...arrays import (
    SMALLEST,
    Array,
    BoolArray,
    IntArray,
    as_columns,
    as_floats,
    is_positive_definite,
    is_symmetric,
    matrix_root,
    refuse_extreme,
    unique_rows,
)
from ...errors import InputError
from ...findings import Finding
from .row_correlation import RowCorrelation, checked_correlation, joint_precision, whole_covariance

#: sd of the logarithm of a group's noise sd over the typical one
GROUP_SPREAD = 1.0
#: half the degrees of freedom of the error of a cell that may be an outlier: it has Student's t distribution with four
HALF_FREEDOM = 2.0
#: a smaller share of a matrix's diagonal is rounding
ROUNDING = 1e-12


class NoiseSource(StrEnum):
    """Where the covariance comes from; unknown noise is integrated over, as theta is drawn."""

    KNOWN = "known"
    ESTIMATED = "estimated"
    UNKNOWN = "unknown"

    @classmethod
    def _missing_(cls, value: object) -> NoiseSource | None:
        # so files of version 0.2 have it
        return cls.UNKNOWN if value == "sampled" else None


@dataclass(frozen=True)
class Noise:
    """The noise e_i ~ N(0, Sigma_i) of every observation.

    Attributes
    ----------
    cov
        Sigma_F, (q, q): the covariance, or that of a typical point where it differs between points.
    observed
        (n, q), which cells of y are there.
    source
        Of an unknown noise ``cov`` is the size in whose units all is computed.
    by_point
        Sigma_i, (n, q, q), where the covariance differs between points.
    freedom
        Degrees of freedom of each outcome's estimated variance, whose relative error is sqrt(2 / freedom).
    remarks
        What the estimate has found in the data.
    smooth
        Whether the differences between points are those of a function of x, so that new points are like their
        neighbours.
    groups
        The group of each row, (n,), where each group's covariance is sampled by itself.
    relative
        Of an unknown noise: sds of single cells in units of what is common to all, (n, q), where some have their own.
    suspects
        Cells (row, outcome) that may be outliers, the farthest first, where the noise is unknown.
    rows
        How the errors of different rows are correlated, where they are; all else here is said of single rows.
    """

    cov: Array
    observed: BoolArray
    source: NoiseSource
    by_point: Array | None = None
    freedom: tuple[float, ...] | None = None
    remarks: tuple[Finding, ...] = ()
    smooth: bool = False
    groups: IntArray | None = None
    rows: RowCorrelation | None = None
    relative: Array | None = None
    suspects: tuple[tuple[int, int], ...] = ()

    @cached_property
    def whitener(self) -> Array:
        """T, (q, q): T cov T' = I."""
        sd = np.sqrt(np.diag(self.cov))
        values, vectors = np.linalg.eigh(self.cov / np.outer(sd, sd))
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T / sd)

    @cached_property
    def unwhitener(self) -> Array:
        """The inverse of T."""
        return np.linalg.inv(self.whitener)

    @cached_property
    def precision(self) -> Array:
        """What each row says about the whitened outcomes, (n, q, q): the identity for a complete, typical row.

        It takes nothing from a missing cell, so any number may stand there.
        """
        q = len(self.cov)
        back = self.unwhitener
        own = observed_precision(self.cov if self.by_point is None else self.by_point, self.observed)
        whole = np.einsum("ji,njk,kl->nil", back, own, back)
        if self.by_point is None:
            whole[self.observed.all(axis=1)] = np.eye(q)
        size = np.sqrt(np.einsum("nii->ni", whole))
        return np.where(np.abs(whole) > ROUNDING * size[:, :, None] * size[:, None, :], whole, 0.0)

    @cached_property
    def joint_precision(self) -> Array:
        """What all rows together say about the whitened outcomes, (n, q, n, q), where their errors are correlated."""
        assert self.rows is not None
        own = joint_precision(self.rows, self.cov, self.by_point, self.observed)
        back = self.unwhitener
        return np.asarray(np.einsum("ak,iajb,bl->ikjl", back, own, back, optimize=True))

    def weighed(self, values: Array) -> Array:
        """P v for whitened values (n, q, ...)."""
        if self.rows is None:
            return np.asarray(np.einsum("nkl,nl...->nk...", self.precision, values))
        size = self.observed.size
        return np.asarray(self.joint_precision.reshape(size, size) @ values.reshape(size, -1)).reshape(values.shape)

    @cached_property
    def _root(self) -> Array:
        size = self.observed.size
        return matrix_root(self.precision if self.rows is None else self.joint_precision.reshape(size, size))

    def rooted(self, values: Array) -> Array:
        """M v with M'M = P, for whitened values (n, q, u)."""
        if self.rows is None:
            return np.asarray(np.einsum("nkl,nlu->nku", self._root, values))
        return np.asarray(self._root @ values.reshape(self.observed.size, -1)).reshape(values.shape)

    def squares(self, left: Array) -> Array:
        """v'P v for whitened values (c, n, q) of each chain, (c,)."""
        if self.rows is None:
            return np.asarray(np.einsum("cnk,nkl,cnl->c", left, self.precision, left, optimize=True))
        moved = np.moveaxis(left, 0, -1)
        return np.asarray(np.sum(moved * self.weighed(moved), axis=(0, 1)))

    @property
    def rest(self) -> Noise:
        """What is left of it when the part that is correlated between rows is known."""
        if self.rows is None:
            return self
        own = self.cov if self.by_point is None else self.by_point
        each = np.broadcast_to(self.rows.independent_share * own, (*self.observed.shape, len(self.cov)))
        return replace(self, by_point=each, rows=None)

    @cached_property
    def coupled(self) -> bool:
        """Whether some row mixes the whitened outcomes."""
        return bool((self.precision[:, ~np.eye(len(self.cov), dtype=bool)]).any())

    @cached_property
    def relative_sd(self) -> Array:
        """The sd of each whitened outcome over that of a typical row, (n, q); ones where groups are to tell it."""
        if self.by_point is None or self.groups is not None:
            return np.ones(self.observed.shape)
        T = self.whitener
        return np.asarray(np.sqrt(np.einsum("kl,nlj,kj->nk", T, self.by_point, T, optimize=True)))

    @property
    def variances(self) -> Array:
        """Noise variance of each whitened outcome given the others, (n, q); infinite where a row says nothing.

        Of an unknown noise these are in units of a typical row's; the errors of missing cells are drawn with it, and
        a row that is not empty is complete.
        """
        if self.source is NoiseSource.UNKNOWN:
            seen: BoolArray = np.any(self.observed, axis=1, keepdims=True)
            return np.where(seen, self.relative_sd**2, np.inf)
        with np.errstate(divide="ignore"):
            return np.asarray(1 / np.einsum("nii->ni", self.precision))

    def between_cells(self, cells: BoolArray) -> Array:
        """Covariance of the errors of the marked cells (n, q), row by row, (c, c)."""
        row, outcome = np.nonzero(cells)
        same = np.eye(len(cells)) if self.rows is None else self.rows.matrix
        share = same[row[:, None], row]
        if self.by_point is None:
            return np.asarray(share * self.cov[outcome[:, None], outcome])
        if len(self.cov) == 1:
            sd = np.sqrt(self.by_point[row, 0, 0])
            return np.asarray(share * np.outer(sd, sd))
        return np.asarray(share * self.by_point[row[:, None], outcome[:, None], outcome])

    def outcome(self, k: int) -> Noise:
        """That of outcome k alone."""
        by_point = None if self.by_point is None else self.by_point[:, k : k + 1, k : k + 1]
        cov, observed = self.cov[k : k + 1, k : k + 1], self.observed[:, k : k + 1]
        relative = None if self.relative is None else self.relative[:, k : k + 1]
        suspects = tuple((row, 0) for row, own in self.suspects if own == k)
        changed: dict[str, Any] = {"groups": self.groups, "rows": self.rows, "relative": relative}
        return Noise(cov, observed, self.source, by_point, suspects=suspects, **changed)

    def of_rows(self, rows: IntArray, observed: BoolArray) -> Noise:
        """That of some rows, of which other cells may be ``observed``."""
        by_point = None if self.by_point is None else self.by_point[rows]
        # groups without rows are gone
        groups = None if self.groups is None else np.unique(self.groups[rows], return_inverse=True)[1]
        between = None if self.rows is None else self.rows.of_rows(rows)
        relative = None if self.relative is None else self.relative[rows]
        new = {int(row): place for place, row in enumerate(rows)}
        suspects = tuple((new[row], k) for row, k in self.suspects if row in new)
        changed: dict[str, Any] = {"groups": groups, "rows": between, "relative": relative, "suspects": suspects}
        return replace(self, observed=observed, by_point=by_point, **changed)

    def with_added(self, added: Array) -> Noise:
        """With independent errors of every row beside, of the covariances (n, q, q)."""
        by_point = (self.cov if self.by_point is None else self.by_point) + added
        if self.rows is None:
            return replace(self, by_point=by_point)
        if len(self.cov) > 1:
            raise InputError(
                f"noise that is correlated between rows goes with errors of x, or of an emulator, for one outcome, and "
                f"y has {len(self.cov)}: leave x_err and emulator_error out, or take problem.outcome(k)"
            )
        share = 1 - added[:, 0, 0] / by_point[:, 0, 0]
        return replace(self, by_point=by_point, rows=self.rows.with_shares(share))


def observed_precision(cov: Array, observed: BoolArray) -> Array:
    """E' (E cov E')^-1 E for each row, (n, q, q), where E picks its observed cells; cov is (q, q) or (n, q, q)."""
    n, q = observed.shape
    each = np.broadcast_to(cov, (n, q, q))
    result = np.zeros((n, q, q))
    for rows, pattern in _patterns(observed):
        cells = np.flatnonzero(pattern)
        part = each[np.ix_(rows, cells, cells)] if cov.ndim == 3 else cov[np.ix_(cells, cells)][None]
        result[np.ix_(rows, cells, cells)] = np.linalg.inv(part)
    return result


def _patterns(observed: BoolArray) -> Iterator[tuple[IntArray, BoolArray]]:
    """The distinct rows of ``observed`` (n, q), each with where it stands."""
    if observed.all():
        # as almost all data are: there is nothing to sort
        yield np.arange(len(observed)), np.ones(observed.shape[1], dtype=bool)
        return
    _, (place,) = unique_rows(np.packbits(observed, axis=1).astype(float))
    order = np.argsort(place, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(place[order])) + 1):
        yield rows, observed[rows[0]]


def known_noise(noise_cov: ArrayLike, observed: BoolArray) -> Noise:
    """Noise from the user's variance(s): a number, (q,), (q, q), (n, q, q), or (n, n) for one outcome."""
    n, q = observed.shape
    given = whole_covariance(noise_cov, n)
    if given.ndim == 3 and given.shape == (n, q, q):
        return _noise_by_point(given, observed)
    if given.ndim < 2 and not np.isfinite(given).all():
        raise InputError(NOISE_COV + " must be finite")
    if given.ndim == 0:
        cov: Array = np.eye(q) * given
    elif given.shape == (q,):
        cov = np.diag(given)
    elif given.shape == (q, q):
        cov = given
    elif given.ndim == 2 and q == 1 and given.shape[0] == given.shape[1]:
        return noise_between_rows(given, observed)
    elif given.shape == (n, n):
        raise InputError(
            NOISE_COV + f" is {n} x {n}, the covariance between rows, but y has {q} outcomes: that is for one outcome; "
            "give oc.CorrelatedNoise, the same correlation between rows for every outcome, or calibrate one at a time"
        )
    else:
        given_as = " x ".join(map(str, given.shape))
        variances = "one variance" if q == 1 else f"a ({q}, {q}) matrix, {q} variances"
        between = f"one between all rows ({n}, {n}), " if q == 1 else ""
        raise InputError(
            f"y has {q} outcome{'s' * (q > 1)} but " + NOISE_COV + f" is {given_as}: give {variances}, "
            f'one matrix a point ({n}, {q}, {q}), {between}"unknown" or "estimate"'
        )
    if not np.isfinite(cov).all():
        raise InputError(NOISE_COV + " must be finite")
    _check_covariance(cov, NOISE_COV)
    return Noise(cov, observed, NoiseSource.KNOWN)


def noise_from_errors(y_err: ArrayLike, observed: BoolArray) -> Noise:
    """Independent noise from the standard deviation of every cell: a number for all, (n,) or (n, q)."""
    errors = np.full(observed.shape, as_floats(y_err, "y_err")) if np.ndim(y_err) == 0 else as_columns(y_err, "y_err")
    if errors.shape != observed.shape:
        raise InputError(
            f"y_err has shape {np.shape(y_err)} but y has {len(observed)} rows and {observed.shape[1]} columns: "
            "give one standard deviation for every cell of y"
        )
    wrong = observed & ~(np.isfinite(errors) & (errors > SMALLEST) & (errors < 1 / SMALLEST))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise InputError(
            f"y_err is {errors[row, column]:g} in row {row}, column {column} ({wrong.sum()} such cells): an error must "
            "be positive and finite, as must its square; set y to NaN where a measurement cannot be trusted"
        )
    # what stands at a missing cell has no effect
    sd = np.where(observed, errors, 1.0)
    if (sd == sd[0]).all() and observed.all():
        return Noise(np.diag(sd[0] ** 2), observed, NoiseSource.KNOWN)
    return _noise_by_point(np.einsum("ni,ij->nij", sd**2, np.eye(sd.shape[1])), observed)


def _noise_by_point(given: Array, observed: BoolArray) -> Noise:
    """Noise with a covariance of its own for each point; only what belongs to observed cells is looked at."""
    q = observed.shape[1]
    # an unobserved cell gets variance one and no correlation
    both = observed[:, :, None] & observed[:, None, :]
    covs = np.where(both, given, np.eye(q))
    # of one outcome only what is wrong is looked at row by row
    suspects = range(len(covs)) if q > 1 else np.flatnonzero(~_plain(covs[:, 0, 0]))
    for row in suspects:
        cov = covs[row]
        if not np.isfinite(cov).all():
            raise InputError(NOISE_COV + f" is not finite in row {row}")
        if q == 1 and cov[0, 0] <= 0:
            raise InputError(NOISE_COV + f" is not positive in row {row}: give the variance of every observation")
        _check_covariance(cov, NOISE_COV + f" in row {row}")
    variances = np.einsum("nii->ni", covs)
    seen = np.maximum(observed.sum(axis=0), 1)
    sd = np.exp(0.5 * np.where(observed, np.log(variances), 0.0).sum(axis=0) / seen)
    root = np.sqrt(variances)
    correlation = (covs / (root[:, :, None] * root[:, None, :])).sum(axis=0)
    pairs = np.maximum(both.sum(axis=0), 1)
    # a mean of correlation matrices is one; where pairs are rarely seen together, their mean may be too strong
    typical = made_definite(np.where(np.eye(q) > 0, 1.0, correlation / pairs))
    return Noise(typical * np.outer(sd, sd), observed, NoiseSource.KNOWN, covs)


def noise_between_rows(covariance: Array, observed: BoolArray) -> Noise:
    """Noise of one outcome from the covariance of all rows' errors, (n, n)."""
    variances, rows = checked_correlation(covariance, observed[:, 0])
    if (variances == variances[0]).all():
        return Noise(variances[:1, None], observed, NoiseSource.KNOWN, rows=rows)
    return replace(_noise_by_point(variances[:, None, None], observed), rows=rows)


def _plain(variances: Array) -> BoolArray:
    """Which variances (n,) are positive, and neither too small nor too large for a computer."""
    return np.asarray((variances > SMALLEST**2) & (variances < SMALLEST**-2))


def made_definite(correlation: Array, least: float = 1e-3) -> Array:
    """The correlation matrix, drawn towards the identity as far as its smallest eigenvalue needs it."""
    smallest = float(np.linalg.eigvalsh(correlation)[0])
    if smallest >= least:
        return correlation
    share = (1 - least) / (1 - smallest)
    return np.asarray(share * correlation + (1 - share) * np.eye(len(correlation)))


def _check_covariance(cov: Array, name: str) -> None:
    if len(cov) == 1 and cov[0, 0] <= 0:
        raise InputError(name + f" is {cov[0, 0]:g}: a variance must be positive")
    refuse_extreme(np.sqrt(np.abs(np.diag(cov)))[None], [name] * len(cov), "the noise's standard deviation in")
    if not is_symmetric(cov):
        raise InputError(name + " is not symmetric: a covariance matrix equals its transpose")
    if not is_positive_definite(cov):
        raise InputError(name + " is not positive definite: check its variances and correlations")
