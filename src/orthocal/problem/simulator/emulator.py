"""What a problem needs of an emulator: it takes the simulator's place, and knows where it learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ...arrays import Array, BoolArray
from ...errors import InputError


@runtime_checkable
class EmulatorLike(Protocol):
    """f_hat(x, theta) with a gradient, learnt from runs: those of ``oc.emulate`` are, and a user's own may be."""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Of the runs, in the order of theta."""

    @property
    def has_variance(self) -> bool:
        """Whether ``variance`` can be called."""

    def __call__(self, x: Array, theta: Array) -> Array:
        """f_hat at points x (m, d) and theta (p,), (m, q)."""

    def gradient(self, x: Array, theta: Array) -> Array:
        """df_hat/dtheta, (m, q, p)."""

    def variance(self, x: Array, theta: Array) -> Array:
        """Variance of the emulator's error, (m, q)."""

    def outside(self, theta: Array) -> BoolArray:
        """Which of theta (c, p) lie outside of the runs."""


class Choice(NamedTuple):
    """The best of several emulators at held-out runs.

    Attributes
    ----------
    errors
        Rms error relative to the spread of the runs, the best first.
    rmse
        Of the best, in units of each outcome.
    held_out
        Number of runs that were predicted.
    dropped
        Which of the others were clearly worse after some of them, and dropped.
    """

    errors: dict[str, float]
    rmse: dict[str, float]
    held_out: int
    dropped: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        (best, error), *others = self.errors.items()
        words = [
            f"{name} {value:.2g}" + (" when it was dropped" if name in self.dropped else "") for name, value in others
        ]
        among = f" (the others: {', '.join(words)})" if others else ""
        return f"{best}, the best at {self.held_out} held-out runs: its rms error is {error:.2g} of their spread{among}"


class LeftOut(NamedTuple):
    """What an emulator misses of some of its runs where it is learnt from the others.

    Attributes
    ----------
    theta
        Of these runs, (c, p).
    errors
        At points x, (c, m, q).
    functions, variances
        The covariance that it expects of them: sum_r variances[i, r] functions[r] functions[r]', (r, m, q) and (c, r).
    """

    theta: Array
    errors: Array
    functions: Array
    variances: Array


@runtime_checkable
class RunsEmulator(Protocol):
    """An emulator that knows its runs, as those of ``oc.emulate`` do.

    Attributes
    ----------
    runs
        A table of runs, with ``input_names`` and ``outcome_names``.
    choice
        How it was chosen among others, where it was.
    """

    runs: Any
    choice: Choice | None

    @property
    def said(self) -> tuple[str, ...]:
        """What it was learnt from, and how it was chosen, in sentences."""

    def outside_x(self, x: Array) -> BoolArray:
        """Which of x (m, d) have no points of the runs nearby."""

    def left_out(self, x: Array, theta: Array, count: int) -> LeftOut | None:
        """Errors at the ``count`` of its runs nearest to theta, at points x; None where they are not known."""


def check_columns(simulator: object, inputs: tuple[str, ...], outcomes: tuple[str, ...], x: str = "x") -> None:
    """Refuse data whose columns have the names of an emulator's runs, in another order; other names say nothing."""
    if not isinstance(simulator, RunsEmulator):
        return
    for what, kind, own, given in (
        (x, "inputs", simulator.runs.input_names, inputs),
        ("y", "outcomes", simulator.runs.outcome_names, outcomes),
    ):
        if own != given and set(own) == set(given):
            raise InputError(
                f"the runs of the emulator have the {kind} in the order {', '.join(own)}, {what} has "
                f"{', '.join(given)}: give {what} in the order of the runs, or take runs.ordered(...)"
            )


class DrawLike(Protocol):
    """A function that may be the simulator, as far as the runs tell."""

    def __call__(self, x: Array, theta: Array, /) -> Array:
        """At points x (m, d) and theta (p,), (m, q)."""

    def gradient(self, x: Array, theta: Array, /) -> Array:
        """By theta, (m, q, p)."""


@runtime_checkable
class EmulatorWithDraws(EmulatorLike, Protocol):
    """An emulator that may know its error as a distribution of functions."""

    @property
    def has_draws(self) -> bool:
        """Whether ``draws`` can be called."""

    def draws(self, count: int, seed: int) -> Sequence[DrawLike]:
        """So many joint draws; the same seed gives the same."""


def emulator_with_draws(simulator: object) -> EmulatorWithDraws | None:
    """The emulator itself, if it has draws."""
    return simulator if isinstance(simulator, EmulatorWithDraws) and simulator.has_draws else None
