"""What a checkpoint costs: CPU seconds of a calibration that are its own, and the share of the draws that it keeps.

python benchmarks/checkpoints.py
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import sqlite3
import tempfile
import warnings
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import stats

import orthocal as oc
from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

#: method, field data, milliseconds of a call of the simulator, draws a chain: a run takes some seconds
RUNS = (
    ("bart", 100, 0, 4000),
    ("bart", 2000, 0, 1000),
    ("bart", 2000, 1, 1000),
    ("softbart", 500, 0, 500),
    ("bnn", 100, 0, 300),
    ("pgp", 100, 1, 600),
    ("pgp", 100, 10, 100),
    ("none", 100, 1, 600),
)


def problem(n: int, milliseconds: float) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, n)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(n)

    def simulate(x: Any, theta: Any) -> Any:
        end = process_time() + milliseconds / 1000
        while milliseconds and process_time() < end:
            pass
        return theta[0] * x

    return oc.Problem(x, y, simulate, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04)


class Counted:
    """CPU seconds that methods of the checkpoint take."""

    seconds = 0.0

    @classmethod
    def wrap(cls, name: str) -> None:
        plain = getattr(CheckpointFile, name)

        def timed(*given: Any) -> Any:
            began = process_time()
            try:
                return plain(*given)
            finally:
                cls.seconds += process_time() - began

        setattr(CheckpointFile, name, timed)


def main() -> None:
    # what a run calls; none of them calls another
    for name in ("__init__", "begun", "offered", "ended", "known", "record", "close"):
        Counted.wrap(name)
    warnings.simplefilter("ignore", oc.OrthocalWarning)
    words = f"{'method':9} {'n':>5} {'ms a call':>9} {'draws':>7} {'CPU s':>6} {'its own':>8}"
    print(f"{words} {'share':>6} {'kept':>6} {'MB':>5}")
    for method, n, milliseconds, draws in RUNS:
        own = problem(n, milliseconds)
        _ = own.minima
        with tempfile.TemporaryDirectory() as folder:
            path, Counted.seconds, began = Path(folder) / "fit.ckpt", 0.0, process_time()
            oc.calibrate(own, method, draws=draws, seed=1, progress=False, checkpoint=path)
            seconds, size = process_time() - began, path.stat().st_size / 1e6
            with sqlite3.connect(path) as file:
                kept = sum(count for (count,) in file.execute("SELECT draws FROM loop")) / draws
            file.close()
        share = Counted.seconds / seconds
        words = f"{method:9} {n:5} {milliseconds:9} {4 * draws:7} {seconds:6.2f} {Counted.seconds:8.3f}"
        print(f"{words} {share:6.1%} {kept:6.0%} {size:5.0f}", flush=True)


if __name__ == "__main__":
    main()
