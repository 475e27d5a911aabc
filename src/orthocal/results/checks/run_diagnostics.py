"""Facts about a run that ``check`` reads: what costs calls of the simulator, and what belongs to the problem."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from ...arrays import Array
from ...emulators.components import ComponentEmulator
from ...emulators.error_reduction import runs_to_halve
from ...errors import OrthocalError
from ...methods import Draws
from ...methods.joint.expansion import second_differences
from ...problem.problem import Problem
from ...problem.simulator.emulator import RunsEmulator
from ...projection import ProjectionKind
from ..run_facts import RunFacts
from .identifiability import named_directions
from .noise_correlation import correlated_errors
from .prior_conflict import prior_tails
from .simulator_findings import emulator_share

# What the simulator's curvature, beside a large bias, does to the posterior of theta.
#
# The best theta of the loss is where <g(theta), y_R - f(theta)> = 0. What noise moves y_R moves it by H^-1 times what
# it adds to that product, with H = Q - K, Q_jl = <g_j, g_l> and K_jl = <b, d^2 f / dt_j dt_l>. A projection at
# theta_tilde knows Q alone: deviations of theta should be H^-1 Q times those that it draws.

#: differences reach so many posterior sds in every direction: shorter ones would show the roughness of an emulator
REACH, LEAST_REACH = 2.0, 0.2
#: smallest eigenvalue of H relative to Q at which the loss still counts as having a minimum
LEAST_CURVATURE = 0.05


def curvature_factors(problem: Problem, theta: Array, bias: Array) -> Array | None:
    """By what the posterior sd of each parameter should be multiplied, (p,).

    NaN where H has no minimum; None where theta_tilde is so close to a bound that there is no room to look, or where
    the simulator fails around it.

    Parameters
    ----------
    theta
        Draws, (s, p).
    bias
        Posterior mean of the projected bias at the data, (n, q).
    """
    cov = np.atleast_2d(np.cov(theta.T))
    # in coordinates u, theta = theta_tilde + root u, the posterior has unit covariance
    root = np.linalg.cholesky(cov)
    reach = _room(problem, root)
    if reach < LEAST_REACH:
        return None
    product = _product(problem, bias, root * reach) / reach**2
    if not np.isfinite(product).all():
        return None
    gram = root.T @ problem.sensitivity_at_data.gram @ root
    inverse = np.linalg.inv(np.linalg.cholesky(gram))
    if not np.linalg.eigvalsh(inverse @ (gram - product) @ inverse.T).min() > LEAST_CURVATURE:
        return np.full(len(cov), np.nan)
    stretched = root @ np.linalg.solve(gram - product, gram)
    return np.asarray(np.sqrt((stretched**2).sum(axis=1) / np.diag(cov)))


def _room(problem: Problem, root: Array) -> float:
    """How far differences can reach, at most ``REACH``, so that all their points lie within the priors' support."""
    best, support = problem.theta_tilde, problem.parameters
    # of two directions together, the farthest any point goes in each parameter
    farthest = np.sort(np.abs(root), axis=1)[:, -2:].sum(axis=1)
    return float(min(REACH, *(0.99 * np.minimum(best - support.lower, support.upper - best) / farthest)))


def _product(problem: Problem, bias: Array, steps: Array) -> Array:
    """<b, second differences of f along the columns of ``steps``>, (p, p)."""
    p = len(steps)
    pairs = list(combinations(range(p), 2))
    weighted = problem.volumes[:, None] * (problem.whiten(bias) @ problem.metric)

    def along(theta: Array) -> Array:
        model = problem.whiten(problem.simulator.batch(problem.data.x, theta))
        return np.asarray(np.einsum("nq,cnq->c", weighted, model))

    _, straight, mixed = second_differences(along, problem.theta_tilde, steps.T, pairs)
    product = np.diag(np.array(straight))
    for (j, k), change in zip(pairs, mixed, strict=True):
        product[j, k] = product[k, j] = change
    return product


#: the emulator's share of a parameter's variance from which on the runs that would halve it are counted, and most runs
COUNTED_SHARE, MOST_RUNS = 0.05, 100
#: draws that tell the size of an emulator's error
ERROR_DRAWS = 50


def run_facts(problem: Problem, drawn: Draws) -> RunFacts:
    """Facts for ``check`` that cost calls of the simulator, or belong to the problem."""
    weakest, emulator = None, problem.simulator.emulator
    if drawn.projection is not ProjectionKind.NONE:
        finite = drawn.projection is ProjectionKind.FINITE
        weakest = (problem.sensitivity_at_data if finite else problem.directions).weakest
    return RunFacts(
        **vars(drawn.notes),
        quadrature_error=problem.quadrature_error if drawn.nodes_drawn else None,
        gradient_error=problem.gradient_error,
        row_error=_row_error(problem),
        gradient_kind=problem.simulator.gradient_kind,
        simulator_failure=problem.simulator.failure,
        curvature_factors=_curvature(problem, drawn),
        weakest_sensitivity=weakest,
        open_directions=_open_directions(problem, drawn),
        outside_runs=_share_outside(problem, drawn.theta),
        emulator_sd=_emulator_sd(problem, drawn.theta),
        emulator_counted=problem.emulator_error,
        emulator_spread=_emulator_spread(problem, drawn),
        runs_to_halve=_halving_runs(problem, drawn),
        on_bound=tuple(problem.parameters.on_bound(problem.theta_tilde)),
        misfit=_misfit(problem, drawn),
        prior_tails=prior_tails(problem),
        outside_runs_x=_outside_x(problem),
        emulator_said=emulator.said if isinstance(emulator, RunsEmulator) else (),
        held_out_errors=dict(emulator.choice.errors) if isinstance(emulator, RunsEmulator) and emulator.choice else {},
        allowed_share=problem.parameters.allowed_share,
        on_edge=problem.parameters.on_edge(problem.theta_tilde),
        unfinished=not problem.minima[0].finished,
        rivals=problem.rivals,
        domain_given=problem.domain_given,
        domain=repr(problem.domain),
        noise_source=problem.noise.source,
        noise_freedom=problem.noise.freedom,
        noise_remarks=problem.noise.remarks,
        noise_smooth=problem.noise.smooth,
        noise_kernel=None if problem.noise.rows is None else problem.noise.rows.kernel,
        correlated=correlated_errors(problem, drawn.theta),
    )


