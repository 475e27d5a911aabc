"""Bayesian additive regression trees as an emulator: the posterior mean, a step function with narrow cells."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array
from ..progress import announced
from ..regression.bart import BARTSampler, ForestState
from ..regression.settings import BARTSettings
from ..regression.tree_kernels import evaluate
from .base import Layout, ListedRegressor, listed
from .lookup import MOST_BYTES, Lookup, Packed, SoftForest
from .replicates import pure_var
from .sampled_regression import (
    Chain,
    Sampled,
    SampledFunctions,
    check_rows,
    check_whole,
    keeps_from,
    noise_prior,
    sample_targets,
)
from .tree_kernels import move_cuts

#: rows times sweeps that a chain may take by itself: 50 s for 200 trees, and most sweeps a draw
MOST_WORK, MOST_THIN = 1e8, 10
#: half the width of the gates that cuts become in draws, as a share of the inputs' range
GATE_WIDTH = 0.1


@listed
@dataclass(frozen=True)
class BART(ListedRegressor):
    """target = sum of trees + N(0, noise variance) (Chipman, George, McCulloch 2010): the mean over the draws.

    Each target has a chain of its own. Cut points lie evenly over the range of each input, between the values of a
    design, too: trees that cut such a gap at different places fit the runs equally well, and their mean interpolates.
    The noise is what the trees leave of a deterministic simulator; its variance is sampled, with the usual prior.

    Parameters
    ----------
    trees
        Number of trees.
    draws
        Kept draws.
    burn
        Sweeps before the first of them.
    thin
        Sweeps a kept draw; None for 1 with many rows to 10 with few, where sweeps are cheap.
    k
        The larger, the smaller the leaves' values a priori: their sum lies within the range of the targets with
        probability 2 Phi(k) - 1.
    alpha, beta
        A node of depth h splits with probability alpha (1 + h)^-beta.
    cuts
        Number of cut points an input, at most 255.
    least
        Fewest rows of a leaf.
    seed
        Of the chains.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 30)[:, None], np.linspace(0, 1, 10)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.BART(trees=50, draws=50, burn=100), progress=False)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 0.1), emulator.smooth
    (True, False)
    """

    trees: int = 200
    draws: int = 500
    burn: int = 1000
    thin: int | None = None
    k: float = 2.0
    alpha: float = 0.95
    beta: float = 2.0
    cuts: int = 100
    least: int = 5
    seed: int = 0

    name: ClassVar[str] = "bart"
    words: ClassVar[str] = "the posterior mean of a sum of trees"
    layout: ClassVar[Layout] = "stacked"

    def __post_init__(self) -> None:
        thin = 1 if self.thin is None else self.thin
        check_whole("BART", {"draws": (self.draws, 1), "burn": (self.burn, 0), "thin": (thin, 1)})
        check_whole("BART", {"trees": (self.trees, 1), "seed": (self.seed, 0), "least": (self.least, 0)})
        self._prior()

    def fit(self, inputs: Array, targets: Array) -> FittedBART:
        """The posterior of each column of targets (N, r) given inputs (N, k)."""
        check_rows(inputs, targets)
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        cut_points: list[Array] = [
            np.linspace(a, b, self.cuts + 2)[1:-1] if b > a else np.empty(0) for a, b in zip(low, high, strict=True)
        ]
        thin = self._sweeps_a_draw(len(inputs))

        def start(rng: np.random.Generator, target: Array) -> Chain:
            leaf_sd = float(np.ptp(target)) / (2 * self.k * np.sqrt(self.trees))
            nowhere = np.empty((0, inputs.shape[1]))
            sampler = BARTSampler(self._prior(), leaf_sd, cut_points, inputs, nowhere, np.ones(len(inputs)))
            move = CutMover(self, inputs, cut_points)
            return Chain(sampler, rng, target, noise_prior(inputs, target), keeps_from(self.burn, thin), move)

        sampled = sample_targets(targets, self.seed, self.burn + self.draws * thin, start)
        sampled = sampled._replace(pure_var=pure_var(inputs, targets))
        return FittedBART(self, high - low, cut_points, sampled)

    def quick(self) -> BART:
        """With a twentieth of the sweeps: enough to see how far draws and mean are from runs that are held out.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.emulators.BART(draws=500).quick().draws
        50
        """
        return replace(self, draws=min(self.draws, 50), burn=min(self.burn, 200), thin=min(self.thin or 2, 2))

    def _sweeps_a_draw(self, rows: int) -> int:
        if self.thin is not None:
            return self.thin
        return int(np.clip((MOST_WORK / rows - self.burn) / self.draws, 1, MOST_THIN))

    def _prior(self) -> BARTSettings:
        return BARTSettings(self.trees, self.k, self.alpha, self.beta, self.cuts, "uniform", self.least)


class CutMover:
    """Moves the cuts of a forest within the gaps between the rows' values; see ``cut_kernels``."""

    def __init__(self, settings: BART, inputs: Array, cut_points: list[Array]) -> None:
        self._settings = settings
        self._cuts = np.array([len(points) for points in cut_points], dtype=np.int64)
        self._low = np.zeros((len(cut_points), settings.cuts), dtype=np.int64)
        self._high = np.zeros_like(self._low)
        for v, points in enumerate(cut_points):
            # the gap of a cut is the number of values that it is not below
            gap = np.searchsorted(np.unique(inputs[:, v]), points, side="right")
            self._low[v, : len(points)] = np.searchsorted(gap, gap, side="left")
            self._high[v, : len(points)] = np.searchsorted(gap, gap, side="right")

    def __call__(self, rng: np.random.Generator, forest: ForestState) -> None:
        alpha, beta = self._settings.alpha, self._settings.beta
        move_cuts(rng, forest.nodes, self._cuts, np.ones(len(self._cuts)), self._low, self._high, alpha, beta)


