"""Noise along a line, as ``oc.CorrelatedNoise`` asks for it: what is given, and what is to be estimated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..arrays import Array, IntArray, as_floats, is_positive_definite
from ..errors import InputError
from .data import FieldData, chosen_groups
from .noise import Noise, NoiseSource, known_noise, noise_from_errors
from .noise_kinds import CorrelatedNoise
from .row_correlation import NoiseKernel, RowCorrelation, refuse_many_cells


class Line(NamedTuple):
    """Where the rows lie along it: positions (n,), the number of each row's series (n,), and which inputs they are."""

    position: Array
    series: IntArray
    column: int | None
    series_column: int | None

    def correlation(self, nu: float, length: float, share: float) -> RowCorrelation:
        kernel = NoiseKernel(nu, length, share, self.column, self.series_column)
        return RowCorrelation(kernel.matrix(self.position, self.series), kernel)


def line_of(asked: CorrelatedNoise, data: FieldData) -> Line:
    """The line of ``asked``, or an error that names what it has not."""
    position, column = _positions(asked.column, data)
    series: NDArray[np.intp] = np.zeros(data.n, dtype=np.intp)
    series_column = None
    if asked.groups is not None or data.groups is not None:
        series = chosen_groups(data, asked.groups).codes
        own = isinstance(asked.groups, str) and (data.groups is None or asked.groups != data.groups.name)
        series_column = data.input_names.index(str(asked.groups)) if own else None
    return Line(position, series, column, series_column)


def _positions(column: str | ArrayLike | None, data: FieldData) -> tuple[Array, int | None]:
    names = ", ".join(data.input_names)
    if column is None:
        if data.d > 1:
            raise InputError(f"CorrelatedNoise(column=None) is for one input, and x has {names}: name the one")
        _refuse_labels(data, 0)
        return data.x[:, 0], 0
    if isinstance(column, str):
        if column not in data.input_names:
            raise InputError(
                f"CorrelatedNoise(column={column!r}): there is no such input; give one of {names}, or positions (n,)"
            )
        number = data.input_names.index(column)
        _refuse_labels(data, number)
        return data.x[:, number], number
    given = as_floats(column, "CorrelatedNoise(column=)")
    if given.shape != (data.n,) or not np.isfinite(given).all():
        raise InputError(
            f"CorrelatedNoise(column=) has shape {given.shape} but y has {data.n} rows: give a finite position of each "
            "row, or the name of an input"
        )
    return given, None


def _refuse_labels(data: FieldData, column: int) -> None:
    if data.labels.of(column) is not None:
        raise InputError(
            f"CorrelatedNoise goes along numbers, and {data.input_names[column]} holds labels: name another input, or "
            "take these as groups"
        )


class PartlyGiven(NamedTuple):
    """What was asked, and the noise of single rows where that is given."""

    asked: CorrelatedNoise
    own: Noise | None


def given_noise(asked: CorrelatedNoise, y_err: ArrayLike | None, data: FieldData) -> Noise | PartlyGiven:
    """The noise where all of it is given; else what is, after a look at it."""
    refuse_many_cells(data.y.size)
    line = line_of(asked, data)
    own = _variances(asked, y_err, data)
    if asked.length is None or asked.share is None or own is None:
        return PartlyGiven(asked, own)
    return with_correlation(own, line, asked.smoothness, asked.length, asked.share)


def with_correlation(own: Noise, line: Line, nu: float, length: float, share: float, **changes: Any) -> Noise:
    """Independent noise made one that is correlated along the line."""
    rows = line.correlation(nu, length, share)
    if not is_positive_definite(rows.matrix):
        raise InputError(_singular(line, length, share))
    if not (rows.matrix - np.eye(len(rows.matrix))).any():
        return replace(own, **changes)
    return replace(own, rows=rows, **changes)


def _singular(line: Line, length: float, share: float) -> str:
    """Why errors along the line have no positive definite covariance."""
    order = np.lexsort((line.position, line.series))
    same = (np.diff(line.position[order]) == 0) & (np.diff(line.series[order]) == 0)
    if same.any() and share == 1:
        first, second = order[np.flatnonzero(same)[0]], order[np.flatnonzero(same)[0] + 1]
        return (
            f"rows {min(first, second)} and {max(first, second)} have the same position in the same series, where "
            "CorrelatedNoise(share=1) would have the same error: give share below 1, or groups that tell series apart"
        )
    return (
        f"CorrelatedNoise(length={length:g}) makes neighbouring errors all but equal, and their covariance singular: "
        'give share below 1, a shorter length, or kind="ar1"'
    )


def _variances(asked: CorrelatedNoise, y_err: ArrayLike | None, data: FieldData) -> Noise | None:
    """The noise of single rows, where it is given."""
    if y_err is not None:
        if asked.sd is not None or asked.cov is not None:
            raise InputError("CorrelatedNoise(sd=) or cov= and y_err all give the noise: leave the others out")
        own = noise_from_errors(y_err, data.observed)
        if own.by_point is not None and data.q > 1:
            raise InputError(
                f"y_err differs between rows, and correlated noise of {data.q} outcomes has the same covariance in "
                "each: give CorrelatedNoise(sd=) with one number an outcome, or one outcome at a time"
            )
        return own
    if asked.cov is not None:
        given = as_floats(asked.cov, "CorrelatedNoise(cov=)")
        if given.shape not in ((), (data.q, data.q)):
            raise InputError(f"CorrelatedNoise(cov=) has shape {given.shape}: give a ({data.q}, {data.q}) matrix")
        return known_noise(given, data.observed)
    if asked.sd is None:
        return None
    sd = as_floats(asked.sd, "CorrelatedNoise(sd=)")
    if sd.shape not in ((), (1,), (data.q,)) or not (np.isfinite(sd).all() and (sd > 0).all()):
        one = "a positive number" if data.q == 1 else f"a positive number, or one an outcome ({data.q},)"
        raise InputError(f"CorrelatedNoise(sd=) has shape {sd.shape}: give {one}; errors of single rows are y_err")
    return Noise(np.eye(data.q) * sd**2, data.observed, NoiseSource.KNOWN)
