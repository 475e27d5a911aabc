"""The draws that a run keeps, in the outcomes' units."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from ..arrays import Array, IntArray
from ..bias.outcomes import OutcomesBias
from ..problem.problem import Problem
from ..progress import progress_bar
from .base import Draws, Plan

# The posterior covariance of the bias at the data points, which the finite projection needs.
#
# Only its products with the constraint's p columns enter, so it need not be inverted: for a prior that is not Gaussian
# the sample covariance of draws given theta_tilde will do, and the projection is the regression of the bias on the p
# constraints over these draws.

#: draws behind the covariance of a bias that is not Gaussian, and those before them
DRAWS, WARMUP = 1000, 50


class BiasCovariance(NamedTuple):
    """F (n q, r) with F F' = Cov(b | y) at the data points; for a sample also its draws.

    ``records`` hold what predictions need of each draw, name -> (r, ...); column j of F is draw j less the mean,
    over sqrt(r - 1).
    """

    factor: Array
    records: dict[str, Array]


def bias_covariance(bias: OutcomesBias, residual: Array, rngs: list[np.random.Generator]) -> BiasCovariance:
    """The covariance given the residual at theta_tilde, (n, q): exact for Gaussian processes."""
    exact = bias.covariance_factor()
    if exact is not None:
        return BiasCovariance(exact, {})
    n, q = residual.shape
    each = np.broadcast_to(residual, (len(rngs), n, q))
    state, values, records = None, [], []
    for number in progress_bar(range(WARMUP + -(-DRAWS // len(rngs))), "bias covariance"):
        state, drawn = bias.draw(rngs, state, each)
        if number >= WARMUP:
            values.append(drawn[:, :n].reshape(len(rngs), -1))
            records.append(bias.records(state))
    sample = np.concatenate(values)
    factor = (sample - sample.mean(axis=0)).T / np.sqrt(len(sample) - 1)
    return BiasCovariance(factor, {name: joined([one[name] for one in records]) for name in records[0]})


def joined(records: list[Array]) -> Array:
    """Records (c, l, ...) of several draws as one array (draws * c, longest l, ...), zeros at their ends."""
    return np.concatenate(padded_ends(records))


def padded_ends(records: list[Array]) -> list[Array]:
    """Records (c, l, ...) filled up with zeros to the longest l."""
    longest = max(record.shape[1] for record in records)
    return [np.pad(one, [(0, 0), (0, longest - one.shape[1])] + [(0, 0)] * (one.ndim - 2)) for one in records]


def stacked_records(records: list[dict[str, Array]]) -> dict[str, list[Array]]:
    """Name -> the records of all draws, filled up to the longest."""
    return {name: padded_ends([one[name] for one in records]) for name in records[0]}


class KeptDraw(NamedTuple):
    """One draw of all chains.

    Every method has theta (c, p), the simulator and the bias at the data (c, n, q), whitened, and statistics (c,). What
    only some have: ``records`` for predictions, and ``others``, fields of ``Draws`` as they are, both (c, ...).
    """

    theta: Array
    model: Array
    bias: Array
    stats: dict[str, Array]
    records: dict[str, Array]
    others: dict[str, Array]

    @staticmethod
    def of(
        theta: Array,
        model: Array,
        bias: Array,
        stats: dict[str, Array],
        records: dict[str, Array] | None = None,
        others: dict[str, Array] | None = None,
    ) -> KeptDraw:
        """With copies of what may be a part of larger arrays."""
        return KeptDraw(theta.copy(), model.copy(), bias.copy(), stats, records or {}, others or {})


def finished(problem: Problem, kept: list[KeptDraw], **rest: Any) -> Draws:
    """All of them; ``rest`` are the fields of ``Draws`` that do not belong to single draws."""
    own: dict[str, Any] = {name: stacked([draw.others[name] for draw in kept]) for name in kept[0].others}
    return Draws(
        theta=stacked([draw.theta for draw in kept]),
        model=problem.unwhiten(stacked([draw.model for draw in kept])),
        bias=problem.unwhiten(stacked([draw.bias for draw in kept])),
        stats={name: stacked([draw.stats[name] for draw in kept]) for name in kept[0].stats},
        bias_state={name: stacked(padded_ends([draw.records[name] for draw in kept])) for name in kept[0].records},
        **own,
        **rest,
    )


def stacked(values: list[Array]) -> Array:
    """Values (c, ...) of single draws as (c, s, ...)."""
    whole = np.empty((len(values[0]), len(values), *values[0].shape[1:]), values[0].dtype)
    for s, value in enumerate(values):
        whole[:, s] = value
    return whole


# Model and bias at many data points: of all draws they would not fit into memory, so some are kept.
#
# What more draws say about each point stands beside them: its mean and sd over the draws, and quantiles.

#: what is known of each point
STATISTICS = ("mean", "sd", "q2.5", "q50", "q97.5")
LEVELS = (0.025, 0.5, 0.975)
#: with fewer draws in memory, quantiles are those of the normal law with their mean and sd
FEWEST = 100
#: so many draws at least are looked at for these
LOOKED_AT = 64
#: numbers of draws that are made together
TOGETHER = 1_000_000


class AtData(NamedTuple):
    """Model and bias of the kept draws, (c, k, n, q) each, and name -> (statistic, n, q)."""

    model: Array
    bias: Array
    statistics: dict[str, Array]


class _Running:
    """Mean and variance of draws that come one after the other (Welford)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count, self.mean, self._square = 0, np.zeros(shape), np.zeros(shape)

    def add(self, values: Array) -> None:
        self.count += 1
        away = values - self.mean
        self.mean += away / self.count
        self._square += away * (values - self.mean)

    @property
    def sd(self) -> Array:
        return np.sqrt(self._square / max(self.count - 1, 1))


