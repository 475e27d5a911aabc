"""Whether priors and data contradict each other, as where one of them is in other units.

Where the prior is right, the least-squares theta of the data alone scatters around the prior's middle c with the
variance s0^2 + s^2, the prior's and its own, which is exact where all is Gaussian. So

    t = c + (theta_ls - c) s0 / sqrt(s0^2 + s^2)

is a draw of the prior, and the share of the prior whose density is less than at t is the p-value (Evans and Moshonov,
Bayesian Analysis 2006). The posterior would not do: where a prior is wrong and sure, it is the prior. A uniform prior
contradicts nothing within its bounds, and bounds are a finding of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays import Array
from ...errors import OrthocalError
from ...findings import Finding
from ...problem.problem import Problem
from ...problem.search.best_fit import row_weights
from ..record import Record
from ..run_facts import RunFacts

#: probability that a prior that is right is called a contradiction
FALSE_ALARM = 0.001
#: values of the prior that the density is compared with
COMPARED = 8000
#: the least eigenvalue of the parameters' effects, as correlations, whose inverse is more than rounding
LEAST_INFORMATION = 1e-10


def prior_tails(problem: Problem) -> tuple[float, ...] | None:
    """The p-value of each parameter's prior, one for all parameters of a joint prior; None where it cannot be had."""
    parameters, alone = problem.parameters, problem.loss_minima[0].theta
    if parameters.flat:
        return (1.0,) * parameters.p
    try:
        own_var = _least_squares_var(problem, alone)
    except (OrthocalError, np.linalg.LinAlgError):
        # the simulator fails beside it, or answers to a combination of parameters only
        return None
    shrunk = 1 / np.sqrt(1 + own_var / parameters.spread**2)
    # on a bound there may be no density to compare
    drawn = parameters.clipped(parameters.median + (alone - parameters.median) * shrunk, 1e-4)
    rng, tails, start = np.random.default_rng(0), [], 0
    for block in parameters.blocks:
        width = len(block.median)
        heights = block.log_density(block.draws(COMPARED, rng))
        # equal heights, as of a uniform prior, are no less
        height = float(block.log_density(drawn[start : start + width])) + 1e-9
        tails += [float(np.mean(heights <= height))] * width
        start += width
    return tuple(tails)


def _least_squares_var(problem: Problem, theta: Array) -> Array:
    """diag A^-1 B A^-1, (p,), A = sum g' W g and B = sum g' W Sigma W g over the rows; more where the fit is worse."""
    gradient = problem.simulator.gradient(problem.data.x, theta)
    weighted = row_weights(problem.weight, problem.data.observed, problem.volumes) @ gradient
    noise = problem.noise.cov if problem.noise.by_point is None else problem.noise.by_point
    # each parameter in the unit of its effect: that of a sure prior would make the others look like all there is
    with np.errstate(divide="ignore"):
        unit = 1 / np.sqrt(np.einsum("nqp,nqp->p", gradient, weighted))
    if not np.isfinite(unit).all():
        raise np.linalg.LinAlgError
    gradient, weighted = gradient * unit, weighted * unit
    gram = np.einsum("nqp,nqr->pr", gradient, weighted)
    if not np.linalg.eigvalsh(gram)[0] > LEAST_INFORMATION:
        raise np.linalg.LinAlgError
    bread = np.linalg.inv(gram)
    cov = bread @ np.einsum("nqp,nqr->pr", weighted, noise @ weighted) @ bread
    # a bias shifts it too: by as much, at most, as if all that is left were noise
    worse = problem.misfit * problem.loss_minima[0].loss / max(problem.minima[0].loss, 1e-300)
    return np.asarray(np.diag(cov) * unit**2 * max(1.0, worse))


def in_conflict(facts: RunFacts) -> list[int]:
    """The numbers of the parameters whose prior and data contradict each other."""
    tails = facts.prior_tails or ()
    return [j for j, tail in enumerate(tails) if tail < FALSE_ALARM]


def conflict(record: Record, facts: RunFacts) -> Iterator[Finding]:
    """Parameters of which the data say what their prior all but excludes."""
    middle, spread, alone = (record.constant(name) for name in ("prior_median", "prior_spread", "least_squares"))
    for j in in_conflict(facts):
        name, far = record.parameter_names[j], abs(alone[j] - middle[j]) / spread[j]
        where = f"{name} = {alone[j]:.4g}, {far:.3g} prior sds from the middle of its prior, {middle[j]:.4g}"
        rate = f"of priors that are right, {FALSE_ALARM:.1%} would look like this"
        message = f"the data alone give {where}: they contradict each other ({rate})"
        advice = f"check the units of {name}, x and y first; then the prior, or the simulator"
        yield Finding("problem", "prior of theta", message, advice)
