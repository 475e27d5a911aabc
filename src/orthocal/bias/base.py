"""What a bias prior is: one small Protocol for the prior, one for the sampler it becomes.

A prior is given the field data once (``prepare``) and then draws functions b from Pi(b | residual), each at the
data points and at the nodes together, for all chains at a time. Outcomes are whitened, so their components are
independent a priori and each has a sampler of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from ..arrays import Array
from ..errors import InputError


class Setting(NamedTuple):
    """What a prior may know of one (whitened) outcome before it draws.

    Attributes
    ----------
    x, nodes
        Data points (n, d) and nodes (m, d); m may be 0.
    span
        Width of the domain in each input, (d,).
    noise_var
        Noise variance of each observation, (n,): ones where the noise is the same everywhere.
    residual
        y - f(x, theta_tilde), (n,), whitened.
    gradient
        df/dtheta at the data and theta_tilde, (n, p), whitened.
    unit
        Whitened units in one unit of the outcome.
    """

    x: Array
    nodes: Array
    span: Array
    noise_var: Array
    residual: Array
    gradient: Array
    unit: float


class BiasSampler(Protocol):
    """Draws of the bias given a residual."""

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Any, Array]:
        """One draw for each chain: residual (c, n) -> the next state, and b at data and nodes (c, n + m).

        ``state`` is None at first. ``noise_scale`` (c,) multiplies the noise variances where the noise is sampled;
        it is given only to samplers whose attribute ``takes_noise_scale`` is true.
        """

    def record(self, state: Any) -> dict[str, Array]:
        """What ``predict`` needs of a state, as arrays with the chain first."""

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        """b at x_new (m, d) for s recorded draws, (s, m): the same functions that were drawn."""

    def findings(self) -> dict[str, Any]:
        """What a user should know of the fitted prior: numbers and lists that can be stored as JSON."""

    def settings(self) -> dict[str, Any]:
        """All that is needed to rebuild the sampler of a stored posterior, as what JSON can store."""


class ChainwiseSampler:
    """A base for samplers that are written for one chain; what is optional has a default.

    A new prior overrides ``one_draw``, and ``one_record`` and ``one_prediction`` if it shall predict at new points. If
    it can multiply its noise variances by a number at each draw, it sets ``takes_noise_scale`` and its ``one_draw``
    takes ``noise_scale``: it can then be used with sampled noise.
    """

    takes_noise_scale = False

    def one_draw(self, rng: np.random.Generator, state: Any, residual: Array, **scale: float) -> tuple[Any, Array]:
        """One chain's next state (from None at first), and b at data and nodes (n + m,), given the residual (n,)."""
        raise NotImplementedError

    def one_record(self, state: Any) -> dict[str, Array]:
        """What ``one_prediction`` needs of a state, as arrays."""
        return {}

    def one_prediction(self, record: dict[str, Array], x_new: Array) -> Array:
        """b at x_new (m, d) of a recorded draw, (m,)."""
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

    def record(self, state: Any) -> dict[str, Array]:
        records = [self.one_record(one) for one in state]
        return {name: padded([record[name] for record in records]) for name in records[0]}

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        if not records:
            return self.one_prediction({}, x_new)
        count = len(next(iter(records.values())))
        each = [{name: values[s] for name, values in records.items()} for s in range(count)]
        return np.stack([self.one_prediction(record, x_new) for record in each])

    def findings(self) -> dict[str, Any]:
        return {}

    def settings(self) -> dict[str, Any]:
        return {"kind": type(self).__name__}


def padded(arrays: list[Array]) -> Array:
    """Arrays (l, ...) of different lengths as one, (number, longest, ...), with zeros at their ends."""
    longest = max(len(array) for array in arrays)
    whole = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(whole, arrays, strict=True):
        row[: len(array)] = array
    return whole


class BiasPrior(Protocol):
    """A nonparametric prior on the bias."""

    def prepare(self, setting: Setting) -> BiasSampler:
        """Fix hyperparameters, factorise, compile: all that is done once."""

    def describe(self) -> dict[str, Any]:
        """The user's choices, as what JSON can store."""
