"""Draws of the real process where the bias is a sum of functions with Gaussian coefficients, and the data are many.

The functions and the nodes of the bias are doubled, once at least and until that changes little: what the last time
moved theta by, in posterior sds, is kept for ``check``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, cho_solve, cholesky, solve_triangular

from ...advice import LENGTHSCALE
from ...arrays import Array, IntArray
from ...bias import GP
from ...bias.base import BiasSampler, Setting
from ...bias.gp import Scales
from ...bias.large_gp import MOVE_LIMITS, GridGP, InducingGP, LargeGP, refined
from ...errors import InputError
from ...problem.problem import Problem
from ...regression.gaussian_process import jittered_cholesky
from ...regression.inducing import RegularGrid, Sums, spread_points
from ..base import Plan
from ..fine_nodes import BiasNodes, bias_nodes
from ..stored_draws import TOGETHER
from .regress import Linear, Regressed

# The functions of Gaussian processes with many data, in several inputs: their number, and sums over the data.

#: points of the grids of all outcomes together, in the finer of two sets
MOST_FUNCTIONS = 2_400
#: points a length-scale of the coarser grid: between its points it leaves out .2 % of the variance or less, of rough
#: processes (nu = 1/2) 5 %
A_LENGTH = {0.5: 6.0, 1.5: 4.0, 2.5: 4.0, np.inf: 3.0}
#: cells an input at least, and where the length-scale is so many times its width that the process is straight along it
FEWEST_CELLS, STRAIGHT = (6, 2), 5.0
#: fewer than this a length-scale are too few
LEAST_A_LENGTH = 1.5
#: inputs up to which a grid is taken where it can be fine enough; inducing points beyond
MOST_GRID_INPUTS = 3
#: points up to which inducing points are affordable, and taken in so many inputs: there 500 of them, with what is near,
#: are ten times closer to the process than a grid of 2200 points (sd 2 % short at length-scales of .8)
FEW_FOR_INDUCING = 50_000
#: inducing points at first; of all outcomes together at most; and the work, n M², that they may make, for 1000 at least
INDUCING, MOST_INDUCING, MOST_WORK, LEAST_LIMIT = 500, 3_000, 4e11, 1_000
#: nodes of the bias, an input or in all, that are tried one after the other
NODES = {1: (200, 400, 800), 2: (42, 60, 85, 120), 3: (2**12, 2**13, 2**14, 2**15)}


class Unsaid(NamedTuple):
    """rho = lambda(r), r what the functions leave out of the process: N(pull - along beta - with_functions w, cov).

    Of shapes (p,), (p, p), (p, M) and (p, p): given the data, beta and the white coefficients w.
    """

    pull: Array
    along: Array
    with_functions: Array
    cov: Array


class FunctionsPart(NamedTuple):
    """One outcome's functions: sums over the data in white coefficients, and the sampler whose records they become.

    ``recorded`` takes white coefficients (s, M) to these; ``at`` gives the functions (m, M) at x (m, d), and
    ``unsaid`` is what they leave out, where that is not small.
    """

    sums: Sums
    sampler: LargeGP
    recorded: Callable[[Array], Array]
    at: Callable[[Array], Array]
    unsaid: Unsaid | None = None

    @property
    def scales(self) -> Scales:
        return Scales(self.sampler.sd, self.sampler.lengthscale, self.sampler.at_bound)


@dataclass(frozen=True)
class Making:
    """What the functions of all outcomes are made from; each doubling of their number is a level."""

    problem: Problem
    prior: GP
    settings: list[Setting]
    linear: Linear

    @cached_property
    def nodes(self) -> BiasNodes:
        """Where the bias is integrated at first, and always what inducing points leave out of it."""
        return bias_nodes(self.problem, NODES[min(self.problem.data.d, 3)][0])

    def first(self, scales: list[Scales]) -> list[FunctionsPart]:
        """Hyperparameters by the likelihood of all data where a grid has it; they may ask for more than a grid."""
        if self.prior.sd is None or self.prior.lengthscale is None:
            parts = self._made(scales, 0, [self._grid_will_do(k, own) for k, own in enumerate(scales)])
            found = [part.scales for part in parts]
            if [part.unsaid is None for part in parts] == self._on_a_grid(found):
                return parts
            scales = found
        return self.parts(scales, 0)

    def parts(self, scales: list[Scales], level: int) -> list[FunctionsPart]:
        return self._made(scales, level, self._on_a_grid(scales))

    def _made(self, scales: list[Scales], level: int, on_a_grid: list[bool]) -> list[FunctionsPart]:
        makers = [_grid_part if one else _inducing_part for one in on_a_grid]
        return [make(self, k, own, level) for k, (make, own) in enumerate(zip(makers, scales, strict=True))]

    def _on_a_grid(self, scales: list[Scales]) -> list[bool]:
        data = self.problem.data
        if data.d == MOST_GRID_INPUTS and data.n <= FEW_FOR_INDUCING:
            return [False] * len(scales)
        return [self._grid_will_do(k, own) for k, own in enumerate(scales)]

    def _grid_will_do(self, k: int, scales: Scales) -> bool:
        few = self.problem.data.d <= MOST_GRID_INPUTS
        return few and self.grid(k, scales, 0, np.inf).size <= self.most

    @property
    def most(self) -> int:
        """RegularGrid points of an outcome, at most."""
        return MOST_FUNCTIONS // len(self.settings)

    @property
    def most_inducing(self) -> int:
        """Inducing points of an outcome, at most."""
        return most_inducing(self.problem.data.n) // len(self.settings)

    def box(self, k: int) -> tuple[Array, Array]:
        """Where the bias of outcome k is wanted: lower and upper ends, (d,) each."""
        x = self.settings[k].x
        bounds = self.problem.domain.bounds(x.shape[1])
        lower, upper = np.minimum(bounds[0], x.min(axis=0)), np.maximum(bounds[1], x.max(axis=0))
        return lower, np.where(upper > lower, upper, lower + 1.0)

    def grid(self, k: int, scales: Scales, level: int, most: float) -> RegularGrid:
        """Of at most ``most`` points, steps as the length-scales want them where these are enough."""
        lower, upper = self.box(k)
        fewest = np.where(scales.lengthscale < STRAIGHT * (upper - lower), *FEWEST_CELLS)
        step = np.minimum(scales.lengthscale / A_LENGTH[self.prior.nu], (upper - lower) / fewest)
        size = 2.0 ** (level / len(lower))
        grid = RegularGrid.over(lower, upper, step / size)
        while grid.size > most:
            step = step * 1.05
            grid = RegularGrid.over(lower, upper, step / size)
        return grid


def most_inducing(n: int) -> int:
    """Inducing points of all outcomes together, at most, for n data points."""
    return min(max(LEAST_LIMIT, int(np.sqrt(MOST_WORK / n))), MOST_INDUCING)


def _grid_part(making: Making, k: int, scales: Scales, level: int) -> FunctionsPart:
    """Values on a grid; finer ones take the scales as they are."""
    prior, setting = making.prior, making.settings[k]
    grid = making.grid(k, scales, level, making.most if level else making.most / 2)
    columns = np.column_stack([setting.residual, setting.gradient])
    raw = grid.sums(setting.x, 1 / setting.noise_var, columns)

    def white(own: Scales) -> tuple[Sums, Array]:
        root, _ = jittered_cholesky(grid.covariance(own.sd, own.lengthscale, prior.nu))
        return Sums(root.T @ raw.functions @ root, root.T @ raw.mixed, raw.own), root

    own = scales if level else refined(prior, scales, lambda one: _deviance(white(one)[0]), LEAST_A_LENGTH * grid.step)
    sums, root = white(own)
    return FunctionsPart(
        sums,
        GridGP(prior.nu, own, setting.unit, grid),
        lambda coefficients: coefficients @ root.T,
        lambda x: grid.at(x, np.ascontiguousarray(root.T)).T,
    )


def _inducing_part(making: Making, k: int, scales: Scales, level: int) -> FunctionsPart:
    """Values at inducing points; of every level all are among those of the next."""
    prior, setting, most = making.prior, making.settings[k], making.most_inducing
    if setting.x.shape[1] <= MOST_GRID_INPUTS:
        _refuse_short(making.box(k), scales, most)
    nodes = making.nodes.nodes
    candidates = np.vstack([setting.x, nodes])
    chosen = candidates[spread_points(candidates, scales.lengthscale, min(INDUCING * 2**level, most))]
    sampler = InducingGP(prior.nu, scales, setting.unit, chosen)
    p, (m, q, _) = len(making.linear.unit), making.linear.at_nodes.shape
    functional = making.nodes.up(making.linear.coefficients.reshape(p, m, q))[:, :, k]
    columns = np.column_stack([setting.residual, setting.gradient])
    sums, cov = sampler.process.sums(setting.x, 1 / setting.noise_var, columns, nodes, functional)
    data, rho = slice(p + 1), slice(p + 1, None)
    unsaid = Unsaid(sums.own[rho, 0], sums.own[rho, 1 : p + 1], sums.mixed[:, rho].T, cov - sums.own[rho, rho])
    return FunctionsPart(
        Sums(sums.functions, sums.mixed[:, data], sums.own[data, data]),
        sampler,
        lambda coefficients: coefficients,
        sampler.process.functions,
        unsaid,
    )


def _refuse_short(box: tuple[Array, Array], scales: Scales, most: int) -> None:
    width = box[1] - box[0]
    needed = np.prod(np.ceil(LEAST_A_LENGTH * width / scales.lengthscale) + 1.0)
    if needed > most:
        raise InputError(
            f"the bias has length-scales of {', '.join(f'{one:.3g}' for one in scales.lengthscale)} in a domain of "
            f"{', '.join(f'{one:.3g}' for one in width)}: it would need {needed:.0f} inducing points or more, at most "
            f"{most} are taken; give a longer " + LENGTHSCALE + ", or take bart"
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


# Draws of the real process at many data points, a few at a time.


def values_at_data(
    linear: Linear, x: Array, beta: Array, samplers: Sequence[LargeGP], values: Sequence[Array], plan: Plan
) -> Callable[[IntArray], Array]:
    """``Regressed.at_data``: G beta + b for draws beta (s, p) and what each outcome's sampler recorded, (s, ...).

    Chance at a data point is the same whenever, and together with whatever other draws, a draw is asked for.
    """
    seed = int(plan.rngs[0].integers(2**62))

    def at_data(rows: IntArray) -> Array:
        real = np.einsum("nkp,sp->snk", linear.at_data, beta[rows])
        for k, (sampler, own) in enumerate(zip(samplers, values, strict=True)):

            def normal(shape: tuple[int, int], k: int = k) -> Array:
                each = [np.random.default_rng([seed, int(row), k]).standard_normal(shape[1]) for row in rows]
                return np.stack(each)

            real[:, :, k] += sampler.at(x, own[rows], normal)
        return np.asarray(real)

    return at_data


#: how often the number of functions is doubled, until that moves theta by little
MOST_DOUBLINGS = 3
#: of what is unsaid, as a share of theta's variance, at least: with 0 its precision would be infinite
LEAST_SHARE = 1e-6
#: values at the data that are made at a time from inducing points, whose covariances with the data take longest
MANY_TOGETHER = 16 * TOGETHER


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

    parts: list[FunctionsPart]
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


def function_draws(
    problem: Problem, plan: Plan, prior: GP, settings: list[Setting], scales: list[Scales], linear: Linear
) -> Regressed:
    """Independent draws of theta and the functions' coefficients."""
    making, tried = Making(problem, prior, settings, linear), NODES[min(problem.data.d, 3)]
    nodes = making.nodes
    design = _design(linear, making.first(scales), nodes)
    own = [part.scales for part in design.parts]
    moved = np.inf
    for level in range(1, MOST_DOUBLINGS + 1):
        finer = _design(linear, making.parts(own, level), nodes)
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


