"""Whether theta can be told from the bias, and combinations of parameters that the simulator does not answer to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays import Array
from ...findings import Finding
from ...methods.base import KINDS
from ...problem.shared_findings import told_apart
from ...projection import Sensitivity
from ..record import Record
from ..run_facts import RunFacts

#: parts of a direction that are rounding
NO_PART = 1e-2
#: smaller coefficients are none, in units of what they do
ROUNDING = 1e-4
#: a parameter with less of the largest part of a direction is not one to name the direction by
CLEAR = 0.1


def sensitivity(record: Record, facts: RunFacts) -> Iterator[Finding]:
    weakest = facts.weakest_sensitivity
    if weakest is None:
        family = KINDS.get(record.method["kind"])
        if family is not None and not family.tells_apart:
            message = "theta and the bias cannot be told apart: nothing keeps the bias from doing theta's work"
            advice = "take theta from a projected method, or from OGP or PCAL"
            yield Finding("note", "identifiability", message, advice)
        return
    if facts.open_directions[0]:
        yield open_finding(*facts.open_directions)
        return
    yield told_apart(weakest)


def open_finding(free: tuple[str, ...], told: tuple[str, ...]) -> Finding:
    """The finding about combinations that are left to the prior."""
    message = (
        f"the simulator does not answer to changes along {' and '.join(free)}: there theta keeps what its prior says. "
        f"The data determine {' and '.join(told) or 'nothing else'}"
    )
    advice = "give these parameters priors that you mean; or fix one of them, or calibrate the combination"
    return Finding("note", "parameters", message, advice)


def named_directions(directions: Sensitivity, names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The directions of theta that the simulator does not answer to, and the combinations that it answers to instead.

    Both in parameters of directions that are open: what else there is, is determined by itself.
    """
    vectors = directions.open
    if not len(vectors):
        return (), ()
    involved = np.flatnonzero((np.abs(vectors) > NO_PART).any(axis=0))
    # in units of the gradients' lengths: what is small there is rounding, whatever the parameters' units
    _, sizes, rest = np.linalg.svd(vectors[:, involved])
    closed, lengths = rest[np.sum(sizes > NO_PART) :], directions.lengths[involved]
    own = tuple(names[j] for j in involved)
    return (
        tuple(_combination(row / lengths, own) for row in _echelon(vectors[:, involved])),
        tuple(_combination(row * lengths, own) for row in _echelon(closed)),
    )


def _echelon(rows: Array) -> Array:
    """Rows that span the same, each without the parameters that others begin with: combinations of few.

    They depend on what is spanned alone, not on the rows, which another machine may give otherwise: each begins with
    the first parameter that is not clearly small beside the others.
    """
    rows = rows.copy()
    for i in range(len(rows)):
        sizes = np.abs(rows[i:]).max(axis=0)
        j = int(np.flatnonzero(sizes > CLEAR * sizes.max())[0])
        pivot = i + int(np.argmax(np.abs(rows[i:, j])))
        rows[[i, pivot]] = rows[[pivot, i]]
        rows[i] /= rows[i, j]
        others = np.arange(len(rows)) != i
        rows[others] -= np.outer(rows[others, j], rows[i])
    return np.asarray(np.where(np.abs(rows) > ROUNDING, rows, 0.0))


def _combination(row: Array, names: tuple[str, ...]) -> str:
    """For instance ``a - 2 b``, in units of the first."""
    words, row = "", row / row[np.flatnonzero(row)[0]]
    for part, name in zip(row, names, strict=True):
        if part:
            sign = (" - " if part < 0 else " + ") if words else ""
            size = "" if abs(abs(part) - 1) < ROUNDING else f"{abs(part):.3g} "
            words += f"{sign}{size}{name}"
    return words
