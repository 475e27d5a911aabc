"""Whether what a fit leaves over is noise: three tests of the residuals, for any method.

Where the fit is right, a draw of model + bias is to the data what the truth is to them, so that the squares of its
residuals in noise sds add up to chi squared; their mean over the draws scatters less. A bias that follows the data
makes neighbours less alike. So all three alarm less often than stated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.stats import chi2, norm

from ...arrays import Array, BoolArray
from ..record import Record

#: probability that any of the tests finds something in an outcome whose residuals are noise
FALSE_ALARM = 0.01
#: fewer observations say nothing about a pattern
LEAST_ROWS = 8


class Misfit(NamedTuple):
    """What is wrong with the residuals of one outcome, in words; ``words`` is empty where nothing is.

    ``scatter`` is their root mean square around model + bias over the draws, in noise sds; ``too_small``, whether it
    is less than noise is.
    """

    outcome: str
    scatter: float
    words: tuple[str, ...]
    too_small: bool


def misfits(record: Record) -> Iterator[Misfit]:
    """One an outcome; one for all outputs without inputs, where an output may have a single observation."""
    noise_sd = record.noise_sds
    if record.without_inputs:
        scaled = (record.y - (record.at_data("model") + record.at_data("bias"))) / noise_sd
        yield _all_together(scaled[:, :, ~np.isnan(record.y)])
        return
    squares, residual = _of_draws(record, noise_sd, _whiteners(record))
    near = record.labels.apart(record.x, record.span)
    for k, name in enumerate(record.scale_names):
        seen = ~np.isnan(record.y[:, k])
        square, left = float(squares[k]), residual[seen, k]
        count = int(seen.sum())
        tests = [_scatter(square, count)]
        if count >= LEAST_ROWS and left.std() > 0:
            tests += [_neighbours(near[seen], left), _trend(record, seen, left)]
        words = tuple(words for p_value, words in tests if p_value < FALSE_ALARM / 3)
        yield Misfit(name, float(np.sqrt(square / count)), words, chi2.cdf(square, count) < FALSE_ALARM)


def _whiteners(record: Record) -> list[Array] | None:
    """For each outcome the matrix that makes the errors of its observed rows independent, where they are not.

    It goes along the first input: what is left of a row is its error less what the rows before say about it.
    """
    rows = record.row_correlation
    if rows is None:
        return None
    found: list[Array] = []
    for seen in ~np.isnan(record.y.T):
        order = np.flatnonzero(seen)[np.argsort(record.x[seen, 0], kind="stable")]
        lower = np.linalg.cholesky(rows.matrix[np.ix_(order, order)])
        whole = np.eye(len(seen))
        whole[np.ix_(order, order)] = np.linalg.inv(lower)
        found.append(whole)
    return found


def _of_draws(record: Record, noise_sd: Array, whiteners: list[Array] | None) -> tuple[Array, Array]:
    """Of residuals in noise sds: the sum of squares of each outcome, (q,), and they themselves, (n, q); draws' means.

    One draw at a time, because all of them in other units would be several times what is kept.
    """
    model, bias = record.at_data("model"), record.at_data("bias")
    squares, residual = np.zeros(record.q), np.zeros(record.y.shape)
    for c, s in np.ndindex(model.shape[:2]):
        scaled = (record.y - (model[c, s] + bias[c, s])) / noise_sd
        if whiteners is not None:
            columns = zip(whiteners, np.nan_to_num(scaled).T, strict=True)
            scaled = np.where(np.isnan(scaled), np.nan, np.column_stack([matrix @ one for matrix, one in columns]))
        squares += np.nansum(scaled**2, axis=0)
        residual += scaled
    count = model.shape[0] * model.shape[1]
    return squares / count, residual / count


def _all_together(scaled: Array) -> Misfit:
    """From the residuals of all observed cells in noise sds, (c, s, count)."""
    count = scaled.shape[2]
    square = float(np.mean(np.sum(scaled**2, axis=2)))
    p_value, words = _scatter(square, count)
    found = (words,) if p_value < FALSE_ALARM else ()
    return Misfit("all outputs", float(np.sqrt(square / count)), found, chi2.cdf(square, count) < FALSE_ALARM)


def _scatter(square: float, count: int) -> tuple[float, str]:
    """The sum of squares, averaged over the draws, is at most that of the noise on average."""
    return float(chi2.sf(square, count)), f"they are {np.sqrt(square / count):.2f} times as large as the noise"


def _neighbours(x: Array, left: Array) -> tuple[float, str]:
    """Products of neighbours' residuals: few runs along one input, and the same thing for several."""
    if x.shape[1] == 1:
        order = np.argsort(x[:, 0], kind="stable")
        one, other = order[:-1], order[1:]
    else:
        # where points are repeated, another one with the same x is a neighbour too
        nearest = np.asarray(cKDTree(x).query(x, k=2)[1])
        one = np.arange(len(x))
        other = np.where(nearest[:, 1] == one, nearest[:, 0], nearest[:, 1])
        pairs = np.unique(np.sort(np.column_stack([one, other]), axis=1), axis=0)
        one, other = pairs.T
    centred = left - left.mean()
    # residuals in a random order: their products have mean -variance / (n - 1) and about this variance
    variance = float(np.mean(centred**2))
    products = float(np.mean(centred[one] * centred[other])) + variance / (len(left) - 1)
    z = products / (variance / np.sqrt(len(one)))
    return float(norm.sf(z)), f"those of neighbouring points are alike (correlation {products / variance:.2f})"


def _trend(record: Record, seen: BoolArray, left: Array) -> tuple[float, str]:
    """The largest correlation with an input, its square, or a label, counted as often as it was looked for."""
    columns, labels, span = list[Array](), list[str](), record.span
    for j, name in enumerate(record.input_names):
        column, own = record.x[seen, j], record.labels.of(j)
        if own is None:
            linear = column / span[j] - (column / span[j]).mean()
            looked = [(linear, name), (linear**2, f"the square of {name}")]
        else:
            looked = [(1.0 * (column == value), f"{name} {own.text(value)}") for value in own.values]
        for values, label in looked:
            if values.std() > 1e-9:
                columns.append((values - values.mean()) / values.std())
                labels.append(label)
    if not columns:
        return 1.0, ""
    correlations = np.abs(np.array(columns) @ (left - left.mean())) / (len(left) * left.std())
    best = int(np.argmax(correlations))
    bounded = min(correlations[best], 1 - 1e-12)
    p_value = 2 * norm.sf(np.arctanh(bounded) * np.sqrt(len(left) - 3)) * len(columns)
    return float(p_value), f"they go with {labels[best]} (correlation {bounded:.2f})"
