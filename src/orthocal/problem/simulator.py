"""The simulator f(x, theta) and its gradient df/dtheta: called, checked, counted and timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from ..arrays import Array, shaped_output
from ..errors import InputError, NonFiniteError, SimulatorError, where_raised
from ..execution.calls import ParallelCalls
from ..execution.clock import Clock, Spent
from ..execution.keeping import GRADIENT, VALUES, kept_call
from ..progress import progress_bar
from .distinct import DistinctPoints
from .emulator import EmulatorLike
from .parameters import Support
from .transforms import TRANSFORMS, Transforms

#: relative step of a central difference: the cube root of the rounding error balances the two errors
DIFFERENCE_STEP = float(np.cbrt(np.finfo(np.float64).eps))

#: f(x, theta) or its gradient as the user wrote it: whatever it returns is checked
Function: TypeAlias = Callable[[Array, Array], Any]
NamedGradient: TypeAlias = Literal["auto", "jax", "difference"]
NAMED_GRADIENTS: tuple[NamedGradient, ...] = get_args(NamedGradient)
Gradient: TypeAlias = Function | NamedGradient


@runtime_checkable
class WithGradient(Protocol):
    """A function, or an object that can be called as one, with its gradient."""

    gradient: Gradient


class GradientKind(StrEnum):
    """Where df/dtheta comes from: the user, JAX, differences, or what will be chosen at the first use."""

    GIVEN = "given"
    JAX = "jax"
    DIFFERENCE = "difference"
    AUTO = "auto"


class Simulator:
    """A simulator with a chosen gradient.

    Parameters
    ----------
    function
        ``f(x, theta)`` with x (m, d), or (m,) if the field data's x is a vector, and theta (p,);
        returns (m,) or (m, q).
    gradient
        ``g(x, theta)`` that returns (m, p) or (m, q, p); ``"jax"`` where ``function`` is written in
        jax.numpy; ``"difference"`` for central differences; ``"auto"`` (default) takes JAX if the
        program has imported it and the function can be traced, differences otherwise.
    step
        Step of the differences, relative to the parameter's scale; default 6e-6. Give a longer one for a simulator
        whose output is rounded or noisy.
    jobs
        Processes that call the function, for one that takes long: where many theta are asked for at a time they are
        shared out. The draws do not depend on it.
    """

    def __init__(
        self,
        function: Function,
        gradient: Gradient = "auto",
        step: float | None = None,
        jobs: int = 1,
    ) -> None:
        if not callable(function):
            raise InputError(f"the simulator is {type(function).__name__}: give a function f(x, theta)")
        if not callable(gradient) and gradient not in NAMED_GRADIENTS:
            raise InputError(f'gradient={gradient!r}: give a function g(x, theta), "auto", "jax" or "difference"')
        if step is not None and not 0 < step < 1:
            raise InputError(f"step={step}: give the step of the differences as a share of the parameter's scale")
        if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
            raise InputError(f"jobs={jobs!r}: give the number of processes that call the simulator, 1 or more")
        self.function = function
        self.gradient = gradient
        self.step = step
        self.jobs = jobs

    def __call__(self, x: Array, theta: Array) -> Any:
        return self.function(x, theta)


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
        chosen = _with_chosen_gradient(simulator)
        self._function = self._user_function = simulator
        self._support = support
        self._q = q
        self.flat_x = flat_x
        self.transforms = transforms or Transforms()
        self._settled = False
        self.calls = 0
        self.seconds = 0.0
        self.worker_cpu = 0.0
        self.search = Spent()
        self.failures = 0
        self.failure: str | None = None
        self._step = float(chosen.step or DIFFERENCE_STEP)
        self._parallel = ParallelCalls(chosen.function, chosen.jobs) if chosen.jobs > 1 else None
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
        place, advice = self._support.describe(theta), "restrict the priors to where it works, or mend it there"
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
        clock = Clock(self)
        yield
        self.search = self.search.plus(clock.spent())

    def batch(self, x: Array, theta: Array, label: str | None = None) -> Array:
        """f(x, theta_c) for theta (c, p), as (c, m, q); many calls show a bar with a label."""
        models = np.empty((len(theta), len(x), self._q))
        # the first call of all finds out what the function takes
        if self._parallel is not None and self._settled and len(theta) > 1:
            allowed = np.array([self._support.allows(one) for one in theta])
            models[~allowed] = np.nan
            models[allowed] = self._shared_out(self._parallel, x, theta[allowed], label)
            return models
        for c, one in enumerate(theta if label is None else progress_bar(theta, label)):
            models[c] = self.evaluate(x, one)
        return models

    def _shared_out(self, calls: ParallelCalls, x: Array, theta: Array, label: str | None) -> Array:
        """f(x, theta_c) from several processes."""
        started, models = perf_counter(), np.empty((len(theta), len(x), self._q))
        points, place = self._distinct(x)
        answers = calls.answers(points[:, 0] if self.flat_x else points, theta)
        for c, answer in answers if label is None else progress_bar(answers, label):
            self.worker_cpu += answer.cpu
            try:
                if answer.error is not None:
                    raise self._raised(theta[c], *answer.error)
                models[c] = self._finite(shaped_output(answer.output, (len(points), self._q)), points, theta[c])[place]
            except NonFiniteError as error:
                self._note(error)
                models[c] = np.nan
        self.calls += len(theta)
        self.seconds += perf_counter() - started
        return models

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
        points, place = self._distinct(x)
        function = self._jax_jacobian() if self._given_gradient is None else self._given_gradient
        output = self._call(function, points, theta, GRADIENT)
        gradient = shaped_output(output, (len(points), self._q, len(self._support.names)), "gradient")[place]
        if self.transforms:
            gradient = self._chained(gradient, x, theta)
        if not np.isfinite(gradient).all():
            raise NonFiniteError(
                f"the gradient is NaN or infinite at {self._support.describe(theta)}: mend it there, "
                'or use gradient="difference"'
            )
        return gradient

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
        support = self._support
        size = np.clip(np.abs(theta), 0.1 * support.spread, support.spread)
        # a theta that is huge beside its prior must still move
        meant = np.maximum(lengthened * self._step * size, 1e-8 * np.abs(theta))
        # the steps that are made, not those that were meant: theta + h is rounded
        steps = (theta + meant) - theta
        p = len(theta)
        moved = self._moved(x, theta, np.vstack([np.diag(steps), -np.diag(steps)]))
        there, back = moved[:p], moved[p:]
        columns = [(there[j] - back[j]) / (2 * h) for j, h in enumerate(steps)]
        for j in range(p):
            if not np.isfinite(columns[j]).all():
                columns[j] = self._one_sided(x, theta, j, float(steps[j]))
        return np.stack(columns, axis=-1)

    def _moved(self, x: Array, theta: Array, shifts: Array) -> Array:
        """f(x, theta + shift) for each of the shifts (c, p), NaN where it leaves the bounds of the priors."""
        moved = theta + shifts
        inside = np.all((shifts == 0) | ((self._support.lower < moved) & (moved < self._support.upper)), axis=1)
        models = np.full((len(moved), len(x), self._q), np.nan)
        models[inside] = self.batch(x, moved[inside])
        return models

    def _one_sided(self, x: Array, theta: Array, j: int, h: float) -> Array:
        here = self.required(x, theta)
        for side in (h, -h):
            near, far = self._moved(x, theta, np.outer([side, 2 * side], np.eye(len(theta))[j]))
            difference = (4 * near - 3 * here - far) / (2 * side)
            if np.isfinite(difference).all():
                return np.asarray(difference)
        raise NonFiniteError(
            f"the simulator returned NaN or infinity on either side of {self._support.describe(theta)}: "
            "restrict the priors to where it works, or mend it there"
        )

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
        if not self._settled and type(output).__module__.startswith("jax"):
            if self._parallel is not None:
                raise InputError("a simulator of JAX runs in this process, on all of its cores: leave jobs out")
            # JAX computes in single precision and step by step unless told otherwise
            self._function, output = self._compiled(self._function, points, theta)
        return shaped_output(output, (len(points), self._q))[place]

    def _compiled(self, function: Function, x: Array, theta: Array) -> tuple[Function, Any]:
        """A JAX function in double precision, compiled where that is possible, and its output."""
        import jax

        for candidate in (_in_double(jax.jit(function)), _in_double(function)):
            try:
                return candidate, self._call(candidate, x, theta)
            except SimulatorError as error:
                failure = error
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
            self.calls += 1
            self.seconds += perf_counter() - started

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
            try:
                import jax
            except ImportError:
                raise InputError('gradient="jax" needs JAX: install orthocal[jax], or take "difference"') from None
            self._jacobian = _in_double(jax.jit(jax.jacfwd(self._user_function, argnums=1)))
        return self._jacobian


def _with_chosen_gradient(simulator: Function) -> Simulator:
    """What the user gave with the gradient that it brings, or ``"auto"``."""
    if isinstance(simulator, Simulator):
        return simulator
    gradient = simulator.gradient if isinstance(simulator, WithGradient) else "auto"
    if callable(gradient) or (isinstance(gradient, str) and gradient in NAMED_GRADIENTS):
        return Simulator(simulator, gradient)
    # an attribute of that name that is something else
    return Simulator(simulator)


def _in_double(function: Function) -> Function:
    """A JAX function whose calls are in double precision and give NumPy arrays."""
    import jax

    def call(x: Array, theta: Array) -> Any:
        with jax.enable_x64(True):
            return np.asarray(function(x, theta))

    return call
