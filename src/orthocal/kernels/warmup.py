"""The one loop of every sampler: warm-up in windows, after each of which it is tuned, then the kept draws.

What an iteration changes can be stored and put back, so that a loop goes on where it was, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..execution.checkpoints.keeping import keeper
from ..progress import progress_bar

#: a sampler is tuned after every so many warm-up iterations
WINDOW = 25

Draw = TypeVar("Draw")


class Stepper(ABC, Generic[Draw]):
    """What a sampler does in the loop, all chains at a time.

    Its steps change the attributes that ``changing`` names, and nothing else. A name may have dots in it,
    ``"_bias.traces"``; of a part that is None nothing changes.
    """

    changing: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def step(self) -> tuple[Array, ...]:
        """One iteration; what ``adapt`` wants to know of it, (c, ...) each."""

    @abstractmethod
    def adapt(self, *window: Array) -> None:
        """Better tuning from what the steps of a window returned, (w, c, ...) each."""

    @abstractmethod
    def kept(self) -> Draw:
        """What is kept of the last step: new arrays, in tuples and dicts of ours."""

    def stored(self) -> Any:
        """All that steps change, beside the generators, as what ``execution.checkpoints`` can store."""
        owners = {path: _owner(self, path) for path in self.changing}
        return {path: getattr(owner, _last(path)) for path, owner in owners.items() if owner is not None}

    def restore(self, stored: Any) -> None:
        """Go back to where ``stored`` was taken."""
        for path, value in stored.items():
            setattr(_owner(self, path), _last(path), value)


def _owner(sampler: object, path: str) -> object:
    """What has the attribute that ``path`` names."""
    for name in path.split(".")[:-1]:
        sampler = None if sampler is None else getattr(sampler, name)
    return sampler


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def run_chains(stepper: Stepper[Draw], warmup: int, draws: int, rngs: list[np.random.Generator]) -> list[Draw]:
    """Warm up, then keep one draw an iteration."""
    kept: list[Draw] = []
    window: list[tuple[Array, ...]] = []
    done, keeping = 0, keeper()

    def state() -> Any:
        return window, stepper.stored(), [rng.bit_generator.state for rng in rngs]

    loop, standing = keeping.begun()
    if standing is not None:
        done, kept = standing.iteration, standing.draws
        if len(kept) > draws:
            raise InputError(f"the run has {len(kept)} draws a chain already: give draws of at least {len(kept)}")
        window, own, generators = standing.state
        stepper.restore(own)
        for rng, where in zip(rngs, generators, strict=True):
            rng.bit_generator.state = where
    for iteration in progress_bar(range(done, warmup + draws), "sampling"):
        seen = stepper.step()
        if iteration >= warmup:
            kept.append(stepper.kept())
        else:
            window.append(seen)
        if len(window) == WINDOW:
            stepper.adapt(*(np.stack(parts) for parts in zip(*window, strict=True)))
            window = []
        keeping.offered(loop, iteration + 1, state, kept)
    keeping.ended(loop, warmup + draws, state, kept)
    return kept
