"""The simulator f(x, theta) and its gradient df/dtheta: called, checked, counted and timed."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ...arrays import Array, IntArray, repeated_rows, shaped_output
from ...errors import InputError, NonFiniteError, SimulatorError, where_raised
from ...execution.checkpoints.keeping import GRADIENT, VALUES, kept_call
from ...execution.work.batched import BatchedCalls, ManyCalls, OneOfBatch
from ...execution.work.calls import REMEMBERED, Answer, ParallelCalls, Spent, cpu_seconds
from ...progress import progress_bar
from ..data.transforms import TRANSFORMS, Transforms
from ..prior.parameters import Support
from .differences import DIFFERENCE_STEP, Differences
from .emulator import EmulatorLike
from .simulator_function import Function, Simulator, by_names, compiled, is_of_jax, jacobian, with_chosen_gradient

# The distinct points of an array that is asked for many times.

#: arrays of points whose repeats are remembered
KEPT_POINTS = 16


class DistinctPoints:
    """Remembers how the rows of the last arrays repeat; these are not changed in between."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Array, Array, IntArray | slice]] = {}

    def __call__(self, x: Array) -> tuple[Array, IntArray | slice]:
        """The distinct rows of x, in their order, and which of them each row is; x itself where all are."""
        known = self._known.get(id(x))
        # the array is kept, so that no other can have its id
        if known is None or known[0] is not x:
            if len(self._known) >= KEPT_POINTS:
                self._known.clear()
            repeats = repeated_rows(x)
            known = (x, x, slice(None)) if repeats is None else (x, x[repeats.first], repeats.place)
            self._known[id(x)] = known
        return known[1:]


class GradientKind(StrEnum):
    """Where df/dtheta comes from: the user, JAX, differences, or what will be chosen at the first use."""

    GIVEN = "given"
    JAX = "jax"
    DIFFERENCE = "difference"
    AUTO = "auto"


