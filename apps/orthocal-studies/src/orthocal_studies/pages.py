"""The files of a study: its tables as Markdown, CSV and HTML, and its figure."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from orthocal.applications import picture, rendered, style, whole_file

from .base import Study
from .figure import study_drawing, study_figure
from .results import Results, Settings
from .tables import HEADER, cells, figures, headings, markdown_table

_MEANING = (
    "Posterior mean: mean over the replications (smallest–largest). Posterior sd: smallest–largest. Coverage: of the "
    "95 % interval. ESS: mean effective draws; ESS / s: median, by CPU time. CPU s: median on one core. "
    "Columns headed paper: as printed there."
)


def write_pages(study: Study, results: Results, settings: Settings, folder: Path) -> str:
    """Write NAME.md, .csv, .html, .svg and .png; the Markdown is also returned."""
    table = figures(study, results.rows(study.name))
    title = f"Study {study.name}: {study.title}"
    lines = _lines(study, results, settings)
    blocks = [(heading, cells(table, parameter)) for parameter, heading in headings(table).items()]
    page = "\n\n".join(
        [f"# {title}", *lines, *(f"## {heading}\n\n{markdown_table(HEADER, rows)}" for heading, rows in blocks)]
    )
    with whole_file(folder / f"{study.name}.md") as draft:
        draft.write_text(f"{page}\n\n![posterior sd and coverage]({study.name}.svg)\n", encoding="utf-8")
    with whole_file(folder / f"{study.name}.csv") as draft:
        table.to_csv(draft, index=False)
    _write_figure(study, table, folder)
    _write_html(study, table, folder, {"title": title, "lines": lines, "blocks": blocks, "header": HEADER})
    return page


def _lines(study: Study, results: Results, settings: Settings) -> list[str]:
    machine, seconds = results.work(study.name)
    facts = (
        f"Seed {settings.seed}; {settings.draws} kept draws a replication. "
        f"Wall time {duration(seconds)} in all; {machine}."
    )
    return [facts, _MEANING, *([study.note] if study.note else [])]


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{seconds:.1f} s"


def _write_figure(study: Study, table: pd.DataFrame, folder: Path) -> None:
    figure = study_figure(table)
    for ending in ("svg", "png"):
        with whole_file(folder / f"{study.name}.{ending}") as draft, mpl.rc_context(style.STYLE):
            figure.savefig(draft, format=ending, metadata={"Date": None} if ending == "svg" else None)


def _write_html(study: Study, table: pd.DataFrame, folder: Path, content: dict[str, object]) -> None:
    shown = picture(
        "Posterior sd and coverage", "Dots with their ranges; coverage should be 0.95.", study_drawing(table)
    )
    with whole_file(folder / f"{study.name}.html") as draft:
        page = rendered(
            "study.html",
            "orthocal_studies",
            **content,
            picture=shown,
            settings=[],
            version=version("orthocal"),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        draft.write_text(page, encoding="utf-8")
