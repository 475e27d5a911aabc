"""What "closest" means: the loss that theta minimises, ∫ rho(|y_R - f(., t)|) dP_x, with |r|^2 = r'W r at each x.

Each loss is a function phi of z = |r|^2, and is given with its first two derivatives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np

from .arrays import Array
from .errors import InputError

__all__ = ["Absolute", "Huber", "Loss", "Slopes", "Squared"]

#: the absolute value is rounded off within this share of the residuals' size: a sum over nodes has corners that the
#: integral does not have
ROUNDING = 0.05


class Slopes(NamedTuple):
    """phi, phi' and phi'' at z.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> slopes = oc.losses.Squared().at(np.array([[4.0]]), typical=1.0, noise=1.0)
    >>> slopes.value, slopes.first, slopes.second
    (array([[4.]]), array([[1.]]), array([[0.]]))
    """

    value: Array
    first: Array
    second: Array


class Loss(Protocol):
    """A loss of residuals whose squared size at each node is z: what ``oc.methods.Joint(loss=...)`` takes.

    Examples
    --------
    >>> import orthocal as oc
    >>> [loss.name for loss in (oc.losses.Squared(), oc.losses.Absolute(), oc.losses.Huber())]
    ['squared', 'absolute', 'huber']
    """

    name: ClassVar[str]

    def at(self, z: Array, typical: float, noise: float) -> Slopes:
        """phi, phi' and phi'' at z (s, m).

        Parameters
        ----------
        z
            |r|^2 = r'W r of each draw and node.
        typical
            Size of the residuals at the best fit.
        noise
            Size of the noise.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> z = np.array([[1.0, 100.0]])
        >>> oc.losses.Huber(k=2.0).at(z, typical=1.0, noise=1.0).value
        array([[ 1., 36.]])
        """

    def describe(self) -> str | dict[str, Any]:
        """The user's choice, as what JSON can store.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.losses.Absolute().describe(), oc.losses.Huber(k=2.0).describe()
        ('absolute', {'kind': 'huber', 'k': 2.0})
        """


@dataclass(frozen=True)
class Squared:
    """∫ r'W r dP_x: theta* is the least-squares fit to the real process.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> oc.losses.Squared().at(np.array([[0.25, 4.0]]), typical=1.0, noise=1.0).value
    array([[0.25, 4.  ]])
    >>> oc.methods.Joint(loss=oc.losses.Squared()).describe()["loss"]
    'squared'
    """

    name: ClassVar[str] = "squared"

    def at(self, z: Array, typical: float, noise: float) -> Slopes:
        return Slopes(z, np.ones_like(z), np.zeros_like(z))

    def describe(self) -> str:
        return self.name


@dataclass(frozen=True)
class Absolute:
    """∫ |r| dP_x: theta* fits most of the domain, whatever the simulator does on a small part of it.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> oc.losses.Absolute().at(np.array([[0.25, 4.0]]), typical=0.0, noise=1.0).value
    array([[0.5, 2. ]])
    >>> oc.methods.Joint(loss=oc.losses.Absolute()).describe()["loss"]
    'absolute'
    """

    name: ClassVar[str] = "absolute"

    def at(self, z: Array, typical: float, noise: float) -> Slopes:
        size = np.sqrt(z + (ROUNDING * typical) ** 2)
        return Slopes(size, 0.5 / size, -0.25 / size**3)

    def describe(self) -> str:
        return self.name


@dataclass(frozen=True)
class Huber:
    """Squared for residuals smaller than k noise sds, and linear beyond: between the squared and the absolute loss.

    Parameters
    ----------
    k
        Where it turns, in standard deviations of the noise (of a typical outcome, where there are several).

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> squared, huber = oc.losses.Squared(), oc.losses.Huber(k=1.0)
    >>> z = np.array([[0.25, 1.0, 9.0]])
    >>> squared.at(z, 1.0, 1.0).value, huber.at(z, 1.0, 1.0).value
    (array([[0.25, 1.  , 9.  ]]), array([[0.25, 1.  , 5.  ]]))
    >>> oc.losses.Huber(k=0)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: k=0: give where Huber's loss turns, a positive number of noise sds
    """

    name: ClassVar[str] = "huber"

    k: float = 1.345

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, Real) or not 0 < self.k < np.inf:
            raise InputError(f"k={self.k!r}: give where Huber's loss turns, a positive number of noise sds")

    def at(self, z: Array, typical: float, noise: float) -> Slopes:
        turn = self.k * noise
        far = z > turn**2
        size = np.sqrt(np.where(far, z, 1.0))
        return Slopes(
            np.where(far, 2 * turn * size - turn**2, z),
            np.where(far, turn / size, 1.0),
            np.where(far, -0.5 * turn / size**3, 0.0),
        )

    def describe(self) -> dict[str, Any]:
        return {"kind": self.name, "k": float(self.k)}


class OwnLoss:
    """A loss of the user's: residuals at the nodes (m, q), in the outcomes' units, to a number.

    A function of two arguments is given the nodes' weights (m,) too.
    """

    def __init__(self, function: Callable[..., float]) -> None:
        self._function = function
        self._weighted = _takes_weights(function)

    def __call__(self, residual: Array, weights: Array) -> Array:
        """The loss of every draw, for residuals (s, m, q), (s,)."""
        more = (weights,) if self._weighted else ()
        values = [self._number(self._function(one, *more)) for one in residual]
        return np.array(values)

    def _number(self, value: Any) -> float:
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError(
                f"the loss {self.describe()['name']} returned {type(value).__name__}: it takes residuals at the nodes "
                "(m, q) and returns a number"
            ) from None

    def describe(self) -> dict[str, Any]:
        return {"kind": "own", "name": getattr(self._function, "__name__", type(self._function).__name__)}


#: what ``loss`` may be
Chosen = Literal["squared", "absolute"] | Loss | Callable[..., float]


def chosen_loss(loss: Any) -> Loss | OwnLoss:
    """A loss from its name, or from a function of the user's."""
    by_name: dict[str, Loss] = {"squared": Squared(), "absolute": Absolute()}
    if isinstance(loss, str):
        if loss not in by_name:
            raise InputError(f'loss={loss!r}: give "squared", "absolute", oc.losses.Huber(k) or a function')
        return by_name[loss]
    if isinstance(loss, type) or not (isinstance(loss, Squared | Absolute | Huber | OwnLoss) or callable(loss)):
        raise InputError(f'loss={loss!r}: give "squared", "absolute", oc.losses.Huber(k) or a function')
    return loss if isinstance(loss, Squared | Absolute | Huber | OwnLoss) else OwnLoss(loss)


def _takes_weights(function: Callable[..., float]) -> bool:
    """Whether a function must be given two arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # some compiled functions do not say
        return False
    needed = [
        one
        for one in parameters
        if one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return len(needed) > 1
