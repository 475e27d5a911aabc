"""Emulators of single outcomes as one of all: what is learnt once serves each outcome alone and all together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, overload, runtime_checkable

import numpy as np

import orthocal as oc
from orthocal.applications import Array, BoolArray


@runtime_checkable
class _KnowsItsErrors(Protocol):
    """An emulator that can be asked for its errors at its own runs."""

    def left_out(self, x: Array, theta: Array, count: int) -> Any: ...


class StackedEmulator:
    """Emulators of one outcome each, as one of all: f_hat (m, q) and its gradient (m, q, p)."""

    def __init__(self, parts: list[oc.emulators.Emulator], runs: oc.RunTable) -> None:
        self.parts, self.runs = parts, runs
        self.parameter_names = runs.parameter_names
        self.smooth = all(part.smooth for part in parts)
        self.has_variance = all(part.has_variance for part in parts)
        self.has_draws = all(part.has_draws for part in parts)

    def __call__(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part(x, theta) for part in self.parts], axis=1)

    def gradient(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part.gradient(x, theta) for part in self.parts], axis=1)

    def variance(self, x: Array, theta: Array) -> Array:
        return np.concatenate([part.variance(x, theta) for part in self.parts], axis=1)

    def draws(self, count: int, seed: int) -> Sequence[StackedEmulator]:
        """Joint draws: the outcomes' errors are independent, as the emulators are."""
        seeds = [int(own.generate_state(1)[0]) for own in np.random.SeedSequence(seed).spawn(len(self.parts))]
        return _Draws([part.draws(count, own) for part, own in zip(self.parts, seeds, strict=True)], self.runs)

    def left_out(self, x: Array, theta: Array, count: int) -> Any:
        """What the emulators miss of the runs nearest to theta, learnt from the others, all outcomes together."""
        asked = [part.left_out(x, theta, count) for part in self.parts if isinstance(part, _KnowsItsErrors)]
        each = [found for found in asked if found is not None]
        if len(each) < len(self.parts):
            return None
        sizes = np.cumsum([0, *(len(found.functions) for found in each)])
        functions = np.zeros((sizes[-1], len(x), len(each)))
        for k, (found, start, end) in enumerate(zip(each, sizes[:-1], sizes[1:], strict=True)):
            functions[start:end, :, k] = found.functions[:, :, 0]
        errors = np.concatenate([found.errors for found in each], axis=2)
        return each[0]._replace(
            errors=errors, functions=functions, variances=np.hstack([found.variances for found in each])
        )

    def outside(self, theta: Array) -> BoolArray:
        return self.parts[0].outside(theta)


class _Draws(Sequence[StackedEmulator]):
    """Draws side by side, made when they are asked for."""

    def __init__(self, parts: list[Sequence[oc.emulators.Emulator]], runs: oc.RunTable) -> None:
        self._parts, self._runs = parts, runs

    def __len__(self) -> int:
        return len(self._parts[0])

    @overload
    def __getitem__(self, number: int) -> StackedEmulator: ...
    @overload
    def __getitem__(self, number: slice) -> _Draws: ...
    def __getitem__(self, number: int | slice) -> StackedEmulator | _Draws:
        if isinstance(number, slice):
            return _Draws([part[number] for part in self._parts], self._runs)
        return StackedEmulator([part[number] for part in self._parts], self._runs)


class OnEmulator:
    """The emulator as a model for ``theta_star``."""

    theta_0 = None

    def __init__(self, emulator: StackedEmulator, x: Array) -> None:
        self.x, self._emulator = x, emulator

    def __call__(self, x: Array, theta: Array) -> Array:
        return self._emulator(x, theta)
