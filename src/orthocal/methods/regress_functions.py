"""Draws of the real process where the bias is a sum of functions with Gaussian coefficients, and the data are many.

The functions and the nodes of the bias are doubled, once at least and until that changes little: what the last time
moved theta by, in posterior sds, is kept for ``check``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, cho_solve, cholesky, solve_triangular

from ..arrays import Array, matrix_root
from ..bias import GP
from ..bias.base import BiasSampler, Setting
from ..bias.gp import Scales
from ..bias.large_gp import MOVE_LIMITS, GridGP, InducingGP, LargeGP, refined
from ..errors import InputError
from ..problem.problem import Problem
from ..regression.gaussian_process import jittered_cholesky
from ..regression.grid_process import Grid, Sums
from ..regression.inducing import spread_points
from .base import Plan
from .fine_nodes import BiasNodes, bias_nodes
from .large_values import values_at_data
from .regress import Linear, Regressed

#: functions of all outcomes together, in the finer of two sets
MOST_FUNCTIONS = 2_400
#: points a length-scale of the coarser grid: between its points it leaves out .2 % of the variance or less, of rough
#: processes (nu = 1/2) 5 %
A_LENGTH = {0.5: 6.0, 1.5: 4.0, 2.5: 4.0, np.inf: 3.0}
#: cells an input at least, and where the length-scale is so many times its width that the process is straight along it
FEWEST_CELLS, STRAIGHT = (6, 2), 5.0
#: how often the number of functions is doubled, until that moves theta by little
MOST_DOUBLINGS = 3
#: fewer than this a length-scale are no grid for it
LEAST_A_LENGTH = 1.5
#: inputs up to which a grid is taken, and inducing points beyond
MOST_GRID_INPUTS = 3
INDUCING = 1_000
#: nodes of the bias, an input or in all, that are tried one after the other
NODES = {1: (200, 400, 800), 2: (42, 60, 85, 120), 3: (2**12, 2**13, 2**14, 2**15)}


class Part(NamedTuple):
    """One outcome's functions: sums over the data in white coefficients, and the sampler whose records they become.

    ``recorded`` takes white coefficients (s, M) to these; ``at`` gives the functions (m, M) at x (m, d), and
    ``unsaid`` the covariance of what they leave out of the process there, (m, m), where that is not small.
    """

    sums: Sums
    sampler: LargeGP
    recorded: Callable[[Array], Array]
    at: Callable[[Array], Array]
    unsaid: Callable[[Array], Array] | None = None


class Design(NamedTuple):
    """The posterior of (u, w): its precision's Cholesky factor, its mean, and what it is made of.

    Attributes
    ----------
    parts
        One an outcome.
    nodes, at_nodes
        Where the bias is integrated, and the functions at the problem's nodes, (m, q, R).
    unit, taken
        The gradients' lengths, (p,), and lambda(Phi), (p, R).
    data
        The precision without priors, (p + R, p + R), what the data say, (p + R,), and z'P z.
    """

    parts: list[Part]
    nodes: BiasNodes
    at_nodes: Array
    unit: Array
    taken: Array
    data: tuple[Array, Array, float]
    lower: Array
    mean: Array

    def moved_from(self, other: Design) -> float:
        """How far theta's mean and sd are from those of another design, in posterior sds, at most."""
        (mean, sd), (other_mean, other_sd) = self.theta, other.theta
        return float(max(np.max(np.abs(other_mean - mean) / sd), np.max(np.abs(other_sd - sd) / sd)))

    @property
    def theta(self) -> tuple[Array, Array]:
        """Posterior mean and sd of theta - theta_tilde, (p,) each, for a linear simulator."""
        p = len(self.unit)
        rows = solve_triangular(self.lower, np.eye(len(self.lower))[:, :p], lower=True)
        return self.unit * self.mean[:p], self.unit * np.sqrt(np.sum(rows**2, axis=0))


class _Making(NamedTuple):
    """What the functions of all outcomes are made from; each doubling of their number is a level."""

    problem: Problem
    prior: GP
    settings: list[Setting]

    def parts(self, scales: list[Scales], level: int) -> list[Part]:
        make = _grid_part if self.problem.data.d <= MOST_GRID_INPUTS else _inducing_part
        pairs = zip(self.settings, scales, strict=True)
        return [make(self, setting, own, level) for setting, own in pairs]

    @property
    def most(self) -> int:
        """Functions of an outcome, at most."""
        return MOST_FUNCTIONS // len(self.settings)


