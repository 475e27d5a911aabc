"""Partial pooling: the private values of a parameter are draws of one normal law, whose mean and sd are learnt.

theta_e ~ N(mu, tau^2) for every experiment e,   mu ~ its prior,   tau ~ its prior
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..arrays import Array
from ..errors import InputError
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
