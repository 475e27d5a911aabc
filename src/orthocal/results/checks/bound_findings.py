"""What is found about the support of theta: bounds, the width of the prior, and what is impossible."""

from __future__ import annotations

from collections.abc import Iterator

from ...advice import DRAWS, JOINT
from ...findings import Finding, Level
from ...projection import ProjectionKind
from ..record import Record
from ..run_facts import RunFacts

#: draws that must be left where impossible ones were left out, or this share of all
LEAST_LEFT, LEAST_SHARE = 400, 0.5
#: share of the draws that may be left out because the simulator fails, where no constraint has excluded them
MOST_UNASKED = 0.05


def identified(record: Record, facts: RunFacts) -> Iterator[Finding]:
    support = record.support
    draws = record.theta.reshape(-1, len(support.names))
    share = draws.std(axis=0) / support.spread
    for name, value in zip(support.names, share, strict=True):
        if value > 0.5:
            message = f"the posterior of {name} is {value:.2f} times as wide as its prior: the data say little about it"
            yield Finding("note", "information", message)
    edge = 0.01 * support.spread
    near = (draws < support.lower + edge) | (draws > support.upper - edge)
    for name, part in zip(support.names, near.mean(axis=0), strict=True):
        if part > 0.02:
            message = f"{part:.0%} of the draws of {name} lie at a bound of its prior"
            yield Finding("note", "bounds", message, "check that the bound is meant")


def allowed(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """What a constraint, or a simulator that fails, excludes."""
    if record.constraint:
        share = "" if facts.allowed_share is None else f" ({facts.allowed_share:.2g} of the prior)"
        yield Finding("fine", "constraint", f"theta is restricted to {record.constraint}{share}")
    if facts.on_edge:
        projected = record.projection in (ProjectionKind.FUNCTIONAL, ProjectionKind.FINITE)
        yield Finding(
            "problem" if projected else "note",
            "constraint",
            "the best fit lies on the edge of what it allows, where the loss need not be stationary"
            + (" and orthogonality has no meaning" if projected else ""),
            "take " + JOINT + ", or check that the constraint is meant" if projected else "",
        )
    if facts.impossible > 0:
        excluded = (
            "the constraint excludes theta or the simulator fails" if record.constraint else "the simulator fails"
        )
        left = facts.weighted_draws or 0.0
        enough = min(LEAST_LEFT, LEAST_SHARE * record.theta[..., 0].size)
        # of a failure nobody has said that theta is impossible there
        unasked = not record.constraint and facts.impossible > MOST_UNASKED
        level: Level = "problem" if left < enough or unasked else "note"
        message = (
            f"{facts.impossible:.1%} of the draws of the real process are closest to the simulator where {excluded}; "
            f"they were left out, and the others are worth {left:.0f} draws"
        )
        advice = "" if level == "note" else "take more " + DRAWS + "; the data contradict what is allowed"
        if unasked:
            advice = "fix the simulator there, or exclude such theta by a constraint"
        yield Finding(level, "impossible theta", message, advice)