def _design(linear: Linear, parts: list[FunctionsPart], nodes: BiasNodes) -> Design:
    unit = linear.unit
    at_nodes = _at_nodes(parts, nodes)
    M = at_nodes.shape[2]
    if any(part.unsaid is not None for part in parts):
        # rho, in the gradients' units, has their functions at the nodes, and none at the data
        at_nodes = np.concatenate([at_nodes, linear.at_nodes * unit], axis=2)
    taken = linear.coefficients @ at_nodes.reshape(-1, at_nodes.shape[2])
    own = np.sum([part.sums.own for part in parts], axis=0)
    GG, Gz, zz = own[1:, 1:], own[1:, 0], float(own[0, 0])
    p, R = len(unit), at_nodes.shape[2]
    FF, GF, Fz = np.zeros((R, R)), np.zeros((p, R)), np.zeros(R)
    FF[:M, :M] = block_diag(*(part.sums.functions for part in parts))
    GF[:, :M] = np.concatenate([part.sums.mixed[:, 1:].T for part in parts], axis=1)
    Fz[:M] = np.concatenate([part.sums.mixed[:, 0] for part in parts])
    data = np.empty((p + R, p + R))
    cross = GF - GG @ taken
    data[:p, :p] = GG * np.outer(unit, unit)
    data[:p, p:] = unit[:, None] * cross
    data[p:, :p] = data[:p, p:].T
    data[p:, p:] = FF - taken.T @ GF - cross.T @ taken
    pull = np.concatenate([unit * Gz, Fz - taken.T @ Gz])
    H = data.copy()
    H[:p, :p] += linear.precision * np.outer(unit, unit)
    H[np.arange(p, p + M), np.arange(p, p + M)] += 1.0
    information = pull.copy()
    information[:p] += linear.pull * unit
    if M < R:
        rows, values = _unsaid(parts, unit, np.diag(GG), taken[:, :M])
        H += rows.T @ rows
        information += rows.T @ values
    lower = cholesky(H, lower=True)
    mean = cho_solve((lower, True), information)
    return Design(parts, nodes, at_nodes, unit, taken, (data, pull, zz), lower, mean)


