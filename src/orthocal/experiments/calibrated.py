"""From experiments and a method to one posterior."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import xarray as xr

from ..methods import Draws, Plan
from ..methods.joint.joint import Joint
from ..methods.stored_draws import thinned
from ..problem.prior.parameters import Parameters
from ..problem.problem import Problem
from ..results import record
from ..results.checks.open_directions import named_directions
from ..results.checks.prior_conflict import prior_tails
from ..results.joint_posterior import OF_PARAMETERS, TogetherPosterior, together_tree, tree_of, with_experiments
from ..results.labelled import labelled
from ..results.posterior import Posterior
from ..results.run_facts import Notes
from .draws import TogetherDraws, together_draws
from .experiments import Experiments
from .prior_groups import add_own_priors, prior_groups


class Made(NamedTuple):
    """The posteriors of the experiments, and what makes one of all when the run is over."""

    experiments: Experiments
    method: Joint
    drawn: TogetherDraws
    own: dict[str, Posterior]

    def posterior(
        self, seed: str, warmup: int, work: dict[str, Any], more: Callable[[int], Posterior]
    ) -> TogetherPosterior:
        """``work`` is what the run took."""
        notes = replace(_notes(self.experiments.together, self.drawn), **work)
        trees = {name: one.record.data for name, one in self.own.items()}
        hyper_priors = _hyper_priors(self.experiments)
        priors = prior_groups(self.experiments, self.drawn.theta, self.drawn.hyper, hyper_priors, seed)
        for name, tree in trees.items():
            add_own_priors(tree, self.experiments, name, priors)
        tree = together_tree(
            self.experiments.together,
            self.drawn.theta,
            self.drawn.hyper,
            hyper_priors,
            priors,
            self.drawn.stats,
            self._attributes(notes, seed, warmup),
            trees,
        )
        own = {
            name: Posterior(tree_of(tree, name), one.simulator, self.drawn.own[name].samplers)
            for name, one in self.experiments.problems.items()
        }
        return TogetherPosterior(tree, own, more)

    def _attributes(self, notes: Notes, seed: str, warmup: int) -> dict[str, str | int]:
        shown = next(iter(self.drawn.own.values()))
        return record.attributes(
            self.experiments.together, self.method, replace(shown, samplers=[]), notes, seed, warmup
        )


def made(
    experiments: Experiments,
    method: Joint,
    plan: Plan,
    seed: str,
    warmup: int,
    notes_of: Callable[[Problem, Draws], Notes],
    work_of: Callable[[str], dict[str, Any]],
) -> Made:
    """Draws of all experiments, with the tree of each; ``work_of`` says what each took."""
    drawn = together_draws(experiments, method, plan)
    own = {}
    for number, (name, problem) in enumerate(experiments.linearised.items()):
        draws = drawn.own[name]
        notes = replace(notes_of(problem, draws), **work_of(name))
        attributes = record.attributes(problem, method, draws, notes, seed, warmup)
        tree: xr.DataTree = labelled(problem, thinned(draws, plan), attributes)
        tree.attrs |= {"title": name, "experiment_weight": float(experiments.weights[number])}
        own[name] = Posterior(tree, problem.simulator, draws.samplers)
    return Made(experiments, method, drawn, own)


def alone(experiments: Experiments, own: Posterior, more: Callable[[int], Posterior]) -> TogetherPosterior:
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
    return TogetherPosterior(whole, {name: own.with_tree(tree_of(whole, name))}, more)


def _hyper_priors(experiments: Experiments) -> dict[str, Parameters]:
    """The priors of mu and tau of every pool."""
    return {
        name: Parameters({name: prior})
        for pool in experiments.pools
        for name, prior in zip(pool.names, (pool.mean, pool.sd), strict=True)
    }


def _notes(together: Problem, drawn: TogetherDraws) -> Notes:
    """Facts about all experiments together."""
    parameters, tilde = together.parameters, together.theta_tilde
    return Notes(
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
