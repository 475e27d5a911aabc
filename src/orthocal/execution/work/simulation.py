"""One run of a simulator, wherever it happens: the simulator is called, and whatever it does becomes a result."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from ...arrays import Array, shaped_output
from ...errors import SimulatorError, where_raised
from .workers import Lost, now

# Simulators that compute outside of Python: a program, or a server. Threads are enough to wait for them.


class GoneError(SimulatorError):
    """Whatever computes has gone: no theta is to blame, and the rest of the work cannot be done now."""


@runtime_checkable
class ByName(Protocol):
    """A simulator that knows its parameters' names, as an FMU does: they are matched by these, never by their place."""

    def for_parameters(self, names: Sequence[str]) -> Callable[[Array, Array], Any]:
        """The same with theta in the order of these names, or an error that names what differs."""


class Chance(NamedTuple):
    """Of a run of a simulator with random numbers: which replicate at its theta it is, from 0, and a seed of its own.

    The seed has 31 bits, and depends on theta and the replicate alone, not on the design or on when it is run.
    """

    replicate: int = 0
    seed: int = 0


class External(ABC):
    """f(x, theta) of a named theta, computed elsewhere; a campaign runs it in threads and can end what it started."""

    @property
    def width(self) -> int | None:
        """Runs at a time that it can take; None: as many as there are cores.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.Program("mysim {input}").width is None
        True
        """
        return None

    @property
    def outcome_names(self) -> list[str] | None:
        """Names of the outcomes, where it knows them.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.UMBridge("http://localhost:4242").outcome_names is None
        True
        """
        return None

    def seeded(self, chance: Chance) -> External:
        """The same for one run, with its replicate and seed where it can take them."""
        return self

    @abstractmethod
    def check(self, names: Sequence[str], here: bool) -> None:
        """Whether it can be run with these parameters; ``here``: from this machine."""

    @abstractmethod
    def identity(self) -> tuple[str, str]:
        """Its name, and a digest of all that decides what it computes."""

    @abstractmethod
    def run(
        self,
        x: Array,
        theta: dict[str, float],
        input_names: Sequence[str],
        timeout: float | None = None,
        label: str = "run",
        campaign: str = "",
    ) -> Array:
        """One run: (m,) or (m, k) numbers, or an error in words."""

    @abstractmethod
    def end_runs(self, campaign: str) -> None:
        """End every run that this process has under way for a campaign, and start no more."""


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
