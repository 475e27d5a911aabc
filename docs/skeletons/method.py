"""A calibration method, to copy: the Gaussian approximation at the best fit, without a bias.

Inside the package: a file in ``methods/``, a subclass of ``ListedMethod`` with its ``kind``, ``words`` and ``cost``
under ``@listed``, and a line in its ``__init__.py``. Outside give the object, ``oc.calibrate(problem, BestFit())``.
"""

import numpy as np

import orthocal as oc
from orthocal.errors import InputError
from orthocal.kernels.base import with_prior
from orthocal.problem.noise.noise import NoiseSource

#: rounds in which draws at an impossible theta are made again
MOST_ROUNDS = 50


class BestFit:
    """theta ~ N(theta_tilde, (G'PG + C)^-1) within the support of the priors.

    G is the gradient at the best fit, P the precision of the noise, C the curvature of -log pi(theta).
    """

    def run(self, problem, plan):
        # what a method cannot do it refuses, and says what to do
        if problem.noise.source is NoiseSource.UNKNOWN:
            raise InputError('this method takes the noise as known: give noise_cov as a number, or "estimate"')
        G = problem.gradient_at_data  # whitened, as `noise.weighed` wants it, (n, q, p)
        fisher = np.einsum("nqj,nqk->jk", G, problem.noise.weighed(G))
        precision = with_prior(problem.parameters, fisher, problem.theta_tilde)
        root = np.linalg.inv(np.linalg.cholesky(precision)).T
        # each chain from its own generator alone: (c, s, p) and (c, s, n, q), in the outcomes' units
        theta, model = map(np.stack, zip(*(chain(problem, plan.draws, root, rng) for rng in plan.rngs), strict=True))
        left = problem.whiten(problem.complete_y - model)
        squares = np.stack([problem.noise.squares(one) for one in left])
        prior = np.stack([problem.parameters.log_prior(one) for one in theta])
        # a method with a bias also returns its `samplers` and their `bias_state`, from which predictions are made
        return oc.methods.Draws(
            theta=theta,
            model=model,
            bias=np.zeros_like(model),
            stats={"lp": prior - squares / 2, "acceptance_rate": np.ones(prior.shape)},
        )

    # the user's choices, as what JSON can store
    def describe(self):
        return {"kind": "best-fit"}


def chain(problem, draws, root, rng):
    """Draws of one chain: theta (s, p), and the simulator there (s, n, q)."""
    theta = np.empty((draws, len(root)))
    model = np.empty((draws, *problem.data.y.shape))
    wanted = np.arange(draws)
    for _ in range(MOST_ROUNDS):
        drawn = problem.theta_tilde + rng.standard_normal((len(wanted), len(root))) @ root.T
        inside = problem.parameters.inside(drawn)
        values = np.full((len(wanted), *problem.data.y.shape), np.nan)
        values[inside] = problem.simulator.batch(problem.data.x, drawn[inside])
        theta[wanted], model[wanted] = drawn, values
        # where the simulator fails its outcomes are NaN, and theta is impossible
        wanted = wanted[~np.isfinite(values).all(axis=(1, 2))]
        if not len(wanted):
            return theta, model
    raise InputError("hardly any theta near the best fit is possible: take a method that samples, oc.methods.NoBias()")
