"""The command ``orthocal check``: a look at a problem before its run, and at a result after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .documents import Json, Prints, Quiet, found_document, give, prints_left_out, quietly, say
from .fits import is_fit

if TYPE_CHECKING:
    from ..config.experiments_file import ExperimentsFile
    from ..config.problem_file import ProblemFile, SamplingSection
    from ..experiments.experiments import Experiments
    from ..findings import Findings
    from ..problem.problem import Problem

Check = Annotated[
    bool,
    typer.Option("--check", help="Say what a run would cost and what speaks against it, for few calls, and end."),
]


def check(
    file: Annotated[Path, typer.Argument(help="A problem file, or a result file, fit.nc.", show_default=False)],
    prints: Prints = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what speaks against a problem before its run, or against a result.

    Of a problem file: what a run would cost, and what is wrong with it, for few calls of the simulator. Of a result
    file: its findings. The exit code is 1 where there is a problem.
    """
    if is_fit(file):
        from ..results.files.loading import load

        conclude_check(load(file).check())
    from ..config.experiments_file import read_any_file

    check_before(read_any_file(file), file, prints)


def check_before(config: ProblemFile | ExperimentsFile, path: Path, prints: bool) -> None:
    """Look at the problem of a file, and end."""
    from ..config.experiments_file import build_any
    from ..progress import progress_shown

    with quietly(), progress_shown(True), prints_left_out(prints):
        found = look_before(build_any(config, path), config.method.name, config.sampling)
    conclude_check(found)


def conclude_check(found: Findings) -> None:
    """Say what was found, and end: an error where there is a problem."""
    say(str(found))
    give({"ok": found.ok, "findings": found_document(found)})
    raise typer.Exit(0 if found else 1)


def look_before(problem: Problem | Experiments, method: str, sampling: SamplingSection) -> Findings:
    """What is to be known before the run; of several experiments, of each by itself."""
    return problem.check(method, sampling.draws, sampling.chains, sampling.warmup).in_files()