def function_draws(
    problem: Problem, plan: Plan, prior: GP, settings: list[Setting], scales: list[Scales], linear: Linear
) -> Regressed:
    """Independent draws of theta and the functions' coefficients."""
    making, tried = _Making(problem, prior, settings), NODES[min(problem.data.d, 3)]
    nodes = bias_nodes(problem, tried[0])
    design = _design(problem, linear, making.parts(scales, 0), nodes)
    own = [_scales_of(part.sampler) for part in design.parts]
    moved = np.inf
    for level in range(1, MOST_DOUBLINGS + 1):
        finer = _design(problem, linear, making.parts(own, level), nodes)
        if len(finer.mean) == len(design.mean):
            break
        moved = finer.moved_from(design)
        design = finer
        if moved < MOVE_LIMITS[0] / 2:
            break
    design, nodes_moved = _with_enough_nodes(problem, linear, design, tried[1:])
    for part in design.parts:
        part.sampler.noted = {
            "functions": part.sums.functions.shape[0],
            "moved": moved,
            "nodes": len(design.nodes.nodes),
            "nodes_moved": nodes_moved,
        }
    return _drawn(problem, plan, linear, design)


def _scales_of(sampler: LargeGP) -> Scales:
    return Scales(sampler.sd, sampler.lengthscale, sampler.at_bound)


def _grid_part(making: _Making, setting: Setting, scales: Scales, level: int) -> Part:
    """Values on a grid; finer ones take the scales as they are."""
    prior = making.prior
    grid = _grid(making, setting, scales, level)
    columns = np.column_stack([setting.residual, setting.gradient])
    raw = grid.sums(setting.x, 1 / setting.noise_var, columns)

    def white(own: Scales) -> tuple[Sums, Array]:
        root, _ = jittered_cholesky(grid.covariance(own.sd, own.lengthscale, prior.nu))
        return Sums(root.T @ raw.functions @ root, root.T @ raw.mixed, raw.own), root

    own = scales if level else refined(prior, scales, lambda one: _deviance(white(one)[0]), LEAST_A_LENGTH * grid.step)
    sums, root = white(own)
    return Part(
        sums,
        GridGP(prior.nu, own, setting.unit, grid),
        lambda coefficients: coefficients @ root.T,
        lambda x: grid.at(x, np.ascontiguousarray(root.T)).T,
    )


def _grid(making: _Making, setting: Setting, scales: Scales, level: int) -> Grid:
    d, most = len(scales.lengthscale), making.most
    bounds = making.problem.domain.bounds(d)
    lower, upper = np.minimum(bounds[0], setting.x.min(axis=0)), np.maximum(bounds[1], setting.x.max(axis=0))
    upper = np.where(upper > lower, upper, lower + 1.0)
    fewest = np.where(scales.lengthscale < STRAIGHT * (upper - lower), *FEWEST_CELLS)
    step = np.minimum(scales.lengthscale / A_LENGTH[making.prior.nu], (upper - lower) / fewest)
    size, limit = 2.0 ** (level / d), most if level else most / 2
    grid = Grid.over(lower, upper, step / size)
    while grid.size > limit:
        step = step * 1.05
        grid = Grid.over(lower, upper, step / size)
    short = np.flatnonzero(grid.step > scales.lengthscale / LEAST_A_LENGTH)
    if len(short):
        needed = Grid.over(lower, upper, scales.lengthscale / LEAST_A_LENGTH).size
        raise InputError(
            f"the bias has length-scales of {', '.join(f'{one:.3g}' for one in scales.lengthscale)} in a domain of "
            f"{', '.join(f'{one:.3g}' for one in upper - lower)}: a grid for it would need {needed} points or more, at "
            f"most {most} are taken; give a longer lengthscale, oc.bias.GP(lengthscale=...), or take bart"
        )
    return grid


