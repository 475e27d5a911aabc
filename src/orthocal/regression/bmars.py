"""Bayesian adaptive regression splines (Denison, Mallick, Smith 1998): basis functions that persist between draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays import Array, IntArray
from .bmars_kernels import COUNT_RATE, COUNT_SHAPE, draw_given_functions, evaluate, iterate, move_functions
from .compiled import CompiledSampler, Record
from .linear_part import LinearPart, Others
from .settings import BMARSSettings

#: draws from the intercept alone before the first one that is handed out
START_DRAWS = 200
#: moves beside other coefficients, for each of a draw by itself: they are few of what such a draw costs, and they alone
#: bring a chain from one explanation of the data to another (5: 50 moves a draw, as many as an emulator has)
BESIDE = 5


class Bases(NamedTuple):
    """The basis functions of one chain, changed in place by a draw; see ``bmars_kernels`` for the layout."""

    factors: NDArray[np.int16]
    knots: Array
    rows: Array
    gram: Array
    slots: IntArray
    coefficient: Array
    number: IntArray
    hyper: Array
    fit: Array
    counts: IntArray


class BMARSSampler(CompiledSampler):
    """Some warm-started moves a draw: the basis functions persist, only the response changes.

    The kept draws hold their basis functions: 28 bytes each for ``order`` 2.
    """

    kind = "bmars"
    title = "BMARS"
    coefficient = "coefficient"
    #: its functions are linear in Gaussian coefficients, given the rest of its state
    linear = True
    start_updates = START_DRAWS

    def __init__(
        self,
        prior: BMARSSettings,
        spread: float,
        offset: float,
        x: Array,
        nodes: Array,
        noise_var: Array,
        unit: float = 1.0,
        counts: Array | None = None,
    ) -> None:
        """``counts`` (n,) are the observations behind each data point, one if not given."""
        self.prior, self.spread, self.offset, self.unit = prior, spread, offset, unit
        self._low, self._width = x.min(axis=0), np.ptp(x, axis=0)
        self._inputs = self._scaled(np.vstack([x, nodes]))
        self._active = np.flatnonzero(self._width > 0)
        own = np.ones(len(x)) if counts is None else counts
        self._table, self._sizes = _knot_table(self._inputs[:, : len(x)], own, prior.least)
        self._weight = np.ascontiguousarray(1 / noise_var)

    def one_record(self, state: Bases) -> Record:
        """The basis functions in use, the intercept first: factor codes and knots (l, order), coefficients (l,).

        Zeros at the end, where another chain has more, are basis functions with coefficient 0.
        """
        used = state.slots[: 1 + state.number[0]]
        return {"factor": state.factors[used], "knot": state.knots[used], "value": state.coefficient[used]}

    def predict(self, rng: np.random.Generator, records: Record, x_new: Array) -> Array:
        inputs = self._scaled(x_new)
        fits = np.zeros((len(records["value"]), len(x_new)))
        factors, knots, values = (np.ascontiguousarray(records[name]) for name in ("factor", "knot", "value"))
        for factor, knot, value, fit in zip(factors, knots, values, fits, strict=True):
            evaluate(factor, knot, value, inputs, self.prior.degree, fit)
        return fits

    def findings(self) -> dict[str, Any]:
        return {
            "coefficient_scale": self.spread / self.unit,
            "intercept_sd": self.offset / self.unit,
            "expected_functions": COUNT_SHAPE / COUNT_RATE,
            "knots": self._sizes.sum(axis=0).tolist(),
        }

    def settings(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            **self.prior.describe(),
            "spread": self.spread,
            "offset": self.offset,
            "unit": self.unit,
        }

    @classmethod
    def restore(cls, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BMARSSampler:
        """The sampler of a stored posterior; the inputs' scale follows from its data points."""
        prior = BMARSSettings.stored(settings)
        spread, offset, unit = (float(settings[name]) for name in ("spread", "offset", "unit"))
        return cls(prior, spread, offset, x, nodes, noise_var, unit)

    @property
    def function_sd(self) -> float:
        return self.spread

    @property
    def cost(self) -> int:
        # a move works with about ten basis functions at every point
        return 10 * self.prior.moves * int(self._inputs.shape[1])

    def update(
        self, rng: np.random.Generator, state: Bases, response: Array, starting: bool, noise_scale: float | Array
    ) -> None:
        single = np.ndim(noise_scale) == 0
        if not single:
            used = state.slots[: 1 + state.number[0]]
            rows = state.rows[used, : len(response)]
            state.gram[np.ix_(used, used)] = (rows * (self._weight / noise_scale)) @ rows.T
        elif noise_scale != 1.0:
            # the weighted products of the basis functions persist, for a scale of one
            state.gram[...] /= noise_scale
        iterate(
            rng,
            response,
            self._weight / noise_scale,
            self._inputs,
            self._active,
            self._table,
            self._sizes,
            *state,
            self.offset**-2,
            self.spread,
            self.prior.moves,
            self.prior.degree,
        )
        if single and noise_scale != 1.0:
            state.gram[...] *= noise_scale

    def normal(self, state: Bases) -> Array:
        used = state.slots[: 1 + state.number[0]]
        own = state.coefficient[used] / np.sqrt(state.hyper[1])
        own[used == 0] *= np.sqrt(state.hyper[1]) / self.offset
        return np.asarray(own)

    def linear_parts(self, state: list[Bases], noise_scale: Array | None = None) -> list[LinearPart]:
        """The basis functions of each chain at the data, whose coefficients are Gaussian."""
        n, found = len(self._weight), []
        for own, scale in zip(state, np.ones(len(state)) if noise_scale is None else noise_scale, strict=True):
            used = own.slots[: 1 + own.number[0]]
            precision = np.where(used == 0, self.offset**-2, 1 / own.hyper[1])
            found.append(LinearPart(own.rows[used, :n], precision, self._weight / scale))
        return found

    def move_functions(
        self,
        rngs: list[np.random.Generator],
        state: list[Bases],
        residual: Array,
        others: Others,
        noise_scale: Array | None = None,
    ) -> None:
        """Moves of the basis functions in place, with the coefficients of the others integrated out, too."""
        scales = np.ones(len(rngs)) if noise_scale is None else noise_scale
        for c, (rng, own, response, scale) in enumerate(zip(rngs, state, residual, scales, strict=True)):
            weight = self._weight / scale
            along, pull = others.of_chain(c).beside(weight, response)
            # kept for a scale of one
            own.gram[...] /= scale
            move_functions(
                rng,
                np.ascontiguousarray(response),
                weight,
                self._inputs,
                self._active,
                self._table,
                self._sizes,
                own.factors,
                own.knots,
                own.rows,
                own.gram,
                own.slots,
                own.number,
                own.hyper,
                own.counts,
                self.offset**-2,
                BESIDE * self.prior.moves,
                self.prior.degree,
                along,
                pull,
            )
            own.gram[...] *= scale

    def draw_coefficients(
        self, rngs: list[np.random.Generator], state: list[Bases], residual: Array, noise_scale: Array | None = None
    ) -> Array:
        """Those of the basis functions anew, in place: b at data and nodes, (c, n + m)."""
        scales = np.ones(len(rngs)) if noise_scale is None else noise_scale
        for rng, own, response, scale in zip(rngs, state, residual, scales, strict=True):
            draw_given_functions(
                rng,
                np.ascontiguousarray(response),
                self._weight / scale,
                own.rows,
                # kept for a scale of one
                own.gram / scale,
                own.slots,
                own.coefficient,
                own.number,
                own.hyper,
                own.fit,
                self.offset**-2,
            )
        return np.stack([own.fit for own in state])

    def empty(self) -> Bases:
        """The intercept alone, with lambda and tau^2 at their prior means."""
        # one more than there can be basis functions, where a proposal is worked out
        slots, order = self.prior.most + 2, min(self.prior.order, len(self._inputs))
        rows = np.zeros((slots, self._inputs.shape[1]))
        rows[0] = 1.0
        gram = np.zeros((slots, slots))
        gram[0, 0] = self._weight.sum()
        return Bases(
            factors=np.zeros((slots, order), dtype=np.int16),
            knots=np.zeros((slots, order)),
            rows=rows,
            gram=gram,
            slots=np.arange(slots),
            coefficient=np.zeros(slots),
            number=np.zeros(1, dtype=np.int64),
            hyper=np.array([COUNT_SHAPE / COUNT_RATE, self.spread**2]),
            fit=np.zeros(self._inputs.shape[1]),
            counts=np.zeros((3, 2), dtype=np.int64),
        )

    def _scaled(self, x: Array) -> Array:
        """Inputs (d, m), scaled by the data's range and cut off at it; 0 where the data are constant."""
        scaled = (x - self._low) / np.where(self._width > 0, self._width, 1.0)
        return np.ascontiguousarray(np.where(self._width > 0, np.clip(scaled, 0.0, 1.0), 0.0).T)


def _knot_table(inputs: Array, counts: Array, least: int) -> tuple[Array, IntArray]:
    """Knots of each sign and input, (2, d, most), and their numbers (2, d): those with ``least`` data beyond them."""
    d, n = inputs.shape
    table, sizes = np.zeros((2, d, n)), np.zeros((2, d), dtype=np.int64)
    for v, column in enumerate(inputs):
        values, place = np.unique(column, return_inverse=True)
        if len(values) < 2:
            continue
        there = np.bincount(place.ravel(), counts)
        below = np.cumsum(there)
        above = (below[-1] - below >= least) | (values == values[0])
        under = (below - there >= least) | (values == values[-1])
        for side, admitted in enumerate((above, under)):
            sizes[side, v] = admitted.sum()
            table[side, v, : sizes[side, v]] = values[admitted]
    return table, sizes
