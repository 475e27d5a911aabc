"""The page of the examples' study, as Markdown, CSV and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pandas as pd

import orthocal as oc
from orthocal.applications import Grid, rendered, whole_file
from orthocal.examples import Example

from .base import Study
from .example_tables import coverage_grid, example_figures, found_grid, measured_grid, simulated_grid
from .pages import duration
from .results import Results, Settings
from .tables import markdown_table

TITLE = "Study of the examples"
_MEANING = (
    "Mean and scatter: mean and standard deviation of the posterior means over the data sets; mean sd: of the "
    "posterior sds; the two should be alike. Coverage: share of 95 % intervals that hold theta*; ↓: too low to be "
    "chance. CPU s: median on one core, with the fit of an emulator where one is needed. Problems: data sets where "
    "check() found one, and how often it was which."
)


class _Section(NamedTuple):
    """One example on the page: what it is, and its table, which has rows where there is a truth."""

    example: Example
    star: str
    grid: Grid


def write_example_pages(studies: Sequence[Study], results: Results, folder: Path) -> str:
    """Write examples.md, .csv and .html of all that the folder has; the Markdown is also returned."""
    tables = {study.model.name: example_figures(study, results.rows(study.name)) for study in studies}
    shown = [study for study in studies if not tables[study.model.name].empty]
    table = pd.concat([tables[study.model.name] for study in shown])
    grids = (coverage_grid(table), measured_grid(shown, table), found_grid(table))
    overviews = [grid for grid in grids if grid.rows]
    sections = [
        _Section(study.model, _star(study.model), simulated_grid(study, tables[study.model.name])) for study in shown
    ]
    settings = _settings(shown, results)
    page = _markdown(overviews, sections, settings)
    with whole_file(folder / "examples.md") as draft:
        draft.write_text(page + "\n", encoding="utf-8")
    with whole_file(folder / "examples.csv") as draft:
        table.to_csv(draft, index=False)
    with whole_file(folder / "examples.html") as draft:
        draft.write_text(
            rendered(
                "examples.html",
                "orthocal_studies",
                title=TITLE,
                meaning=_MEANING,
                overviews=overviews,
                sections=sections,
                settings=settings,
                version=oc.__version__,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
            ),
            encoding="utf-8",
        )
    return page


def _star(example: Example) -> str:
    if not example.theta_star:
        return ""
    pairs = zip(example.parameters, example.theta_star, strict=True)
    return ", ".join(f"{name} = {value:.6g}" for name, value in pairs)


def _settings(studies: Sequence[Study], results: Results) -> list[tuple[str, str]]:
    asked = [one for one in (results.settings(study.name) for study in studies) if one is not None]
    work = [results.work(study.name) for study in studies]
    return [
        ("data sets a problem", _range(asked, "replications")),
        ("kept draws of each, over 4 chains", _range(asked, "draws")),
        ("seed", _range(asked, "seed")),
        ("wall time in all", duration(sum(seconds for _, seconds in work))),
        ("machine", next((machine for machine, _ in work if machine), "")),
    ]


def _range(asked: list[Settings], name: str) -> str:
    return ", ".join(str(value) for value in sorted({getattr(one, name) for one in asked}))


def _markdown(overviews: list[Grid], sections: list[_Section], settings: list[tuple[str, str]]) -> str:
    facts = "; ".join(f"{name}: {value}" for name, value in settings)
    parts = [f"# {TITLE}", f"{facts}."]
    for grid in overviews:
        parts += [f"## {grid.title}", *([grid.caption] if grid.caption else []), markdown_table(grid.header, grid.rows)]
    parts += ["## Every problem", _MEANING]
    for example, star, grid in sections:
        truth = f" theta*: {star}." if star else ""
        parts += [f"### {example.title} (`{example.name}`)", f"{example.words}{truth} Source: {example.source}."]
        parts += [markdown_table(grid.header, grid.rows)] if grid.rows else []
    return "\n\n".join(parts)
