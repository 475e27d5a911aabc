"""What a stage of a run takes: wall and CPU seconds, and the simulator's share of them."""

from __future__ import annotations

import os
from time import perf_counter, process_time
from typing import NamedTuple, Protocol


class Worked(Protocol):
    """Counts its calls: seconds are those spent waiting for them, worker_cpu those of other processes' CPUs."""

    calls: int
    seconds: float
    worker_cpu: float


class Spent(NamedTuple):
    """Seconds of wall time and of all CPUs, seconds spent waiting for the simulator, and its calls."""

    wall: float = 0.0
    cpu: float = 0.0
    simulator: float = 0.0
    calls: int = 0

    def less(self, other: Spent) -> Spent:
        """Without what another one took."""
        return Spent(
            self.wall - other.wall, self.cpu - other.cpu, self.simulator - other.simulator, self.calls - other.calls
        )

    def plus(self, other: Spent) -> Spent:
        """Together with what another one took."""
        return self.less(Spent().less(other))


class Clock:
    """Runs from when it is made."""

    def __init__(self, simulator: Worked) -> None:
        self._simulator = simulator
        self._before = self._now()

    def spent(self) -> Spent:
        """So far."""
        return self._now().less(self._before)

    def _now(self) -> Spent:
        simulator = self._simulator
        return Spent(perf_counter(), cpu_seconds() + simulator.worker_cpu, simulator.seconds, simulator.calls)


def cpu_seconds() -> float:
    """Of this process and of the processes that it has started and that have ended."""
    # the times of the system count hundredths of a second
    return process_time() + sum(os.times()[2:4])
