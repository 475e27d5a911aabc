"""A look at a problem before its run, in the words of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..config.problem_file import SamplingSection
    from ..experiments.experiments import Experiments
    from ..findings import Findings
    from ..problem.problem import Problem

Check = Annotated[
    bool,
    typer.Option("--check", help="Say what a run would cost and what speaks against it, for few calls, and end."),
]


def look_before(problem: Problem | Experiments, method: str, sampling: SamplingSection) -> Findings:
    """What is to be known before the run; of several experiments, of each by itself."""
    from ..findings import Finding, Findings
    from ..problem.problem import Problem
    from ..results.file_words import for_a_file

    def found(one: Problem) -> list[Finding]:
        return for_a_file(one.check(method, sampling.draws, sampling.chains, sampling.warmup))

    if isinstance(problem, Problem):
        return Findings(found(problem))
    parts = problem.problems.items()
    named = [one._replace(topic=f"{name}, {one.topic}") for name, part in parts for one in found(part)]
    together = "each was looked at by itself; what a run of all costs, and whether they agree, was not looked at"
    return Findings([*named, Finding("note", "experiments", together)])
