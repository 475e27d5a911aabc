"""One self-contained HTML page about several experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from ...files import whole_text
from ...findings import Findings
from ...pages.page import Picture, picture, rendered
from ..figures.parameters import pairs_panels, posterior_panels, trace_panels
from ..record import Record
from .captions import POSTERIOR, pairs_words, trace_words
from .report import fit_pictures, settings_of
from .tables import parameter_grid, size_grid, size_rows

#: with more parameters the pairs are too small to read
MOST_PAIRS = 8


def write_joint_report(record: Record, own: Mapping[str, Record], found: Findings, path: str | Path) -> Path:
    """Write the report of all experiments and of each, whole or not at all."""
    return whole_text(path, _render(record, own, found))


def _render(record: Record, own: Mapping[str, Record], found: Findings) -> str:
    sizes = [[f"{name}: {row[0]}", *row[1:]] for name, one in own.items() for row in size_rows(one)]
    return rendered(
        "report.html",
        __package__,
        title=record.title,
        meaning=_meaning(own),
        tables=[parameter_grid(record), *([size_grid(sizes)] if sizes else [])],
        findings=found,
        problems=len(found.problems),
        pictures=list(_pictures(record, own)),
        settings=list(_settings(record, own)),
        version=record.version,
        created=record.created,
    )


def _meaning(own: Mapping[str, Record]) -> str:
    weights = {name: float(one.data.attrs.get("experiment_weight", 1.0)) for name, one in own.items()}
    alike = max(weights.values()) - min(weights.values()) < 1e-12
    counted = "each experiment counting alike" if alike else "experiments counting as "
    if not alike:
        counted += ", ".join(f"{name} {weight:.3g}" for name, weight in weights.items())
    all_of_them = "both" if len(weights) == 2 else f"all {len(weights)}"
    return (
        f"The parameters are those at which the simulators come closest to the real processes of {all_of_them} "
        "experiments together: they minimise the sum of the squared differences over their domains, in units of the "
        f"noise, {counted}. What is left is the bias of each experiment."
    )


def _pictures(record: Record, own: Mapping[str, Record]) -> Iterator[Picture]:
    yield picture("Posterior", POSTERIOR, posterior_panels(record))
    for name, one in own.items():
        yield from fit_pictures(one, name)
    if 1 < len(record.parameter_names) <= MOST_PAIRS:
        yield picture("Pairs", pairs_words(record), pairs_panels(record))
    yield picture("Traces", trace_words(record), trace_panels(record))


def _settings(record: Record, own: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
    yield "experiments", ", ".join(own)
    yield "chains, draws, warm-up", f"{record.chains} x {record.draws}, {record.warmup}"
    yield "seed", str(record.seed)
    for name, one in own.items():
        for key, value in settings_of(one):
            if key in ("data", "domain", "noise", "scale of the outcomes", "errors of x") or key.startswith("bias of"):
                yield f"{name}: {key}", value
    for stage, row in record.times().iterrows():
        yield f"time: {stage}", f"{row['wall']:.3g} s, {row['calls']:.0f} simulator calls"
    yield from record.versions.items()
