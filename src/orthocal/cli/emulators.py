"""The command ``orthocal emulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .options import listed
from .outputs import outputs_in


def emulate(
    runs_file: Annotated[Path, typer.Argument(help="A table of runs, .nc, or .csv that `orthocal simulate` wrote.")],
    emulators: Annotated[str | None, typer.Option(help="Names of emulators, with commas. Default: all.")] = None,
    folds: Annotated[
        int | None, typer.Option(help="1: a fifth is held out; more: each run once. Default: by their number.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    out: Annotated[Path, typer.Option("--out", help="Folder for the table and the figure.")] = Path("."),
) -> None:
    """Compare emulators by how well they predict runs that they have not seen."""
    from ..emulators.held_out import compare_emulators
    from ..runs.table import RunTable

    names = None if emulators is None else listed(emulators)
    table, figure = "emulators.csv", "emulators.svg"
    with outputs_in(out, (table, figure), [runs_file]):
        comparison = compare_emulators(RunTable.load(runs_file), names, folds, seed)
        comparison.table.to_csv(out / table)
        comparison.figure().savefig(out / figure)
    typer.echo(f"\n{comparison}\n\nThe best: {comparison.ranking.index[0]}")
    typer.echo(f"Files: {out / table}, {out / figure}")
