"""The one loop of every sampler: warm-up in windows, after each of which it is tuned, then the kept draws."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ..arrays import Array
from ..progress import progress_bar

#: a sampler is tuned after every so many warm-up iterations
WINDOW = 25


class Stepper(Protocol):
    """What a sampler does in the loop, all chains at a time."""

    def step(self) -> tuple[Array, ...]:
        """One iteration; what ``adapt`` wants to know of it, (c, ...) each."""

    def adapt(self, *window: Array) -> None:
        """Better tuning from what the steps of a window returned, (w, c, ...) each."""

    def keep(self, s: int) -> None:
        """Keep the state after the last step as draw number s."""


def run_chains(stepper: Stepper, warmup: int, draws: int) -> None:
    """Warm up, then keep one draw an iteration."""
    window: list[tuple[Array, ...]] = []
    for iteration in progress_bar(range(warmup + draws), "sampling"):
        seen = stepper.step()
        if iteration >= warmup:
            stepper.keep(iteration - warmup)
            continue
        window.append(seen)
        if len(window) == WINDOW:
            stepper.adapt(*(np.stack(parts) for parts in zip(*window, strict=True)))
            window = []
