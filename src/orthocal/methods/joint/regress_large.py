"""Draws of the real process for a Gaussian-process bias and many data: after one pass nothing grows with them.

In one input Matern processes are Markov, and the draws are exact. In several, b = Phi w with w ~ N(0, I): values on a
grid (few inputs), or at inducing points. Then (theta, w) is Gaussian, as in ``regress.gaussian_draws``:

    y - f(theta_tilde) = G u + (Phi - G lambda(Phi)) w + e,   u = theta - theta_tilde ~ its Gaussian prior, or flat
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...arrays import Array, IntArray
from ...bias import GP
from ...bias.base import BiasSampler, Setting
from ...bias.gp import Scales
from ...bias.large_gp import MarkovGP, refined
from ...errors import IdentifiabilityError, InputError
from ...problem.problem import Problem
from ...progress import announced
from ..base import Plan
from ..bias_samplers import residuals_of, unmerged_of
from ..fine_nodes import BiasNodes, bias_nodes
from .regress import RANK, Linear, Regressed
from .regress_basis import function_draws, values_at_data

if TYPE_CHECKING:
    from ...regression.markov import Condensed

#: distinct data points from which on a process is computed in one pass
LARGE = 3_000
#: support points a length-scale, and how many at least and at most
A_LENGTH, FEWEST, MOST = 20, 200, 2_000


def wanted(prior: object, problem: Problem) -> bool:
    """Whether the bias is a Gaussian process that is to be computed in one pass."""
    if not isinstance(prior, GP) or problem.data.without_inputs:
        return False
    # with noise that is correlated between rows there is one matrix of all rows anyway; with labels it is the only form
    alone = problem.noise.rows is None and not problem.data.labels
    return prior.form == "large" or (prior.form == "auto" and problem.data.n > LARGE and alone)


def large_draws(problem: Problem, plan: Plan, prior: GP, linear: Linear) -> Regressed:
    """Independent draws, in the form that the number of inputs asks for."""
    _refuse(problem, prior)
    residuals = residuals_of(problem)
    nowhere = problem.rule.nodes[:0]
    points = residuals.split(nowhere)
    settings, unmerged = residuals.settings(points, problem.span), unmerged_of(problem)
    if unmerged is not None:
        settings = unmerged.added_to(settings, points, nowhere)
    if linear.basis is not None:
        settings = [setting._replace(gradient=setting.gradient @ linear.basis) for setting in settings]
    scales = [prior.scales(setting) for setting in settings]
    draw = function_draws if problem.data.d > 1 or prior.nu == np.inf else _markov_draws
    with announced(f"a Gaussian process in one pass over {problem.data.n} points, some seconds"):
        return draw(problem, plan, prior, settings, scales, linear)


def _refuse(problem: Problem, prior: GP) -> None:
    n, noise = problem.data.n, problem.noise
    if problem.data.labels:
        raise InputError(
            f"x has categorical inputs, {', '.join(one.name for one in problem.data.labels.each)}: "
            'oc.bias.GP(form="large") is for numbers alone; take form="dense", or bart'
        )
    if noise.rows is not None:
        raise InputError(
            'noise that is correlated between rows needs a Gaussian process in its form="dense", or "auto"'
        )
    if noise.coupled:
        raise InputError(
            f"the outcomes of single rows are correlated beside missing cells, or by noise of their own: a Gaussian "
            f"process with {n} distinct points needs rows that are complete or uncorrelated; take bart, or thin them"
        )


def _markov_draws(
    problem: Problem, plan: Plan, prior: GP, settings: list[Setting], scales: list[Scales], linear: Linear
) -> Regressed:
    """Exact draws along one input."""
    from ...regression.markov import Condensed, Ordered, condensed

    nodes = bias_nodes(problem, FEWEST)
    samplers, passes = list[MarkovGP](), list[Condensed]()
    for setting, found in zip(settings, scales, strict=True):
        support = _support(problem, nodes.nodes[:, 0], setting, found)
        columns = np.column_stack([setting.residual, setting.gradient])
        points = Ordered.of(setting.x[:, 0], 1 / setting.noise_var, columns, support)

        def deviance(own: Scales, points: Ordered = points) -> float:
            return condensed(points, prior.nu, own.sd, float(own.lengthscale[0])).deviance

        own = refined(prior, found, deviance)
        samplers.append(MarkovGP(prior.nu, own, setting.unit, support))
        passes.append(condensed(points, prior.nu, own.sd, float(own.lengthscale[0])))
    gram = np.sum([one.gram for one in passes], axis=0)
    beta, spread = _drawn_beta(gram[1:, 1:], gram[1:, 0], plan)
    states = [one.draw(plan.rngs, plan.draws, beta) for one in passes]
    functionals = _functionals(linear, nodes, samplers, states)
    _put_prior_in(linear, passes, functionals, spread, beta, states, plan)
    fine = np.stack([own[:, one.places, 0] for own, one in zip(states, functionals, strict=True)], axis=-1)
    at_nodes = nodes.down(fine)
    moved = beta + at_nodes.reshape(len(beta), -1) @ linear.coefficients.T
    recorded = [own.reshape(len(own), -1) for own in states]
    return Regressed(
        values_at_data(linear, problem.data.x, beta, samplers, recorded, plan),
        at_nodes + np.einsum("mkp,sp->smk", linear.at_nodes, beta),
        beta,
        moved,
        {f"values_{k}": own for k, own in enumerate(recorded)},
        list[BiasSampler](samplers),
        linear.log_prior(moved),
        {},
        # the bias is integrated out
        square=gram[0, 0] - 2 * beta @ gram[1:, 0] + np.einsum("sp,pr,sr->s", beta, gram[1:, 1:], beta),
    )


class _Functional(NamedTuple):
    """lambda(b) of one outcome: which support points the nodes are, (M,), and its coefficients, (p, r, k)."""

    places: IntArray
    values: Array


def _functionals(linear: Linear, nodes: BiasNodes, samplers: list[MarkovGP], states: list[Array]) -> list[_Functional]:
    q = len(samplers)
    found = []
    for k, (sampler, own) in enumerate(zip(samplers, states, strict=True)):
        places = np.searchsorted(sampler.support, nodes.nodes[:, 0])
        # one function a node that is 1 there, brought down
        one = np.zeros((len(places), len(places), q))
        one[np.arange(len(places)), np.arange(len(places)), k] = 1.0
        slopes = nodes.down(one).reshape(len(places), -1) @ linear.coefficients.T
        values = np.zeros((slopes.shape[1], *own.shape[1:]))
        values[:, places, 0] = slopes.T
        found.append(_Functional(places, values))
    return found


def _put_prior_in(
    linear: Linear,
    passes: list[Condensed],
    functionals: list[_Functional],
    spread: Array,
    beta: Array,
    states: list[Array],
    plan: Plan,
) -> None:
    """Change draws of beta (s, p) and of the states (s, r, k) to those with the Gaussian part of theta's prior.

    theta - theta_tilde = u = beta + lambda(b) is jointly Gaussian with both, and the prior is one more observation,
    R u + e = R^-T pull with R'R its precision: every draw moves by Cov(., u) R' (I + R C R')^-1 times what it misses.
    """
    if not linear.precision.any() and not linear.pull.any():
        return
    means = [one.means() for one in passes]
    with_own = [one.covariance_with(own.values) for one, own in zip(passes, functionals, strict=True)]
    # du/dbeta: states follow beta by the gradients' own columns
    turn = np.eye(beta.shape[1]) - sum(
        np.einsum("prk,rkj->pj", own.values, mean[:, :, 1:]) for own, mean in zip(functionals, means, strict=True)
    )
    with_beta = spread @ turn.T
    cov = turn @ with_beta + sum(
        np.einsum("prk,rkj->pj", own.values, one) for own, one in zip(functionals, with_own, strict=True)
    )
    root = linear.prior_root()
    normal = np.concatenate([rng.standard_normal((plan.draws, len(root))) for rng in plan.rngs])
    moved = beta + sum(np.einsum("srk,prk->sp", own, one.values) for own, one in zip(states, functionals, strict=True))
    missed = np.linalg.lstsq(root.T, linear.pull, rcond=None)[0] + normal - moved @ root.T
    pull = np.linalg.solve(np.eye(len(root)) + root @ cov @ root.T, missed.T).T @ root
    for own, mean, one in zip(states, means, with_own, strict=True):
        own += np.einsum("rkp,sp->srk", one - mean[:, :, 1:] @ with_beta, pull)
    beta += pull @ with_beta.T


def _support(problem: Problem, nodes: Array, setting: Setting, scales: Scales) -> Array:
    """Ascending support points: the nodes, and evenly spaced ones that leave little of the process between them."""
    lower, upper = (float(end[0]) for end in problem.domain.bounds(1))
    ends = min(lower, setting.x.min()), max(upper, setting.x.max())
    count = int(np.clip(A_LENGTH * (ends[1] - ends[0]) / scales.lengthscale[0], FEWEST, MOST))
    return np.unique(np.concatenate([nodes, np.linspace(*ends, count)]))


def _drawn_beta(information: Array, pull: Array, plan: Plan) -> tuple[Array, Array]:
    """beta ~ N(B^-1 v, B^-1), (s, p), one generator after the other, and B^-1."""
    scale = np.sqrt(np.diag(information))
    values, vectors = (
        np.linalg.eigh(information / np.outer(scale, scale)) if (scale > 0).all() else (np.zeros(1), scale)
    )
    if values[0] < RANK**2 * values[-1]:
        raise IdentifiabilityError(
            f"the data do not determine the {len(pull)} parameters: give more data or fix some parameters"
        )
    normal = np.concatenate([rng.standard_normal((plan.draws, len(pull))) for rng in plan.rngs])
    mean = vectors @ (vectors.T @ (pull / scale) / values)
    spread = (vectors / values) @ vectors.T / np.outer(scale, scale)
    return np.asarray((mean + normal / np.sqrt(values) @ vectors.T) / scale), spread
