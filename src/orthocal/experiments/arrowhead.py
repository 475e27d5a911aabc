"""Independent draws for Gaussian processes in every experiment: a matrix with the shape of an arrow.

With b_e = L_e w_e, w_e ~ N(0, I), all of (beta, w_1, w_2, ...) is Gaussian. Its precision has a block for each
experiment and a border for beta; the prior of theta = beta + sum_e M_e w_e, M_e = lambda_e(L_e), adds a matrix of rank
P. With D_e = I + L_e'P L_e, C_e = L_e'P G_e, and V the prior's precision, eliminating the w_e leaves

    (S - C'D^-1 C) beta + (V - C'D^-1 M'V) u = r_1 - C'D^-1 r_2
    (I + M D^-1 M'V) u - (I - M D^-1 C) beta = M D^-1 r_2,          u = theta - theta_tilde

2 P equations, whatever the number of experiments. A draw solves them with noise of the right covariance on the right
(perturbed optimisation): nothing larger than one experiment's block is ever factorised. Where the hyperparameters of an
experiment are integrated over, every draw has one of some sets of them, and the blocks of that set.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..arrays import Array, IntArray
from ..bias.base import BiasSampler
from ..bias.outcomes import OutcomesBias
from ..methods.base import Plan
from ..methods.bias_samplers import fitted_bias
from ..methods.fine_nodes import Integrals
from ..methods.joint.regress import Linear, Regressed, in_memory
from ..problem.problem import Problem
from .scales import KnownGP

# One experiment in the regression of all.


class RegressionPart(NamedTuple):
    """One experiment in the regression.

    Attributes
    ----------
    problem
        The experiment with the best fit of all, its rows merged.
    linear
        Its simulator as a function of all parameters, and what its bias adds to theta.
    to_cells
        What takes whitened values at its nodes to cells of the stacked problem, (q, q).
    bias, integrals
        The samplers of its bias, and how these are integrated.
    sets
        The prior of its bias with sets of hyperparameters, of which every draw has one; none where they are fixed.
    """

    problem: Problem
    linear: Linear
    to_cells: Array
    bias: OutcomesBias
    integrals: Integrals | None
    sets: tuple[KnownGP, ...] = ()

    def bias_of(self, number: int) -> OutcomesBias:
        """The samplers of its bias in a set."""
        return fitted_bias(self.sets[number], self.problem, self.problem.rule.nodes) if self.sets else self.bias

    def cells(self, values: Array) -> Array:
        """Whitened values at the nodes (s, m, q) as cells, (s, m q)."""
        return np.asarray((values @ self.to_cells.T).reshape(len(values), -1))


class _Block(NamedTuple):
    """One experiment: what eliminating w leaves of it; G in units of the gradients' lengths.

    Attributes
    ----------
    bias, root
        Its processes, and L at data and nodes, (n + m, q, r).
    weighted, sloped
        L and G at the data in units of the noise, (n q, r) and (n q, P).
    D
        Its Cholesky factor.
    beta_gain, prior_gain
        D^-1 C and D^-1 M', (r, P) each.
    S, T, Z
        G'P G - C'D^-1 C, C'D^-1 M' and M D^-1 M', (P, P) each.
    M
        (P, r).
    """

    bias: OutcomesBias
    root: Array
    weighted: Array
    sloped: Array
    D: tuple[Array, bool]
    beta_gain: Array
    prior_gain: Array
    S: Array
    T: Array
    Z: Array
    M: Array


class _Right(NamedTuple):
    """Right-hand sides of one experiment: of beta (s, P), D^-1 r_2 (s, r), and M D^-1 r_2 (s, P)."""

    beta: Array
    white: Array
    pushed: Array


class _System(NamedTuple):
    """The 2 P equations of some draws; experiments are added to it."""

    S: Array
    T: Array
    Z: Array
    right: Array
    pushed: Array

    def plus(self, blocks: list[_Block], sides: list[_Right]) -> _System:
        if not blocks:
            return self
        matrices = (np.sum([getattr(one, name) for one in blocks], axis=0) for name in ("S", "T", "Z"))
        right, pushed = (np.sum([getattr(one, name) for one in sides], axis=0) for name in ("beta", "pushed"))
        return _System(*(own + more for own, more in zip(self, (*matrices, right, pushed), strict=True)))

    def solved(self, V: Array) -> tuple[Array, Array]:
        """beta and u, (s, P) each."""
        p, one = len(V), np.eye(len(V))
        whole = np.block([[self.S, V - self.T @ V], [self.T.T - one, one + self.Z @ V]])
        found = np.linalg.solve(whole, np.concatenate([self.right, self.pushed], axis=1).T).T
        return found[:, :p], found[:, p:]

    def of(self, rows: IntArray) -> _System:
        return self._replace(right=self.right[rows], pushed=self.pushed[rows])


class _Open(NamedTuple):
    """An experiment with sets of hyperparameters: its random numbers, its draws (s, n + m, q), and b at its points."""

    part: RegressionPart
    normals: tuple[Array, Array]
    values: Array
    points: list[Array]


def arrow_draws(parts: list[RegressionPart], linear: Linear, plan: Plan) -> list[Regressed]:
    """Draws of every experiment, with one beta."""
    unit, p = linear.unit, len(linear.unit)
    V, root = linear.precision * np.outer(unit, unit), linear.prior_root() * unit
    prior = np.concatenate([rng.standard_normal((plan.draws, p)) for rng in plan.rngs]) @ root + linear.pull * unit
    fixed, left = dict[int, tuple[_Block, _Right]](), dict[int, _Open]()
    for i, part in enumerate(parts):
        block = _block(part, part.bias, unit)
        normals = _normals(plan, len(block.weighted)), _normals(plan, block.root.shape[2])
        if part.sets:
            left[i] = _Open(part, normals, np.empty((len(prior), *block.root.shape[:2])), _empty(part.bias, len(prior)))
        else:
            fixed[i] = block, _right(part, block, normals, prior)
    nothing = np.zeros((p, p))
    known = _System(nothing, nothing, nothing, prior, np.zeros_like(prior))
    known = known.plus([one for one, _ in fixed.values()], [one for _, one in fixed.values()])
    beta, u = np.empty_like(prior), np.empty_like(prior)
    for number, rows in enumerate(_rows_of_sets(parts, plan)):
        blocks = [_block(one.part, one.part.bias_of(number), unit) for one in left.values()]
        pairs = list(zip(left.values(), blocks, strict=True))
        sides = [
            _right(one.part, block, (one.normals[0][rows], one.normals[1][rows]), prior[rows]) for one, block in pairs
        ]
        beta[rows], u[rows] = known.of(rows).plus(blocks, sides).solved(V)
        for (one, block), side in zip(pairs, sides, strict=True):
            _put(one, block, _white(block, side, beta[rows], u[rows], V), rows)
    found = []
    for i, part in enumerate(parts):
        if i in fixed:
            block, side = fixed[i]
            found.append(_regressed(part, block, _white(block, side, beta, u, V), beta * unit))
        else:
            found.append(_regressed_in_sets(left[i], beta * unit, plan))
    return found


def _rows_of_sets(parts: list[RegressionPart], plan: Plan) -> list[IntArray]:
    """The draws of every set: each chain has all of them, one after the other."""
    count = max((len(one.sets) for one in parts), default=0) or 1
    own = np.tile(np.arange(plan.draws) % count, len(plan.rngs))
    return [rows for rows in (np.flatnonzero(own == number) for number in range(count)) if len(rows)]


def _block(part: RegressionPart, bias: OutcomesBias, unit: Array) -> _Block:
    linear, n, q = part.linear, part.problem.data.n, part.problem.data.q
    root = bias.prior_root()

    def scaled(values: Array) -> Array:
        return part.problem.noise.rooted(values.reshape(n, q, -1)).reshape(n * q, -1)

    weighted, sloped = scaled(root[:n]), scaled(linear.at_data * unit)
    M = (linear.coefficients / unit[:, None]) @ root[n:].reshape(-1, root.shape[2])
    D = cho_factor(np.eye(root.shape[2]) + weighted.T @ weighted, lower=True)
    C = weighted.T @ sloped
    beta_gain, prior_gain = cho_solve(D, C), cho_solve(D, M.T)
    S = sloped.T @ sloped - C.T @ beta_gain
    return _Block(bias, root, weighted, sloped, D, beta_gain, prior_gain, S, C.T @ prior_gain, M @ prior_gain, M)


def _right(part: RegressionPart, block: _Block, normals: tuple[Array, Array], prior: Array) -> _Right:
    """``normals`` (s, n q) and (s, r) are the noise of the draws."""
    n, q = part.problem.data.n, part.problem.data.q
    residual = part.problem.whiten(part.problem.complete_y - part.problem.fit)
    noisy = part.problem.noise.rooted(residual.reshape(n, q, -1)).reshape(n * q) + normals[0]
    pull = noisy @ block.weighted + normals[1] + prior @ block.M
    white = cho_solve(block.D, pull.T).T
    return _Right(noisy @ block.sloped - pull @ block.beta_gain, white, white @ block.M.T)


def _white(block: _Block, side: _Right, beta: Array, u: Array, V: Array) -> Array:
    """w, (s, r)."""
    return np.asarray(side.white - beta @ block.beta_gain.T - (u @ V.T) @ block.prior_gain.T)


def _normals(plan: Plan, size: int) -> Array:
    """(s, size), chain after chain."""
    return np.concatenate([rng.standard_normal((plan.draws, size)) for rng in plan.rngs])


def _values(part: RegressionPart, block: _Block, white: Array) -> Array:
    """b at data and nodes, (s, n + m, q)."""
    return (white @ block.root.reshape(-1, block.root.shape[2]).T).reshape(len(white), -1, part.problem.data.q)


def _regressed(part: RegressionPart, block: _Block, white: Array, beta: Array) -> Regressed:
    records = part.bias.records(part.bias.processes_at(white))
    return _with_beta(part, _values(part, block, white), beta, records, part.bias.samplers)


def _empty(bias: OutcomesBias, count: int) -> list[Array]:
    return [np.empty((count, len(process.prior_root[0]))) for process in bias.processes]


def _put(one: _Open, block: _Block, white: Array, rows: IntArray) -> None:
    """Keep the draws of a set."""
    one.values[rows] = _values(one.part, block, white)
    for points, own in zip(one.points, block.bias.processes_at(white).own, strict=True):
        points[rows] = own


def _regressed_in_sets(one: _Open, beta: Array, plan: Plan) -> Regressed:
    """The hyperparameters of every draw are kept with it."""
    records, samplers = dict[str, Array](), list[BiasSampler]()
    for k, points in enumerate(one.points):
        log_values = np.empty((len(points), 1 + one.part.problem.data.x.shape[1]))
        for rows, prior in zip(_rows_of_sets([one.part], plan), one.part.sets, strict=False):
            log_values[rows] = np.log(np.append(prior.known[k].sd, prior.known[k].lengthscale))
        sampler = one.part.bias.with_hyperparameters(k)
        sampler.summarise(log_values.reshape(len(plan.rngs), plan.draws, -1), np.ptp(log_values, axis=0) > 0)
        records |= {f"{name}_{k}": value for name, value in sampler.record((log_values, points)).items()}
        samplers.append(sampler)
    return _with_beta(one.part, one.values, beta, records, samplers)


def _with_beta(
    part: RegressionPart, values: Array, beta: Array, records: dict[str, Array], samplers: list[BiasSampler]
) -> Regressed:
    linear, n = part.linear, part.problem.data.n
    moved = beta + values[:, n:].reshape(len(values), -1) @ linear.coefficients.T
    values += np.einsum("xkp,sp->sxk", np.concatenate([linear.at_data, linear.at_nodes]), beta)
    nothing = np.zeros(len(values))
    return Regressed(in_memory(values[:, :n]), values[:, n:], beta, moved, records, samplers, nothing, {})
