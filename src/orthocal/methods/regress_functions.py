"""Draws of the real process where the bias is a sum of functions with Gaussian coefficients, and the data are many.

The functions and the nodes of the bias are doubled, once at least and until that changes little: what the last time
moved theta by, in posterior sds, is kept for ``check``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag, cho_solve, cholesky, solve_triangular

from ..arrays import Array
from ..bias import GP
from ..bias.base import BiasSampler, Setting
from ..bias.gp import Scales
from ..bias.large_gp import MOVE_LIMITS
from ..problem.problem import Problem
from .at_data import TOGETHER
from .base import Plan
from .fine_nodes import BiasNodes, bias_nodes
from .gp_functions import NODES, Making, Part
from .large_values import values_at_data
from .regress import Linear, Regressed

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


def _design(linear: Linear, parts: list[Part], nodes: BiasNodes) -> Design:
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


def _unsaid(parts: list[Part], unit: Array, squares: Array, taken: Array) -> tuple[Array, Array]:
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
