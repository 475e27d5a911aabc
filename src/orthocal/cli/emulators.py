"""The command ``orthocal emulate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError
from .documents import Json, Quiet, give, quietly, say
from .outputs import listed, outputs_in

if TYPE_CHECKING:
    from ..emulators.choice import EmulatorComparison
    from ..runs.table import RunTable


def emulate(
    runs_file: Annotated[
        Path, typer.Argument(help="A table of runs, or the TOML file of a problem that names one and its columns.")
    ],
    emulators: Annotated[str | None, typer.Option(help="Names of emulators, with commas. Default: all.")] = None,
    folds: Annotated[
        int | None, typer.Option(help="1: a fifth is held out; more: each run once. Default: by their number.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for the table and the figure.")] = Path("."),
    parameters: Annotated[
        str | None, typer.Option(help="Columns of a table from elsewhere, with commas: its parameters,")
    ] = None,
    inputs: Annotated[str | None, typer.Option(help="its inputs,")] = None,
    outcomes: Annotated[str | None, typer.Option(help="and its outcomes.")] = None,
    separator: Annotated[str, typer.Option(help="What stands between the cells of such a table.")] = ",",
    decimal: Annotated[str, typer.Option(help="What stands before a fraction there.")] = ".",
    race: Annotated[bool, typer.Option("--race", help="Drop those that are clearly worse, as auto does.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare emulators by how well they predict runs that they have not seen."""
    from ..emulators.choice import compare_emulators, write_emulator_page

    names = None if emulators is None else listed(emulators)
    kinds = {"table": "emulators.csv", "figure": "emulators.svg", "report": "emulators.html"}
    files = {kind: out / name for kind, name in kinds.items()}
    with quietly(), outputs_in(out, kinds.values(), [runs_file]):
        runs = _runs(runs_file, separator, decimal, parameters, inputs, outcomes)
        for note in runs.notes:
            say(note)
        comparison = compare_emulators(runs, names, folds, seed, race=race)
        comparison.table.to_csv(files["table"])
        comparison.figure().savefig(files["figure"])
        write_emulator_page(comparison, runs, files["report"], f"Emulators of {runs_file.name}")
    say(f"\n{comparison}\n\nThe best: {comparison.ranking.index[0]}")
    say(f"Files: {files['table']}, {files['figure']}\nReport: {files['report']}")
    give(_document(comparison, files))


def _document(comparison: EmulatorComparison, files: dict[str, Path]) -> dict[str, Any]:
    choice = comparison.choice
    best, error = next(iter(choice.errors.items()))
    return {
        "best": best,
        "relative_error": error,
        "rmse": choice.rmse,
        "held_out": choice.held_out,
        "errors": comparison.table.reset_index(),
        "failures": comparison.failures,
        "dropped": comparison.dropped,
        "files": files,
    }


def _runs(path: Path, separator: str, decimal: str, *given: str | None) -> RunTable:
    """The table of a file, or the one that a problem file names."""
    from ..runs.table import RunTable

    if path.suffix.lower() != ".toml":
        parameters, inputs, outcomes = (None if one is None else listed(one) for one in given)
        return RunTable.load(path, parameters, inputs, outcomes, separator=separator, decimal=decimal)
    from ..config.problem_file import problem_runs, read_problem_file

    if any(one is not None for one in given):
        raise ConfigError("a problem file names its columns itself: leave --parameters, --inputs and --outcomes out")
    return problem_runs(read_problem_file(path), path.parent)
