"""Independent draws for Gaussian processes in every experiment: a matrix with the shape of an arrow.

With b_e = L_e w_e, w_e ~ N(0, I), all of (beta, w_1, w_2, ...) is Gaussian. Its precision has a block for each
experiment and a border for beta; the prior of theta = beta + sum_e M_e w_e, M_e = lambda_e(L_e), adds a matrix of rank
P. With D_e = I + L_e'P L_e, C_e = L_e'P G_e, and V the prior's precision, eliminating the w_e leaves

    (S - C'D^-1 C) beta + (V - C'D^-1 M'V) u = r_1 - C'D^-1 r_2
    (I + M D^-1 M'V) u - (I - M D^-1 C) beta = M D^-1 r_2,          u = theta - theta_tilde

2 P equations, whatever the number of experiments. A draw solves them with noise of the right covariance on the right
(perturbed optimisation): nothing larger than one experiment's block is ever factorised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..arrays import Array
from ..methods.base import Plan
from ..methods.regress import Linear, Regressed, in_memory
from .parts import Part


class _Block(NamedTuple):
    """One experiment: what eliminating w leaves of it, and its right-hand sides; G in units of the gradients' lengths.

    Attributes
    ----------
    root
        L at data and nodes, (n + m, q, r).
    beta_gain, prior_gain
        D^-1 C and D^-1 M', (r, P) each.
    S, T, Z
        G'P G - C'D^-1 C, C'D^-1 M' and M D^-1 M', (P, P) each.
    right
        Of beta, (s, P).
    white, M
        D^-1 r_2, (s, r), and M, (P, r).
    """

    root: Array
    beta_gain: Array
    prior_gain: Array
    S: Array
    T: Array
    Z: Array
    right: Array
    white: Array
    M: Array


def arrow_draws(parts: list[Part], linear: Linear, plan: Plan) -> list[Regressed]:
    """Draws of every experiment, with one beta."""
    unit, p = linear.unit, len(linear.unit)
    V, root = linear.precision * np.outer(unit, unit), linear.prior_root() * unit
    count = plan.draws * len(plan.rngs)
    prior = np.concatenate([rng.standard_normal((plan.draws, p)) for rng in plan.rngs]) @ root + linear.pull * unit
    blocks = [_block(one, unit, prior, plan) for one in parts]
    S, T, Z = (np.sum([getattr(one, name) for one in blocks], axis=0) for name in ("S", "T", "Z"))
    right = np.sum([one.right for one in blocks], axis=0) + prior
    pushed = np.sum([one.white @ one.M.T for one in blocks], axis=0)
    one = np.eye(p)
    whole = np.block([[S, V - T @ V], [T.T - one, one + Z @ V]])
    solved = np.linalg.solve(whole, np.concatenate([right, pushed], axis=1).T).T
    beta, u = solved[:, :p], solved[:, p:]
    found = []
    for part, block in zip(parts, blocks, strict=True):
        white = block.white - beta @ block.beta_gain.T - (u @ V.T) @ block.prior_gain.T
        found.append(_regressed(part, block, white, beta * unit, count))
    return found


def _block(part: Part, unit: Array, prior: Array, plan: Plan) -> _Block:
    linear, n, q = part.linear, part.problem.data.n, part.problem.data.q
    root = part.bias.prior_root()

    def scaled(values: Array) -> Array:
        return part.problem.noise.rooted(values.reshape(n, q, -1)).reshape(n * q, -1)

    weighted, sloped = scaled(root[:n]), scaled(linear.at_data * unit)
    M = (linear.coefficients / unit[:, None]) @ root[n:].reshape(-1, root.shape[2])
    D = cho_factor(np.eye(root.shape[2]) + weighted.T @ weighted, lower=True)
    C = weighted.T @ sloped
    beta_gain, prior_gain = cho_solve(D, C), cho_solve(D, M.T)
    residual = part.problem.whiten(part.problem.complete_y - part.problem.fit)
    noisy = scaled(residual)[:, 0] + _normals(plan, n * q)
    pull = noisy @ weighted + _normals(plan, root.shape[2]) + prior @ M
    white = cho_solve(D, pull.T).T
    S = sloped.T @ sloped - C.T @ beta_gain
    return _Block(
        root, beta_gain, prior_gain, S, C.T @ prior_gain, M @ prior_gain, noisy @ sloped - pull @ beta_gain, white, M
    )


def _normals(plan: Plan, size: int) -> Array:
    """(s, size), chain after chain."""
    return np.concatenate([rng.standard_normal((plan.draws, size)) for rng in plan.rngs])


def _regressed(part: Part, block: _Block, white: Array, beta: Array, count: int) -> Regressed:
    linear, n, q = part.linear, part.problem.data.n, part.problem.data.q
    values = (white @ block.root.reshape(-1, block.root.shape[2]).T).reshape(count, -1, q)
    moved = beta + values[:, n:].reshape(count, -1) @ linear.coefficients.T
    values += np.einsum("xkp,sp->sxk", np.concatenate([linear.at_data, linear.at_nodes]), beta)
    records = part.bias.records(part.bias.processes_at(white))
    nothing = np.zeros(count)
    return Regressed(in_memory(values[:, :n]), values[:, n:], beta, moved, records, part.bias.samplers, nothing, {})
