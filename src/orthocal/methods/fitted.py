"""The samplers of a problem's bias, with scales and hyperparameters from what the best fit leaves."""

from __future__ import annotations

import numpy as np

from ..arrays import Array
from ..bias.base import BiasPrior
from ..bias.outcomes import OutcomesBias, Residuals, Unmerged, stand_ins
from ..problem.problem import Problem
from .fine_nodes import Integrals, fine_integrals
from .outputs import prior_for


def fitted_bias(prior: BiasPrior, problem: Problem, nodes: Array, process: bool = False) -> OutcomesBias:
    """Samplers of the bias at data and nodes, or of the real ``process``, to which no parameter has been fitted."""
    prior = prior if process else prior_for(problem, prior)
    return OutcomesBias(prior, residuals_of(problem, process), nodes, problem.span, unmerged_of(problem, process))


def with_integrals(prior: BiasPrior, problem: Problem, bias: OutcomesBias) -> tuple[OutcomesBias, Integrals | None]:
    """The bias as it was, or at the nodes that its integrals need, and how they are brought down to the problem's.

    A Gaussian process is smooth enough for the problem's nodes, or chooses others for itself.
    """
    integrals = None if bias.gaussian else fine_integrals(problem, bias.samplers)
    return (bias, None) if integrals is None else (fitted_bias(prior, problem, integrals.nodes), integrals)


def unmerged_of(problem: Problem, process: bool = False) -> Unmerged | None:
    """Residuals with a row for every observation, where those with the same x were merged."""
    rows = problem.rows
    return None if rows is None else Unmerged(residuals_of(problem.unmerged, process), rows.repeats.place)


def residuals_of(problem: Problem, process: bool = False) -> Residuals:
    """What a bias is fitted to."""
    data = problem.data
    left = problem.complete_y if process else problem.complete_y - problem.fit
    gradient = np.zeros((data.n, data.q, 1)) if process else problem.gradient_at_data
    values = problem.whiten(stand_ins(data.x, problem.span, left, data.observed, data.labels))
    return Residuals(data.x, problem.noise, values, gradient, data.labels)
