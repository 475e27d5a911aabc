"""What is to be known about the simulator, or the emulator in its place: its work, its runs, its gradient."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..findings import Finding
from ..problem.simulator.simulator import GradientKind
from .notes import Notes
from .record import Record

#: what the values at some rows may change by where others are left out, in noise sds: a note, a problem
ROW_LIMITS = 0.01, 0.1


def simulator_work(record: Record, notes: Notes) -> Iterator[Finding]:
    """How often it was called, how long that took, and how often it failed."""
    calls, seconds = notes.simulator_calls, notes.simulator_seconds
    share = seconds / max(notes.seconds, 1e-9)
    message = f"{calls} calls, {seconds:.2g} s of {notes.seconds:.2g} s in all"
    if share > 0.5 and notes.seconds > 10 and notes.outside_runs is None:
        yield Finding("note", "simulator", message, "replace it by an emulator fitted to a table of its runs")
    else:
        yield Finding("fine", "simulator", message)
    if notes.simulator_failures:
        share = notes.simulator_failures / max(calls, 1)
        first = "" if notes.simulator_failure is None else f"; the first: {notes.simulator_failure}"
        message = f"{notes.simulator_failures} calls ({share:.1%}) failed, and their theta count as impossible{first}"
        yield Finding("note", "simulator", message, "restrict the priors to where it works")
    if notes.row_error is not None and notes.row_error > ROW_LIMITS[0]:
        by = f"change by up to {notes.row_error:.2g} noise standard deviations"
        message = (
            f"its values {by if np.isfinite(notes.row_error) else 'fail'} where half of the rows are asked for alone"
        )
        advice = (
            "it must be a function of x and theta, row by row, without randomness: solve an equation in time from its "
            "own start, with its own steps, and return what x asks for"
        )
        yield Finding("problem" if notes.row_error > ROW_LIMITS[1] else "note", "simulator", message, advice)


def gradient_error(record: Record, notes: Notes) -> Iterator[Finding]:
    """Whether the gradient agrees with differences."""
    if notes.outside_runs is not None:
        # an emulator's own
        return
    if np.isnan(notes.gradient_error):
        message = "it could not be compared with longer differences: the simulator fails, or nothing is allowed, beside"
        yield Finding("note", "gradient", f"{message} the best fit")
        return
    error, differences = notes.gradient_error, notes.gradient_kind is GradientKind.DIFFERENCE
    other = "differences with a longer step" if differences else "central differences"
    message = f"the gradient ({notes.gradient_kind}) differs from {other} by {error:.1g} (relative)"
    if error < 1e-3:
        yield Finding("fine", "gradient", message)
    elif differences:
        advice = "the simulator's output is rounded or noisy: give a longer step, oc.Simulator(f, step=1e-3)"
        yield Finding("problem", "gradient", message, advice)
    else:
        yield Finding("problem", "gradient", message, "check the gradient: the projection depends on it")
