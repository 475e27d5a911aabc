"""A posterior as functions that others may call: of points x and of the number of a draw."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import xarray as xr

from ..arrays import Array, IntArray
from ..errors import InputError
from ..machine.threads import one_blas_thread
from .posterior import Posterior
from .predict.predict import QUANTITIES, prediction_at_data

#: draws a chain behind a summary
SUMMARY_DRAWS = 100
#: predictions that are remembered: model, bias and mean of one draw are asked for one after the other
REMEMBERED = 64


class CallablePosterior:
    """The functions of a posterior. The same question has the same answer.

    A posterior without its simulator knows the data points only.
    """

    def __init__(self, posterior: Posterior) -> None:
        self._posterior, self._record = posterior, posterior.record
        self._known: OrderedDict[tuple[bytes, int, int], xr.Dataset] = OrderedDict()

    @property
    def d(self) -> int:
        """Inputs; 0 of outputs without inputs."""
        return 0 if self._record.without_inputs else len(self._record.input_names)

    @property
    def q(self) -> int:
        return self._record.q

    @property
    def p(self) -> int:
        return len(self._record.parameter_names)

    @property
    def draws(self) -> int:
        """All of them, those of the first chain first."""
        return self._record.chains * self._record.draws

    @property
    def anywhere(self) -> bool:
        """Whether there is a simulator, to predict at new points."""
        return self._posterior.has_simulator

    def theta(self, draw: float) -> Array:
        """The parameters of a draw, (p,)."""
        chain, place = self._place(draw)
        return np.array(self._record.theta[chain, place])

    def values(self, quantity: str, x: Array, draw: float, seed: int | None = None) -> Array:
        """A quantity at the points x (m, d) for one draw, (m, q)."""
        chain, place = self._place(draw)
        key = (x.tobytes(), place, -1 if seed is None else seed)
        if key not in self._known:
            self._known[key] = self._predicted(x, np.array([place]), seed)
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return np.array(self._known[key][quantity].values[chain, 0])

    def summary(self, quantity: str, x: Array, draws: int = SUMMARY_DRAWS, seed: int | None = None) -> list[Array]:
        """Mean, sd and the ends of the central 95 % interval of a quantity at x (m, d), each (m, q)."""
        if quantity not in QUANTITIES:
            raise InputError(f"of={quantity!r}: give one of {', '.join(QUANTITIES)}")
        if isinstance(draws, bool) or not isinstance(draws, int) or draws < 1:
            raise InputError(f"draws={draws!r}: give the number of draws a chain, 1 or more")
        keep = np.unique(np.linspace(0, self._record.draws - 1, min(draws, self._record.draws)).round().astype(np.intp))
        found = self._predicted(x, keep, seed)[quantity].values
        every = found.reshape(-1, *found.shape[2:])
        lower, upper = np.quantile(every, [0.025, 0.975], axis=0)
        return [every.mean(axis=0), every.std(axis=0, ddof=min(1, len(every) - 1)), lower, upper]

    def _place(self, draw: float) -> tuple[int, int]:
        """Chain and place of a draw."""
        number = int(draw) if np.isfinite(draw) else -1
        if number != draw or not 0 <= number < self.draws:
            raise InputError(f"draw={draw:g}: give the number of a draw, from 0 to {self.draws - 1}")
        chain, place = divmod(number, self._record.draws)
        return chain, place

    def _predicted(self, x: Array, keep: IntArray, seed: int | None) -> xr.Dataset:
        if not np.isfinite(x).all():
            raise InputError("x has a value that is not finite")
        if self.anywhere and not self._record.without_inputs:
            with one_blas_thread():
                return self._posterior.predict_draws(x, keep, seed)
        return self._at_data(x, keep, seed)

    def _at_data(self, x: Array, keep: IntArray, seed: int | None) -> xr.Dataset:
        """From the record alone."""
        stored = self._record.stored_draws
        lost = np.setdiff1d(keep, stored)
        if len(lost):
            raise InputError(
                f"model and bias at the data are kept of {len(stored)} draws a chain, and not of {lost[0]}: "
                "give the simulator to predict it"
            )
        found = prediction_at_data(self._record, keep, self._posterior.generator(seed))
        if self._record.without_inputs:
            return found
        known = {row.tobytes(): i for i, row in reversed(list(enumerate(self._record.x + 0.0)))}
        rows = [known.get(row.tobytes(), -1) for row in x + 0.0]
        if -1 in rows:
            other = ", ".join(f"{one:g}" for one in x[rows.index(-1)])
            raise InputError(
                f"x = {other} is none of the data points, and a result file holds no simulator: give its problem file, "
                "--problem problem.toml, to predict at new points"
            )
        return found.isel(point=rows)