class BoundSimulator:
    """A simulator bound to a problem: shapes are known, every call is checked, counted and timed.

    Points that occur several times are given to it once: it is a function of x.

    Attributes
    ----------
    calls, seconds
        Number of calls of the user's functions so far and the time spent waiting for them.
    worker_cpu
        CPU seconds of those that other processes made.
    search
        What searches for a best fit took.
    failures, failure
        Number of calls that failed: they raised, or returned a value that is not finite. Their theta are impossible.
        The first of them in words.
    emulator
        What the user gave, if it is one.
    outside
        Of an emulator: which theta (c, p) lie outside of the runs.
    transforms
        Of the outcomes: f and its gradient are on the transformed scale. A theta whose output has no transform is
        impossible.
    """

    def __init__(
        self, simulator: Function, support: Support, q: int, flat_x: bool, transforms: Transforms | None = None
    ) -> None:
        simulator = by_names(simulator, support.names)
        chosen = with_chosen_gradient(simulator)
        self._function = self._user_function = OneOfBatch(chosen.function) if chosen.batched else simulator
        if chosen.timeout is not None:
            self._function = self._in_a_process
        self._support = support
        self._q = q
        self.flat_x = flat_x
        self.transforms = transforms or Transforms()
        self._settled = False
        self.calls = 0
        self.seconds = 0.0
        self.worker_cpu = 0.0
        self._lately: deque[float] = deque(maxlen=REMEMBERED)
        self.search = Spent()
        self.failures = 0
        self.failure: str | None = None
        self._differences = Differences(support, float(chosen.step or DIFFERENCE_STEP))
        self._many = _many_calls(chosen)
        self._given_gradient = chosen.gradient if callable(chosen.gradient) else None
        self._jacobian: Function | None = None
        self._distinct = DistinctPoints()
        self.gradient_kind = GradientKind.GIVEN if callable(chosen.gradient) else GradientKind(chosen.gradient)
        self.emulator = simulator if isinstance(simulator, EmulatorLike) else None
        self.outside = None if self.emulator is None else self.emulator.outside

    def evaluate(self, x: Array, theta: Array) -> Array:
        """f(x, theta), (m, q); NaN in every cell where the simulator fails, or where theta is not allowed.

        What it raises before it has ever worked is an error.
        """
        nothing = np.full((len(x), self._q), np.nan)
        if not self._support.allows(theta):
            return nothing
        try:
            return self._working(x, theta)
        except NonFiniteError:
            if not self._settled:
                raise
            return nothing

    def required(self, x: Array, theta: Array) -> Array:
        """f(x, theta), (m, q), or an error where the simulator fails, or where theta is not allowed."""
        if not self._support.allows(theta):
            raise NonFiniteError(f"{self._support.describe(theta)} is not allowed: the simulator is not called there")
        return self._working(x, theta)

    def _working(self, x: Array, theta: Array) -> Array:
        try:
            return self._finite(self._model(x, theta) if self._settled else self._settle(x, theta), x, theta)
        except NonFiniteError as error:
            self._note(error)
            raise

    def _finite(self, native: Array, x: Array, theta: Array) -> Array:
        """What the simulator returned, transformed."""
        model = self.transforms.forward(native)
        if np.isfinite(model).all():
            return model
        place, advice = self._support.describe(theta), "restrict the priors to where it works, or fix it there"
        outside = self.transforms.first_wrong(native) if np.isfinite(native).all() else None
        if outside is None:
            raise NonFiniteError(f"the simulator returned NaN or infinity at {place}: {advice}")
        row, k, _ = outside
        name = str(self.transforms.names[k])
        raise NonFiniteError(
            f"the simulator returned {native[row, k]:g} at {place} and x = {', '.join(f'{one:g}' for one in x[row])}, "
            f'but transform="{name}" needs {TRANSFORMS[name].needs}: {advice}'
        )

    def _note(self, error: NonFiniteError) -> None:
        self.failures += 1
        self.failure = self.failure or str(error)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """What is done now counts as the search for a best fit."""
        before = self.spent()
        yield
        self.search = self.search.plus(self.spent().less(before))

    def spent(self) -> Spent:
        """The time now, and what the calls took so far: of two of these the difference counts."""
        return Spent(perf_counter(), cpu_seconds() + self.worker_cpu, self.seconds, self.calls)

    @property
    def many_at_a_time(self) -> bool:
        """Whether many theta are better asked for together, though something waits for that."""
        return self._many is not None and self._many.long

    @property
    def works(self) -> bool:
        """Whether it has ever worked."""
        return self._settled

    @property
    def seconds_a_call(self) -> float:
        """What a call took lately, in a process of its own where there are several."""
        if isinstance(self._many, ParallelCalls):
            return self._many.seconds(VALUES)
        # not the mean of all: the first one may have compiled something
        return median(self._lately) if self._lately else 0.0

    @property
    def jobs(self) -> int:
        """Calls that are made at a time."""
        return self._many.jobs if isinstance(self._many, ParallelCalls) else 1

    @property
    def gradient_calls(self) -> int:
        """Calls that a gradient takes."""
        differences = self.gradient_kind in (GradientKind.DIFFERENCE, GradientKind.AUTO)
        return 2 * len(self._support.names) if differences else 1

    def batch(self, x: Array, theta: Array, label: str | None = None) -> Array:
        """f(x, theta_c) for theta (c, p), as (c, m, q); many calls show a bar with a label."""
        models = np.empty((len(theta), len(x), self._q))
        # the first call of all finds out what the function takes
        if self._many is not None and self._settled and len(theta) > 1 and self._many.pays(len(theta)):
            allowed = np.array([self._support.allows(one) for one in theta])
            models[~allowed] = np.nan
            models[allowed] = self._shared_out(self._many, x, theta[allowed], label)
            return models
        for c, one in enumerate(theta if label is None else progress_bar(theta, label)):
            models[c] = self.evaluate(x, one)
        return models

    def required_batch(self, x: Array, theta: Array, label: str) -> Array:
        """The same, or an error where the simulator fails."""
        models = self.batch(x, theta, label)
        for c in np.flatnonzero(~np.isfinite(models).all(axis=(1, 2))):
            # once more, for its words
            models[c] = self.required(x, theta[c])
        return models

    def _shared_out(self, calls: ManyCalls, x: Array, theta: Array, label: str | None) -> Array:
        """f(x, theta_c) by calls that are made together."""
        models = np.full((len(theta), len(x), self._q), np.nan)
        points, place = self._distinct(x)
        with self._waiting(len(theta)):
            answers = calls.answers(points[:, 0] if self.flat_x else points, theta)
            for c, answer in answers if label is None else progress_bar(answers, label):
                try:
                    output = shaped_output(self._output(theta[c], answer), (len(points), self._q))
                    models[c] = self._finite(output, points, theta[c])[place]
                except NonFiniteError as error:
                    self._note(error)
        return models

    @contextmanager
    def _waiting(self, calls: int) -> Iterator[None]:
        """Count the calls that are made now, and the time spent waiting for them."""
        started = perf_counter()
        try:
            yield
        finally:
            self.calls += calls
            self.seconds += perf_counter() - started
            if calls:
                self._lately.append((perf_counter() - started) / calls)

    def _output(self, theta: Array, answer: Answer) -> Any:
        """What a call gave, or an error."""
        self.worker_cpu += answer.cpu
        if answer.lost is not None:
            raise NonFiniteError(f"the simulator gave nothing at {self._support.describe(theta)}: {answer.lost}")
        if answer.error is not None:
            raise self._raised(theta, *answer.error)
        return answer.output

    def _raised(self, theta: Array, kind: str, text: str) -> NonFiniteError:
        return NonFiniteError(f"the simulator raised {kind} at {self._support.describe(theta)}: {text}")

    def gradient(self, x: Array, theta: Array) -> Array:
        """df/dtheta, (m, q, p), or an error where it cannot be had."""
        if not self._support.allows(theta):
            raise NonFiniteError(f"{self._support.describe(theta)} is not allowed: there is no gradient")
        if self.gradient_kind is GradientKind.AUTO:
            self.gradient_kind = self._choose_gradient(x, theta)
        if self.gradient_kind is GradientKind.DIFFERENCE:
            return self.difference_gradient(x, theta)
        function = self._jax_jacobian() if self._given_gradient is None else self._given_gradient
        return self._checked_gradient(self._call(function, self._distinct(x)[0], theta, GRADIENT), x, theta)

    def _checked_gradient(self, output: Any, x: Array, theta: Array) -> Array:
        """df/dtheta, (m, q, p), from what the user's gradient, or JAX, gave."""
        points, place = self._distinct(x)
        gradient = shaped_output(output, (len(points), self._q, len(self._support.names)), "gradient")[place]
        if self.transforms:
            gradient = self._chained(gradient, x, theta)
        if not np.isfinite(gradient).all():
            raise NonFiniteError(
                f"the gradient is NaN or infinite at {self._support.describe(theta)}: fix it there, "
                'or use gradient="difference"'
            )
        return gradient

    def gradients(self, x: Array, theta: Array) -> Array:
        """df/dtheta for theta (c, p), (c, m, q, p); NaN where it cannot be had. The calls are made together."""
        found = np.full((len(theta), len(x), self._q, len(self._support.names)), np.nan)
        if not len(theta):
            return found
        if self.gradient_kind is GradientKind.AUTO:
            self.gradient_kind = self._choose_gradient(x, theta[0])
        if self._many is not None and self._settled and self.gradient_kind is GradientKind.DIFFERENCE:
            allowed = np.array([self._support.allows(one) for one in theta])
            found[allowed] = self._differences.gradients(
                partial(self.batch, x), partial(self.required, x), theta[allowed]
            )
            return found
        given = self._settled and self._given_gradient is not None
        if given and isinstance(self._many, ParallelCalls) and self._many.pays(len(theta), GRADIENT):
            self._given_gradients(self._many, x, theta, found)
            return found
        for c, one in enumerate(theta):
            with suppress(NonFiniteError):
                found[c] = self.gradient(x, one)
        return found

    def _given_gradients(self, calls: ParallelCalls, x: Array, theta: Array, found: Array) -> None:
        """Put the gradients that the user's function gives into ``found`` (c, m, q, p)."""
        points, _ = self._distinct(x)
        allowed = np.flatnonzero([self._support.allows(one) for one in theta])
        outputs: dict[int, Answer] = {}
        with self._waiting(len(allowed)):
            outputs.update(calls.answers(points[:, 0] if self.flat_x else points, theta[allowed], GRADIENT))
        for place, c in enumerate(allowed):
            with suppress(NonFiniteError):
                found[c] = self._checked_gradient(self._output(theta[c], outputs[place]), x, theta[c])

    def _chained(self, gradient: Array, x: Array, theta: Array) -> Array:
        """T'(f) df/dtheta; 0 where f does not move, even where T' is infinite."""
        slope = self.slope(x, theta)[:, :, None]
        with np.errstate(invalid="ignore"):
            return np.where(gradient == 0, 0.0, slope * gradient)

    def slope(self, x: Array, theta: Array) -> Array:
        """T'(f(x, theta)), (m, q): what a small change of the simulator's output becomes on the transformed scale."""
        if not self.transforms:
            return np.ones((len(x), self._q))
        return self.transforms.slope(self.transforms.inverse(self.required(x, theta)))

    def difference_gradient(self, x: Array, theta: Array, lengthened: float = 1.0) -> Array:
        """df/dtheta by differences of second order: central ones, or to one side beside a bound or a failure.

        ``lengthened`` multiplies the steps.
        """
        return self._differences.gradient(partial(self.batch, x), partial(self.required, x), theta, lengthened)

    def _settle(self, x: Array, theta: Array) -> Array:
        """The first call: one input may be a vector or a column for the user; take the form that works."""
        try:
            model = self._model(x, theta)
        except SimulatorError as error:
            if x.shape[1] > 1:
                raise
            self.flat_x = not self.flat_x
            try:
                model = self._model(x, theta)
            except SimulatorError:
                self.flat_x = not self.flat_x
                raise error from None
        self._settled = True
        return model

    def _model(self, x: Array, theta: Array) -> Array:
        points, place = self._distinct(x)
        output = self._call(self._function, points, theta)
        if not self._settled and is_of_jax(output):
            if isinstance(self._many, ParallelCalls):
                raise InputError("a simulator of JAX runs in this process, on all of its cores: leave jobs out")
            # JAX computes in single precision and step by step unless told otherwise
            self._function, output = self._compiled(self._function, points, theta)
        return shaped_output(output, (len(points), self._q))[place]

    def _compiled(self, function: Function, x: Array, theta: Array) -> tuple[Function, Any]:
        """A JAX function in double precision, compiled where that is possible, and its output."""
        for number, candidate in enumerate(compiled(function)):
            try:
                output = self._call(candidate, x, theta)
            except SimulatorError as error:
                failure = error
                continue
            if isinstance(self._many, BatchedCalls):
                self._many.function = compiled(self._many.function)[number]
                self._many.padded = number == 0
            return candidate, output
        raise failure

    def _call(self, function: Function, x: Array, theta: Array, label: str = VALUES) -> Any:
        started, own = perf_counter(), x[:, 0] if self.flat_x else x
        try:
            # copies: the user's code must not be able to change our state
            return kept_call(label * self._settled, own, theta, lambda: function(own.copy(), theta.copy()))
        except SimulatorError:
            # our own words about what the simulator returned
            raise
        except Exception as error:
            raise self._raised(theta, type(error).__name__, f"{error} ({where_raised(error)})") from error
        finally:
            took = perf_counter() - started
            self.calls += 1
            self.seconds += took
            if label == VALUES:
                self._lately.append(took)
            if self._many is not None:
                self._many.took(took, label)

    def _in_a_process(self, x: Array, theta: Array) -> Any:
        """What the function gives, in a process that can be ended."""
        assert isinstance(self._many, ParallelCalls)
        return self._output(theta, self._many.one(x, theta))

    def _choose_gradient(self, x: Array, theta: Array) -> GradientKind:
        """JAX only where the program uses it already: importing it costs a second."""
        if "jax" not in sys.modules:
            return GradientKind.DIFFERENCE
        try:
            points, _ = self._distinct(x)
            output = self._call(self._jax_jacobian(), points, theta, GRADIENT)
            shaped_output(output, (len(points), self._q, len(self._support.names)), "gradient")
        except Exception:  # any failure to trace means: not a JAX function
            return GradientKind.DIFFERENCE
        return GradientKind.JAX

    def _jax_jacobian(self) -> Function:
        if self._jacobian is None:
            self._jacobian = jacobian(self._user_function)
        return self._jacobian


