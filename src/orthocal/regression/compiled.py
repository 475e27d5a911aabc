"""What the compiled samplers share: a state a chain that an update changes in place, chains in threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray
from ..errors import InputError
from ..progress import announced, progress_bar

# Samplers of functions that are written for one chain: what is the same for all of them.

#: what predictions need of a draw: values and codes
Record: TypeAlias = dict[str, NDArray[Any]]


class Gridded(ABC):
    """A sampler of functions that are constant in the cells of a grid: data in one cell are one observation to it."""

    @property
    @abstractmethod
    def cut_points(self) -> list[Array]:
        """The grid's, of each input, ascending."""

    @abstractmethod
    def cells(self, x: Array) -> IntArray:
        """The cell that each of x (m, d) lies in, (m,); the last input runs fastest."""

    @abstractmethod
    def on_cells(self, cells: IntArray, place: IntArray, nodes: Array) -> Self:
        """The same posterior with ``cells`` (k,) as data points, and other nodes; place (n,): in which are the data.

        A cell without data may be among them.
        """

    @abstractmethod
    def in_cells(self, records: Record) -> Array:
        """The recorded functions, s of them, in all cells of the grid, (s, cells)."""

    @abstractmethod
    def at_cells(self, records: Record) -> Array:
        """The recorded functions, s of them, at the sampler's own data points, (s, k)."""


class ChainwiseSampler:
    """A base for samplers that are written for one chain; what is optional has a default.

    A new prior overrides ``one_draw``, and ``one_record`` and ``one_prediction`` if it shall predict at new points. If
    it can multiply its noise variances by a number at each draw, it sets ``takes_noise_scale`` and its ``one_draw``
    takes ``noise_scale``. Where the noise is unknown, others are priors of the bias in units of the noise.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> class Offset(oc.bias.ChainwiseSampler):
    ...     def __init__(self, setting):
    ...         self.points = len(setting.x) + len(setting.nodes)
    ...
    ...     def one_draw(self, rng, state, residual):
    ...         precision = 1 + len(residual)
    ...         level = rng.normal(residual.sum() / precision, precision**-0.5)
    ...         return level, np.full(self.points, level)
    >>> x = np.linspace(0, 1, 20)[:, None]
    >>> setting = oc.bias.Setting(x, x[:5], np.ones(1), np.ones(20), np.full(20, 3.0), x, 1.0)
    >>> rngs = [np.random.default_rng(c) for c in range(4)]
    >>> states, values = Offset(setting).draw(rngs, None, np.tile(setting.residual, (4, 1)))
    >>> values.shape
    (4, 25)
    """

    takes_noise_scale = False

    def one_draw(self, rng: np.random.Generator, state: Any, residual: Array, **scale: float) -> tuple[Any, Array]:
        """One chain's next state (from None at first), and b at data and nodes (n + m,), given the residual (n,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> class Offset(oc.bias.ChainwiseSampler):
        ...     def one_draw(self, rng, state, residual):
        ...         level = rng.normal(residual.mean(), len(residual) ** -0.5)
        ...         return level, np.full(len(residual), level)
        >>> state, values = Offset().one_draw(np.random.default_rng(1), None, np.zeros(4))
        >>> bool((values == state).all())
        True
        """
        raise NotImplementedError

    def one_record(self, state: Any) -> Record:
        """What ``one_prediction`` needs of a state, as arrays.

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> class Offset(oc.bias.ChainwiseSampler):
        ...     def one_record(self, state):
        ...         return {"level": np.array([state])}
        >>> Offset().one_record(0.5)
        {'level': array([0.5])}
        >>> Offset().record([0.5, 0.7])["level"].shape
        (2, 1)
        """
        return {}

    def one_prediction(self, record: Record, x_new: Array) -> Array:
        """b at x_new (m, d) of a recorded draw, (m,).

        Examples
        --------
        >>> import numpy as np, orthocal as oc
        >>> class Offset(oc.bias.ChainwiseSampler):
        ...     def one_prediction(self, record, x_new):
        ...         return np.full(len(x_new), record["level"][0])
        >>> Offset().one_prediction({"level": np.array([0.5])}, np.zeros((3, 1)))
        array([0.5, 0.5, 0.5])
        >>> oc.bias.ChainwiseSampler().one_prediction({}, np.zeros((3, 1)))
        Traceback (most recent call last):
            ...
        orthocal.errors.InputError: ChainwiseSampler cannot predict the bias at new points
        """
        raise InputError(f"{type(self).__name__} cannot predict the bias at new points")

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Any, Array]:
        states = [None] * len(rngs) if state is None else state
        scales = [{} if noise_scale is None else {"noise_scale": float(noise_scale[c])} for c in range(len(rngs))]
        drawn = [
            self.one_draw(rng, own, row, **scale)
            for rng, own, row, scale in zip(rngs, states, residual, scales, strict=True)
        ]
        return [state for state, _ in drawn], np.stack([values for _, values in drawn])

    def record(self, state: Any) -> Record:
        records = [self.one_record(one) for one in state]
        return {name: padded([record[name] for record in records]) for name in records[0]}

    def predict(self, rng: np.random.Generator, records: Record, x_new: Array) -> Array:
        if not records:
            return self.one_prediction({}, x_new)
        count = len(next(iter(records.values())))
        each = [{name: values[s] for name, values in records.items()} for s in range(count)]
        return np.stack([self.one_prediction(record, x_new) for record in each])

    def findings(self) -> dict[str, Any]:
        return {}

    def settings(self) -> dict[str, Any]:
        return {"kind": type(self).__name__}


