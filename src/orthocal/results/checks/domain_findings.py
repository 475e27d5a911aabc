"""What is found about the domain: its integrals, whether it was given, and which part of it has no data."""

from __future__ import annotations

from collections.abc import Iterator

from ...advice import NODES, Advice
from ...bias.large_gp import MOVE_LIMITS
from ...findings import Finding, Level
from ...problem.shared_findings import quadrature_finding
from ..predict.data_coverage import DomainCoverage
from ..record import Record
from ..run_facts import RunFacts

#: a part of the domain without data that is worth a note, and a problem
NOTE_SHARE, PROBLEM_SHARE = 0.1, 0.2


def quadrature(record: Record, facts: RunFacts) -> Iterator[Finding]:
    error = facts.quadrature_error
    if error is None:
        return
    nodes = len(record.constant("nodes"))
    message = f"integrals over the domain with {nodes} nodes: their relative error is at most about {error:.1g}"
    yield quadrature_finding(error, message, "problem")


def bias_integrals(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Where the bias was integrated at other nodes than the domain's: how well."""
    if facts.bias_nodes is None:
        return
    if facts.bias_nodes == 0:
        yield Finding(
            "fine", "quadrature", "integrals of the bias are exact, cell by cell between the cuts of its trees"
        )
    elif facts.bias_nodes_moved is not None:
        moved = facts.bias_nodes_moved
        message = f"integrals of the bias with {facts.bias_nodes} nodes: half of them would move theta by {moved:.2g}"
        level: Level = "fine" if moved <= MOVE_LIMITS[0] else "note" if moved <= MOVE_LIMITS[1] else "problem"
        advice = "" if level == "fine" else "take more " + NODES
        yield Finding(level, "quadrature", f"{message} posterior sds", advice)


def domain_findings(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """What is to be said about the domain: whether it was given, and which part of it has no data."""
    if record.without_inputs:
        return
    if not facts.domain_given:
        message = f"none was given, the smallest box around the data was taken: {facts.domain}"
        yield Finding("note", "domain", message, "theta is defined by the domain: better give it")
    covered = DomainCoverage(record)
    share = covered.empty()
    if share >= NOTE_SHARE:
        where = [f"{words} ({own:.0%})" for words, own in covered.unseen]
        where += [
            f"{hole.name} from {hole.lower:.4g} to {hole.upper:.4g}{f' with {hole.words}' if hole.words else ''} "
            f"({hole.share:.0%})"
            for hole in covered.holes
        ]
        places = f": {', '.join(where)}" if where else ", in the corners between the data"
        box = Advice("oc.Box(lower, upper) or oc.Points(nodes)", "lower and upper, or file, in [domain]")
        advice: str = "give the domain that the data cover, " + box + ", or measure there too"
        if covered.unseen and not covered.holes:
            # no box would help
            advice = "measure there too, or leave labels without data out of the categories"
        yield Finding(
            "problem" if share >= PROBLEM_SHARE else "note",
            "domain",
            f"{share:.0%} of it has no data nearby{places}; what is said about it is an extrapolation of the bias, and "
            "theta depends on that",
            advice,
        )
    for j, (name, spacing) in enumerate(zip(covered.names, covered.data.spacings, strict=True)):
        if len(spacing.values) == 1 and covered.upper[j] > covered.lower[j]:
            message = f"{name} was measured at one value only, {spacing.values[0]:.4g}"
            advice = "theta depends on what the bias is elsewhere in the domain: measure at other values too"
            yield Finding("note", "domain", message, advice)
