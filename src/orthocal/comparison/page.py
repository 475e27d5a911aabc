"""Comparisons of methods, and of experiments, as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd

from ..arrays import Array, IntArray
from ..findings import Finding
from ..pages.page import Picture, picture, rendered
from ..pages.tables import Grid, counted, with_error
from ..problem.data.field_data import Groups
from ..results.figures.axes import with_unit
from ..results.posterior import Posterior
from ..results.record import Record
from . import figures
from .words import WIDE, settings_words


def render(
    title: str,
    grids: list[Grid],
    posteriors: dict[str, Posterior],
    scores: pd.DataFrame,
    parts: Mapping[str, Any],
) -> str:
    """The page as HTML; ``parts`` are its other parts, as the template has them."""
    return rendered(
        "compare.html",
        __package__,
        title=title,
        parameters=grids[0],
        tables=grids[1:],
        posteriors=list(_posterior_pictures(posteriors)),
        scores=_score_picture(scores),
        findings=list(_findings(posteriors)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        **parts,
    )


def _posterior_pictures(posteriors: dict[str, Posterior]) -> Iterator[Picture]:
    caption = "One colour a method: density, mean and 95 % interval."
    yield picture("Posteriors", caption, figures.compared_drawing(posteriors))
    closer = figures.closer_drawing(posteriors, WIDE)
    if closer is not None:
        caption = (
            f"The same, closer: posteriors more than {WIDE:g} times as wide as the narrowest run out of the panel."
        )
        yield picture("Posteriors, closer", caption, closer)
    if next(iter(posteriors.values())).record.without_inputs:
        caption = (
            "What the simulator misses of each output by every method, in noise standard deviations: mean and 95 %."
        )
        yield picture("Bias of the outputs", caption, figures.compared_outputs(posteriors))


def _score_picture(scores: pd.DataFrame) -> Picture | None:
    if scores.empty:
        return None
    caption = "Dots with two standard errors. Left is better for RMSE and CRPS; coverage should be at the dashed line."
    return picture("Scores", caption, figures.scores_drawing(scores))


def _findings(posteriors: dict[str, Posterior]) -> Iterator[tuple[str, Finding]]:
    """Problems and notes with the methods they were found for, problems first; what all share is said once."""
    methods: dict[Finding, list[str]] = {}
    for name, posterior in posteriors.items():
        for finding in posterior.check():
            if finding.level != "fine":
                methods.setdefault(finding, []).append(name)
    for finding in sorted(methods, key=lambda one: one.level != "problem"):
        names = methods[finding]
        yield "all" if len(names) == len(posteriors) > 1 else ", ".join(names), finding


def settings(
    posteriors: dict[str, Posterior], fold_of_row: IntArray | None, groups: Groups | None, seed: int
) -> Iterator[tuple[str, str]]:
    """What was compared, and how."""
    first = next(iter(posteriors.values()))
    sizes, data = first.record.data["posterior"].sizes, first.record.data["constant_data"].sizes
    rows = ", ".join(counted(*one) for one in ((data["point"], "row"), (data["input"], "input"), (first.q, "outcome")))
    yield "data", f"{first.q} outputs without inputs" if first.record.without_inputs else rows
    if fold_of_row is not None:
        how = "at random" if groups is None else f"of whole groups ({groups.count}, by {groups.name})"
        yield "folds", f"{fold_of_row.max() + 1}, {how}, the same for every method"
    yield "chains, draws, warm-up", f"{sizes['chain']} x {sizes['draw']}, {first.record.warmup}"
    yield "seed", str(seed)
    for name, posterior in posteriors.items():
        yield f"method {name}", settings_words(posterior.record.method)


# The page of several experiments.


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
        picture=picture("Fits", caption, figures.fits_drawing(draws, titles=titles)),
        tables=[_disagreements(tables[0]), _predictions(tables[1])],
        findings=together.check(),
        settings=list(_joint_settings(record)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _joint_settings(record: Record) -> Iterator[tuple[str, str]]:
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
    return Grid("Predicted by a fit that has not seen it", caption, header, rows, 1)
