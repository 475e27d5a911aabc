"""The samplers of a problem's bias, with scales and hyperparameters from what the best fit leaves."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from typing import Any, cast

import numpy as np

from ..arrays import Array
from ..bias import GP, BiasPrior, Independent
from ..bias.base import ListedPrior
from ..bias.outcomes import OutcomesBias, Residuals, Unmerged, stand_ins
from ..errors import InputError
from ..problem.problem import Problem
from .base import ListedMethod, Method, method_by_name
from .fine_nodes import Integrals, fine_integrals

# Which methods can do outputs without inputs, and with which prior: one bias an output, independent of the others.

#: kinds of methods that take any prior on the bias, and those with a Gaussian process of their own or no bias
WITH_PRIOR, OTHERS = ("joint", "projected"), ("ko", "ogp", "none")


def method_for(problem: Problem, method: object) -> Method:
    """The method from its name, with the prior that outputs without inputs need."""
    chosen = method_by_name(method)
    # of a method of the user's nothing is known
    if not problem.data.without_inputs or not isinstance(chosen, ListedMethod):
        return chosen
    if chosen.kind in WITH_PRIOR:
        if getattr(chosen, "loss", "squared") != "squared":
            raise InputError(
                "outputs without x take the squared loss, because with others a few numbers make theta jump: say by "
                "loss_weight how much each output counts"
            )
        prior = cast(Any, chosen).bias
        return (
            cast(Method, replace(cast(Any, chosen), bias=Independent())) if _usual(prior) else _checked(chosen, prior)
        )
    if chosen.kind not in OTHERS:
        raise InputError(f"{_refused(f'the method {chosen.kind!r}')}")
    if is_dataclass(chosen) and chosen != type(chosen)():
        raise InputError(
            f"the settings of {chosen.kind!r} belong to a bias that depends on x, and there is no x: leave them out, "
            "or give oc.methods.Joint(bias=oc.bias.Independent(noise_sds=...))"
        )
    return chosen


def prior_for(problem: Problem, prior: BiasPrior) -> BiasPrior:
    """The prior, ready for this problem: without inputs, a Gaussian process is a number for each output."""
    if problem.data.without_inputs and _usual(prior):
        prior = Independent()
    return prior.fitted(problem) if isinstance(prior, Independent) else prior


def _usual(prior: object) -> bool:
    return isinstance(prior, GP) and prior == GP()


def _checked(method: Method, prior: object) -> Method:
    if isinstance(prior, Independent) or not isinstance(prior, ListedPrior):
        return method
    raise InputError(_refused(f"oc.bias.{type(prior).__name__}"))


def _refused(what: str) -> str:
    return (
        f"{what} learns how the bias depends on x, and there is no x: for outputs without x take gp, pgp, ko, ogp or "
        "none, or give oc.bias.Independent(...) as the bias of oc.methods.Joint"
    )


def fitted_bias(prior: BiasPrior, problem: Problem, nodes: Array, size_drawn: bool = False) -> OutcomesBias:
    """Samplers of the bias at data and nodes."""
    own, unmerged = prior_for(problem, prior), unmerged_of(problem)
    return OutcomesBias(own, residuals_of(problem), nodes, problem.span, unmerged, size_drawn)


def with_integrals(prior: BiasPrior, problem: Problem, bias: OutcomesBias) -> tuple[OutcomesBias, Integrals | None]:
    """The bias as it was, or at the nodes that its integrals need, and how they are brought down to the problem's.

    A Gaussian process is smooth enough for the problem's nodes, or chooses others for itself.
    """
    integrals = None if bias.gaussian else fine_integrals(problem, bias.samplers)
    if integrals is None:
        return bias, None
    return fitted_bias(prior, problem, integrals.nodes, size_drawn=bias.size_drawn), integrals


def unmerged_of(problem: Problem) -> Unmerged | None:
    """Residuals with a row for every observation, where those with the same x were merged."""
    rows = problem.rows
    return None if rows is None else Unmerged(residuals_of(problem.unmerged), rows.repeats.place)


def residuals_of(problem: Problem) -> Residuals:
    """What a bias is fitted to."""
    data, left = problem.data, problem.complete_y - problem.fit
    values = problem.whiten(stand_ins(data.x, problem.span, left, data.observed, data.labels))
    bounds = None if data.without_inputs else np.stack(problem.domain.bounds(data.d))
    return Residuals(data.x, problem.noise, values, problem.gradient_at_data, data.labels, bounds)
