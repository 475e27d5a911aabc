"""One run of a simulator, wherever it happens: the simulator is called, and whatever it does becomes a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, shaped_output
from ..errors import SimulatorError, where_raised
from .program import Program
from .work import Lost, now

#: characters of an error text that are kept
LONGEST_ERROR = 4000


class RunTask(NamedTuple):
    """A run that is to be made: its number in the design and its theta (p,)."""

    number: int
    theta: tuple[float, ...]


class RunResult(NamedTuple):
    """What a run left: its output (m, q) or an error, seconds, and when it started and finished (UTC)."""

    output: Array | None
    error: str | None
    seconds: float
    started: str
    finished: str

    @classmethod
    def of_lost(cls, lost: Lost) -> RunResult:
        """The result of a run that could not even say that it failed."""
        return cls(None, plain(lost.error), lost.seconds, lost.started, now())


@dataclass(frozen=True)
class Simulation:
    """What all runs of a campaign share; calling it with a task makes the run.

    ``timeout`` is that of a program. ``campaign`` is a name that no other campaign has: programs can be stopped by it.
    """

    simulator: Callable[[Array, Array], ArrayLike] | Program
    x: Array
    flat_x: bool
    parameter_names: tuple[str, ...]
    input_names: tuple[str, ...]
    timeout: float | None
    campaign: str

    def __call__(self, task: RunTask) -> RunResult:
        started, clock = now(), perf_counter()
        output, error = None, None
        try:
            raw = shaped_output(self._raw(task), (len(self.x), -1))
            if not np.isfinite(raw).any():
                raise SimulatorError("the simulator returned no finite number: all are NaN or infinite")
            output = np.where(np.isfinite(raw), raw, np.nan)
        except (Exception, SystemExit) as problem:  # whatever the user's code raises: the other runs go on
            error = plain(_in_words(problem))
        return RunResult(output, error, perf_counter() - clock, started, now())

    def _raw(self, task: RunTask) -> ArrayLike:
        if isinstance(self.simulator, Program):
            theta = dict(zip(self.parameter_names, task.theta, strict=True))
            label = f"run-{task.number:05d}"
            return self.simulator.run(self.x, theta, self.input_names, self.timeout, label, self.campaign)
        # copies: the user's code must not be able to change ours
        return self.simulator((self.x[:, 0] if self.flat_x else self.x).copy(), np.array(task.theta))


def plain(text: str) -> str:
    """The end of an error text, as what files and terminals take: bytes that are no characters are written out."""
    written = text[-LONGEST_ERROR:].encode("utf-8", "backslashreplace").decode("utf-8")
    return written.replace("\0", "\\x00")


def _in_words(error: BaseException) -> str:
    try:
        said = str(error)
    except Exception:  # of the user's code, too
        said = "an error that cannot be put into words"
    if isinstance(error, SimulatorError):
        return said
    return f"{type(error).__name__}: {said} ({where_raised(error)})"
