"""What stands above the pictures of a report: what they show, and how to read them."""

from __future__ import annotations

from ...projection import ProjectionKind
from ..figures.axes import MOST_POINTS
from ..figures.curves import has_label_curves
from ..figures.parameters import traced
from ..predict.data_coverage import DomainCoverage
from ..record import Record

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
        return "New observations predicted by the fit, and those that were made."
    return (
        "Data that the fit would give again at the same points, beside the field data; and where each observation lies "
        "in its prediction, from 0, below all predictions, to 1, above: a flat histogram within the band means "
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
