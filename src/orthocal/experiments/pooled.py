"""Partial pooling: the private values of a parameter are draws of one normal law, whose mean and sd are learnt.

theta_e ~ N(mu, tau^2) for every experiment e,   mu ~ its prior,   tau ~ its prior
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from ..arrays import Array
from ..errors import InputError
from ..methods.base import Plan
from ..methods.joint.regress import Linear, Regressed, shifted
from ..problem.prior.priors import Distribution, SinglePrior
from ..problem.prior.user_priors import single_prior

#: quantiles of the priors of mu and tau between which these are looked for
ENDS = 1e-6, 1 - 1e-6


@dataclass(frozen=True)
class Pooled:
    """Private values of a parameter that are alike: N(mu, tau²), with mu and tau learnt from all experiments.

    Parameters
    ----------
    mean
        The prior of mu; None takes the parameter's own prior.
    sd
        The prior of tau, on positive numbers; None takes a half-normal whose scale is the spread of the parameter's own
        prior.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from scipy import stats
    >>> x = np.linspace(0, 1, 20)
    >>> slope = {"slope": stats.norm(0, 10)}
    >>> def line(x, theta):
    ...     return theta[0] * x
    >>> rigs = {f"rig {k}": oc.Problem(x, k * x, line, slope, noise_cov=0.01) for k in (1, 2, 3)}
    >>> experiments = oc.Experiments(rigs, private={"slope": oc.Pooled(sd=stats.halfnorm(scale=2))})
    >>> posterior = oc.calibrate(experiments, draws=50, chains=2, seed=1, progress=False)
    >>> [name for name in posterior.data["posterior"].data_vars if "mu" in name or "tau" in name]
    ['mu[slope]', 'tau[slope]']
    """

    mean: Distribution | None = None
    sd: Distribution | None = None

    def __post_init__(self) -> None:
        for name in ("mean", "sd"):
            prior = getattr(self, name)
            if prior is None:
                continue
            prior = single_prior(name, prior)
            object.__setattr__(self, name, prior)
            if not isinstance(prior, Distribution):
                raise InputError(f"{name}={prior!r} of oc.Pooled: give a frozen scipy.stats distribution")
        if self.sd is not None and not np.min(self.sd.support()) >= 0:
            raise InputError(f"sd of oc.Pooled has the support {self.sd.support()}: a standard deviation is positive")

    def priors(self, name: str, own: Distribution) -> tuple[Distribution, Distribution]:
        """Those of mu and tau, for a parameter with its ``own`` prior.

        Parameters
        ----------
        name
            Of the parameter.
        own
            Its prior.

        Examples
        --------
        >>> import orthocal as oc
        >>> from scipy import stats
        >>> mean, sd = oc.Pooled().priors("slope", stats.norm(0, 10))
        >>> float(mean.std()), float(sd.support()[0])
        (10.0, 0.0)
        """
        spread = float(SinglePrior(name, own).spread[0])
        return self.mean or own, self.sd or stats.halfnorm(scale=spread)


@dataclass(frozen=True)
class Pool:
    """A parameter that is pooled: its name, where its values stand in theta, and the priors of mu and tau."""

    name: str
    columns: tuple[int, ...]
    mean: Distribution
    sd: Distribution

    @property
    def names(self) -> tuple[str, str]:
        """Of mu and tau, in the results."""
        return f"mu[{self.name}]", f"tau[{self.name}]"

    def range(self, values: Array, errors: Array) -> tuple[Array, Array]:
        """Ends of mu and of tau beyond which nothing is, for values (e,) known with these ``errors`` (e,)."""
        reach = 12 * (np.ptp(values) + errors.max())
        low, high = (float(self.mean.ppf(end)) for end in ENDS)
        most = float(self.sd.ppf(ENDS[1]))
        middle = float(np.median(values))
        mu = np.array([max(low, middle - reach), min(high, middle + reach)])
        return mu, np.array([max(float(self.sd.ppf(ENDS[0])), 0.0), min(most, 12 * (np.ptp(values) + errors.min()))])


# mu and tau of pooled parameters, from draws under flat priors.
#
#     l_s ~ N(m, C) flat,   (mu, tau) ~ pi(mu) pi(tau) N(m_a; mu, C_a + tau² I),
#     theta_s = l_s + C A'(C_a + tau_s² I)^-1 (t_s - A l_s),   t_s ~ N(mu_s, tau_s² I)
#
# A picks the pooled values. Exact where all is Gaussian.

#: places of mu and of tau at which their density is looked at, twice: the second time where there is any
GRID = 240
#: what is less dense than this, beside the densest, is left out the second time
NOTHING = 1e-9


class Hyper(NamedTuple):
    """Draws of mu and tau (s,), the pooled values theta_e - theta_tilde that the draws were combined to, (s, e)."""

    pool: Pool
    mu: Array
    tau: Array

    def log_density(self, values: Array) -> Array:
        """log N(values (s, e); mu, tau²) summed over the experiments, (s,), but for what does not depend on values."""
        return np.asarray(-0.5 * np.sum((values - self.mu[:, None]) ** 2, axis=1) / self.tau**2)


def with_pooling(
    linear: Linear, free: Regressed, pools: tuple[Pool, ...], tilde: Array, plan: Plan
) -> tuple[Regressed, list[Hyper]]:
    """The draws with pooled values, one pool after the other, and mu and tau of each."""
    found: list[Hyper] = []
    for pool in pools:
        hyper, moved = _pooled(free.moved, pool, tilde, plan)
        shift = moved - free.moved
        free = shifted(linear, free, shift)
        found.append(hyper)
    return free, found


def _pooled(moved: Array, pool: Pool, tilde: Array, plan: Plan) -> tuple[Hyper, Array]:
    """mu and tau of one pool, and theta - theta_tilde with it, (s, p)."""
    columns = list(pool.columns)
    mean, cov = moved.mean(axis=0), np.atleast_2d(np.cov(moved.T))
    own = cov[np.ix_(columns, columns)]
    values, vectors = np.linalg.eigh(own)
    values = np.maximum(values, 0.0)
    mu, tau = _hyper_draws(pool, tilde[columns] + mean[columns], values, vectors, plan)
    each = [rng.standard_normal((plan.draws, len(columns))) for rng in plan.rngs]
    target = mu[:, None] + tau[:, None] * np.concatenate(each) - tilde[columns]
    away = (target - moved[:, columns]) @ vectors
    gain = away / (values + tau[:, None] ** 2)
    return Hyper(pool, mu, tau), np.asarray(moved + gain @ (cov[:, columns] @ vectors).T)


def _hyper_draws(pool: Pool, centre: Array, values: Array, vectors: Array, plan: Plan) -> tuple[Array, Array]:
    """Draws of (mu, tau) from their density on a grid, spread evenly over its cells."""
    errors = np.sqrt(np.einsum("ij,j,ij->i", vectors, values, vectors))
    mu_ends, tau_ends = pool.range(centre, errors)
    for _ in range(2):
        mu, tau = (ends[0] + np.diff(ends) * (np.arange(GRID) + 0.5) / GRID for ends in (mu_ends, tau_ends))
        density = _density(pool, centre, values, vectors, mu, tau)
        width = (mu[1] - mu[0], tau[1] - tau[0])
        dense = density > NOTHING * density.max()
        mu_there, tau_there = mu[dense.any(axis=1)], tau[dense.any(axis=0)]
        mu_ends = np.clip([mu_there[0] - width[0], mu_there[-1] + width[0]], *mu_ends)
        tau_ends = np.clip([tau_there[0] - width[1], tau_there[-1] + width[1]], *tau_ends)
    # one after the other in the order of the density: even draws, and each chain has its own
    cumulative = np.cumsum(density.ravel())
    places, inside = [], []
    for rng in plan.rngs:
        uniform = rng.random(plan.draws) * cumulative[-1]
        places.append(np.minimum(np.searchsorted(cumulative, uniform), density.size - 1))
        inside.append(rng.random((plan.draws, 2)) - 0.5)
    row, column = np.divmod(np.concatenate(places), GRID)
    jitter = np.concatenate(inside)
    return mu[row] + jitter[:, 0] * width[0], np.maximum(tau[column] + jitter[:, 1] * width[1], 1e-6 * width[1])


def _density(pool: Pool, centre: Array, values: Array, vectors: Array, mu: Array, tau: Array) -> Array:
    """pi(mu) pi(tau) N(centre; mu, C + tau²), in units of its largest value, (mu, tau)."""
    var = values[None, :] + tau[:, None] ** 2
    turned, ones = centre @ vectors, np.ones(len(centre)) @ vectors
    away = turned[None, :] - mu[:, None] * ones[None, :]
    squares = np.einsum("me,te->mt", away**2, 1 / var)
    log = -0.5 * squares - 0.5 * np.log(var).sum(axis=1)[None, :]
    with np.errstate(divide="ignore"):
        log = log + np.asarray(pool.mean.logpdf(mu))[:, None] + np.asarray(pool.sd.logpdf(tau))[None, :]
    return np.asarray(np.exp(log - log.max()))