class OneOutcome(NamedTuple):
    """Outcome k of a simulator."""

    simulator: BoundSimulator
    k: int

    def one(self, x: Array, theta: Array) -> Array:
        """For theta (p,)."""
        return self.simulator.evaluate(x, theta)[:, self.k]

    def batch(self, x: Array, theta: Array) -> Array:
        """For theta (c, p)."""
        return self.simulator.batch(x, theta)[:, :, self.k]

    def gradient(self, x: Array, theta: Array) -> Array:
        return self.simulator.gradient(x, theta)[:, self.k]


def _many_calls(simulator: Simulator) -> ManyCalls | None:
    """How many theta are called for at a time; None for one after the other."""
    if simulator.batched:
        return BatchedCalls(simulator.function, simulator.batched)
    if simulator.jobs > 1 or simulator.timeout is not None:
        gradient = simulator.gradient if callable(simulator.gradient) else None
        return ParallelCalls(simulator.function, simulator.jobs, simulator.timeout, gradient)
    return None


# Whether a simulator's gradient is what its differences say.

#: a gradient that is a smaller share of the data is zero: central differences leave about 1e-10 of one
NO_EFFECT = 1e-8
#: rows that tell as much of a gradient as more would
MOST_ROWS = 10_000


def gradient_error(simulator: BoundSimulator, x: Array, theta: Array, units: Array) -> float:
    """Largest relative difference of the gradient from differences; of differences, from ones ten times as long.

    That of an emulator counts as it is: of step functions it is a difference over a cell, of the others it is analytic,
    and short differences would show their rounding only. NaN where no differences can be had. ``units`` (q, q) takes
    the outcomes to those in which they are compared. Of many rows some are looked at.
    """
    if simulator.outside is not None:
        return 0.0
    x = x[:: -(-len(x) // MOST_ROWS)]
    longer = 10.0 if simulator.gradient_kind is GradientKind.DIFFERENCE else 1.0
    try:
        pair = simulator.gradient(x, theta), simulator.difference_gradient(x, theta, longer)
    except NonFiniteError:
        return np.nan
    given, reference = (np.einsum("kl,nlp->nkp", units, one) for one in pair)
    size = np.sqrt(np.mean(reference**2, axis=(0, 1)))
    return float(np.max(np.abs(given - reference).max(axis=(0, 1)) / np.where(size > 0, size, 1.0)))
