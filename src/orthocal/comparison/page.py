"""A comparison of methods as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import pandas as pd

from ..arrays import IntArray
from ..findings import Finding
from ..pages.page import Picture, picture, rendered
from ..pages.tables import Grid, counted
from ..problem.data.field_data import Groups
from ..results.posterior import Posterior
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
