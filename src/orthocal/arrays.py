"""The array types and the few array helpers that every module shares."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from mmap import ALLOCATIONGRANULARITY, mmap
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import InputError, SimulatorError, shortened

Array: TypeAlias = NDArray[np.floating[Any]]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Names: TypeAlias = Sequence[str] | str | None


#: numbers of this size have squares with all their digits
SMALLEST = 1e-140


def as_floats(value: ArrayLike, name: str) -> Array:
    """``value`` as an array of floats, or an error that names it."""
    refuse_cut_map(value, name)
    try:
        # a masked cell is a missing one
        array = np.ma.filled(value.astype(float), np.nan) if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
        if array.dtype.kind in "cmM":
            raise InputError(f"{name} must be real numbers, not {array.dtype}")
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise (
            error if isinstance(error, InputError) else InputError(f"{name} must be numbers: {shortened(str(error))}")
        ) from None


def refuse_cut_map(value: object, name: str) -> None:
    """Refuse an array that is mapped from a file which has been cut since: to read it would end the program."""
    base, file, start = value, "a file", 0
    while isinstance(base, np.ndarray | memoryview):
        if isinstance(base, np.memmap):
            file, start = shortened(str(base.filename or file)), int(base.offset)
        base = base.base if isinstance(base, np.ndarray) else base.obj
    if not isinstance(base, mmap):
        return
    advice = "write the file anew and map it again"
    try:
        # the size is that of the whole file, and a map begins with a page
        needed, there = start - start % ALLOCATIONGRANULARITY + len(base), base.size()
    except (OSError, ValueError) as error:
        raise InputError(f"{name} is mapped from {file}, which can no longer be read ({error}): {advice}") from None
    if there < needed:
        raise InputError(f"{name} is mapped from {file}, of which {there} of {needed} bytes are left: {advice}")


def as_columns(value: ArrayLike, name: str) -> Array:
    """``value`` as a matrix with one row a point; a vector becomes one column."""
    array = as_floats(value, name)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(f"{name} has {array.ndim} dimensions: give one row a point and one column a variable")
    return array


def shaped_output(output: ArrayLike, shape: tuple[int, ...], what: str = "simulator") -> Array:
    """What the user's code returned as a new array (m, q) or (m, q, p); axes of length one but m may be left out.

    ``shape`` (m, -1) takes any number of outcomes, and a single number where m is 1.
    """
    try:
        array = np.array(output, dtype=np.float64) if not np.iscomplexobj(output) else None
    except (TypeError, ValueError):
        array = None
    if array is None:
        raise SimulatorError(f"the {what} returned {type(output).__name__}: expected an array of real numbers")
    if array.shape == shape:
        return array
    m = shape[0]
    if shape[-1] == -1:
        fits = array.size and array.ndim <= 2 and (array.shape[:1] or (1,)) == (m,)
        expected = f"({m},) or ({m}, q)"
    else:
        squeezed, given = ((m, *(size for size in sizes if size != 1)) for sizes in (shape[1:], array.shape[1:]))
        fits = array.shape[:1] == (m,) and given == squeezed
        expected = " or ".join(str(one) for one in sorted({shape, squeezed}, key=len))
    if not fits:
        raise SimulatorError(f"the {what} returned an array of shape {array.shape} for {m} points: expected {expected}")
    return array.reshape(shape)


def refuse_extreme(columns: Array, names: Sequence[str], what: str) -> None:
    """Refuse columns (n, k) whose squares are too small or too large for floats: all results would be wrong."""
    for name, column in zip(names, columns.T, strict=True):
        size = float(np.max(np.abs(column[np.isfinite(column)]), initial=0.0))
        if size and not SMALLEST <= size <= 1 / SMALLEST:
            raise InputError(
                f"{what} {name!r} has numbers of the size {size:.1g}, whose squares a computer cannot hold: give it in "
                "another unit"
            )


def is_symmetric(matrix: Array) -> bool:
    """Whether a covariance matrix equals its transpose, but for rounding."""
    scale = np.sqrt(np.abs(np.diag(matrix)))
    return bool(np.all(np.abs(matrix - matrix.T) <= 1e-8 * np.outer(scale, scale)))


def is_positive_definite(matrix: Array) -> bool:
    """Whether a symmetric matrix is positive definite, whatever the units of its rows."""
    diagonal = np.diag(matrix)
    if not np.isfinite(matrix).all() or (diagonal <= 0).any():
        return False
    scale = np.sqrt(diagonal)
    return bool(np.linalg.eigvalsh(matrix / np.outer(scale, scale)).min() > 1e-12)


def matrix_root(matrix: Array) -> Array:
    """R with R' R = matrix, (..., q, q), symmetric and positive semi-definite, whatever the units of its rows."""
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", matrix), 0.0))
    safe = np.where(scale > 0, scale, 1.0)
    scaled = matrix / (safe[..., :, None] * safe[..., None, :])
    if matrix.shape[-1] == 1:
        # its own eigenvalue: a million small decompositions take seconds
        return np.asarray(np.sqrt(np.maximum(scaled, 0.0)) * scale[..., None, :])
    values, vectors = np.linalg.eigh(scaled)
    root = np.sqrt(np.maximum(values, 0.0))[..., :, None] * np.swapaxes(vectors, -1, -2)
    return np.asarray(root * scale[..., None, :])


