"""Parameters of which the simulator answers to combinations only.

With g_j of length one, g V' = h S by singular values, theta - theta_tilde = B a with B = diag(1 / |g_j|) V', f moves
along a_k by s_k h_k. Where s_k is zero the loss does not depend on a_k: theta* is not defined there, the bias is
orthogonal to the other h alone, and a_k has its prior given the others,

    theta = (A'C^-1 A + P)^-1 (A'C^-1 l + P t),   l a draw of a under a flat prior, N(., C),   t one of the prior

A the rows of B^-1 of what is determined, P the precision of the prior: exact for a linear f and Gaussian priors. Other
priors have a normal density in place of theirs, and importance weights put it right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...arrays import Array, BoolArray
from ...problem.problem import Problem
from ...projection import COLLINEAR
from .objective import Held
from .regress import Linear, Regressed, shifted

#: combinations whose effect is below this, in units of the gradients' lengths, stay where the regression has them: the
#: projection would have to find them from differences of the simulator of 1e-10, over the square of this
HELD = 1e-4
#: how much wider than its prior a normal density is that stands for one of another form: weights must not explode
WIDER = 1.2
#: parts of a direction that are rounding
NO_PART = 1e-2
#: draws of the prior that show whether it is Gaussian, and how much its log density may differ
SHOWN, GAUSSIAN = 200, 1e-4


class Determined(NamedTuple):
    """The coordinates a of theta, and theta's prior.

    Attributes
    ----------
    linear
        The simulator as a function of the determined coordinates, (., r), with a flat prior.
    basis, inverse
        (p, r) and (r, p): theta - theta_tilde = basis a + what does not move the simulator, a = inverse theta.
    held
        (k, p): the coordinates that the projection leaves where they are.
    involved
        The parameters that undetermined directions are made of, (p,).
    prior
        The simulator as a function of theta, with the Gaussian prior of theta.
    """

    linear: Linear
    basis: Array
    inverse: Array
    held: Array
    involved: BoolArray
    prior: Linear

    def holding(self, theta: Array) -> Held:
        """For the projection of draws that begin at theta (s, p)."""
        return Held(self.held, theta, self.basis, self.linear.at_nodes * self.linear.unit**2)


def identifiable_part(problem: Problem) -> Determined | None:
    """What the simulator answers to, or None where that is every parameter."""
    found = problem.directions
    if found.weakest >= HELD:
        return None
    kept = found.singular >= COLLINEAR
    basis, inverse = found.vectors[kept].T / found.lengths[:, None], found.vectors[kept] * found.lengths
    at_data, at_nodes = problem.gradient_at_data @ basis, problem.gradient_at_nodes @ basis
    weighted = problem.rule.weights[:, None, None] * problem.metric
    image = np.einsum("mkl,mlr->mkr", weighted, at_nodes).reshape(-1, basis.shape[1])
    # the columns are orthogonal, of the lengths s
    coefficients = image.T / found.singular[kept, None] ** 2
    nothing = np.zeros(basis.shape[1])
    linear = Linear(at_data, at_nodes, coefficients, nothing, np.diag(nothing), 1 / found.singular[kept], basis)
    pull, precision = problem.parameters.gaussian_part(problem.parameters.clipped(problem.theta_tilde, 1e-6))
    prior = linear._replace(pull=pull, precision=precision)
    involved: BoolArray = np.asarray((np.abs(found.open) > NO_PART).any(axis=0))
    if involved.any() and not _gaussian(problem, prior):
        prior = _with_normal(problem, prior, involved)
    held = found.vectors[found.singular < HELD] * found.lengths
    return Determined(linear, basis, inverse, held, involved, prior)


def _gaussian(problem: Problem, prior: Linear) -> bool:
    """Whether the Gaussian part is the whole prior, and no parameter's is flat."""
    if not (np.diag(prior.precision) > 0).all():
        return False
    rng = np.random.default_rng(0)
    draws = np.concatenate([block.draws(SHOWN, rng) for block in problem.parameters.blocks], axis=1)
    apart = problem.parameters.log_prior(draws) - prior.log_prior(draws - problem.theta_tilde)
    return bool(np.ptp(apart) < GAUSSIAN)


def _with_normal(problem: Problem, prior: Linear, involved: BoolArray) -> Linear:
    """The Gaussian part with a normal density of its own for each of the parameters that are involved."""
    parameters = problem.parameters
    own = 1 / (WIDER * parameters.spread) ** 2
    precision = np.where(involved[:, None] | involved, 0.0, prior.precision) + np.diag(np.where(involved, own, 0.0))
    pull = np.where(involved, -own * (problem.theta_tilde - parameters.median), prior.pull)
    return prior._replace(pull=pull, precision=precision)


def with_open_directions(part: Determined, free: Regressed, rngs: list[np.random.Generator]) -> Regressed:
    """Draws of the determined coordinates under a flat prior, combined with the prior of theta."""
    prior, p = part.prior, len(part.basis)
    information = np.linalg.inv(np.atleast_2d(np.cov(free.moved.T)))
    each = len(free.moved) // len(rngs)
    normal = np.concatenate([rng.standard_normal((each, p)) for rng in rngs])
    pull = free.moved @ information @ part.inverse + prior.pull + normal @ prior.prior_root()
    # in units of the gradients' lengths: priors may be as wide as they like; what has no effect has its prior alone
    unit = np.sqrt(np.sum(part.basis**2, axis=1))
    unit = np.where(unit > 0, unit, 1 / np.sqrt(np.maximum(np.diag(prior.precision), 1e-300)))
    whole = (part.inverse.T @ information @ part.inverse + prior.precision) * np.outer(unit, unit)
    moved = np.linalg.solve(whole, (pull * unit).T).T * unit
    shift = moved @ part.inverse.T - free.moved
    return shifted(part.linear, free, shift)._replace(
        beta=free.beta @ part.basis.T,
        moved=moved,
        log_prior=prior.log_prior(moved),
        shift=shift @ part.basis.T,
    )


def outside_support(problem: Problem, part: Determined, theta: Array) -> BoolArray:
    """Which draws have left the support along what the simulator does not answer to, (s,): their prior is zero.

    Of these the projection has ended on a bound.
    """
    parameters = problem.parameters
    room = 1e-8 * parameters.spread
    left = (theta <= parameters.lower + room) | (theta >= parameters.upper - room)
    return np.asarray(left[:, part.involved].any(axis=1))
