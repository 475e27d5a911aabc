"""Errors that are correlated between the rows of the field data.

    e_i = A_i u_i,  A_i A_i' = Sigma_i,  Cov(u_i, u_j) = C_ij I

C has ones on its diagonal: what a row says by itself is Sigma_i, as for independent noise. For one outcome
Cov(e_i, e_j) = sd_i sd_j C_ij is any covariance; for several it is C_ij Sigma_F.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import block_diag, cho_solve, cholesky

from ...advice import NOISE_COV
from ...arrays import Array, BoolArray, IntArray, as_floats, is_positive_definite, is_symmetric
from ...errors import InputError
from ...regression.gaussian_process import radial_correlation

Kind = Literal["ar1", "matern"]

#: cells of y beyond which matrices of their number squared are not made
MOST_CELLS = 6_000


class NoiseKernel(NamedTuple):
    """Corr(u_i, u_j) = share k(|t_i - t_j| / length) for i != j of one series, and 0 between series.

    ``nu`` is 0.5 for an AR(1) process, exp(-distance / length), at even or uneven positions t. ``column`` and
    ``series`` are the inputs that t and the series are, None where they are none of them.
    """

    nu: float
    length: float
    share: float
    column: int | None = None
    series: int | None = None

    def matrix(self, position: Array, series: NDArray[Any]) -> Array:
        """C, (n, n), for positions and series (n,)."""
        squared = ((position[:, None] - position) / self.length) ** 2
        found = self.share * radial_correlation(squared, self.nu) * (series[:, None] == series)
        found[np.diag_indices_from(found)] = 1.0
        return np.asarray(found)

    def at(self, x: Array) -> Array | None:
        """C of a new series at x (m, d), or None where the positions are no input."""
        if self.column is None:
            return None
        series = np.zeros(len(x)) if self.series is None else x[:, self.series]
        return self.matrix(x[:, self.column], series)


@dataclass(frozen=True, eq=False)
class RowCorrelation:
    """C, (n, n), and the kernel that it is made of, where it is."""

    matrix: Array
    kernel: NoiseKernel | None = None

    def of_rows(self, rows: IntArray) -> RowCorrelation:
        return replace(self, matrix=self.matrix[np.ix_(rows, rows)])

    def with_shares(self, share: Array) -> RowCorrelation:
        """C where independent errors leave these shares of the rows' variances, (n,), to the correlated ones."""
        root = np.sqrt(share)
        matrix = self.matrix * np.outer(root, root)
        matrix[np.diag_indices_from(matrix)] = 1.0
        return RowCorrelation(matrix)

    def inverse(self, seen: BoolArray) -> Array:
        """C^-1 of the rows that are seen, (n, n), zero at the others."""
        found = np.zeros_like(self.matrix)
        own = np.ix_(seen, seen)
        found[own] = cho_solve((cholesky(self.matrix[own], lower=True), True), np.eye(int(seen.sum())))
        return found

    @cached_property
    def independent_share(self) -> float:
        """The largest share of every row's variance that may be taken for an independent error's."""
        return float(np.linalg.eigvalsh(self.matrix)[0])

    @cached_property
    def lower(self) -> Array:
        """L with L L' = C."""
        return np.asarray(cholesky(self.matrix, lower=True))


def joint_precision(rows: RowCorrelation, cov: Array, by_point: Array | None, observed: BoolArray) -> Array:
    """The inverse of the covariance of all observed cells, (n, q, n, q), zero at the others."""
    n, q = observed.shape
    if q == 1:
        sd = np.full(n, np.sqrt(cov[0, 0])) if by_point is None else np.sqrt(by_point[:, 0, 0])
        return np.asarray((rows.inverse(observed[:, 0]) / np.outer(sd, sd)).reshape(n, 1, n, 1))
    seen: BoolArray = np.asarray(observed.any(axis=1))
    pattern = observed[seen][0]
    if (observed[seen] == pattern).all():
        own = np.zeros((q, q))
        own[np.ix_(pattern, pattern)] = np.linalg.inv(cov[np.ix_(pattern, pattern)])
        return np.asarray(rows.inverse(seen)[:, None, :, None] * own[None, :, None, :])
    cells = observed.ravel()
    whole = np.kron(rows.matrix, cov)[np.ix_(cells, cells)]
    found = np.zeros((n * q, n * q))
    found[np.ix_(cells, cells)] = cho_solve((cholesky(whole, lower=True), True), np.eye(len(whole)))
    return found.reshape(n, q, n, q)


