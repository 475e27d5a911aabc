"""One run of a simulator, wherever it happens: the simulator is called, and whatever it does becomes a result."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, shaped_output
from ..errors import SimulatorError, where_raised
from .external import Chance, External, GoneError
from .work import Lost, now

#: characters of an error text that are kept
LONGEST_ERROR = 4000


class RunTask(NamedTuple):
    """A run that is to be made: its number in the design, its theta (p,), and what it may draw random numbers from."""

    number: int
    theta: tuple[float, ...]
    chance: Chance = Chance()


class RunResult(NamedTuple):
    """What a run left: its output (m, q) or an error, seconds, and when it started and finished (UTC).

    ``gone``: it is not the run that failed, but whatever computes is not there any more.
    """

    output: Array | None
    error: str | None
    seconds: float
    started: str
    finished: str
    gone: bool = False

    @classmethod
    def of_lost(cls, lost: Lost) -> RunResult:
        """The result of a run that could not even say that it failed."""
        return cls(None, plain(lost.error), lost.seconds, lost.started, now())


@dataclass(frozen=True)
class Simulation:
    """What all runs of a campaign share; calling it with a task makes the run.

    ``timeout`` is that of a program or a server. ``campaign`` is a name that no other has: its runs are ended by it.
    ``chance`` are the arguments of a function that a run's replicate or seed is given to, of ``Chance``'s names.
    """

    simulator: Callable[..., ArrayLike] | External
    x: Array
    flat_x: bool
    parameter_names: tuple[str, ...]
    input_names: tuple[str, ...]
    timeout: float | None
    campaign: str
    chance: tuple[str, ...] = ()

    def __call__(self, task: RunTask) -> RunResult:
        started, clock = now(), perf_counter()
        output, error, gone = None, None, False
        try:
            output = finite_output(self._raw(task), len(self.x))
        except (Exception, SystemExit) as problem:  # whatever the user's code raises: the other runs go on
            error, gone = plain(_in_words(problem)), isinstance(problem, GoneError)
        return RunResult(output, error, perf_counter() - clock, started, now(), gone)

    def _raw(self, task: RunTask) -> ArrayLike:
        if isinstance(self.simulator, External):
            theta = dict(zip(self.parameter_names, task.theta, strict=True))
            label = f"run-{task.number:05d}"
            simulator = self.simulator.seeded(task.chance)
            return simulator.run(self.x, theta, self.input_names, self.timeout, label, self.campaign)
        # copies: the user's code must not be able to change ours
        x, theta_copy = (self.x[:, 0] if self.flat_x else self.x).copy(), np.array(task.theta)
        return self.simulator(x, theta_copy, **{name: getattr(task.chance, name) for name in self.chance})


def finite_output(returned: ArrayLike, points: int) -> Array:
    """What a simulator returned as (m, q), with NaN where it is not finite; an error where nothing is."""
    raw = shaped_output(returned, (points, -1))
    if not np.isfinite(raw).any():
        raise SimulatorError("the simulator returned no finite number: all are NaN or infinite")
    return np.where(np.isfinite(raw), raw, np.nan)


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


def chance_arguments(simulator: Callable[..., ArrayLike], replicates: int) -> tuple[str, ...]:
    """Which of ``seed`` and ``replicate`` a function takes beside x and theta.

    One with a default of its own is what it was before there were replicates, unless there are.
    """
    try:
        parameters = list(inspect.signature(simulator).parameters.values())
    except (TypeError, ValueError):  # compiled functions may have none
        return ()
    return tuple(
        one.name
        for one in parameters[2:]
        if one.name in Chance._fields
        and one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)
        and (one.default is one.empty or replicates > 1)
    )
