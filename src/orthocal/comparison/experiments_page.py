"""The comparison of experiments as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version

import pandas as pd

from ..arrays import Array
from ..pages.page import picture, rendered
from ..pages.tables import Grid, with_error
from ..results.figures.axes import with_unit
from ..results.posterior import Posterior
from ..results.record import Record
from .figures import fits_drawing
from .words import settings_words


def experiments_page(
    title: str,
    together: Posterior,
    draws: dict[str, dict[str, Array | None]],
    tables: tuple[pd.DataFrame, pd.DataFrame],
    words: list[str],
    failures: dict[str, str],
) -> str:
    """The page as HTML.

    ``draws`` are those of the shared parameters, name of a fit -> parameter -> draws; ``tables`` the disagreements and
    the predictions.
    """
    record, caption = together.record, "Dots are means, lines hold 95 %. Private parameters are not shown."
    titles = {name: with_unit(record, name) for name in next(iter(draws.values()))}
    return rendered(
        "experiments.html",
        __package__,
        title=title,
        words=words,
        failures=failures,
        picture=picture("Fits", caption, fits_drawing(draws, titles=titles)),
        tables=[_disagreements(tables[0]), _predictions(tables[1])],
        findings=together.check(),
        settings=list(_settings(record)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _settings(record: Record) -> Iterator[tuple[str, str]]:
    yield "method", settings_words(record.method)
    yield "chains, draws, warm-up", f"{record.chains} x {record.draws}, {record.warmup}, for every fit"
    yield "seed", str(record.seed)
    yield from record.versions.items()


def _disagreements(table: pd.DataFrame) -> Grid:
    rows = [
        [
            *map(str, key),
            with_error(row["alone"], row["alone_sd"], 2),
            with_error(row["others"], row["others_sd"], 2),
            f"{row['z']:.1f}",
            f"{row['p']:.2g}",
        ]
        for key, row in table.iterrows()
        if isinstance(key, tuple)
    ]
    header = ["experiment", "parameter", "alone", "from the others", "sds apart", "probability"]
    caption = (
        "What each experiment says alone beside what all others say; the probability of a larger difference where they "
        "agree."
    )
    return Grid("Where they disagree", caption, header, rows, 2)


def _predictions(table: pd.DataFrame) -> Grid:
    rows = [
        [
            str(name),
            f"{row['others']:.3g}",
            f"{row['others_lower']:.3g} to {row['others_upper']:.3g}",
            f"{row['own']:.3g}",
        ]
        for name, row in table.iterrows()
    ]
    header = ["experiment", "theta of the others", "95 %", "its own theta"]
    caption = (
        "What the simulator alone misses of the data of each experiment, root mean square in noise standard "
        "deviations; private parameters are fitted."
    )
    return Grid("Foretold by a fit that has not seen it", caption, header, rows, 1)
