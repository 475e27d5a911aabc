"""Runs of a simulator that takes many theta at a time: they are made in this process, batch by batch."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from ..errors import SimulatorError
from .batched import BatchedCalls
from .calls import Answer
from .simulation import RunResult, RunTask, Simulation, finite_output, plain
from .work import Lost, now


class BatchedRuns:
    """Workers of a campaign. What is submitted waits until somebody asks for results, and is then one batch."""

    words = "batches in this process"

    def __init__(self, calls: BatchedCalls, simulation: Simulation) -> None:
        self.width, self._calls, self._waiting = calls.most, calls, list[RunTask]()
        self._x = simulation.x[:, 0] if simulation.flat_x else simulation.x

    def submit(self, task: RunTask) -> None:
        self._waiting.append(task)

    def finished(self) -> list[tuple[RunTask, RunResult | Lost]]:
        tasks, self._waiting = self._waiting, []
        started = now()
        try:
            answers = self._calls.each(self._x, np.array([task.theta for task in tasks]))
        except SimulatorError as error:
            return [(task, RunResult(None, plain(str(error)), 0.0, started, now())) for task in tasks]
        return [(task, self._result(answer, started)) for task, answer in zip(tasks, answers, strict=True)]

    def _result(self, answer: Answer, started: str) -> RunResult:
        """Of one run; its seconds are its share of the batch's."""
        output, error = None, None
        try:
            if answer.error is not None:
                raise SimulatorError("{}: {}".format(*answer.error))
            output = finite_output(answer.output, len(self._x))
        except SimulatorError as problem:
            error = plain(str(problem))
        return RunResult(output, error, answer.wall, started, now())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""