class FittedBART(SampledFunctions):
    """The draws of r targets, each a sum of trees.

    Attributes
    ----------
    cell_width
        Width of a cell of each input, (k,): between two cuts the predictions are constant.
    """

    def __init__(self, settings: BART, width: Array, cut_points: list[Array], sampled: Sampled) -> None:
        super().__init__(settings.draws, sampled)
        self.settings = settings
        self.cut_points = cut_points
        self.cell_width = width / (settings.cuts + 1)
        self._everywhere: Lookup | None = None
        self.forests: list[Packed] = []
        self._ends: list[list[int]] = []
        for records in sampled.records:
            kind = np.concatenate([np.empty((0, 2), dtype=np.int16), *(record["kind"] for record in records)])
            self.forests.append(Packed(kind, np.concatenate([np.empty(0), *(record["value"] for record in records)])))
            self._ends.append(np.cumsum([len(record["value"]) for record in records], dtype=int).tolist())

    def predict(self, inputs: Array) -> Array:
        """The posterior mean at inputs (M, k), (M, r)."""
        if len(inputs) == 1:
            # one row after the other is what a sampler of theta asks for
            if self._everywhere is None:
                self._everywhere = self.at(np.empty((1, 0)))
            return self._everywhere(inputs[0])
        bins = self._binned(inputs)
        columns = []
        for forest, ends in zip(self.forests, self._ends, strict=True):
            total = np.zeros(len(inputs))
            evaluate(*forest, bins, len(ends) * self.settings.trees, total)
            columns.append(total / self.settings.draws)
        return np.stack(columns, axis=1) + self.offset

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the prediction, (M, r): that of the draws' functions, and the noise.

        Where there are replicates, their variance is no part of it.

        Each draw steps at some place between two values of a design, so there it is larger than the mean's error.
        """
        bins = self._binned(inputs)
        columns = []
        for forest, ends in zip(self.forests, self._ends, strict=True):
            total, squares = np.zeros(len(inputs)), np.zeros(len(inputs))
            for start, end in zip([0, *ends[:-1]], ends, strict=False):
                one = np.zeros(len(inputs))
                evaluate(forest.kind[start:end], forest.value[start:end], bins, self.settings.trees, one)
                total += one
                squares += one**2
            draws = self.settings.draws
            columns.append(np.maximum(squares / draws - (total / draws) ** 2, 0.0))
        return np.asarray(np.stack(columns, axis=1) + self._error_var)

    def mixed(self, weights: Array) -> SoftForest:
        """sum_i weights_i draw_i over the draws, (draws,), smooth in theta: a cut becomes a gate."""
        used = np.flatnonzero(weights)
        forests, factors = [], []
        for forest, ends in zip(self.forests, self._ends, strict=True):
            # a constant target has no trees
            spans = [(ends[i - 1] if i else 0, ends[i]) for i in used.tolist()] if ends else []
            parts = [forest.kind[:0], *(forest.kind[start:end] for start, end in spans)]
            values = [forest.value[:0], *(forest.value[start:end] for start, end in spans)]
            own = [np.full(end - start, weights[i]) for i, (start, end) in zip(used, spans, strict=False)]
            forests.append(Packed(np.concatenate(parts), np.concatenate(values)))
            factors.append(np.concatenate([np.empty(0), *own]))
        width = np.maximum(self.cell_width, GATE_WIDTH * self.cell_width * (self.settings.cuts + 1))
        return SoftForest(forests, factors, self.offset * weights.sum(), self.cut_points, width)

    def at(self, points: Array, most_bytes: int = MOST_BYTES) -> Lookup:
        """The posterior mean as a function of theta (p,) for fixed points (m, d), (m, r)."""
        with announced("making a table of the trees, which is compiled at its first use"):
            return Lookup(self.forests, self.settings.draws, self.offset, self.cut_points, points, most_bytes)

    def _binned(self, inputs: Array) -> NDArray[np.uint8]:
        """The bin of each row in each input, (k, M)."""
        columns = [np.searchsorted(cuts, column) for cuts, column in zip(self.cut_points, inputs.T, strict=True)]
        return np.ascontiguousarray(np.stack(columns).astype(np.uint8))
