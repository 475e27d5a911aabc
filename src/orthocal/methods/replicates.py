"""Replicates cost nothing: a method is given one row for each distinct x, and its draws go back to all rows."""

from __future__ import annotations

from dataclasses import replace

from ..bias.base import BiasSampler
from ..bias.one_hot import stored_sampler
from ..bias.outcomes import split_points
from ..problem.problem import Problem
from .base import Drawn, Draws, ListedMethod, Method, Plan


def run_merged(method: Method, problem: Problem, plan: Plan) -> Draws:
    """The draws of a method; one of the user's own, or a prior of theirs, is given all rows."""
    if not (isinstance(method, ListedMethod) and method.merges):
        return method.run(problem, plan)
    merged = problem.merged
    return spread_rows(method.run(merged, plan), merged)


def spread_rows(draws: Draws, merged: Problem) -> Draws:
    """The draws at merged rows as those of all rows."""
    rows = merged.rows
    if rows is None:
        return draws
    place, stats = rows.repeats.place, draws.stats
    # the likelihood of y has the replicates' scatter in it; the distance to a draw of the real process has not
    if draws.drawn is not Drawn.PROCESS:
        stats = {**stats, "lp": stats["lp"] - 0.5 * rows.scatter}
    return replace(
        draws,
        model=draws.model[:, :, place],
        bias=draws.bias[:, :, place],
        at_data={name: values[:, place] for name, values in draws.at_data.items()},
        directions=None if draws.directions is None else draws.directions[place],
        stats=stats,
        samplers=_restored(draws, merged.unmerged),
    )


def _restored(draws: Draws, problem: Problem) -> list[BiasSampler]:
    """The bias samplers as those of a stored posterior, which has all rows."""
    nodes = problem.rule.nodes if draws.nodes_drawn else problem.rule.nodes[:0]
    samplers = []
    for k, sampler in enumerate(draws.samplers):
        points, settings = split_points(problem.data.x, nodes, problem.noise.variances[:, k]), sampler.settings()
        samplers.append(stored_sampler(settings).restore(settings, points.x, points.nodes, points.noise_var))
    return samplers
