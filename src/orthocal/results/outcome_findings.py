"""What the scale of an outcome and errors of its inputs mean for a fit: findings for ``check``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.stats import norm

from ..arrays import Array
from ..findings import Finding
from .notes import Notes
from .record import Record

#: share of predicted observations that may be impossible
IMPOSSIBLE_LIMIT = 0.01
#: unless they are whole numbers, observations must be this unlikely to lie on one side of a limit by chance
BY_CHANCE = 0.1
#: draws that are enough for the share
MOST_DRAWS = 400
#: in units of the noise sd, what errors of x may shift the outcomes by, because the simulator is curved (rms)
SHIFT_LIMIT = 0.3
#: share of an input's variance that may be error
ERROR_SHARE_LIMIT = 0.02


def impossible_observations(record: Record, notes: Notes) -> Iterator[Finding]:
    """Predicted observations below 0 or above 1, of outcomes that never are.

    Positive data far from zero have none. Data near zero may be positive by chance: unless they are counts, the
    predictions must make that improbable.
    """
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
    keep = np.arange(record.draws)[:: max(1, record.chains * record.draws // MOST_DRAWS)]
    model, bias = (record.values("posterior", name)[:, keep][:, :, rows, k] for name in ("model", "bias"))
    mean, sampled, own = model + bias, record.sampled_noise, record.noise_by_point
    if sampled is not None:
        var: Array = sampled[:, keep, k, k][:, :, None]
    else:
        var = record.noise_cov[k, k] if own is None else own[rows, k, k]
    sd = np.sqrt(var)
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
    added, each = record.constant("x_err_cov"), record.noise_by_point
    assert each is not None
    total = np.einsum("nii->ni", each)
    seen = ~np.isnan(record.y)
    share = float(np.mean((np.einsum("nii->ni", added) / total)[seen]))
    shift = float(np.sqrt(np.mean((record.constant("x_err_shift") ** 2 / total)[seen])))
    message = f"they make up {share:.0%} of the noise variance, to first order"
    if shift > SHIFT_LIMIT:
        curved = f"the simulator is curved over an error of x, which shifts outcomes by {shift:.2g} noise sds (rms)"
        advice = "the first order is not enough: take theta with care, or measure x better"
        yield Finding("problem" if shift > 1 else "note", "errors in x", f"{message}; {curved}", advice)
        return
    error, spread = np.mean(record.constant("x_err") ** 2, axis=0), np.var(record.x, axis=0)
    relative = np.divide(error, spread, out=np.zeros_like(error), where=spread > 0)
    worst = int(np.argmax(relative))
    if relative[worst] > ERROR_SHARE_LIMIT:
        known = f"{relative[worst]:.1%} of the variance of {record.input_names[worst]} is error"
        advice = (
            "if x was measured with these errors, slopes are drawn towards zero by about that share; if x was set and "
            "missed by them, they are not"
        )
        yield Finding("note", "errors in x", f"{message}; {known}", advice)
        return
    yield Finding("fine", "errors in x", message)
