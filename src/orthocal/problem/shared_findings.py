"""Findings that a look before a run and the checks after it both give: one limit and one level each.

What was seen differs, a few calls of the simulator before and the draws after; how it is judged does not.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..advice import NODES, Advice
from ..findings import Finding, Level
from ..projection import COLLINEAR

QUADRATURE_LIMIT = 0.02
#: a best fit whose loss is as many times what the noise makes of it as this is hardly one
MISFIT_LIMIT = 200.0
#: another minimum that is less than this behind, in standard errors, is a problem; or a note
RIVAL_LIMITS = 2.0, 4.0
#: the smallest singular value of the parameters' effects: below a note, a problem
SENSITIVITY_LIMITS = 0.1, 0.01
#: what the values at some rows may change by where others are left out, in noise sds: a note, a problem
ROW_LIMITS = 0.01, 0.1
#: shares of rows, or of the domain, without points of an emulator's runs nearby: a note, a problem
X_LIMITS = 0.02, 0.1
#: an emulator's error in noise sds: a note, a problem
ERROR_LIMITS = 0.3, 1.0


def level_of(value: float, limits: tuple[float, float]) -> Level:
    """Fine below the first limit, a note below the second; NaN is a problem."""
    return "fine" if value < limits[0] else "note" if value < limits[1] else "problem"


def told_apart(weakest: float, where: str = "") -> Finding:
    """Whether the parameters' effects on the simulator differ, by their smallest singular value."""
    if weakest > SENSITIVITY_LIMITS[0]:
        return Finding("fine", "parameters", f"their effects on the simulator can be told apart{where}")
    collinear = "collinear: it answers to a combination of them only" if weakest < COLLINEAR else "nearly collinear"
    message = f"their effects on the simulator are {collinear} (smallest singular value {weakest:.1g}{where})"
    advice = "expect strong posterior correlations; consider fixing a parameter"
    return Finding("note" if weakest > SENSITIVITY_LIMITS[1] else "problem", "parameters", message, advice)


def quadrature_finding(error: float, message: str, wrong: Level) -> Finding:
    """Whether the domain has nodes enough; ``wrong`` is the level where it has not."""
    if error < QUADRATURE_LIMIT:
        return Finding("fine", "quadrature", message)
    return Finding(wrong, "quadrature", message, "take more " + NODES)


def best_on_bound(names: tuple[str, ...], why: str) -> Iterator[Finding]:
    if names:
        message = f"it lies on a bound of the prior of {', '.join(names)}, {why}"
        yield Finding("problem", "best fit", message, "widen the prior, or fix the parameter")


def misses_data(size: float, where: str, advice: Advice) -> Iterator[Finding]:
    """``size`` is the best fit's loss over what the noise makes of it."""
    if size > MISFIT_LIMIT:
        message = f"the simulator misses the data by {np.sqrt(size):.0f} noise standard deviations {where}"
        yield Finding("problem", "best fit", message, advice)


def rival_minimum(behind: float, other: str, best: str) -> Finding:
    """Another minimum that is ``behind`` standard errors worse, where that is below the second limit."""
    message = f"another minimum is only {behind:.1f} standard errors behind, at {other}; {best}"
    advice = "restrict the priors to the one that is meant, or take more data"
    return Finding("problem" if behind < RIVAL_LIMITS[0] else "note", "best fit", message, advice)


def rows_depend(error: float | None) -> Iterator[Finding]:
    """What the simulator's values change by, in noise sds, where half of the rows are asked for alone."""
    if error is None or not error > ROW_LIMITS[0]:
        return
    by = f"change by up to {error:.2g} noise standard deviations" if np.isfinite(error) else "fail"
    message = f"its values {by} where half of the rows are asked for alone"
    advice = (
        "it must be a function of x and theta, row by row, without randomness: solve an equation in time from its "
        "own start, with its own steps, and return what x asks for"
    )
    yield Finding(level_of(error, ROW_LIMITS), "simulator", message, advice)


def outside_x(rows: float, domain: float) -> Finding:
    """Shares of the rows and of the domain without points of an emulator's runs nearby."""
    level = level_of(max(rows, domain), X_LIMITS)
    if level == "fine":
        return Finding(level, "emulator", "its runs have points x near all rows of the data and all of the domain")
    message = (
        f"its runs have no points x near {rows:.0%} of the rows of the data, and {domain:.0%} of the domain: it "
        "extrapolates over x there"
    )
    advice = "run the simulator at points x that cover data and domain, or give the domain that the runs cover"
    return Finding(level, "emulator", message, advice)


def emulator_error(size: float, message: str, advice: str) -> Finding:
    """An error of an emulator in noise sds."""
    level = level_of(size, ERROR_LIMITS)
    return Finding(level, "emulator", message, "" if level == "fine" else advice)
