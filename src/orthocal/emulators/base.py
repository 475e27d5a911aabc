"""What an emulator is: a simulator with a gradient, learnt from a table of runs by a regressor.

A regressor learns targets (N, r) from inputs (N, k), which lie in the unit cube of the runs; the targets have mean 0
and sd 1. What inputs and targets are is the layout: ``ComponentEmulator`` and ``StackedEmulator`` make them of a table
of runs, and outputs of the predictions. ``ExternalRegressor`` makes one of any object with ``fit`` and ``predict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..problem.simulator.emulator import Choice as Choice


class FittedRegressor(Protocol):
    """What was learnt. ``predict`` is all that is needed; of what it may have besides, without effect where it is not:

    ``gradient(inputs)``
        d predict / d inputs, (M, r, k). Without one the predictions count as step functions.
    ``variance(inputs)``
        Variance of the error of the predictions, (M, r).
    ``scatter_known``, ``scatter_var(inputs)``
        Whether there were replicates that differ, and the variance of a single run's targets about their mean function,
        (M, r); the variance above is then the mean's.
    ``lengthscales``
        How far each input can change before each target does, (r, k), in the unit cube.
    ``cell_width``
        Of step functions, how wide their steps are, (k,); those of others span the gaps between the runs' values.
    ``at(points)``
        The function theta (p,) -> (m, r) for points (m, d), computed once; it may have ``gradient(theta)``, (m, r, p).
    ``draws(count, rng)``
        So many functions that may be the one that was learnt, each of all targets together. Their mean is ``predict``,
        and their variance ``variance`` where there is one. Each has a gradient if this has one.
    ``kept``, ``mixed(weights)``
        The number of draws of its posterior that it keeps, whose spread is put right by held-out runs, and
        sum_i weights_i draw_i, smooth in theta, with a gradient.
    """

    def predict(self, inputs: Array) -> Array:
        """The targets at inputs (M, k), (M, r)."""


def that_have(fitted: Sequence[FittedRegressor], name: str) -> list[Any]:
    """What of these those have that have it, by a name above."""
    return [getattr(one, name) for one in fitted if hasattr(one, name)]


def common_lengthscale(fitted: Sequence[FittedRegressor], sizes: Sequence[Array] | None, p: int) -> Array | None:
    """Those of theta, (p,), for all targets together: larger ones count for more; None where there are none."""
    own = [lengthscales[:, -p:] for lengthscales in that_have(fitted, "lengthscales")]
    if len(own) < len(fitted):
        return None
    weights = np.concatenate([np.ones(len(one)) for one in own] if sizes is None else [size**2 for size in sizes])
    # outputs that do not vary have no length
    weights = weights if weights.any() else np.ones_like(weights)
    return np.asarray(np.average(np.vstack(own) ** -2.0, axis=0, weights=weights) ** -0.5)


Layout = Literal["components", "stacked"]


@runtime_checkable
class Regressor(Protocol):
    """Learns targets (N, r) from inputs (N, k), in the layout that suits it.

    It may have ``fit_components``, as ``fit``, for targets in order of falling importance; and ``quick()``, the same
    with a shorter way to learn, which shows how large the errors are of what keeps draws.

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


class ListedRegressor:
    """A base for the settings of a regressor that can be asked for by its name; what it learns is an object of its own.

    Called without arguments it has the default settings.
    """

    name: ClassVar[str]
    #: what it is, with its article
    words: ClassVar[str]
    layout: ClassVar[Layout]

    def fit(self, inputs: Array, targets: Array) -> FittedRegressor:
        """What was learnt."""
        raise NotImplementedError

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
