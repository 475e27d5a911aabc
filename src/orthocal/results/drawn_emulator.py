"""The simulator of every draw, where draws of an emulator stood for it: made again from the emulator and their seed."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from ..arrays import Array, IntArray
from ..errors import InputError
from ..methods.joint.emulator_draws import EmulatorDraws, Shifts, stretched_draws
from ..problem.simulator.emulator import emulator_with_draws
from ..problem.simulator.simulator import BoundSimulator
from .record import Record

#: how far the emulator's draws may be from those of the run, in noise sds: another machine rounds otherwise
ROUNDING = 1e-3


class DrawnEmulator(NamedTuple):
    """Draws of the emulator with a posterior that was made with them."""

    record: Record
    simulator: BoundSimulator
    draws: EmulatorDraws

    def models(self, x: Array, keep: IntArray) -> Array:
        """f_k(x, theta) of the draws numbered ``keep`` of each chain, all chains one after the other, (s, m, q)."""
        return self._of_rows(x, (np.arange(self.record.chains)[:, None] * self.record.draws + keep).ravel())

    def _of_rows(self, x: Array, rows: IntArray) -> Array:
        record = self.record
        models = self.draws.models(x, record.theta.reshape(-1, record.theta.shape[-1])[rows], rows, "prediction")
        if not record.has("projection", "emulator_tilt"):
            return models
        tilt, tilde = record.values("projection", "emulator_tilt"), record.constant("theta_tilde")
        errors = self.draws.errors(x, tilde, self.simulator.required(x, tilde))
        shifts = Shifts(record.constant("emulator_shift"), np.empty(0))
        return np.asarray(models + np.einsum("xqp,sp->sxq", shifts.tilts(errors), _merged(tilt)[rows]))

    def require_same(self) -> None:
        """The model of the first draw at the data is known.

        It was computed there, or there and at the nodes together: an emulator that knows its runs' own points exactly
        interpolates between them where some of the points are others.
        """
        record = self.record
        n, together = len(record.x), np.vstack([record.constant("nodes"), record.x])
        if not any(self._away(x, n) < ROUNDING for x in (record.x, together)):
            raise InputError(
                "this is not the emulator that the posterior was made with: its draws differ at the data; give the one "
                "that was fitted to the same runs, with the same settings"
            )

    def _away(self, x: Array, n: int) -> float:
        """How far its model at the last n points of x is from that of the run, in noise sds."""
        first = self.record.kept[:1]
        away = self._of_rows(x, first)[0, len(x) - n :] - self.record.at_data("model", first)[0, 0]
        return float(np.abs(away @ self.record.constant("whitener").T).max(initial=0.0))


def drawn_emulator(record: Record, simulator: BoundSimulator) -> DrawnEmulator:
    """The same draws of the emulator as in the run, or an error if it is not the emulator that it was."""
    emulator, notes = emulator_with_draws(simulator.emulator), record.notes
    if emulator is None:
        raise InputError(
            f"{notes.emulator_draws} draws of an emulator stood for the simulator in this posterior: to predict at new "
            "points, load it with that emulator, oc.load(path, simulator=emulator)"
        )
    flat_x, transforms = simulator.flat_x, record.transforms
    bound = partial(BoundSimulator, support=record.support, q=record.q, flat_x=flat_x, transforms=transforms)
    numbers = record.values("projection", "emulator_number").ravel().astype(np.intp)
    stretch = notes.emulator_stretch
    made, tilde = emulator.draws(notes.emulator_draws, notes.emulator_seed), record.constant("theta_tilde")
    draws = stretched_draws(emulator, made, stretch, tilde)
    found = DrawnEmulator(record, simulator, EmulatorDraws(draws, numbers, bound, stretch))
    found.require_same()
    return found


def _merged(values: Array) -> Array:
    return np.asarray(values.reshape(-1, *values.shape[2:]))
