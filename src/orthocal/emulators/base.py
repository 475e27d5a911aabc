"""What an emulator is: a simulator with a gradient, learnt from a table of runs by a regressor.

A regressor learns targets (N, r) from inputs (N, k), which lie in the unit cube of the runs; the targets have mean 0
and sd 1. What inputs and targets are is the layout: ``ComponentEmulator`` and ``StackedEmulator`` make them of a table
of runs, and outputs of the predictions. ``Foreign`` makes a regressor of any object with ``fit`` and ``predict``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays import Array
from ..errors import InputError

# What a regressor has learnt, and what more it may know: each a small Protocol.


class FittedRegressor(Protocol):
    """What was learnt. It may do more: see the Protocols below."""

    def predict(self, inputs: Array) -> Array:
        """The targets at inputs (M, k), (M, r)."""


@runtime_checkable
class WithGradient(FittedRegressor, Protocol):
    """Without a gradient the predictions count as step functions."""

    def gradient(self, inputs: Array) -> Array:
        """d predict / d inputs, (M, r, k)."""


@runtime_checkable
class WithVariance(FittedRegressor, Protocol):
    """Knows its error."""

    def variance(self, inputs: Array) -> Array:
        """Variance of the error of the predictions, (M, r)."""


@runtime_checkable
class WithScatter(WithVariance, Protocol):
    """Tells the scatter of a single run from its own error, where replicates do; its variance is then the mean's."""

    @property
    def scatter_known(self) -> bool:
        """Whether there were replicates that differ."""

    def scatter_var(self, inputs: Array) -> Array:
        """Variance of a single run's targets about their mean function, (M, r)."""


@runtime_checkable
class WithLengthscales(FittedRegressor, Protocol):
    """Knows how far its inputs can change before the targets do."""

    #: of each target, (r, k), in the unit cube
    lengthscales: Array


@runtime_checkable
class WithCells(FittedRegressor, Protocol):
    """Step functions that know how wide their steps are; those of others span the gaps between the runs' values."""

    #: in the unit cube, (k,)
    cell_width: Array


@runtime_checkable
class WithPoints(FittedRegressor, Protocol):
    """Can compute once, for fixed points, what does not depend on theta."""

    def at(self, points: Array) -> Callable[[Array], Array]:
        """The function theta (p,) -> (m, r) for points (m, d); it may have ``gradient(theta)``, (m, r, p)."""


@runtime_checkable
class WithDraws(FittedRegressor, Protocol):
    """Knows its error as a distribution of functions, not only point by point."""

    def draws(self, count: int, rng: np.random.Generator) -> Sequence[FittedRegressor]:
        """So many functions that may be the one that was learnt, each of all targets together.

        Their mean is ``predict``, and their variance ``variance`` where there is one. Each has a gradient if this has
        one. They may be made when they are asked for.
        """


@runtime_checkable
class WithKept(FittedRegressor, Protocol):
    """Keeps draws of its posterior, whose spread is put right by held-out runs; see ``emulators/draws/spread.py``."""

    @property
    def kept(self) -> int:
        """Number of the draws."""

    def mixed(self, weights: Array) -> FittedRegressor:
        """sum_i weights_i draw_i, smooth in theta, with a gradient."""


def common_lengthscale(fitted: Sequence[FittedRegressor], sizes: Sequence[Array] | None, p: int) -> Array | None:
    """Those of theta, (p,), for all targets together: larger ones count for more; None where there are none."""
    own = [one.lengthscales[:, -p:] for one in fitted if isinstance(one, WithLengthscales)]
    if len(own) < len(fitted):
        return None
    weights = np.concatenate([np.ones(len(one)) for one in own] if sizes is None else [size**2 for size in sizes])
    # outputs that do not vary have no length
    weights = weights if weights.any() else np.ones_like(weights)
    return np.asarray(np.average(np.vstack(own) ** -2.0, axis=0, weights=weights) ** -0.5)


Layout = Literal["components", "stacked"]


@runtime_checkable
class Quick(Protocol):
    """Has a shorter way to learn, which shows how large its errors are."""

    def quick(self) -> Regressor:
        """With fewer draws."""


@runtime_checkable
class Regressor(Protocol):
    """Learns targets (N, r) from inputs (N, k), in the layout that suits it.

    Examples
    --------
    >>> import orthocal as oc
    >>> isinstance(oc.emulators.GP(), oc.emulators.Regressor)
    True
    >>> {name: made().layout for name, made in oc.emulators.EMULATORS.items()}
    {'gp': 'components', 'bart': 'stacked', 'bmars': 'components', 'forest': 'components', 'mlp': 'components'}
    """

    @property
    def layout(self) -> Layout:
        """What inputs and targets are, for runs at common points: ``"components"`` or ``"stacked"``.

        Examples
        --------
        >>> import orthocal as oc
        >>> oc.emulators.GP().layout, oc.emulators.BART().layout
        ('components', 'stacked')
        """

    def fit(self, inputs: Array, targets: Array) -> FittedRegressor:
        """What was learnt, which may be the regressor itself: it has ``predict``.

        Parameters
        ----------
        inputs
            (N, k), in the unit cube of the runs.
        targets
            (N, r), with mean 0 and sd 1.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> inputs = np.linspace(0, 1, 12)[:, None]
        >>> fitted = oc.emulators.GP(nu=2.5).fit(inputs, np.sin(6 * inputs))
        >>> bool(abs(fitted.predict(np.array([[0.5]])) - np.sin(3.0)) < 0.01)
        True
        """


@runtime_checkable
class LearnsComponents(Protocol):
    """Has a way of its own to learn targets in order of falling importance."""

    def fit_components(self, inputs: Array, targets: Array) -> FittedRegressor:
        """As ``fit``."""


class ListedRegressor(Regressor, Protocol):
    """A regressor that can be asked for by its name; called without arguments it has the default settings."""

    name: ClassVar[str]
    #: what it is, with its article
    words: ClassVar[str]


class Settings:
    """A base for the choices of a listed regressor: what it learns is an object of its own."""

    words: ClassVar[str]

    def predict(self, inputs: Array) -> Array:
        """An error: settings have not learnt anything; what ``fit`` returns predicts.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> oc.emulators.GP().predict(np.zeros((1, 1)))
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: these settings of a Gaussian process with a linear trend have not been
            fitted: call fit, and predict of what it returns
        """
        raise InputError(
            f"these settings of {self.words} have not been fitted: call fit, and predict of what it returns"
        )


#: name -> regressor, in the order of ``emulators/__init__.py``
EMULATORS: dict[str, type[ListedRegressor]] = {}

Listed = TypeVar("Listed", bound=type[ListedRegressor])


def listed(regressor: Listed) -> Listed:
    """Of a class: a regressor that can be named."""
    EMULATORS[regressor.name] = regressor
    return regressor


class Range(NamedTuple):
    """An affine map of columns: v -> (v - shift) / scale."""

    shift: Array
    scale: Array

    @classmethod
    def of_box(cls, values: Array) -> Range:
        """The columns' ranges become [0, 1]; a constant column becomes 0."""
        low, high = values.min(axis=0), values.max(axis=0)
        return cls(low, np.where(high > low, high - low, 1.0))

    @classmethod
    def of_spread(cls, values: Array) -> Range:
        """The columns get mean 0 and sd 1; a constant column becomes 0."""
        mean, sd = values.mean(axis=0), values.std(axis=0)
        # what rounding leaves of a constant is no spread
        return cls(mean, np.where(sd > 1e-12 * np.abs(mean), sd, 1.0))

    def apply(self, values: Array) -> Array:
        return np.asarray((values - self.shift) / self.scale)


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
