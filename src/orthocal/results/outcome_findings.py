"""What the scale of an outcome and errors of its inputs mean for a fit: findings for ``check``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from ..arrays import Array
from ..findings import Finding, Level
from .notes import Notes
from .record import Record

#: share of predicted observations that may be impossible
IMPOSSIBLE_LIMIT = 0.01
#: unless they are whole numbers, observations must be this unlikely to lie on one side of a limit by chance
BY_CHANCE = 0.1
#: draws that are enough for the share
MOST_DRAWS = 400
#: posterior sds by which what the first order leaves out may move theta: beyond the first a note, then a problem
MOVE_LIMITS = 0.3, 1.0


def impossible_observations(record: Record, notes: Notes) -> Iterator[Finding]:
    """Predicted observations below 0 or above 1, of outcomes that never are.

    Positive data far from zero have none. Data near zero may be positive by chance: unless they are counts, the
    predictions must make that improbable.
    """
    if record.without_inputs:
        # one number says nothing about which ones are possible
        return
    y = record.native_y
    for k, name in enumerate(record.outcome_names):
        seen = ~np.isnan(y[:, k])
        values = y[seen, k]
        if (record.transforms and record.transforms.names[k]) or values.min() < 0:
            continue
        counts = bool((values == np.round(values)).all())
        below, above = _shares_beyond(record, k, seen)
        ends = [("negative", below)] + ([("above 1", above)] if values.max() <= 1 else [])
        found = [(words, share) for words, share in ends if _impossible(share, counts)]
        if found:
            shares = " and ".join(f"{share.mean():.1%} are {words}" for words, share in found)
            kind = "a whole number" if counts else "positive" if values.min() > 0 else "0 or more"
            kind = "between 0 and 1" if len(ends) > 1 and not counts else kind
            message = f"every observed {name} is {kind}, but of the predicted observations at the data {shares}"
            yield Finding("note", "predictions", message, _advice(name, values, [words for words, _ in found]))


def _impossible(shares: Array, counts: bool) -> bool:
    by_chance = float(np.prod(1 - shares))
    return bool(shares.mean() > IMPOSSIBLE_LIMIT and (counts or by_chance < BY_CHANCE))


def _shares_beyond(record: Record, k: int, rows: Array) -> tuple[Array, Array]:
    """Probabilities that an observation of outcome k lies below 0 and above 1, at each of the rows, (m,) each."""
    keep = record.kept[:: max(1, record.chains * len(record.kept) // MOST_DRAWS)]
    model, bias = (record.at_data(name, keep)[:, :, rows, k] for name in ("model", "bias"))
    mean, var = model + bias, record.noise_of_rows[..., k, k]
    var = var[:, keep] if var.shape[1] > 1 else var
    sd = np.sqrt(var[:, :, rows] if var.shape[2] > 1 else var)
    below, above = norm.cdf(-mean / sd), norm.sf((1 - mean) / sd)
    return below.mean(axis=(0, 1)), above.mean(axis=(0, 1))


def _advice(name: str, values: Array, beyond: list[str]) -> str:
    condition = f"if {name} cannot be so, "
    if "above 1" in beyond:
        if values.min() > 0 and values.max() < 1:
            return f'{condition}give transform="logit"'
        return (
            f"{condition}no normal noise fits it: take shares of groups, moved inwards, (k + 0.5) / (m + 1) for k of "
            'm, and transform="logit"'
        )
    words = '"log" or "sqrt"' if values.min() > 0 else '"sqrt"'
    return f"{condition}give transform={words}, or y_err that is smaller where it is small"


def errors_in_x(record: Record, notes: Notes) -> Iterator[Finding]:
    """Whether errors of x are small enough for the first order: beside the curvature of f, and the range of x."""
    if not record.has("constant_data", "x_err"):
        return
    each, seen = record.noise_by_point, ~np.isnan(record.y)
    assert each is not None
    parts = np.einsum("nii->ni", record.constant("x_err_cov")) / np.einsum("nii->ni", each)
    message = f"they make up {parts[seen].mean():.0%} of the noise variance, to first order"
    sd = record.theta.std(axis=(0, 1))
    moves = np.abs(record.constant("x_err_moves")) / np.where(sd > 0, sd, np.inf)
    (bent, by_curvature), (diluted, by_dilution) = ((int(one.argmax()), float(one.max())) for one in moves)
    small = True
    if by_curvature > MOVE_LIMITS[0]:
        small = False
        words = f"the simulator's curvature over them moves {record.parameter_names[bent]} by {by_curvature:.2g}"
        advice = "the first order is not enough: do not trust theta beyond that, or measure x better"
        level: Level = "problem" if by_curvature > MOVE_LIMITS[1] else "note"
        yield Finding(level, "errors in x", f"{message}; {words} posterior sds", advice)
    if by_dilution > MOVE_LIMITS[0]:
        small = False
        words = f"if x was measured with them, {record.parameter_names[diluted]} is off by about {by_dilution:.2g}"
        advice = (
            "slopes are drawn towards zero by the share of error in the variance of x; not so if x was set and missed"
        )
        yield Finding("note", "errors in x", f"{message}; {words} posterior sds", advice)
    if small:
        yield Finding("fine", "errors in x", message)