def unique_rows(*blocks: Array) -> tuple[Array, list[IntArray]]:
    """The distinct rows of all blocks, sorted, and for each block the position of its rows among them."""
    rows = np.concatenate(blocks)
    order, starts = _sorted_rows(rows)
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = np.cumsum(starts) - 1
    ends = np.cumsum([len(block) for block in blocks])[:-1]
    return rows[order[starts]], np.split(place, ends)


def _sorted_rows(rows: Array) -> tuple[IntArray, BoolArray]:
    """The order in which the rows are sorted, equal ones as they came, and where in it another row begins."""
    # one key after the other: a tenth of the time of np.unique, which compares whole rows
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] > 1 else np.argsort(rows[:, 0], kind="stable")
    starts = np.ones(len(rows), dtype=bool)
    if len(rows):
        starts[1:] = False
        for column in rows.T:
            ordered = column[order]
            starts[1:] |= ordered[1:] != ordered[:-1]
    return order.astype(np.intp), starts


def summed(place: IntArray, values: Array | IntArray, count: int) -> Array:
    """Values (n,), added up over the rows of each place: total[place[i]] += values[i], (count,)."""
    return np.asarray(np.bincount(place, values, count), dtype=np.float64)


class Repeats(NamedTuple):
    """Rows that occur several times.

    Attributes
    ----------
    first
        Where each of the distinct rows stands first, (u,), in this order.
    place
        Which of them every row is, (n,).
    counts
        How often each occurs, (u,).
    """

    first: IntArray
    place: IntArray
    counts: Array

    def sums(self, values: Array) -> Array:
        """Values (n, ...), added up for each distinct row, (u, ...)."""
        each, u = values.reshape(len(values), -1), len(self.first)
        total = np.empty((u, each.shape[1]))
        for k, column in enumerate(each.T):
            total[:, k] = np.bincount(self.place, column, minlength=u)
        return total.reshape(u, *values.shape[1:])


def repeated_rows(rows: Array) -> Repeats | None:
    """How the rows repeat, or None where they are all distinct."""
    if any(_all_distinct(column) for column in rows.T):
        return None
    order, starts = _sorted_rows(rows)
    first = order[starts]
    if len(first) == len(rows):
        return None
    counts = np.diff(np.append(np.flatnonzero(starts), len(rows)))
    by_first = np.argsort(first)
    rank = np.empty(len(first), dtype=np.intp)
    rank[by_first] = np.arange(len(first))
    place = np.empty(len(rows), dtype=np.intp)
    place[order] = rank[np.cumsum(starts) - 1]
    return Repeats(first[by_first], place, counts[by_first].astype(np.float64))


def _all_distinct(column: Array) -> bool:
    ordered = np.sort(column)
    return bool((ordered[1:] != ordered[:-1]).all())


def checked_names(names: Names, count: int, what: str, default: str, source: object = None) -> tuple[str, ...]:
    """``count`` distinct names; those of ``source``, if it is a pandas object, where none are given.

    Without either they are ``default``, numbered where there are several.
    """
    names = _pandas_names(source) if names is None else names
    if names is None:
        return (default,) if count == 1 else tuple(f"{default}{i + 1}" for i in range(count))
    given = (names,) if isinstance(names, str) else tuple(str(name) for name in names)
    if len(given) != count:
        raise InputError(f"{what} has {len(given)} names but there are {count}: give one name each")
    if len(set(given)) != count:
        raise InputError(f"{what} has a name twice: {', '.join(given)}")
    for name in given:
        # neither netCDF files nor terminals can have them
        if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
            raise InputError(f"{what} has {name!r}: a name cannot hold a NUL or half a surrogate pair")
    return given


def _pandas_names(value: object) -> Names:
    """The columns of a table or the name of a series; where pandas was never imported, nothing is either."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    if isinstance(value, pandas.DataFrame):
        return [str(column) for column in value.columns]
    return str(value.name) if isinstance(value, pandas.Series) and value.name is not None else None