def _inducing_part(making: _Making, setting: Setting, scales: Scales, level: int) -> Part:
    """Values at inducing points; of every level all are among those of the next."""
    prior = making.prior
    count = min(INDUCING // 2 * 2**level, INDUCING, making.most)
    chosen = setting.x[spread_points(setting.x, scales.lengthscale, count)]
    sampler = InducingGP(prior.nu, scales, setting.unit, chosen)
    columns = np.column_stack([setting.residual, setting.gradient])
    sums = sampler.process.sums(setting.x, 1 / setting.noise_var, columns)
    return Part(
        sums, sampler, lambda coefficients: coefficients, sampler.process.functions, sampler.process.unsaid_covariance
    )


def _deviance(sums: Sums) -> float:
    """-2 log restricted likelihood, up to a constant: log |H| + log |B| + z'P z, H = I + Phi'Phi."""
    H = sums.functions + np.eye(len(sums.functions))
    lower = cholesky(H, lower=True)
    half = solve_triangular(lower, sums.mixed, lower=True)
    left = sums.own - half.T @ half
    pull, information = left[1:, 0], left[1:, 1:]
    quadratic = left[0, 0] - pull @ np.linalg.lstsq(information, pull, rcond=None)[0]
    return float(2 * np.log(np.diag(lower)).sum() + np.linalg.slogdet(information)[1] + quadratic)


def _design(problem: Problem, linear: Linear, parts: list[Part], nodes: BiasNodes) -> Design:
    unit = linear.unit
    at_nodes = np.concatenate([_at_nodes(parts, nodes), _unsaid(problem, linear, parts)], axis=2)
    taken = linear.coefficients @ at_nodes.reshape(-1, at_nodes.shape[2])
    own = np.sum([part.sums.own for part in parts], axis=0)
    GG, Gz, zz = own[1:, 1:], own[1:, 0], float(own[0, 0])
    p, R = len(unit), at_nodes.shape[2]
    known = block_diag(*(part.sums.functions for part in parts))
    # what is unsaid has no functions at the data
    FF, GF, Fz = np.zeros((R, R)), np.zeros((p, R)), np.zeros(R)
    FF[: len(known), : len(known)] = known
    GF[:, : len(known)] = np.concatenate([part.sums.mixed[:, 1:].T for part in parts], axis=1)
    Fz[: len(known)] = np.concatenate([part.sums.mixed[:, 0] for part in parts])
    data = np.empty((p + len(Fz), p + len(Fz)))
    cross = GF - GG @ taken
    data[:p, :p] = GG * np.outer(unit, unit)
    data[:p, p:] = unit[:, None] * cross
    data[p:, :p] = data[:p, p:].T
    data[p:, p:] = FF - taken.T @ GF - cross.T @ taken
    pull = np.concatenate([unit * Gz, Fz - taken.T @ Gz])
    H = data.copy()
    H[:p, :p] += linear.precision * np.outer(unit, unit)
    H[np.arange(p, len(H)), np.arange(p, len(H))] += 1.0
    lower = cholesky(H, lower=True)
    information = pull.copy()
    information[:p] += linear.pull * unit
    mean = cho_solve((lower, True), information)
    return Design(parts, nodes, at_nodes, unit, taken, (data, pull, zz), lower, mean)


def _at_nodes(parts: list[Part], nodes: BiasNodes) -> Array:
    """The functions at the problem's nodes, (m, q, R): each outcome has its own."""
    columns = [nodes.down(part.at(nodes.nodes).T[:, :, None])[:, :, 0].T for part in parts]
    q = len(parts)
    whole = np.zeros((len(columns[0]), q, sum(column.shape[1] for column in columns)))
    end = 0
    for k, column in enumerate(columns):
        whole[:, k, end : end + column.shape[1]] = column
        end += column.shape[1]
    return whole


def _unsaid(problem: Problem, linear: Linear, parts: list[Part]) -> Array:
    """Functions at the nodes that only lambda(b) sees, (m, q, p): G R, with R R' the covariance of what is unsaid."""
    nodes, m, q, p = problem.rule.nodes, *linear.at_nodes.shape
    cov = np.zeros((p, p))
    for k, part in enumerate(parts):
        if part.unsaid is not None:
            own = linear.coefficients.reshape(p, m, q)[:, :, k]
            cov += own @ part.unsaid(nodes) @ own.T
    return linear.at_nodes @ matrix_root(cov).T if cov.any() else np.zeros((m, q, 0))


def _with_enough_nodes(
    problem: Problem, linear: Linear, design: Design, counts: tuple[int, ...]
) -> tuple[Design, float | None]:
    """The design with nodes whose doubling moves theta by little, and by how much half as many would have moved it."""
    moved = None
    for count in counts:
        nodes = bias_nodes(problem, count)
        if nodes.rule is None:
            return design, None
        finer = _design(problem, linear, design.parts, nodes)
        moved = finer.moved_from(design)
        design = finer
        if moved < MOVE_LIMITS[0]:
            break
    return design, moved


def _drawn(problem: Problem, plan: Plan, linear: Linear, design: Design) -> Regressed:
    p, (data, pull, zz) = len(design.unit), design.data
    normal = np.concatenate([rng.standard_normal((plan.draws, len(design.mean))) for rng in plan.rngs])
    drawn = design.mean + solve_triangular(design.lower, normal.T, lower=True, trans=1).T
    moved, white = drawn[:, :p] * design.unit, drawn[:, p:]
    beta = moved - white @ design.taken.T
    ends = np.cumsum([part.sums.functions.shape[0] for part in design.parts])
    pieces = np.split(white, ends, axis=1)[: len(design.parts)]
    records = [part.recorded(own) for part, own in zip(design.parts, pieces, strict=True)]
    bias = (white @ design.at_nodes.reshape(-1, white.shape[1]).T).reshape(len(white), -1, len(design.parts))
    samplers = [part.sampler for part in design.parts]
    at_data = values_at_data(linear, problem.data.x, beta, samplers, records, plan)

    return Regressed(
        at_data,
        bias + np.einsum("mkp,sp->smk", linear.at_nodes, beta),
        beta,
        moved,
        {f"values_{k}": values for k, values in enumerate(records)},
        list[BiasSampler](samplers),
        linear.log_prior(moved),
        {},
        square=zz - 2 * drawn @ pull + np.einsum("si,ij,sj->s", drawn, data, drawn, optimize=True),
    )
