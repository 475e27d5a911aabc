"""The comparison of experiments as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import pandas as pd

from ..arrays import Array
from ..files import whole_file
from ..findings import Findings
from ..pages.page import picture, rendered
from ..pages.panels import Drawing
from ..pages.tables import Grid, with_error
from ..results.figures.parts import with_unit
from ..results.posterior import Posterior
from .figures import fits_drawing
from .words import settings_words


class ComparedExperiments(Protocol):
    """What the page shows."""

    @property
    def together(self) -> Posterior:
        """That of all experiments."""

    @property
    def predictions(self) -> pd.DataFrame:
        """One row an experiment."""

    @property
    def failures(self) -> dict[str, str]:
        """What could not be calibrated, and why."""

    def disagreements(self) -> pd.DataFrame:
        """One row an experiment and shared parameter."""

    def words(self) -> list[str]:
        """In plain sentences."""

    def shared_draws(self) -> dict[str, dict[str, Array | None]]:
        """Name of a fit -> shared parameter -> its draws."""


def write_experiments_page(comparison: ComparedExperiments, path: str | Path, title: str) -> Path:
    """Write the page, whole or not at all."""
    found: Findings = comparison.together.check()
    caption = "Dots are means, lines hold 95 %. Private parameters are not shown."
    page = rendered(
        "experiments.html",
        __package__,
        title=title,
        words=comparison.words(),
        failures=comparison.failures,
        picture=picture("Fits", caption, _fits(comparison)),
        tables=[_apart(comparison), _foretold(comparison)],
        findings=found,
        settings=list(_settings(comparison)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def _fits(comparison: ComparedExperiments) -> Drawing:
    record, draws = comparison.together.record, comparison.shared_draws()
    names = next(iter(draws.values()))
    return fits_drawing(draws, titles={name: with_unit(record, name) for name in names})


def _settings(comparison: ComparedExperiments) -> Iterator[tuple[str, str]]:
    record = comparison.together.record
    yield "method", settings_words(record.method)
    yield "chains, draws, warm-up", f"{record.chains} x {record.draws}, {record.warmup}, for every fit"
    yield "seed", str(record.seed)
    yield from record.versions.items()


def _apart(comparison: ComparedExperiments) -> Grid:
    rows = [
        [
            *map(str, key),
            with_error(row["alone"], row["alone_sd"], 2),
            with_error(row["others"], row["others_sd"], 2),
            f"{row['z']:.1f}",
            f"{row['p']:.2g}",
        ]
        for key, row in comparison.disagreements().iterrows()
        if isinstance(key, tuple)
    ]
    header = ["experiment", "parameter", "alone", "from the others", "sds apart", "probability"]
    caption = (
        "What each experiment says alone beside what all others say; the probability of a larger difference where they "
        "agree."
    )
    return Grid("Where they disagree", caption, header, rows, 2)


def _foretold(comparison: ComparedExperiments) -> Grid:
    rows = [
        [
            str(name),
            f"{row['others']:.3g}",
            f"{row['others_lower']:.3g} to {row['others_upper']:.3g}",
            f"{row['own']:.3g}",
        ]
        for name, row in comparison.predictions.iterrows()
    ]
    header = ["experiment", "theta of the others", "95 %", "its own theta"]
    caption = (
        "What the simulator alone misses of the data of each experiment, root mean square in noise standard "
        "deviations; private parameters are fitted."
    )
    return Grid("Foretold by a fit that has not seen it", caption, header, rows, 1)
