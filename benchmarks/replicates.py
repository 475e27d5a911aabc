"""Replicates: 120 rows at 12 points beside the same calibration with every row on its own, in one run."""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

from contextlib import ExitStack
from itertools import product
from time import process_time
from unittest.mock import patch

import numpy as np
from scipy import stats

import orthocal as oc
from history import record

CHAINS, DRAWS, WARMUP = 2, 100, 60
#: in a box most points are nodes, which cost the same with and without replicates
BOX_METHODS = ("gp", "pgp", "ko", "none")
METHODS = ("gp", "bart", "softbart", "bmars", "bnn", "pgp", "pbart", "ko", "ogp", "sgasp", "pcal", "none")
#: where rows that repeat are looked for
USERS = ("problem.simulator.simulator", "problem.search.best_fit", "problem.merging", "regression.gaussian_process")
#: as in Bayarri's spot welds: two loads, three currents, two gauges, ten welds of each
SETTINGS = np.array(list(product((4.0, 5.3), (20.0, 24.0, 28.0), (1.0, 2.0))))


def weld(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """A diameter that grows with the heat: solved row by row, as a simulator does, some 10 us a row."""
    diameters = []
    for load, current, gauge in x.tolist():
        size = 1.0
        for _ in range(60):
            size += 0.2 * (theta[0] * current**0.5 / (1 + 0.1 * load * size) - theta[1] * gauge - 0.4 * size)
        diameters.append(size)
    return np.array(diameters)


def problem(domain: oc.Box | oc.Points) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = np.repeat(SETTINGS, 10, axis=0)
    y = weld(x, np.array([1.0, 1.2])) + 0.3 * np.sin(0.5 * x[:, 1]) * x[:, 2] + 0.2 * rng.standard_normal(len(x))
    return oc.Problem(x, y, weld, {"heat": stats.norm(1, 0.3), "loss": stats.norm(1, 0.3)}, domain)


def measured(domain: oc.Box | oc.Points, method: str, merged: bool) -> tuple[float, np.ndarray]:
    """CPU seconds of all that a calibration takes, noise and best fit included, and the draws of theta."""
    with ExitStack() as stack:
        for name in () if merged else USERS:
            stack.enter_context(patch(f"orthocal.{name}.repeated_rows", lambda rows: None))
        started = process_time()
        fit = oc.calibrate(problem(domain), method, DRAWS, CHAINS, seed=1, warmup=WARMUP, progress=False)
        return process_time() - started, fit.theta


def main() -> None:
    print(f"120 rows at 12 points, noise estimated, {CHAINS} chains x {DRAWS} draws; CPU seconds, one BLAS thread")
    box = oc.Box(SETTINGS.min(axis=0), SETTINGS.max(axis=0))
    for name, domain, methods in (("the 12 settings", oc.Points(SETTINGS), METHODS), ("their box", box, BOX_METHODS)):
        print(f"\ndomain: {name}\n{'method':9} {'merged':>7} {'row by row':>11} {'ratio':>6}   theta differs by")
        for method in methods:
            measured(domain, method, True)
            (ours, theta), (before, reference) = (measured(domain, method, merged) for merged in (True, False))
            apart = np.abs(theta - reference).max() / np.abs(reference).max()
            print(f"{method:9} {ours:7.2f} {before:11.2f} {before / ours:5.1f}x   {apart:.0e}", flush=True)
            record(f"{name}, {method}", ours, "CPU s", "row by row", before / ours)


if __name__ == "__main__":
    main()
