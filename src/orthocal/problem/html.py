"""What a notebook shows of a problem: its data, its parameters with their priors, where it is judged, its noise."""

from __future__ import annotations

import numpy as np

from ..pages.tables import Table, listed, shown_html
from .known import Known
from .noise.noise import Noise
from .prior.parameters import Parameters

#: quantiles of the priors that are shown
LEVELS = (0.025, 0.5, 0.975)


def problem_html(problem: Known, noise: object) -> str:
    """Nothing is searched or called for it."""
    data = problem.data
    missing = int((~data.observed).sum())
    facts = {
        "data": f"{data.n} rows" + (f", {missing} of {data.observed.size} cells missing" if missing else ""),
        "inputs": "none" if data.without_inputs else listed(data.input_names),
        "outcomes": listed(data.outcome_names),
        "domain": repr(problem.domain),
        "noise": noise if isinstance(noise, str) else "given" if isinstance(noise, Noise) else type(noise).__name__,
    }
    if problem.parameters.constraint is not None:
        facts["constraint"] = problem.parameters.constraint.text
    return shown_html("Problem", facts, [prior_table(problem.parameters)])


def prior_table(parameters: Parameters) -> Table:
    """One row a parameter: quantiles of its prior."""
    quantiles = parameters.marginal_quantile(np.tile(np.array(LEVELS)[:, None], parameters.p))
    rows = [[name, *(f"{value:.4g}" for value in quantiles[:, j])] for j, name in enumerate(parameters.names)]
    return Table(["parameter", *(f"prior {100 * level:g} %" for level in LEVELS)], rows)
