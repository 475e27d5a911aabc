"""The figures of a record by what they show, whatever its inputs are. None touches global state."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from ...pages.panels import Drawing
from ..record import Record
from .axes import chosen_input, chosen_outcomes, shown_rows
from .curves import curves_bias, curves_fit, has_label_curves, label_bias, label_fit
from .outputs import outputs_bias, outputs_fit
from .parameters import posterior_panels
from .points import points_bias, points_fit, points_fit_along
from .residuals import predictive_panels, residual_panels

#: outcomes whose residuals and predictions a page shows
MOST_CHECKED = 4


def fit_drawing(record: Record, outcome: str | None = None, x: str | None = None) -> Drawing:
    """Data and fit: the model alone and model + bias; ``x``, the input along which they are shown."""
    outcomes, j = chosen_outcomes(record, outcome), None if x is None else chosen_input(record, x)
    if record.without_inputs:
        return outputs_fit(record)
    if has_label_curves(record):
        return label_fit(record, outcomes, shown_rows(record))
    if record.along_one_input:
        return curves_fit(record, outcomes)
    return points_fit(record, outcomes) if j is None else points_fit_along(record, outcomes, j)


def bias_drawing(record: Record, outcome: str | None = None, x: str | None = None) -> Drawing:
    """The bias, and its projection where there is one; ``x``, the input along which it is shown."""
    outcomes, j = chosen_outcomes(record, outcome), None if x is None else chosen_input(record, x)
    if record.without_inputs:
        return outputs_bias(record)
    if has_label_curves(record):
        return label_bias(record, outcomes, shown_rows(record))
    if record.along_one_input:
        return curves_bias(record, outcomes)
    return points_bias(record, outcomes, range(len(record.input_names)) if j is None else [j])


def residuals_drawing(record: Record, outcome: str | None = None, x: str | None = None) -> Drawing:
    """What model + bias leave over, in noise sds."""
    outcomes = chosen_outcomes(record, outcome)[:MOST_CHECKED]
    return residual_panels(record, outcomes, None if x is None else [chosen_input(record, x)])


def predictive_drawing(record: Record, outcome: str | None = None) -> Drawing:
    """The data beside replicated data, predicted by the fit at their points."""
    return predictive_panels(record, chosen_outcomes(record, outcome)[:MOST_CHECKED])


def posterior_figure(record: Record, parameters: Sequence[str] | None = None) -> Figure:
    """The posterior of each parameter as one figure."""
    return posterior_panels(record, parameters).figure()
