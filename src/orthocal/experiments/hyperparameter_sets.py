"""Hyperparameters of the biases, and noise, of all experiments: sets that are as good as each other given all data.

By itself an experiment could give a part of its bias to theta that the others contradict. Beta is common, and given
beta the experiments are independent: so each has points that stand for what its data say about its own unknowns, and a
Markov chain chooses one point of each,

    p(v_1, v_2, ... | y) ∝ prod_e q_e(v_e) L(sum_e told_e(v_e)) / prod_e L_e(told_e(v_e))

where L is the evidence with beta, all biases and the prior of theta integrated out, and q_e the density that the points
of e stand for: the evidence L_e of its own data beside what is roughly known about beta elsewhere. Many chains go on
side by side; what they end with are the sets, and every draw of the real processes has one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray
from ..bias import GP
from ..methods.joint.gaussian_model import WEAK_PRIOR, GaussianModel
from ..methods.joint.regress import Linear
from ..methods.joint.regress_integrated import FEW_CELLS, Asked, hyperparameter_points, rough_points, some_cells
from ..methods.joint.unknowns import Unknowns
from ..regression.weighted_points import WeightedPoints
from .experiment_model import ExperimentModel, RegressionPart, Told

#: precision of beta where an experiment is looked at by itself, in units of the gradients' lengths and the noise
FLAT = 1e-8
#: how much wider than it is what the others say about beta is taken to be: points must lie wherever a set may
WIDER = 4.0
#: cells of an experiment that are asked about its hyperparameters; how large its noise is, 500 tell to 3 %
MOST_CELLS = 500
#: rough points of an experiment that say what it knows about beta
SOME_POINTS = 64
#: sets at least, and numbers of their matrices that are in memory together at most
LEAST_SETS, BLOCK = 250, 10_000_000
#: moves of each experiment's point, from points that are independent of each other
SWEEPS = 20


#: precision and pull of an experiment's own beta by all others, roughly; and its own rough points
Elsewhere = tuple[Array, Array, WeightedPoints | None]


class ThetaPrior(NamedTuple):
    """Pull p (j,) and precision V (j, j) of the parameters that are ``felt``, in units of the gradients' lengths."""

    felt: IntArray
    pull: Array
    precision: Array

    @classmethod
    def of(cls, linear: Linear) -> ThetaPrior:
        felt = np.flatnonzero((linear.pull != 0) | (np.diag(linear.precision) > 0))
        unit = linear.unit[felt]
        return cls(felt, linear.pull[felt] * unit, linear.precision[np.ix_(felt, felt)] * np.outer(unit, unit))


