"""The priors of all experiments' parameters as draws and densities; pooled ones are N(mu, tau²) given mu and tau."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from scipy.stats import norm

from ..arrays import Array
from ..problem.prior.parameters import Parameters, variable_name
from ..results.labelled import PRIOR_DRAWS, prior_generator, theta_dataset
from .experiments import Experiments


def prior_groups(
    experiments: Experiments,
    theta: Array,
    hyper: Mapping[str, Array],
    hyper_priors: Mapping[str, Parameters],
    seed: str,
) -> dict[str, xr.Dataset]:
    """``prior`` and ``log_prior``, the second of theta (c, s, P) and mu and tau of pools, (c, s) each."""
    index = {"chain": np.arange(theta.shape[0]), "draw": np.arange(theta.shape[1])}
    densities = {**experiments.parameters.log_prior_by_block(theta)}
    for pool in experiments.pools:
        mu, tau = (hyper[name] for name in pool.names)
        for column in pool.columns:
            densities[experiments.parameters.variables[column]] = np.asarray(norm.logpdf(theta[:, :, column], mu, tau))
    for name, prior in hyper_priors.items():
        densities |= prior.log_prior_by_block(hyper[name][:, :, None])
    log_prior = xr.Dataset({name: (("chain", "draw"), one) for name, one in densities.items()}, coords=index)
    return {"prior": _draws(experiments, hyper_priors, seed), "log_prior": log_prior}


def _draws(experiments: Experiments, hyper_priors: Mapping[str, Parameters], seed: str) -> xr.Dataset:
    rng, parameters = prior_generator(seed), experiments.parameters
    theta = parameters.prior_draws(PRIOR_DRAWS, rng)
    hyper = {name: prior.prior_draws(len(theta), rng)[:, 0] for name, prior in hyper_priors.items()}
    for pool in experiments.pools:
        mu, tau = (hyper[name][:, None] for name in pool.names)
        theta[:, list(pool.columns)] = mu + tau * rng.standard_normal((len(theta), len(pool.columns)))
    if parameters.constraint is not None:
        allowed = parameters.constraint(theta)
        theta, hyper = theta[allowed], {name: one[allowed] for name, one in hyper.items()}
    found = theta_dataset(parameters, theta[None], {"chain": np.arange(1), "draw": np.arange(len(theta))})
    return found.assign({variable_name(name): (("chain", "draw"), one[None]) for name, one in hyper.items()})


def add_own_priors(tree: xr.DataTree, experiments: Experiments, name: str, priors: Mapping[str, xr.Dataset]) -> None:
    """Pooled parameters in the tree of an experiment get the priors that they have among all."""
    pooled = {pool.name for pool in experiments.pools}
    of_all = [experiments.parameters.variables[column] for column in experiments.columns[name]]
    own = experiments[name].parameters
    changed = {old: new for old, new in zip(own.variables, of_all, strict=True) if old in map(variable_name, pooled)}
    if not changed:
        return
    for group in ("prior", "log_prior"):
        before, given = tree[group].to_dataset(), priors[group]
        if group == "prior":
            before = before.isel(draw=slice(given.sizes["draw"]))
            given = given.isel(draw=slice(before.sizes["draw"]))
        tree[group] = xr.DataTree(before.assign({old: given[new].variable for old, new in changed.items()}))