def padded(arrays: list[NDArray[Any]]) -> NDArray[Any]:
    """Arrays (l, ...) of different lengths as one, (number, longest, ...), with zeros at their ends."""
    longest = max(len(array) for array in arrays)
    whole = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(whole, arrays, strict=True):
        row[: len(array)] = array
    return whole


#: chains run in threads if a draw costs more than this, below it threads cost more than they save
THREADED_COST = 500_000


class CompiledSampler(ChainwiseSampler):
    """Warm-started updates: the state persists, only the response changes.

    A state is a NamedTuple of arrays; its ``fit`` (n + m,) is the function at data and nodes.

    Attributes
    ----------
    title
        The prior's name in messages.
    start_updates
        Updates from the empty state before the first draw.
    coefficient
        The state's array of normal coefficients.
    """

    takes_noise_scale = True
    coefficient = "mu"
    title = ""
    start_updates = 100

    def empty(self) -> Any:
        """The state of a chain before its first update."""
        raise NotImplementedError

    def update(
        self, rng: np.random.Generator, state: Any, response: Array, starting: bool, noise_scale: float | Array
    ) -> None:
        """One update in place; ``starting`` before the first draw. ``noise_scale`` multiplies the noise variances."""
        raise NotImplementedError

    @property
    def updates(self) -> int:
        """Updates a draw."""
        return 1

    @property
    def cost(self) -> int:
        """Roughly how many simple operations an update takes."""
        return 0

    def normal(self, state: Any) -> Array:
        """The coefficients of a state that are normal a priori, in prior sds, (k,)."""
        raise NotImplementedError

    def coefficients(self, state: list[Any]) -> tuple[Array, Array]:
        """Sum of squares and number of the normal coefficients of each chain, (c,)."""
        own = [self.normal(one) for one in state]
        return np.array([one @ one for one in own]), np.array([len(one) for one in own])

    def rescaled(self, state: list[Any], factor: Array) -> list[Any]:
        """All normal coefficients times ``factor`` (c,), in place."""
        for own, times in zip(state, factor, strict=True):
            for values in (getattr(own, self.coefficient), own.fit):
                values *= times
        return state

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[list[Any], Array]:
        """As samplers do; ``noise_scale`` may be one a data point, (c, n)."""
        scales = [1.0] * len(rngs) if noise_scale is None else list(noise_scale)
        responses = [np.ascontiguousarray(row) for row in residual]
        starting = state is None
        states = [self.empty() for _ in rngs] if starting else state
        if starting:
            with announced(f"compiling {self.title} for its first use, some seconds, once"):
                self.update(rngs[0], states[0], responses[0], True, scales[0])
        count = self.start_updates if starting else self.updates

        steps: list[Iterable[int]] = [range(count) for _ in rngs]
        if starting:
            # of many data these take minutes; made here, because threads do not know whether progress is shown
            steps[0] = progress_bar(steps[0], f"first updates of {self.title}")

        def run(c: int) -> None:
            for _ in steps[c]:
                self.update(rngs[c], states[c], responses[c], starting, scales[c])

        if len(rngs) > 1 and count * self.cost > THREADED_COST:
            with ThreadPoolExecutor() as pool:
                list(pool.map(run, range(len(rngs))))
        else:
            for c in range(len(rngs)):
                run(c)
        return states, np.stack([own.fit for own in states])
