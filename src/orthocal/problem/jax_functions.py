"""Functions that are written in jax.numpy: in double precision, compiled, with their derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .given_simulator import Function


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