def _at_nodes(parts: list[FunctionsPart], nodes: BiasNodes) -> Array:
    """The functions at the problem's nodes, (m, q, R): each outcome has its own."""
    columns = [nodes.down(part.at(nodes.nodes).T[:, :, None])[:, :, 0].T for part in parts]
    q = len(parts)
    whole = np.zeros((len(columns[0]), q, sum(column.shape[1] for column in columns)))
    end = 0
    for k, column in enumerate(columns):
        whole[:, k, end : end + column.shape[1]] = column
        end += column.shape[1]
    return whole


def _unsaid(parts: list[FunctionsPart], unit: Array, squares: Array, taken: Array) -> tuple[Array, Array]:
    """E (p, p + R) and v (p,): E (u, w, rho) ~ N(v, I) is what is known of rho, beta = u - lambda(Phi) w - rho put in.

    ``squares`` (p,) are those of the gradients over the data, ``taken`` (p, M) is lambda(Phi).
    """
    p, own = len(unit), [part.unsaid for part in parts if part.unsaid is not None]
    pull = np.sum([one.pull for one in own], axis=0)
    along = np.sum([one.along for one in own], axis=0)
    cov = np.sum([one.cov for one in own], axis=0)
    with_functions = np.hstack(
        [
            np.zeros((p, len(part.sums.functions))) if part.unsaid is None else part.unsaid.with_functions
            for part in parts
        ]
    )
    by_gradient = along * unit / unit[:, None]
    rows = np.hstack([by_gradient, (with_functions - along @ taken) / unit[:, None], np.eye(p) - by_gradient])
    values, vectors = np.linalg.eigh(cov / np.outer(unit, unit))
    var = np.maximum(values, 0.0) + LEAST_SHARE / np.max(squares * unit**2)
    white = vectors.T / np.sqrt(var)[:, None]
    return white @ rows, white @ (pull / unit)


def _with_enough_nodes(
    problem: Problem, linear: Linear, design: Design, counts: tuple[int, ...]
) -> tuple[Design, float | None]:
    """The design with nodes whose doubling moves theta by little, and by how much half as many would have moved it."""
    moved = None
    for count in counts:
        nodes = bias_nodes(problem, count)
        if nodes.rule is None:
            return design, None
        finer = _design(linear, design.parts, nodes)
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
        together=MANY_TOGETHER if any(part.unsaid is not None for part in design.parts) else TOGETHER,
        square=zz - 2 * drawn @ pull + np.einsum("si,ij,sj->s", drawn, data, drawn, optimize=True),
    )
