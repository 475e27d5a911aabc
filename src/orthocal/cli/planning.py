"""The command ``orthocal next-runs``: where to run the simulator next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ConfigError
from .documents import Json, Quiet, give, quietly, say
from .fits import Experiment, Problem, fit_of, made_from
from .outputs import refuse_inputs

if TYPE_CHECKING:
    import pandas as pd


def next_runs(
    file: Annotated[
        Path, typer.Argument(help="A result file, fit.nc, or the problem file that made one.", show_default=False)
    ],
    number: Annotated[int, typer.Option("--number", "-n", help="Of runs.")] = 8,
    out: Annotated[
        Path | None, typer.Option("--out", help="The table to write. Default: next-runs.csv beside the result.")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="Put them below the rows that the table has.")] = False,
    problem: Problem = None,
    experiment: Experiment = None,
    seed: Annotated[int, typer.Option(help="Of the candidates.")] = 0,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose the next runs of a simulator that an emulator stands for.

    They are the values of the parameters whose runs reduce most what the emulator adds to their uncertainty. The table
    has a column a parameter: give it to a campaign, more = "next-runs.csv" in its [design], or run them by hand and add
    the results to the table of runs.
    """
    from ..config.problem_file import problem_runs
    from ..refinement import next_runs as chosen_runs

    fit = fit_of(file)
    target = out or fit.with_name("next-runs.csv")
    before = _before(target, append)
    with quietly():
        made = made_from(fit, problem or (None if fit == file else file), experiment, simulator=False)
        if made.config.simulator.runs is None:
            raise ConfigError(
                f"{fit} calls its simulator itself, and needs no runs: next-runs is for problems with runs in "
                "[simulator]"
            )
        refuse_inputs(target, [file, fit, made.folder / made.config.simulator.runs])
        runs = problem_runs(made.config, made.folder)
        table = chosen_runs(made.posterior, runs, number, seed, progress=True)
    _save(target, before, table)
    say(f"Next runs: {target} ({len(table)} rows)")
    give({"file": target, "runs": table})


def _before(target: Path, append: bool) -> list[str] | None:
    """The lines of the table that is there, to append to."""
    if not target.exists():
        return None
    if not append:
        raise ConfigError(f"{target} is there already: --append adds to it, --out writes another")
    from ..files.tables import text_lines

    return text_lines(target).read().splitlines()


def _save(target: Path, before: list[str] | None, table: pd.DataFrame) -> None:
    from ..files import whole_file

    header, *rows = table.to_csv(index=False).splitlines()
    if before and before[0] != header:
        raise ConfigError(f"{target} has the columns {before[0]}, and the next runs have {header}: give another --out")
    with whole_file(target) as draft:
        draft.write_text("\n".join([*(before or [header]), *rows]) + "\n", encoding="utf-8")
