"""Emulators side by side as one self-contained HTML page: the choice, its error, and those of the others."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ...files import whole_file
from ...pages.page import picture, rendered
from ...pages.tables import Grid
from ...runs.table import RunTable
from .held_out import EmulatorComparison, held_out_drawing

_CAPTION = (
    "The rms error of all held-out cells, as a share of their spread about the mean run: smaller is better. Coverage "
    "is the share of 95 % intervals that hold the run, where the emulator has a variance: it should be 0.95. Then "
    "seconds of one fit, and milliseconds for one theta at all points of a run."
)


def write_emulator_page(comparison: EmulatorComparison, runs: RunTable, path: str | Path, title: str) -> Path:
    """Write the page, whole or not at all."""
    page = rendered_emulators(comparison, runs, title)
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def rendered_emulators(comparison: EmulatorComparison, runs: RunTable, title: str) -> str:
    """The page as HTML."""
    choice = comparison.choice
    best, error = next(iter(choice.errors.items()))
    errors = comparison.table["relative_rmse"]
    drawn = held_out_drawing(errors, [str(name) for name in comparison.ranking.index], comparison.predictions)
    caption = "Left the errors of all, right what the best predicted against what the runs gave."
    each = ", ".join(f"{size:.3g} for {name}" for name, size in choice.rmse.items())
    return rendered(
        "emulators.html",
        __package__,
        title=title,
        best=best,
        error=f"{error:.2g}",
        held_out=comparison.held_out,
        rmse=f", {each} in its unit",
        left={**comparison.failures, **{name: f"dropped {why}" for name, why in comparison.dropped.items()}},
        grid=_grid(comparison),
        picture=picture("Held-out runs", caption, drawn),
        settings=list(_settings(comparison, runs)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _grid(comparison: EmulatorComparison) -> Grid:
    rows = []
    for name in comparison.ranking.index:
        for outcome, row in comparison.table.xs(name, level="emulator").iterrows():
            covered = row["coverage"]
            cells = [f"{row['relative_rmse']:.3g}", f"{covered:.2f}" if np.isfinite(covered) else "–"]
            rows.append([str(name), str(outcome), *cells, f"{row['fit_seconds']:.2g}", f"{row['predict_ms']:.2g}"])
    header = ["emulator", "outcome", "relative error", "coverage", "fit, s", "prediction, ms"]
    return Grid("Errors", _CAPTION, header, rows, 2)


def _settings(comparison: EmulatorComparison, runs: RunTable) -> Iterator[tuple[str, str]]:
    yield "runs", f"{runs.s}, of which {int(runs.failed.sum())} failed; {comparison.held_out} were predicted"
    yield "parameters", ", ".join(runs.parameter_names)
    yield "inputs", ", ".join(runs.input_names) or "none"
    yield "outcomes", ", ".join(runs.outcome_names)
    for note in runs.notes:
        yield "note", note
