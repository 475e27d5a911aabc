"""Whether priors and data contradict each other, as where one of them is in other units.

Where the prior is right, the posterior mean m of a parameter scatters around the prior's middle c with the variance
s0^2 - s^2, the prior's less the posterior's, which is exact where all is Gaussian. So

    t = c + (m - c) / sqrt(1 - s^2 / s0^2)

is a draw of the prior, and the share of the prior whose density is less than at t is the p-value (Evans and Moshonov,
Bayesian Analysis 2006). A uniform prior contradicts nothing within its bounds, and bounds are a finding of their own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..arrays import Array
from ..findings import Finding
from ..problem.parameters import Parameters
from .notes import Notes
from .record import Record

#: probability that a prior that is right is called a contradiction
FALSE_ALARM = 0.001
#: values of the prior that the density is compared with
COMPARED = 4000
#: where the data take less than this share of the prior's variance away, chance would be divided by next to nothing
LEAST_LEARNT = 0.05


def prior_tails(parameters: Parameters, theta: Array) -> tuple[float, ...]:
    """The p-value of each parameter's prior, one for all parameters of a joint prior, from draws (c, s, p)."""
    flat = theta.reshape(-1, theta.shape[-1])
    learnt = np.clip(1 - (flat.std(axis=0) / parameters.spread) ** 2, LEAST_LEARNT, 1.0)
    away = (flat.mean(axis=0) - parameters.median) / np.sqrt(learnt)
    # what is scaled up may pass a bound, where there is no density to compare
    drawn = parameters.clipped(parameters.median + away, 1e-4)
    rng, tails, start = np.random.default_rng(0), [], 0
    for block in parameters.blocks:
        width = len(block.median)
        heights = block.log_density(block.draws(COMPARED, rng))
        # equal heights, as of a uniform prior, are no less
        height = float(block.log_density(drawn[start : start + width])) + 1e-9
        tails += [float(np.mean(heights <= height))] * width
        start += width
    return tuple(tails)


def conflict(record: Record, notes: Notes) -> Iterator[Finding]:
    """Parameters whose posterior is where their prior has next to nothing."""
    if notes.prior_tails is None:
        return
    middle, spread = record.constant("prior_median"), record.support.spread
    mean = record.theta.mean(axis=(0, 1))
    for j, name in enumerate(record.parameter_names):
        if notes.prior_tails[j] < FALSE_ALARM:
            far = abs(mean[j] - middle[j]) / spread[j]
            message = (
                f"the data want {name} = {mean[j]:.4g}, {far:.1f} prior sds from the prior's middle, {middle[j]:.4g}: "
                f"they contradict each other (of priors that are right, {FALSE_ALARM:.1%} would look like this)"
            )
            advice = f"check the units of {name}, x and y first; then the prior, or the simulator"
            yield Finding("problem", "prior of theta", message, advice)
