"""The functions of Gaussian processes with many data, in several inputs: their number, and sums over the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ..arrays import Array
from ..bias import GP
from ..bias.base import Setting
from ..bias.gp import Scales
from ..bias.large_gp import GridGP, InducingGP, LargeGP, refined
from ..errors import InputError
from ..problem.problem import Problem
from ..regression.gaussian_process import jittered_cholesky
from ..regression.grid_process import Grid, Sums
from ..regression.inducing import spread_points
from .fine_nodes import BiasNodes, bias_nodes
from .regress import Linear

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


class Part(NamedTuple):
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

    def first(self, scales: list[Scales]) -> list[Part]:
        """Hyperparameters by the likelihood of all data where a grid has it; they may ask for more than a grid."""
        if self.prior.sd is None or self.prior.lengthscale is None:
            parts = self._made(scales, 0, [self._grid_will_do(k, own) for k, own in enumerate(scales)])
            found = [part.scales for part in parts]
            if [part.unsaid is None for part in parts] == self._on_a_grid(found):
                return parts
            scales = found
        return self.parts(scales, 0)

    def parts(self, scales: list[Scales], level: int) -> list[Part]:
        return self._made(scales, level, self._on_a_grid(scales))

    def _made(self, scales: list[Scales], level: int, on_a_grid: list[bool]) -> list[Part]:
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
        """Grid points of an outcome, at most."""
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

    def grid(self, k: int, scales: Scales, level: int, most: float) -> Grid:
        """Of at most ``most`` points, steps as the length-scales want them where these are enough."""
        lower, upper = self.box(k)
        fewest = np.where(scales.lengthscale < STRAIGHT * (upper - lower), *FEWEST_CELLS)
        step = np.minimum(scales.lengthscale / A_LENGTH[self.prior.nu], (upper - lower) / fewest)
        size = 2.0 ** (level / len(lower))
        grid = Grid.over(lower, upper, step / size)
        while grid.size > most:
            step = step * 1.05
            grid = Grid.over(lower, upper, step / size)
        return grid


def most_inducing(n: int) -> int:
    """Inducing points of all outcomes together, at most, for n data points."""
    return min(max(LEAST_LIMIT, int(np.sqrt(MOST_WORK / n))), MOST_INDUCING)


def _grid_part(making: Making, k: int, scales: Scales, level: int) -> Part:
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
    return Part(
        sums,
        GridGP(prior.nu, own, setting.unit, grid),
        lambda coefficients: coefficients @ root.T,
        lambda x: grid.at(x, np.ascontiguousarray(root.T)).T,
    )


def _inducing_part(making: Making, k: int, scales: Scales, level: int) -> Part:
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
    return Part(
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
            f"{most} are taken; give a longer lengthscale, oc.bias.GP(lengthscale=...), or take bart"
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
