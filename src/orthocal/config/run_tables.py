"""The table of runs that a problem file names: its columns are found by the names of the problem, or by ``[runs]``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from ..errors import ConfigError
from ..files.tables import Dialect
from ..runs.loading import knows_its_names
from ..runs.table import RunTable
from ..sections import Names, Section

#: columns, or name -> column
NamesOrColumns = Annotated[
    list[str] | dict[str, str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)
]


class RunsSection(Section):
    """How the table of runs is written, where its columns do not have the names of the problem."""

    parameters: NamesOrColumns | None = None
    x: NamesOrColumns | None = None
    y: NamesOrColumns | None = None
    layout: Literal["auto", "long", "wide"] = "auto"
    points: str | list[float] | list[list[float]] | None = None
    columns: Names | dict[str, list[str]] | None = None
    run: str | None = None
    ignore: Names = Field(default_factory=list)

    @property
    def points_file(self) -> str | None:
        """The table of points beside that of the runs."""
        return self.points if isinstance(self.points, str) and self.points != "header" else None


def load_runs(
    file: str,
    folder: Path,
    section: RunsSection,
    parameters: Sequence[str],
    x: Sequence[str] | None,
    y: Sequence[str],
    dialect: Dialect,
) -> RunTable:
    """The runs of a problem with these names, in their order."""
    path = folder / file
    if not section.model_fields_set and knows_its_names(path):
        runs = RunTable.load(path, separator=dialect.separator, decimal=dialect.decimal)
        _refuse_half_known(runs, x or [], file)
        return runs.ordered(parameters, x, y)
    points = section.points
    return RunTable.load(
        path,
        _columns(section.parameters, parameters, "parameters"),
        _columns(section.x, x or [], "x"),
        _columns(section.y, y, "y"),
        separator=dialect.separator,
        decimal=dialect.decimal,
        layout=section.layout,
        points=folder / points if isinstance(points, str) and points != "header" else points,
        columns=section.columns,
        run=section.run,
        ignore=section.ignore,
    )


def _columns(given: list[str] | dict[str, str] | None, names: Sequence[str], what: str) -> dict[str, str]:
    """Name of the problem -> column of the runs, never by place."""
    if given is None or (isinstance(given, list) and set(given) == set(names)):
        return {name: name for name in names}
    if isinstance(given, dict) and set(given) == set(names):
        return {name: given[name] for name in names}
    if isinstance(given, list) and len(given) == len(names) == 1:
        return {names[0]: given[0]}
    table = ", ".join(f'{name} = "..."' for name in names)
    said = ", ".join(given) or "nothing"
    raise ConfigError(f"runs.{what} has {said}, and the problem {', '.join(names) or 'none'}: give {{ {table} }}")


def _refuse_half_known(runs: RunTable, x: Sequence[str], file: str) -> None:
    """Inputs are matched by name where the names agree, and by place where they say nothing; not in between."""
    common = set(x) & set(runs.input_names)
    if common and common != set(x) | set(runs.input_names) and len(x) == runs.d:
        raise ConfigError(
            f"{file} has the inputs {', '.join(runs.input_names)}, and data.x is {', '.join(x)}: give the columns of "
            "the data under the names of the runs, or all of them under others"
        )
