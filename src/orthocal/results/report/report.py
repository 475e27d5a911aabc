"""One self-contained HTML page about a posterior, of one problem or several: it opens offline and runs no script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays import Array
from ...files import whole_text
from ...findings import Findings
from ...pages.page import Picture, picture, rendered
from ...pages.tables import Grid, counted, summary_rows
from ..checks.check import findings
from ..figures import figures as plots
from ..figures.axes import shown_outcomes
from ..figures.curves import has_label_curves
from ..figures.parameters import pairs_panels, posterior_panels, rank_panels, trace_panels
from ..predict.bias_size import size_table
from ..predict.outputs import WEIGHTS, output_rows
from ..record import Record
from .captions import POSTERIOR, RESIDUALS, bias_words, fit_words, pairs_words, predictive_words, trace_words

#: with more parameters the pairs are too small to read
MOST_PAIRS = 8
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
_SIZES = (
    "Root mean square over the domain, in the unit of the outcome (of its transform where it has one) and in standard "
    "deviations of the noise, and its mean square as a share of the variance of the real process; in brackets 95 % "
    "intervals. A bias far below one standard deviation of the noise cannot be told from none."
)
_OUTPUTS = (
    "What was observed, ± one standard deviation of its noise; the simulator, its bias in the output's unit and in "
    "standard deviations of the noise, and both together, each ± one standard deviation of the posterior."
)


def write_report(record: Record, path: str | Path) -> Path:
    """Write the report, whole or not at all."""
    return whole_text(path, render(record))


def render(record: Record) -> str:
    """The report as HTML."""
    found = findings(record)
    return rendered(
        "report.html",
        __package__,
        title=record.title,
        meaning=_meaning(record),
        tables=list(_tables(record)),
        findings=found,
        problems=len(found.problems),
        pictures=list(_pictures(record)),
        settings=list(settings_of(record)),
        version=record.version,
        created=record.created,
    )


def _tables(record: Record) -> Iterator[Grid]:
    yield parameter_grid(record)
    if record.without_inputs:
        yield output_grid(record)
    sizes = list(size_rows(record))
    if sizes:
        yield size_grid(sizes)


def _pictures(record: Record) -> Iterator[Picture]:
    yield from fit_pictures(record)
    yield picture("Posterior", POSTERIOR, posterior_panels(record))
    if len(record.parameter_names) > 1:
        yield picture("Pairs", pairs_words(record), pairs_panels(record))
    yield picture("Traces", trace_words(record), trace_panels(record))
    yield picture(
        "Ranks",
        "How the draws of each chain rank among all draws: flat histograms mean that the chains agree.",
        rank_panels(record),
    )


def fit_pictures(record: Record, of: str = "") -> Iterator[Picture]:
    """Fit, bias, residuals and predictive check; ``of`` goes before their headings."""

    def titled(title: str) -> str:
        return f"{of}: {title.lower()}" if of else title

    several_inputs = not (record.along_one_input or has_label_curves(record))
    shown = len(shown_outcomes(record))
    some = f" The first {shown} of {record.q} outcomes." if shown < record.q else ""
    few = min(shown, plots.MOST_CHECKED)
    fewer = f" The first {few} of {record.q} outcomes." if few < record.q and not record.without_inputs else ""
    yield picture(titled("Data and fit"), fit_words(record, several_inputs) + some, plots.fit_drawing(record))
    yield picture(titled("Bias"), bias_words(record, several_inputs) + some, plots.bias_drawing(record))
    yield picture(titled("Residuals"), RESIDUALS + fewer, plots.residuals_drawing(record))
    yield picture(titled("Predictive check"), predictive_words(record) + fewer, plots.predictive_drawing(record))


def _meaning(record: Record) -> str:
    """What theta means: the target of the calibration in words."""
    words = WEIGHTS if record.without_inputs else _WEIGHTS
    weighted = f" {words[record.loss_weight]}" if record.q > 1 else ""
    loss = record.method.get("loss", "squared")
    kind = loss if isinstance(loss, str) else loss["kind"]
    measured = {
        "squared": "the squared difference of the two",
        "absolute": "the absolute difference of the two",
        "huber": "Huber's loss of the difference of the two",
    }.get(kind, "a loss of your own")
    if record.transforms:
        measured += f" on the scale of {' and '.join(record.scale_names)}"
    return (
        "The parameters are those at which the simulator comes closest to the real process: they minimise "
        f"{measured}, averaged over {record.run_facts.domain}.{weighted} What is left is the bias."
    )


def settings_of(record: Record) -> Iterator[tuple[str, str]]:
    facts = record.run_facts
    points, inputs = record.x.shape
    sizes = ((points, "point"), (inputs, "input"), (record.q, "outcome"))
    without = f"{counted(record.q, 'output')} without inputs, {counted(points, 'row')}"
    yield "data", without if record.without_inputs else ", ".join(counted(*one) for one in sizes)
    yield "domain", facts.domain
    if record.transforms:
        yield "scale of the outcomes", ", ".join(record.scale_names)
    yield "noise", _noise_in_words(record, facts.noise_source)
    if record.has("constant_data", "x_err"):
        yield "errors of x", f"typical standard deviation {_number(_typical(record.constant('x_err')).tolist())}"
    for name, value in _flat(record.method):
        yield f"method: {name}", str(value)
    for k, fitted in enumerate(facts.bias):
        for name, value in fitted.items():
            yield f"bias of {record.outcome_names[k]}: {name.replace('_', ' ')}", _number(value)
    for k, (minimum, loss) in enumerate(zip(record.constant("minima"), record.constant("minima_loss"), strict=True)):
        theta = ", ".join(f"{value:.6g}" for value in minimum)
        yield f"minimum {k + 1}", f"({theta}), loss {loss:.6g}"
    for change in json.loads(record.data.attrs.get("changed_settings", "[]")):
        yield "changed by the command", str(change)
    yield "chains, draws, warm-up", f"{record.chains} x {record.draws}, {record.warmup}"
    yield "seed", str(record.seed)
    yield "gradient", facts.gradient_kind
    yield (
        "simulator calls",
        f"{facts.simulator_calls} in {facts.simulator_seconds:.3g} s of {facts.seconds:.3g} s",
    )
    for stage, row in record.times().iterrows():
        cpu = "" if np.isnan(row["cpu"]) else f", {row['cpu']:.3g} s of CPU"
        yield f"time: {stage}", f"{row['wall']:.3g} s{cpu}, {row['calls']:.0f} simulator calls"
    yield from record.versions.items()


def _noise_in_words(record: Record, source: str) -> str:
    covariance = record.noise_cov
    sd = np.sqrt(np.diag(covariance))
    source = "unknown and integrated over, mean" if record.sampled_noise is not None else source
    if record.noise_by_point is not None:
        source = f"{source}, one a point; typical"
    words = f"{source} standard deviation {_number(sd.tolist())}"
    if 1 < record.q <= MOST_CORRELATIONS:
        pairs = zip(*np.tril_indices(record.q, -1), strict=True)
        values = [f"{covariance[k, m] / (sd[k] * sd[m]):.2f}" for k, m in pairs]
        words += f"; correlation {', '.join(values)}"
    return words


def _typical(errors: Array) -> Array:
    """Root mean square over the points, (d,)."""
    return np.asarray(np.sqrt(np.mean(errors**2, axis=0)))


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", "not given" if value is None else value


def _number(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_number(one) for one in value) or "none"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


# The tables of a report.


def parameter_grid(record: Record) -> Grid:
    """One row a parameter."""
    rows = [
        [
            _with_unit(record, row["name"]),
            row["mean"],
            row["sd"],
            f"{row['lower']} to {row['upper']}",
            row["ess"],
            row["rhat"],
        ]
        for row in summary_rows(record.summary())
    ]
    header = ["parameter", "mean", "sd", "95 % interval", "effective draws", "R-hat"]
    return Grid("Parameters", "The posterior of each parameter.", header, rows, 1)


def output_grid(record: Record) -> Grid:
    """One row an output without inputs."""
    rows = [
        [_with_unit(record, row["name"]), *(row[part] for part in ("observed", "model", "bias", "noise_sds", "total"))]
        for row in output_rows(record)
    ]
    header = ["output", "observed", "simulator", "bias", "bias, noise sds", "simulator + bias"]
    return Grid("Outputs", _OUTPUTS, header, rows, 1)


def size_grid(rows: list[list[str]]) -> Grid:
    """One row an outcome."""
    return Grid("Size of the bias", _SIZES, ["outcome", "size", "noise sds", "share"], rows, 1)


def _with_unit(record: Record, name: str) -> str:
    return f"{name} [{record.units[name]}]" if name in record.units else name


def size_rows(record: Record) -> Iterator[list[str]]:
    """How large the bias is, where the record knows it."""
    if record.without_inputs or not record.has("bias", "bias_square"):
        return
    units = dict(zip(record.scale_names, map(record.units.get, record.outcome_names), strict=True))
    for name, row in size_table(record, 0.95).iterrows():
        unit = units[str(name)] if str(name) in record.outcome_names else None
        shown = str(name) if unit is None else f"{name} [{unit}]"
        yield [
            shown,
            *(
                f"{row[part]:.3g} ({row[f'{part}_lower']:.3g} to {row[f'{part}_upper']:.3g})"
                for part in ("rms", "noise_sds", "share")
            ),
        ]


# One page about several experiments.


def write_joint_report(record: Record, own: Mapping[str, Record], found: Findings, path: str | Path) -> Path:
    """Write the report of all experiments and of each, whole or not at all."""
    return whole_text(path, _render_joint(record, own, found))


def _render_joint(record: Record, own: Mapping[str, Record], found: Findings) -> str:
    sizes = [[f"{name}: {row[0]}", *row[1:]] for name, one in own.items() for row in size_rows(one)]
    return rendered(
        "report.html",
        __package__,
        title=record.title,
        meaning=_joint_meaning(own),
        tables=[parameter_grid(record), *([size_grid(sizes)] if sizes else [])],
        findings=found,
        problems=len(found.problems),
        pictures=list(_joint_pictures(record, own)),
        settings=list(_joint_settings(record, own)),
        version=record.version,
        created=record.created,
    )


def _joint_meaning(own: Mapping[str, Record]) -> str:
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


def _joint_pictures(record: Record, own: Mapping[str, Record]) -> Iterator[Picture]:
    yield picture("Posterior", POSTERIOR, posterior_panels(record))
    for name, one in own.items():
        yield from fit_pictures(one, name)
    if 1 < len(record.parameter_names) <= MOST_PAIRS:
        yield picture("Pairs", pairs_words(record), pairs_panels(record))
    yield picture("Traces", trace_words(record), trace_panels(record))


def _joint_settings(record: Record, own: Mapping[str, Record]) -> Iterator[tuple[str, str]]:
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
