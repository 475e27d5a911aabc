"""A constraint between the parameters: the prior is pi(theta) 1[constraint] / constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..arrays import Array, BoolArray
from ..errors import InputError, where_raised
from .expression import parsed

#: how a constraint that is no expression is written
OPAQUE = "a function"


class Constraint:
    """Which theta are allowed: an expression of the parameters' names, or a function of theta (p,) to True or False.

    Attributes
    ----------
    text
        The expression, or "a function".
    """

    def __init__(self, given: str | Callable[[Array], Any], names: tuple[str, ...]) -> None:
        if not isinstance(given, str) and not callable(given):
            raise InputError(
                f"constraint={given!r}: give a function of theta that returns True or False, or an expression of the "
                "parameters' names, for instance 'a + b < 1'"
            )
        self.given, self._names = given, names
        self.text = given if isinstance(given, str) else OPAQUE
        self._expression = parsed(given, names) if isinstance(given, str) else None

    def __call__(self, theta: Array) -> BoolArray:
        """Whether theta (..., p) is allowed."""
        if self._expression is not None:
            return self._expression(theta)
        rows = theta.reshape(-1, theta.shape[-1])
        return np.array([self._asked(one) for one in rows], dtype=bool).reshape(theta.shape[:-1])

    def _asked(self, theta: Array) -> bool:
        assert not isinstance(self.given, str)
        try:
            answer = self.given(theta.copy())
        except Exception as error:
            raise InputError(
                f"the constraint raised {type(error).__name__} at {self._described(theta)}: {error} "
                f"({where_raised(error)}); it must return True or False for every theta"
            ) from error
        array = np.asarray(answer)
        if array.dtype != bool or array.size != 1:
            raise InputError(
                f"the constraint returned {answer!r} at {self._described(theta)}: it must return True or False, and "
                f"gets the {len(theta)} parameters as one array"
            )
        return bool(array.ravel()[0])

    def _described(self, theta: Array) -> str:
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(self._names, theta, strict=True))
