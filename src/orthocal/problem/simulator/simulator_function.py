"""A simulator as the user gives it: f(x, theta), where its gradient comes from, how many theta it takes at a time."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any, Literal, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np

from ...arrays import Array
from ...errors import InputError
from ...execution.work.calls import Elsewhere
from ...execution.work.simulation import ByName

#: f(x, theta) or its gradient as the user wrote it: whatever it returns is checked
Function: TypeAlias = Callable[[Array, Array], Any]
NamedGradient: TypeAlias = Literal["auto", "jax", "difference"]
NAMED_GRADIENTS: tuple[NamedGradient, ...] = get_args(NamedGradient)
Gradient: TypeAlias = Function | NamedGradient


@runtime_checkable
class HasGradient(Protocol):
    """A function, or an object that can be called as one, with its gradient."""

    gradient: Gradient


class Simulator:
    """A simulator with a chosen gradient, and a way to call it for many theta at a time.

    Parameters
    ----------
    function
        ``f(x, theta)`` with x (m, d), or (m,) if the field data's x is a vector, and theta (p,);
        returns (m,) or (m, q).
    gradient
        ``g(x, theta)`` that returns (m, p) or (m, q, p); ``"jax"`` where ``function`` is written in
        jax.numpy; ``"difference"`` for central differences; ``"auto"`` (default) takes the function's own
        ``gradient``, or JAX if the program has imported it and the function can be traced, differences otherwise.
    step
        Step of the differences, relative to the parameter's scale; default 6e-6. Give a longer one for a simulator
        whose output is rounded or noisy.
    jobs
        Processes that call the function, for one that takes long: where many theta are asked for at a time they are
        shared out, and the starts of the search for the best fit go down side by side. Threads, where the work is done
        elsewhere, by a server for instance. The draws do not depend on it. Default: 1, or as many calls as a server
        says that it takes.
    batched
        The function takes many theta at a time: ``f(x, theta)`` with theta (c, p) returns (c, m) or (c, m, q), for
        instance by ``jax.vmap``. A number is the largest c. The gradient ``g(x, theta)`` still takes one theta (p,).
    timeout
        Seconds after which a call is ended, in processes; its theta is impossible.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> def decay(x, theta):
    ...     return theta[0] * np.exp(-theta[1] * x)
    >>> def gradient(x, theta):
    ...     shape = np.exp(-theta[1] * x)
    ...     return np.column_stack([shape, -theta[0] * x * shape])
    >>> simulator = oc.Simulator(decay, gradient)
    >>> simulator(np.array([0.0, 1.0]), np.array([2.0, 1.0])).round(2)
    array([2.  , 0.74])
    >>> oc.Simulator(decay, step=1e-3).gradient
    'auto'

    One that takes many theta at a time:

    >>> def batch(x, theta):
    ...     return theta[:, :1] * np.exp(-theta[:, 1:] * x)
    >>> oc.Simulator(batch, batched=100)(np.array([0.0, 1.0]), np.ones((5, 2))).shape
    (5, 2)
    """

    def __init__(
        self,
        function: Function,
        gradient: Gradient = "auto",
        step: float | None = None,
        jobs: int | None = None,
        batched: bool | int = False,
        timeout: float | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(f"the simulator is {type(function).__name__}: give a function f(x, theta)")
        if not callable(gradient) and gradient not in NAMED_GRADIENTS:
            raise InputError(f'gradient={gradient!r}: give a function g(x, theta), "auto", "jax" or "difference"')
        if step is not None and not 0 < step < 1:
            raise InputError(f"step={step}: give the step of the differences as a share of the parameter's scale")
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
            raise InputError(f"jobs={jobs!r}: give the number of processes that call the simulator, 1 or more")
        if not isinstance(batched, int) or batched < 0:
            raise InputError(f"batched={batched!r}: give True, or the largest number of theta at a time")
        _check_combination(jobs, batched, timeout, isinstance(function, Elsewhere))
        self.function = function
        self.gradient = _own_gradient(function) if gradient == "auto" else gradient
        self.step = own_step(function) if step is None else step
        self.jobs = jobs or (function.at_a_time if isinstance(function, Elsewhere) else 1)
        self.batched = batched
        self.timeout = timeout

    def __call__(self, x: Array, theta: Array) -> Any:
        return self.function(x, theta)


def _check_combination(jobs: int | None, batched: bool | int, timeout: float | None, elsewhere: bool) -> None:
    """What cannot be had together."""
    if batched and jobs is not None and jobs > 1:
        raise InputError(
            f"jobs={jobs} and batched={batched}: a function that takes many theta at a time is called in this process, "
            "and shares its work out itself; leave one of them out"
        )
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise InputError(f"timeout={timeout!r}: give seconds, or None")
    if batched or elsewhere:
        raise InputError(
            "timeout: a call can be ended only in a process of its own, and a batched function and one whose work is "
            "done elsewhere have none; leave it out, or give the time-out to what does the work"
        )


def with_chosen_gradient(simulator: Function) -> Simulator:
    """What the user gave with the gradient that it brings, or ``"auto"``."""
    return simulator if isinstance(simulator, Simulator) else Simulator(simulator)


def _own_gradient(function: Function) -> Gradient:
    gradient = function.gradient if isinstance(function, HasGradient) else "auto"
    if callable(gradient) or (isinstance(gradient, str) and gradient in NAMED_GRADIENTS):
        return gradient
    # an attribute of that name that is something else
    return "auto"


def own_step(function: object) -> float | None:
    """How long the steps of a function's differences should be, where it says so because its output is noisy."""
    step: float | None = getattr(function, "difference_step", None)
    return step


def by_names(simulator: Function, names: tuple[str, ...]) -> Function:
    """The same with theta in the order of these names, where the simulator knows its parameters by name."""
    if isinstance(simulator, Simulator):
        function = by_names(simulator.function, names)
        if function is simulator.function:
            return simulator
        other = copy(simulator)
        other.function = function
        return other
    return simulator.for_parameters(names) if isinstance(simulator, ByName) else simulator


# Functions that are written in jax.numpy: in double precision, compiled, with their derivatives.


def is_of_jax(output: object) -> bool:
    """Whether a function that returned this is written in jax.numpy."""
    return type(output).__module__.startswith("jax")


def compiled(function: Function) -> tuple[Function, Function]:
    """The function in double precision, compiled, and as it is, for what cannot be compiled."""
    import jax

    return _in_double(jax.jit(function)), _in_double(function)


def jacobian(function: Function) -> Function:
    """g(x, theta) = df/dtheta, compiled."""
    try:
        import jax
    except ImportError:
        raise InputError('gradient="jax" needs JAX: install orthocal[jax], or take "difference"') from None
    return _in_double(jax.jit(jax.jacfwd(function, argnums=1)))


def _in_double(function: Function) -> Function:
    """A JAX function whose calls are in double precision and give NumPy arrays."""
    import jax

    def call(x: Array, theta: Array) -> Any:
        with jax.enable_x64(True):
            return np.asarray(function(x, theta))

    return call
