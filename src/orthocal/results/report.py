"""One self-contained HTML page about a posterior: it opens offline and runs no script."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..files import whole_file
from ..pages.page import rendered
from ..pages.pictures import Picture, picture
from ..pages.tables import summary_rows
from . import figures as plots
from .predict import noise_covariance

if TYPE_CHECKING:
    from .posterior import Posterior


#: with more outcomes their correlations are not listed
MOST_CORRELATIONS = 6
_WEIGHTS = {
    "noise-precision": (
        "Differences are measured in units of the noise (W is the inverse of its covariance): an outcome that is "
        "measured more precisely counts more, correlated noise is taken into account, and the outcomes' units do not "
        "matter."
    ),
    "identity": (
        "The squared differences of all outcomes are added as they are (W is the identity): an outcome with larger "
        "numbers counts more, and other units would give other parameters."
    ),
    "matrix": "The differences of the outcomes are weighted by the matrix W that was given.",
}


def write_report(posterior: Posterior, path: str | Path) -> Path:
    """Write the report, whole or not at all."""
    page = render(posterior)
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def render(posterior: Posterior) -> str:
    """The report as HTML."""
    findings = posterior.check()
    return rendered(
        "report.html",
        __package__,
        title=posterior.data.attrs.get("title", "Calibration report"),
        meaning=_meaning(posterior),
        summary=summary_rows(posterior.summary()),
        findings=findings,
        problems=len(findings.problems),
        pictures=list(_pictures(posterior)),
        settings=list(_settings(posterior)),
        version=posterior.data.attrs["inference_library_version"],
        created=posterior.data.attrs["created_at"],
    )


def _pictures(posterior: Posterior) -> Iterator[Picture]:
    several_inputs = len(posterior.input_names) > 1
    shown = len(plots.shown_outcomes(posterior))
    some_only = f" The first {shown} of {posterior.q} outcomes." if shown < posterior.q else ""
    yield picture(
        "Data and fit",
        "The simulator alone, and simulator plus bias, with bands that hold 95 % of the posterior."
        + (" Each point is an observation." if several_inputs else "")
        + some_only,
        plots.fit_figure(posterior),
    )
    yield picture(
        "Bias",
        "What the simulator misses. The projection takes away the part that a change of theta could explain"
        + (
            "; the bars hold 95 % of the posterior at each data point."
            if several_inputs
            else ": dashed the bias before it, green after it."
        )
        + some_only,
        plots.bias_figure(posterior),
    )
    yield picture("Posterior", "The parameters given the data.", plots.posterior_figure(posterior))
    if len(posterior.parameter_names) > 1:
        yield picture("Pairs", "The joint posterior of every two parameters.", plots.pairs_figure(posterior))
    yield picture("Traces", "The draws in their order: they should look like noise.", plots.trace_figure(posterior))
    yield picture(
        "Ranks",
        "How the draws of each chain rank among all draws: flat histograms mean that the chains agree.",
        plots.rank_figure(posterior),
    )


def _meaning(posterior: Posterior) -> str:
    """What theta means: the target of the calibration in words."""
    over = json.loads(posterior.data.attrs["notes"])["domain"]
    weighted = f" {_WEIGHTS[posterior.data.attrs['loss_weight']]}" if posterior.q > 1 else ""
    return (
        "The parameters are those at which the simulator comes closest to the real process: they minimise the squared "
        f"difference of the two, averaged over {over}.{weighted} What is left is the bias."
    )


def _settings(posterior: Posterior) -> Iterator[tuple[str, str]]:
    attributes = posterior.data.attrs
    method, notes = json.loads(attributes["method"]), json.loads(attributes["notes"])
    sizes, data = posterior.data["posterior"].sizes, posterior.data["constant_data"].sizes
    yield "data", f"{data['point']} points, {data['input']} input(s), {posterior.q} outcome(s)"
    yield "domain", notes["domain"]
    yield "noise", _noise_in_words(posterior, notes["noise_source"])
    for name, value in _flat(method):
        yield f"method: {name}", str(value)
    for k, fitted in enumerate(notes.get("bias", [])):
        for name, value in fitted.items():
            yield f"bias of {posterior.outcome_names[k]}: {name}", _number(value)
    constant = posterior.data["constant_data"].to_dataset()
    for k in range(constant.sizes["minimum"]):
        theta = ", ".join(f"{value:.6g}" for value in constant["minima"].values[k])
        yield f"minimum {k + 1}", f"({theta}), loss {constant['minima_loss'].values[k]:.6g}"
    yield "chains, draws, warm-up", f"{sizes['chain']} x {sizes['draw']}, {attributes['warmup']}"
    yield "seed", attributes["seed"]
    yield "gradient", notes["gradient_kind"]
    yield (
        "simulator calls",
        f"{notes['simulator_calls']} in {notes['simulator_seconds']:.3g} s of {notes['seconds']:.3g} s",
    )
    for name, value in json.loads(attributes["versions"]).items():
        yield name, value


def _noise_in_words(posterior: Posterior, source: str) -> str:
    covariance = noise_covariance(posterior.data)
    sd = np.sqrt(np.diag(covariance))
    if "noise_cov_by_point" in posterior.data["constant_data"]:
        source = f"{source}, one a point; typical"
    words = f"{source} standard deviation {_number(sd.tolist())}"
    if 1 < posterior.q <= MOST_CORRELATIONS:
        pairs = zip(*np.tril_indices(posterior.q, -1), strict=True)
        values = [f"{covariance[k, m] / (sd[k] * sd[m]):.2f}" for k, m in pairs]
        words += f"; correlation {', '.join(values)}"
    return words


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", "chosen by the program" if value is None else value


def _number(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_number(one) for one in value) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
