"""The results of a galaxy's fit as files: one self-contained HTML page, Markdown, CSV tables and figures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

from orthocal.applications import Picture, picture, rendered, style, whole_file

from ..stages import write_text
from .data import TOGETHER
from .figures import fit_maps, posteriors_figure
from .fit import GalaxyFit
from .tables import as_markdown, fit_frame, grids, remarks

CLAIMS = (
    "The simulator is an axisymmetric orbit-superposition model of our own, simplified against what is used to weigh "
    "black holes: no triaxial shapes, one mass-to-light ratio, one family of haloes. The parameters are those at which "
    "this model comes closest to the data, every bin with the same weight; with data that the seeing has blurred, "
    "log10 M_BH says how the model's centre fits best and is no measurement of a black hole."
)


def write_all(fit: GalaxyFit, folder: Path) -> Path:
    """Write everything, and give the page."""
    for name, together in (("joint", True), ("univariate", False)):
        with whole_file(folder / f"{name}.csv") as draft:
            fit_frame(fit, together).to_csv(draft, index=False)
    # what an earlier call made of other methods would contradict the page
    for old in [*folder.glob("maps-*.png"), *folder.glob("held-out.csv")]:
        old.unlink()
    if len(fit.held_out):
        with whole_file(folder / "held-out.csv") as draft:
            fit.held_out.to_csv(draft, index=False)
    tables = list(grids(fit))
    words = "\n".join(f"- {one}" for one in remarks(fit))
    text = "\n\n".join([f"# {fit.data.title}", *fit.data.notes, CLAIMS, words, *map(as_markdown, tables)])
    write_text(folder / "report.md", text + "\n")
    pictures = []
    for file, title, caption, figure in _figures(fit):
        with mpl.rc_context(style.STYLE), whole_file(folder / f"{file}.png") as draft:
            figure.savefig(draft, format="png")
        pictures.append(picture(title, caption, figure))
    return write_text(folder / "report.html", _render(fit, pictures))


def _figures(fit: GalaxyFit) -> Iterator[tuple[str, str, str, Figure]]:
    """File, title, caption and figure."""
    if fit.posteriors:
        caption = (
            "All outcomes together, and each alone, over the range of the prior. Densities of a row share their scale."
        )
        if fit.stars:
            caption += (
                " The black lines are the best theta for what the row is fitted to: for all together by the model "
                "itself, for an outcome alone by the emulator."
            )
        yield "posteriors", "Posteriors", caption, posteriors_figure(fit)
    joint = [method for target, method in fit.posteriors if target == TOGETHER]
    if joint:
        posterior = fit.posteriors[TOGETHER, joint[0]]
        caption = f"The joint posterior of every two parameters from all outcomes, {joint[0]}."
        yield "pairs", "Pairs", caption, posterior.pairs_figure()
    for method in joint:
        caption = (
            f"All outcomes together, {method}: observed, the posterior mean of the model alone and of model + bias, "
            "and what is left in units of the errors."
        )
        yield f"maps-{method}", f"Maps, {method}", caption, fit_maps(fit, method)


def _findings(fit: GalaxyFit) -> Iterator[tuple[str, object]]:
    """Problems and notes with the fits they were found for, problems first; what several share is said once."""
    found = [
        (finding, f"{target} by {method}")
        for (target, method), posterior in fit.posteriors.items()
        for finding in posterior.check()
        if finding.level != "fine"
    ]
    for finding in sorted(dict(found), key=lambda one: one.level != "problem"):
        names = [name for one, name in found if one == finding]
        yield "all" if len(names) == len(fit.posteriors) > 1 else ", ".join(names), finding


def _settings(fit: GalaxyFit) -> Iterator[tuple[str, str]]:
    data, settings = fit.data, fit.settings
    yield "bins", f"{data.kinematics.n}, {int((~data.kinematics.observed).sum())} missing cells"
    if data.model is not None:
        yield "simulator", data.model.identity()[0]
        yield (
            "orbits",
            f"{data.model.settings.cells} cells of {data.model.settings.dithers**3} orbits, and reversed copies",
        )
    if fit.runs is not None:
        yield "runs", f"{fit.runs.s}, of which {int(fit.runs.failed.sum())} failed"
    yield "priors", "; ".join(f"{name} uniform, {low:.4g} to {high:.4g}" for name, (low, high) in data.box.items())
    yield "emulator", fit.emulator
    more = ", with the variance of the emulator" if settings.emulator_error else ""
    yield "noise", f"the errors of the cells, independent{more}"
    yield "loss", "squared differences by the outcomes' mean noise precision, every bin with the same weight"
    yield "chains, draws, warm-up", f"{settings.chains} x {settings.draws}, {settings.warmup}"
    yield "seed", str(settings.seed)


def _render(fit: GalaxyFit, pictures: list[Picture]) -> str:
    joint, alone, *others = grids(fit)
    return rendered(
        "galaxy.html",
        __package__,
        title=fit.data.title,
        claims=CLAIMS,
        notes=fit.data.notes,
        remarks=remarks(fit),
        failures={f"{target}, {method}": why for (target, method), why in fit.failures.items()},
        joint=joint,
        alone=alone,
        tables=others,
        pictures=pictures,
        findings=list(_findings(fit)),
        settings=list(_settings(fit)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