def whole_covariance(given: Any, n: int) -> Array:
    """What a user gives as a covariance: an array as it is; blocks, or a scipy.sparse matrix, as one matrix (n, n)."""
    if sparse.issparse(given):
        matrix: Any = given
        refuse_many_cells(matrix.shape[0])
        return np.asarray(matrix.toarray(), dtype=np.float64)
    listed = isinstance(given, list | tuple) and len(given) > 0 and all(np.ndim(one) == 2 for one in given)
    if not listed and not (isinstance(given, np.ndarray) and given.ndim == 3 and given[:, :, 0].size == n):
        return as_floats(given, "noise_cov")
    blocks = [as_floats(one, "a block of noise_cov") for one in given]
    orders = [one.shape[0] for one in blocks]
    if len(blocks) == n and len({one.shape for one in blocks}) == 1:
        # a matrix for every row; of one outcome these are blocks of order one
        return np.stack(blocks)
    for number, one in enumerate(blocks):
        if one.shape[0] != one.shape[1]:
            raise InputError(
                f"block {number} of " + NOISE_COV + f" is {one.shape[0]} x {one.shape[1]}: give square matrices"
            )
    if sum(orders) != n:
        raise InputError(
            "the blocks of "
            + NOISE_COV
            + f" have the orders {', '.join(map(str, orders))}, {sum(orders)} in all, but y has "
            f"{n} rows: give blocks that add up to these, in the order of the rows"
        )
    refuse_many_cells(n)
    return np.asarray(block_diag(*blocks))


def refuse_many_cells(cells: int) -> None:
    """An error where the matrices of correlated noise would not fit."""
    if cells > MOST_CELLS:
        raise InputError(
            f"y has {cells} cells, and noise that is correlated between rows needs a matrix of that order: it takes at "
            f"most {MOST_CELLS}; average or thin the data"
        )


def checked_correlation(covariance: Array, observed: BoolArray) -> tuple[Array, RowCorrelation | None]:
    """Variances (n,) and correlations from a covariance (n, n) of one outcome; of rows without y only ones and zeros.

    The correlations are None where there are none.
    """
    n = len(observed)
    refuse_many_cells(n)
    if covariance.shape != (n, n):
        given_as = " x ".join(map(str, covariance.shape))
        raise InputError(NOISE_COV + f" is {given_as} but y has {n} rows: give a ({n}, {n}) matrix, or one variance")
    both = observed[:, None] & observed
    whole = np.where(both, covariance, np.eye(n))
    if not np.isfinite(whole).all():
        row = int(np.argwhere(~np.isfinite(whole))[0][0])
        raise InputError(NOISE_COV + f" is not finite in row {row}: give the covariance of all observations")
    variances = np.diag(whole).copy()
    if (variances <= 0).any():
        row = int(np.argmin(variances))
        raise InputError(NOISE_COV + f" has the variance {variances[row]:g} in row {row}: a variance must be positive")
    if not is_symmetric(whole):
        raise InputError(NOISE_COV + f" ({n} x {n}) is not symmetric: a covariance matrix equals its transpose")
    sd = np.sqrt(variances)
    matrix = (whole + whole.T) / 2 / np.outer(sd, sd)
    matrix[np.diag_indices_from(matrix)] = 1.0
    if not (matrix - np.eye(n)).any():
        return variances, None
    if not is_positive_definite(matrix):
        raise InputError(
            NOISE_COV
            + f" ({n} x {n}) is not positive definite: no errors have these correlations; check it, or add the "
            "variance of an independent error to its diagonal"
        )
    return variances, RowCorrelation(matrix)
