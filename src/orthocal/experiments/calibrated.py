"""From experiments and a method to one posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.stats import norm

from ..arrays import Array
from ..methods import Draws, Plan
from ..methods.joint.joint import Joint
from ..methods.stored_draws import thinned
from ..problem.prior.parameters import Parameters, variable_name
from ..problem.problem import Problem
from ..results import record
from ..results.checks.identifiability import named_directions
from ..results.checks.prior_conflict import prior_tails
from ..results.data_tree import (
    OF_PARAMETERS,
    PRIOR_DRAWS,
    joint_tree,
    prior_generator,
    result_tree,
    theta_dataset,
    tree_of,
    with_experiments,
)
from ..results.joint_posterior import JointPosterior
from ..results.posterior import Posterior
from ..results.run_facts import RunFacts
from .draws import JointDraws, joint_draws
from .experiments import Experiments

# The priors of all experiments' parameters as draws and densities; pooled ones are N(mu, tau²) given mu and tau.


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


class JointRun(NamedTuple):
    """The posteriors of the experiments, and what makes one of all when the run is over."""

    experiments: Experiments
    method: Joint
    drawn: JointDraws
    own: dict[str, Posterior]

    def posterior(
        self, seed: str, warmup: int, work: dict[str, Any], more: Callable[[int], Posterior]
    ) -> JointPosterior:
        """``work`` is what the run took."""
        facts = replace(_joint_facts(self.experiments.together, self.drawn), **work)
        trees = {name: one.record.data for name, one in self.own.items()}
        hyper_priors = _hyper_priors(self.experiments)
        priors = prior_groups(self.experiments, self.drawn.theta, self.drawn.hyper, hyper_priors, seed)
        for name, tree in trees.items():
            add_own_priors(tree, self.experiments, name, priors)
        tree = joint_tree(
            self.experiments.together,
            self.drawn.theta,
            self.drawn.hyper,
            hyper_priors,
            priors,
            self.drawn.stats,
            self._attributes(facts, seed, warmup),
            trees,
        )
        own = {
            name: Posterior(tree_of(tree, name), one.simulator, self.drawn.own[name].samplers)
            for name, one in self.experiments.problems.items()
        }
        return JointPosterior(tree, own, more)

    def _attributes(self, facts: RunFacts, seed: str, warmup: int) -> dict[str, str | int]:
        shown = next(iter(self.drawn.own.values()))
        return record.attributes(
            self.experiments.together, self.method, replace(shown, samplers=[]), facts, seed, warmup
        )


def joint_run(
    experiments: Experiments,
    method: Joint,
    plan: Plan,
    seed: str,
    warmup: int,
    facts_of: Callable[[Problem, Draws], RunFacts],
    work_of: Callable[[str], dict[str, Any]],
) -> JointRun:
    """Draws of all experiments, with the tree of each; ``work_of`` says what each took."""
    drawn = joint_draws(experiments, method, plan)
    own = {}
    for number, (name, problem) in enumerate(experiments.linearised.items()):
        draws = drawn.own[name]
        facts = replace(facts_of(problem, draws), **work_of(name))
        attributes = record.attributes(problem, method, draws, facts, seed, warmup)
        tree: xr.DataTree = result_tree(problem, thinned(draws, plan), attributes)
        tree.attrs |= {"title": name, "experiment_weight": float(experiments.weights[number])}
        own[name] = Posterior(tree, problem.simulator, draws.samplers)
    return JointRun(experiments, method, drawn, own)


def posterior_of_one(experiments: Experiments, own: Posterior, more: Callable[[int], Posterior]) -> JointPosterior:
    """The posterior of one experiment as that of all."""
    (name,) = experiments.names
    tree, parameters = own.record.data, experiments.parameters
    # what is stored once for all parameters
    variables = own.record.variables
    renamed = dict(zip(variables, parameters.variables, strict=True))
    posterior = tree["posterior"].to_dataset()[list(variables)].rename(renamed)
    for variable, new in zip(parameters.variables, parameters.names, strict=True):
        posterior[variable].attrs["long_name"] = new
    constant = tree["constant_data"].to_dataset()
    constant = constant[[one for one in OF_PARAMETERS if one in constant]]
    densities = tree["log_prior"].to_dataset()
    groups = {
        "posterior": posterior,
        "sample_stats": tree["sample_stats"].to_dataset(),
        "observed_data": xr.Dataset(),
        "constant_data": constant.assign_coords(parameter=list(parameters.names)),
        "prior": tree["prior"].to_dataset()[list(variables)].rename(renamed),
        "log_prior": densities.rename(dict(zip(densities.data_vars, parameters.block_names, strict=True))),
        "bias_state": xr.Dataset(),
    }
    whole = with_experiments(xr.DataTree.from_dict(groups), tree.attrs, list(renamed.values()), {name: tree})
    return JointPosterior(whole, {name: own.with_tree(tree_of(whole, name))}, more)


def _hyper_priors(experiments: Experiments) -> dict[str, Parameters]:
    """The priors of mu and tau of every pool."""
    return {
        name: Parameters({name: prior})
        for pool in experiments.pools
        for name, prior in zip(pool.names, (pool.mean, pool.sd), strict=True)
    }


def _joint_facts(together: Problem, drawn: JointDraws) -> RunFacts:
    """Facts about all experiments together."""
    parameters, tilde = together.parameters, together.theta_tilde
    return RunFacts(
        **vars(drawn.notes),
        weakest_sensitivity=together.directions.weakest,
        open_directions=named_directions(together.directions, parameters.names),
        on_bound=tuple(parameters.on_bound(tilde)),
        misfit=together.misfit,
        prior_tails=prior_tails(together),
        allowed_share=parameters.allowed_share,
        on_edge=parameters.on_edge(tilde),
        unfinished=not together.minima[0].finished,
        rivals=together.rivals,
        gradient_kind=together.simulator.gradient_kind,
        domain=repr(together.domain),
    )
