"""Emulators of single outcomes as one of all: what is learnt once serves each outcome alone and all together."""

from __future__ import annotations

import numpy as np

import orthocal as oc

from ..arrays import Array, BoolArray


class SideBySide:
    """Emulators of one outcome each, as one of all: f_hat (m, q) and its gradient (m, q, p)."""

    def __init__(self, parts: list[oc.emulators.Emulator], runs: oc.RunTable) -> None:
        self.parts, self.runs = parts, runs
        self.parameter_names = runs.parameter_names
        self.smooth = all(part.smooth for part in parts)
        self.has_variance = all(part.has_variance for part in parts)

    def __call__(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part(x, theta) for part in self.parts], axis=1)

    def gradient(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part.gradient(x, theta) for part in self.parts], axis=1)

    def variance(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part.variance(x, theta) for part in self.parts], axis=1)

    def outside(self, theta: Array) -> BoolArray:
        return self.parts[0].outside(theta)


class OnEmulator:
    """The emulator as a model for ``theta_star``."""

    theta_0 = None

    def __init__(self, emulator: SideBySide, x: Array) -> None:
        self.x, self._emulator = x, emulator

    def __call__(self, x: Array, theta: Array) -> Array:
        return self._emulator(x, theta)
