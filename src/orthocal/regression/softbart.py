"""Soft Bayesian additive regression trees (Linero and Yang 2018): a forest that is warm-started at every draw."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray
from .compiled import CompiledSampler, Record
from .settings import SoftBARTSettings
from .softbart_kernels import CHILD, FREE, LEAF, PARENT, SLOTS, evaluate, pack, sweep

#: sweeps from stumps before the first draw, with equal shares of the splitting variables
START_SWEEPS = 50


class SoftForestState(NamedTuple):
    """The trees of one chain, changed in place by a sweep; see ``soft_tree_kernels`` for the layout."""

    nodes: NDArray[np.int16]
    cut: Array
    mu: Array
    tau: Array
    shares: Array
    fit: Array
    counts: IntArray


class SoftBARTSampler(CompiledSampler):
    """One warm-started backfitting sweep a draw: the forest persists, only the response changes.

    The kept draws hold their whole forest, packed: about 4 nodes a tree of 10 bytes each, 2.5 kB for 50 trees.
    """

    kind = "softbart"
    title = "soft BART"
    start_updates = START_SWEEPS

    def __init__(
        self,
        prior: SoftBARTSettings,
        leaf_sd: float,
        low: Array,
        scale: Array,
        x: Array,
        nodes: Array,
        noise_var: Array,
        unit: float = 1.0,
        shares: Array | None = None,
    ) -> None:
        """``shares`` (d,) say how often each input is split by a priori, all alike if not given."""
        self.prior, self.leaf_sd, self.unit = prior, leaf_sd, unit
        self._low, self._scale = low, scale
        self._points = self._scaled(np.vstack([x, nodes]))
        self._weight = np.ascontiguousarray(1 / noise_var)
        d = len(self._points)
        self._shares: Array = np.full(d, 1 / d) if shares is None else shares / shares.sum()

    def predict(self, rng: np.random.Generator, records: Record, x_new: Array) -> Array:
        points = self._scaled(x_new)
        fits = np.zeros((len(records["value"]), len(x_new)))
        for kind, value, tau, fit in zip(records["kind"], records["value"], records["bandwidth"], fits, strict=True):
            evaluate(kind, value, np.ascontiguousarray(tau), points, fit)
        return fits

    def findings(self) -> dict[str, Any]:
        return {"leaf_sd": self.leaf_sd / self.unit}

    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.prior.describe(),
            "leaf_sd": self.leaf_sd,
            "unit": self.unit,
            "low": self._low.tolist(),
            "scale": self._scale.tolist(),
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> SoftBARTSampler:
        """The sampler of a stored posterior."""
        low: Array = np.asarray(settings["low"], dtype=np.float64)
        scale: Array = np.asarray(settings["scale"], dtype=np.float64)
        prior = SoftBARTSettings.stored(settings)
        return cls(prior, float(settings["leaf_sd"]), low, scale, x, nodes, noise_var, float(settings["unit"]))

    @property
    def function_sd(self) -> float:
        return self.leaf_sd * float(np.sqrt(self.prior.trees))

    @property
    def updates(self) -> int:
        return self.prior.sweeps

    @property
    def cost(self) -> int:
        # a soft tree costs about as much as five hard ones
        return 5 * int(self._points.shape[1]) * self.prior.trees

    def update(
        self,
        rng: np.random.Generator,
        state: SoftForestState,
        response: Array,
        starting: bool,
        noise_scale: float | Array,
    ) -> None:
        prior, chain = self.prior, SoftForestState(*state)
        # from stumps, sampled shares settle on any input before the trees have found those that matter, and stay
        sparsity = (0.0 if starting else prior.sparsity) * self._shares
        sweep(
            rng,
            response,
            self._weight / noise_scale,
            self._points,
            *chain,
            prior.alpha,
            prior.beta,
            prior.bandwidth,
            sparsity,
            self.leaf_sd**2,
        )

    def normal(self, state: SoftForestState) -> Array:
        leaves = (state.nodes[:, :, PARENT] != FREE) & (state.nodes[:, :, CHILD] == LEAF)
        return np.asarray(state.mu[leaves] / self.leaf_sd)

    def empty(self) -> SoftForestState:
        trees, points = self.prior.trees, self._points.shape[1]
        nodes = np.zeros((trees, SLOTS, 4), dtype=np.int16)
        nodes[:, :, 0], nodes[:, :, PARENT] = LEAF, FREE
        nodes[:, 0, PARENT] = -1
        return SoftForestState(
            nodes=nodes,
            cut=np.zeros((trees, SLOTS)),
            mu=np.zeros((trees, SLOTS)),
            tau=np.full(trees, self.prior.bandwidth),
            shares=self._shares.copy(),
            fit=np.zeros(points),
            counts=np.zeros((4, 2), dtype=np.int64),
        )

    def one_record(self, state: SoftForestState) -> Record:
        """The forest in pre-order and its bandwidths; what is filled up with zeros at its end is never reached."""
        kind = np.empty(len(state.nodes) * SLOTS, dtype=np.int16)
        value = np.empty(len(kind))
        length = pack(state.nodes, state.cut, state.mu, kind, value)
        return {"kind": kind[:length], "value": value[:length], "bandwidth": state.tau}

    def _scaled(self, x: Array) -> Array:
        """Inputs in units of the data's range, (d, m)."""
        return np.ascontiguousarray(((x - self._low) * self._scale).T)