def at_data(
    draw: Callable[[IntArray], tuple[Array, Array]],
    kept: IntArray,
    chains: int,
    draws: int,
    shape: tuple[int, int],
    together: int = TOGETHER,
) -> AtData:
    """Model and bias of some draws: ``draw`` takes their numbers (k,), chain after chain, to these, (k, n, q) each.

    At most ``together`` values are asked for at a time, or one draw.
    """
    stored = np.empty((2, chains, len(kept), *shape))
    running = {name: _Running(shape) for name in ("model", "bias", "mean")}
    wanted = list(_looked_at(kept, chains, draws))
    each = max(1, together // (shape[0] * shape[1]))
    for start in progress_bar(range(0, len(wanted), each), "draws at the data"):
        some = wanted[start : start + each]
        drawn = draw(np.array([number for number, _ in some], dtype=np.intp))
        for (_, place), model, bias in zip(some, *drawn, strict=True):
            if place is not None:
                stored[0][place], stored[1][place] = model, bias
            for name, values in (("model", model), ("bias", bias), ("mean", model + bias)):
                running[name].add(values)
    statistics = {name: _statistics(one, None) for name, one in running.items()}
    if chains * len(kept) >= FEWEST:
        for name, values in (("model", stored[0]), ("bias", stored[1]), ("mean", stored.sum(axis=0))):
            statistics[name] = _statistics(running[name], values.reshape(-1, *shape))
    return AtData(stored[0], stored[1], statistics)


def thinned(draws: Draws, plan: Plan) -> Draws:
    """Draws whose model and bias at the data take no more than the plan allows; statistics are those of all."""
    kept = None if draws.kept is not None else plan.kept(draws.model[0, 0].size)
    if kept is None:
        return draws
    shape = draws.model.shape[2:]
    sums = {"model": draws.model, "bias": draws.bias, "mean": draws.model + draws.bias}
    statistics = {}
    for name, values in sums.items():
        running = _Running(shape)
        for one in values.reshape(-1, *shape):
            running.add(one)
        statistics[name] = _statistics(running, values.reshape(-1, *shape))
    model, bias = (values[:, kept] for values in (draws.model, draws.bias))
    return replace(draws, model=model, bias=bias, kept=kept, at_data=statistics)


def _looked_at(kept: IntArray, chains: int, draws: int) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """Numbers of draws, chain after chain, and where the kept ones are stored."""
    places = {int(number): place for place, number in enumerate(kept)}
    each = np.unique(np.linspace(0, draws - 1, min(draws, -(-LOOKED_AT // chains))).round().astype(int))
    numbers = sorted(places) if len(places) >= len(each) else sorted({*places, *each.tolist()})
    for chain in range(chains):
        for number in numbers:
            place = places.get(number)
            yield chain * draws + number, None if place is None else (chain, place)


def _statistics(running: _Running, values: Array | None) -> Array:
    """``STATISTICS``, (5, n, q), quantiles from draws (s, n, q) where there are some."""
    if values is None:
        quantiles = [running.mean + norm.ppf(level) * running.sd for level in LEVELS]
    else:
        # a block of rows at a time: a quantile sorts a copy
        each = max(1, 4_000_000 // len(values))
        blocks = [np.quantile(values[:, s : s + each], LEVELS, axis=0) for s in range(0, values.shape[1], each)]
        quantiles = list(np.concatenate(blocks, axis=1))
    return np.stack([running.mean, running.sd, *quantiles])
