"""The tables of a report."""

from __future__ import annotations

from ...pages.tables import Grid, summary_rows
from ...projection import ProjectionKind
from ..data_coverage import DomainCoverage
from ..figures.curves import has_label_curves
from ..figures.parameters import traced
from ..figures.parts import MOST_POINTS
from ..predict.outputs import output_rows
from ..record import Record

_SIZES = (
    "Root mean square over the domain, in the unit of the outcome (of its transform where it has one) and in standard "
    "deviations of the noise, and its mean square as a share of the variance of the real process; in brackets 95 % "
    "intervals. A bias far below one standard deviation of the noise cannot be told from none."
)
_OUTPUTS = (
    "What was observed, ± one standard deviation of its noise; the simulator, its bias in the output's unit and in "
    "standard deviations of the noise, and both together, each ± one standard deviation of the posterior."
)


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


# What stands above the pictures of a report: what they show, and how to read them.

POSTERIOR = (
    "The parameters given the data, beside what the prior said; at the best fit the simulator alone comes closest "
    "to the data."
)
RESIDUALS = (
    "What simulator plus bias leave over, in standard deviations of the noise. They should look like noise: no trend, "
    "and 95 % of them between the dashed lines."
)


def fit_words(record: Record, several_inputs: bool) -> str:
    words = "The simulator alone, and simulator plus bias, with bands that hold 95 % of the posterior."
    if record.without_inputs:
        return f"{words} Each output stands in units of its noise, because their own units differ."
    if has_label_curves(record):
        words = "The simulator alone, and simulator plus bias, with bands that hold 95 %, for each label."
    if several_inputs:
        words += " Each point is an observation."
    elif DomainCoverage(record).holes:
        words += " Grey: no data nearby, the curves are extrapolated there."
    if len(record.x) > MOST_POINTS:
        words += f" {MOST_POINTS} of the {len(record.x)} observations are shown."
    return f"{words} They are back on the scale of the observations." if record.transforms else words


def bias_words(record: Record, several_inputs: bool) -> str:
    if record.without_inputs:
        return "What the simulator misses of each output where it is closest to all of them; the lines hold 95 %."
    band = "bars" if several_inputs else "bands"
    if record.projection is ProjectionKind.JOINT:
        return f"What the simulator misses where it is closest to the real process; the {band} hold 95 %."
    words = "What the simulator misses. The projection takes away the part that a change of theta could explain"
    if several_inputs:
        return f"{words}; the bars hold 95 % of the posterior at each data point."
    return f"{words}: dashed the bias before it, green after it."


def predictive_words(record: Record) -> str:
    if record.without_inputs:
        return "New observations that the fit foretells, and those that were made."
    return (
        "Data that the fit would give again at the same points, beside the field data; and where each observation lies "
        "in its prediction, from 0, below all that was foretold, to 1, above: a flat histogram within the band means "
        "that the spread is right. The fit has seen these data: too many in the middle are usual where the bias "
        "follows them closely, many at the ends are not."
    )


def pairs_words(record: Record) -> str:
    p = len(record.parameter_names)
    words = "The joint posterior of every two parameters."
    return words if p * (p - 1) // 2 <= 12 else "The joint posterior of the twelve pairs that are most correlated."


def trace_words(record: Record) -> str:
    step = traced(record)
    some = "" if step == 1 else f" One draw in {step} is shown."
    return f"The draws in their order, one colour a chain: they should look like noise.{some}"
