"""What the compiled samplers share: a state a chain that an update changes in place, chains in threads."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from ..arrays import Array
from ..progress import announced, progress_bar
from .chainwise import ChainwiseSampler

#: chains run in threads if a draw costs more than this, below it threads cost more than they save
THREADED_COST = 500_000


class CompiledSampler(ChainwiseSampler):
    """Warm-started updates: the state persists, only the response changes.

    A state is a NamedTuple of arrays; its ``fit`` (n + m,) is the function at data and nodes.

    Attributes
    ----------
    title
        The prior's name in messages.
    start_updates
        Updates from the empty state before the first draw.
    """

    takes_noise_scale = True
    title = ""
    start_updates = 100

    def empty(self) -> Any:
        """The state of a chain before its first update."""
        raise NotImplementedError

    def update(self, rng: np.random.Generator, state: Any, response: Array, starting: bool, noise_scale: float) -> None:
        """One update in place; ``starting`` before the first draw. ``noise_scale`` multiplies the noise variances."""
        raise NotImplementedError

    @property
    def updates(self) -> int:
        """Updates a draw."""
        return 1

    @property
    def cost(self) -> int:
        """Roughly how many simple operations an update takes."""
        return 0

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[list[Any], Array]:
        scales = [1.0] * len(rngs) if noise_scale is None else noise_scale.tolist()
        responses = [np.ascontiguousarray(row) for row in residual]
        starting = state is None
        states = [self.empty() for _ in rngs] if starting else state
        if starting:
            with announced(f"compiling {self.title} for its first use, some seconds, once"):
                self.update(rngs[0], states[0], responses[0], True, scales[0])
        count = self.start_updates if starting else self.updates

        steps: list[Iterable[int]] = [range(count) for _ in rngs]
        if starting:
            # of many data these take minutes; made here, because threads do not know whether progress is shown
            steps[0] = progress_bar(steps[0], f"first updates of {self.title}")

        def run(c: int) -> None:
            for _ in steps[c]:
                self.update(rngs[c], states[c], responses[c], starting, scales[c])

        if len(rngs) > 1 and count * self.cost > THREADED_COST:
            with ThreadPoolExecutor() as pool:
                list(pool.map(run, range(len(rngs))))
        else:
            for c in range(len(rngs)):
                run(c)
        return states, np.stack([own.fit for own in states])
