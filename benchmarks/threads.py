"""BLAS threads: the same calibration with one thread, as the library sets it, and with all that the machine has."""

from __future__ import annotations

import os
from contextlib import ExitStack
from time import perf_counter, process_time
from unittest.mock import patch

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

import orthocal as oc
from history import record
from orthocal.machine import threads

CORES = os.cpu_count() or 1
CASES = {"gp, n = 100": ("gp", 100, 1), "gp, n = 1000": ("gp", 1000, 1), "bart, n = 300": ("bart", 300, 1)}


def problem(n: int, d: int) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = rng.random((n, d))
    y = 1.2 * np.sin(2 * x[:, 0]) + 0.3 * np.cos(7 * x[:, -1]) + 0.1 * rng.standard_normal(n)
    priors = {"a": stats.norm(1, 1), "b": stats.norm(2, 1)}
    return oc.Problem(x, y, lambda x, t: t[0] * np.sin(t[1] * x[:, 0]), priors, oc.Box(np.zeros(d), np.ones(d)))


def measured(method: str, n: int, d: int, limited: bool) -> tuple[float, float]:
    """CPU and wall seconds of noise, best fit, 4 x 500 draws and check."""
    with ExitStack() as stack:
        if not limited:
            stack.enter_context(patch.object(threads._LIMIT, "enter", list))
            stack.enter_context(patch.object(threads._LIMIT, "leave", lambda own: None))
            stack.enter_context(threadpool_limits(limits=CORES, user_api="blas"))
        cpu, wall = process_time(), perf_counter()
        oc.calibrate(problem(n, d), method, 500, 4, seed=1, warmup=100, progress=False).check()
        return process_time() - cpu, perf_counter() - wall


def main() -> None:
    print(f"{CORES} cores; noise estimated, best fit, 4 x 500 draws and check(); CPU and wall seconds")
    print("case             one thread: CPU   wall |  all threads: CPU   wall | CPU ratio  wall ratio")
    for name, case in CASES.items():
        measured(*case, limited=True)  # compiles, imports
        (a, b), (c, d) = measured(*case, limited=True), measured(*case, limited=False)
        print(f"{name:16} {a:15.2f} {b:6.2f} | {c:17.2f} {d:6.2f} | {c / a:9.1f} {d / b:11.1f}", flush=True)
        record(f"{name}, one BLAS thread", a, "CPU s", f"{CORES} BLAS threads", c / a)


if __name__ == "__main__":
    main()