def _open_directions(problem: Problem, drawn: Draws) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the simulator does not answer to, and what it answers to instead: others refuse such parameters."""
    if drawn.projection is not ProjectionKind.JOINT:
        return (), ()
    return named_directions(problem.directions, problem.parameters.names)


def _curvature(problem: Problem, drawn: Draws) -> tuple[float, ...] | None:
    """``curvature_factors``, NaN where the loss has no minimum; None where they do not apply or cannot be found."""
    theta = drawn.theta.reshape(-1, drawn.theta.shape[-1])
    # the joint projection knows the curvature
    known = drawn.projection in (ProjectionKind.NONE, ProjectionKind.JOINT)
    if known or not (theta.std(axis=0) > 0).all():
        return None
    try:
        factors = curvature_factors(problem, theta, drawn.bias.mean(axis=(0, 1)))
    except (OrthocalError, np.linalg.LinAlgError):
        # the draws are good without it
        return None
    return None if factors is None else tuple(factors.tolist())


def _misfit(problem: Problem, drawn: Draws) -> float:
    """``problem.misfit``, beside the noise that was sampled where it was: the estimate does not count then."""
    sampled = drawn.noise_cov
    if sampled is None:
        return problem.misfit
    estimated, found = (np.trace(problem.weight @ cov) for cov in (problem.noise.cov, sampled.mean(axis=(0, 1))))
    return float(problem.misfit * estimated / found)


def _outside_x(problem: Problem) -> tuple[float, float] | None:
    """Share of the rows, and of the domain, that an emulator's runs have no points near to; None where unknown."""
    outside = getattr(problem.simulator.emulator, "outside_x", None)
    if outside is None or problem.data.without_inputs:
        return None
    at_nodes = np.asarray(outside(problem.rule.nodes))
    return float(np.mean(outside(problem.data.x))), float(problem.rule.weights[at_nodes].sum())


def _row_error(problem: Problem) -> float | None:
    """By how much f at every other row changes where these are asked for alone, in sds of the noise: it must not."""
    rows = slice(1, None, 2)
    if problem.simulator.emulator is not None or problem.data.without_inputs or problem.data.n < 2:
        return None
    try:
        alone = problem.simulator.required(problem.data.x[rows], problem.theta_tilde)
    except OrthocalError:
        return np.inf
    return float(np.abs(problem.whiten(alone - problem.fit[rows])).max())


def _share_outside(problem: Problem, theta: Array) -> float | None:
    """Share of the draws where an emulator had no runs nearby; None for a simulator."""
    outside = problem.simulator.outside
    if outside is None:
        return None
    flat = theta.reshape(-1, theta.shape[-1])
    # some thousand draws tell the share well enough
    return float(np.mean(outside(flat[:: max(1, len(flat) // 2000)])))


def _emulator_sd(problem: Problem, theta: Array) -> float | None:
    """Root mean square of an emulator's sd at some draws, in sds of the noise; None where it has none."""
    emulator = problem.simulator.emulator
    if emulator is None or not emulator.has_variance:
        return None
    flat = theta.reshape(-1, theta.shape[-1])
    some = flat[:: max(1, len(flat) // ERROR_DRAWS)]
    x, noise_var = problem.data.x, np.diag(problem.noise.cov)
    shares = [problem.simulator.slope(x, one) ** 2 * emulator.variance(x, one) / noise_var for one in some]
    return float(np.sqrt(np.mean(shares)))


def _emulator_spread(problem: Problem, drawn: Draws) -> tuple[float, ...] | None:
    """What the spread of the emulator's draws was multiplied by, where it says so."""
    found = getattr(problem.simulator.emulator, "draw_spread", None) if drawn.notes.emulator_draws else None
    return None if found is None else tuple(float(one) for one in found)


def _halving_runs(problem: Problem, drawn: Draws) -> int | None:
    """How many runs would halve the emulator's part, 0 for very many; None where it is small, or not known."""
    emulator, theta = problem.simulator.emulator, drawn.theta.reshape(-1, drawn.theta.shape[-1])
    gaussian = isinstance(emulator, ComponentEmulator) and emulator.name == "gp"
    if drawn.emulator_number is None or not isinstance(emulator, ComponentEmulator) or not gaussian:
        return None
    if not np.max(emulator_share(theta, drawn.emulator_number.ravel())) > COUNTED_SHARE:
        return None
    data = problem.unmerged.data
    found = runs_to_halve(emulator, data.x, data.observed, problem.noise.cov, data.transforms, theta, MOST_RUNS)
    return found or 0