@dataclass
class ToldByAll:
    """What all experiments say together, for each of some sets: see ``Told``."""

    H: Array
    h: Array
    T: Array
    Z: Array
    m: Array

    @classmethod
    def zeros(cls, count: int, p: int, felt: int) -> ToldByAll:
        shapes = (p, p), (p,), (felt, p), (felt, felt), (felt,)
        return cls(*(np.zeros((count, *shape)) for shape in shapes))

    def plus(self, columns: IntArray, told: Told) -> ToldByAll:
        """With one experiment, whose parameters are ``columns``, (count, ...)."""
        found = ToldByAll(self.H.copy(), self.h.copy(), self.T.copy(), self.Z + told.Z, self.m + told.m)
        found.H[:, columns[:, None], columns] += told.H
        found.h[:, columns] += told.h
        found.T[:, :, columns] += told.T
        return found

    def through(self, prior: ThetaPrior) -> tuple[Array, Array, Array]:
        """A (count, j, P), W (count, j, j) and the precision H + A'W V A of beta: ``arrowhead.py``."""
        A = np.eye(self.H.shape[-1])[prior.felt] - self.T
        W = np.linalg.inv(np.eye(len(prior.felt)) + prior.precision @ self.Z)
        return A, W, self.H + np.swapaxes(A, 1, 2) @ (W @ prior.precision) @ A

    def evidence(self, prior: ThetaPrior) -> Array:
        """log L up to what an experiment says of nothing but itself, (count,)."""
        A, W, precision = self.through(prior)
        start = self.m + self.Z @ prior.pull
        taken = np.einsum("cij,cj->ci", W @ prior.precision, start)
        pull = self.h + np.einsum("cjp,cj->cp", A, prior.pull - taken)
        rest = (start + self.m) @ prior.pull - np.sum(start * taken, axis=1) + np.linalg.slogdet(W)[1]
        return np.asarray(0.5 * rest + of_beta(precision, pull))

    def where(self, chosen: Array, other: ToldByAll) -> ToldByAll:
        """These where ``chosen`` (count,), and else the others."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return ToldByAll(*(np.where(chosen.reshape(-1, *[1] * (a.ndim - 1)), a, b) for a, b in pairs))


def of_beta(H: Array, h: Array) -> Array:
    """log of |H|^-1/2 exp(h'H^-1 h / 2), for H (..., P, P)."""
    solved = np.linalg.solve(H, h[..., None])[..., 0]
    return np.asarray(-0.5 * np.linalg.slogdet(H)[1] + 0.5 * np.sum(h * solved, axis=-1))


class HyperparameterSets(NamedTuple):
    """Vectors v of each experiment (m_e, k_e), and which of them each set has, (sets, e)."""

    points: list[Array]
    numbers: IntArray

    @classmethod
    def of(cls, parts: list[RegressionPart], linear: Linear) -> HyperparameterSets:
        prior, known = ThetaPrior.of(linear), _known_elsewhere(parts, len(linear.unit))
        points = [_points(part, own) for part, own in zip(parts, known, strict=True)]
        if max(map(len, points)) == 1:
            return cls(points, np.zeros((1, len(parts)), dtype=np.intp))
        weak = _is_weak(parts, prior)
        felt = prior.felt[:0] if weak else prior.felt
        told = [_told(part, own, felt) for part, own in zip(parts, points, strict=True)]
        alone = [of_beta(one.H + H, one.h + h) for one, (H, h, _) in zip(told, known, strict=True)]
        count = min(max(LEAST_SETS, *map(len, points)), BLOCK // len(linear.unit) ** 2 + 1)
        start = ToldByAll.zeros(count, len(linear.unit), len(felt))
        if weak:
            # as one of beta: what it says of the biases is nothing
            start.H[:, prior.felt[:, None], prior.felt] += prior.precision
            start.h[:, prior.felt] += prior.pull
            prior = ThetaPrior(felt, prior.pull[:0], prior.precision[:0, :0])
        return cls(points, _chosen([one.columns for one in parts], told, alone, start, prior))


def model_of(part: RegressionPart) -> tuple[GP, Unknowns]:
    """Its bias as a Gaussian process and what is unknown of it; nothing is where the samplers have it all."""
    if part.prior is not None and part.unknowns is not None:
        return part.prior, part.unknowns
    assert part.bias is not None
    processes = part.bias.processes
    prior = GP(nu=processes[0].nu, sd=1.0, lengthscale=1.0)
    given = Unknowns.of(part.problem, prior)
    values = given.values.copy()
    for k, process in enumerate(processes):
        values[k * (1 + given.d) + 1 : (k + 1) * (1 + given.d)] = np.log(process.lengthscale)
    sds = np.log([process.sd for process in processes])
    return prior, replace(given, values=values, free=np.zeros_like(given.free), given_sd=sds)


def _known_elsewhere(parts: list[RegressionPart], p: int) -> list[Elsewhere]:
    """What each experiment is told by the others."""
    rough = [_rough(part) for part in parts]
    each = [_message(part, own, p) for part, own in zip(parts, rough, strict=True)]
    total = [np.sum([one[i] for one in each], axis=0) for i in (0, 1)]
    found = list[Elsewhere]()
    for part, (precision, pull), own in zip(parts, each, rough, strict=True):
        cov = np.linalg.inv(FLAT * np.eye(p) + (total[0] - precision) / WIDER)
        mean = cov @ (total[1] - pull) / WIDER
        inner = np.linalg.inv(cov[np.ix_(part.columns, part.columns)])
        found.append((inner, inner @ mean[part.columns], own))
    return found


def _rough(part: RegressionPart) -> WeightedPoints | None:
    """What some of its data say about its unknowns; None where there are none."""
    prior, unknowns = model_of(part)
    nodes = part.problem.rule.nodes[:0]
    linear = part.free_linear(nodes, precision=FLAT * np.eye(len(part.columns)))
    return (
        rough_points(Asked(part.problem, prior, linear, unknowns, nodes), always=True) if unknowns.free.any() else None
    )


def _message(part: RegressionPart, rough: WeightedPoints | None, p: int) -> tuple[Array, Array]:
    """What it knows about beta by itself: precision (P, P) and pull (P,), moments of a mixture over its points."""
    prior, unknowns = model_of(part)
    nodes = part.problem.rule.nodes[:0]
    cells = some_cells(part.problem.data.observed, FEW_CELLS[-1])
    model = GaussianModel(part.problem, part.free_linear(nodes), prior, unknowns, nodes, cells)
    vectors = unknowns.values[None] if rough is None else unknowns.whole(rough.alike(SOME_POINTS))
    H, h = model.information(vectors)
    flat = FLAT * np.eye(len(part.columns))
    each = np.linalg.inv(H + flat)
    means = np.einsum("mpr,mr->mp", each, h)
    inner = np.linalg.inv(each.mean(axis=0) + np.atleast_2d(np.cov(means.T, bias=True)))
    precision, pull = np.zeros((p, p)), np.zeros(p)
    precision[np.ix_(part.columns, part.columns)] = inner - flat
    pull[part.columns] = inner @ means.mean(axis=0)
    return precision, pull


def _points(part: RegressionPart, known: Elsewhere) -> Array:
    """Vectors that stand for what its data say beside what is known elsewhere, (m, k)."""
    precision, pull, rough = known
    prior, unknowns = model_of(part)
    if rough is None:
        return unknowns.values[None]
    nodes = part.problem.rule.nodes[:0]
    linear = part.free_linear(nodes, pull, precision)
    return hyperparameter_points(Asked(part.problem, prior, linear, unknowns, nodes), rough, MOST_CELLS)


def _is_weak(parts: list[RegressionPart], prior: ThetaPrior) -> bool:
    """Whether the prior of theta says next to nothing beside the data, as exact ones would."""
    information = np.zeros(len(parts[0].linear.unit))
    for part in parts:
        seen = part.linear.at_data[part.problem.data.observed] * part.linear.unit
        information += np.sum(seen**2, axis=0)
    return bool((np.diag(prior.precision) < WEAK_PRIOR * information[prior.felt]).all())


def _told(part: RegressionPart, points: Array, felt: IntArray) -> Told:
    """What it says with each of its points, (m, ...)."""
    prior, unknowns = model_of(part)
    if len(felt):
        model = ExperimentModel(part, prior, unknowns, felt)
        return Told(*map(np.stack, zip(*map(model.told, points), strict=True)))
    nodes = part.problem.rule.nodes[:0]
    H, h = GaussianModel(part.problem, part.free_linear(nodes), prior, unknowns, nodes).information(points)
    return Told(H, h, *(np.zeros((len(points), *one)) for one in ((0, H.shape[1]), (0, 0), (0,))))


def _chosen(
    columns: list[IntArray], told: list[Told], alone: list[Array], start: ToldByAll, prior: ThetaPrior
) -> IntArray:
    """Which point of each experiment the sets have, (sets, e), by chains of independence Metropolis moves."""
    rng, count = np.random.default_rng(0), len(start.h)
    sizes = [len(one) for one in alone]
    number = np.stack([rng.permutation(np.arange(count) % size) for size in sizes], axis=1)

    def at(e: int, numbers: IntArray) -> Told:
        return Told(*(values[numbers] for values in told[e]))

    for _ in range(SWEEPS):
        # anew in every sweep: rounding does not add up
        sums = start
        for e, own in enumerate(columns):
            sums = sums.plus(own, at(e, number[:, e]))
        now = sums.evidence(prior)
        for e in (e for e, size in enumerate(sizes) if size > 1):
            new = rng.integers(sizes[e], size=count)
            change = Told(*(b - a for a, b in zip(at(e, number[:, e]), at(e, new), strict=True)))
            other = sums.plus(columns[e], change)
            then = other.evidence(prior)
            gain = then - now - alone[e][new] + alone[e][number[:, e]]
            taken = np.log1p(-rng.random(count)) < gain
            number[taken, e], now, sums = new[taken], np.where(taken, then, now), other.where(taken, sums)
    return number
