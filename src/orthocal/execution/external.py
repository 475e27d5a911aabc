"""Simulators that compute outside of Python: a program, or a server. Threads are enough to wait for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..arrays import Array
from ..errors import SimulatorError


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
