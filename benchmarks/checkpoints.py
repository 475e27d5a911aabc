"""What a checkpoint costs: the same calibration with and without one, in turns, in the same run.

    python benchmarks/checkpoints.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
from scipy import stats

import orthocal as oc

#: method -> draws a chain; a run takes some seconds
RUNS = {"bart": 1000, "pgp": 3000, "none": 3000}
TURNS = 3


def problem(n: int = 100) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, n)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(n)
    return oc.Problem(x, y, lambda x, theta: theta[0] * x, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04)


def seconds(method: str, draws: int, checkpoint: Path | None) -> tuple[float, float]:
    """Wall and CPU seconds of a calibration."""
    own = problem()
    _ = own.minima
    wall, cpu = perf_counter(), process_time()
    oc.calibrate(own, method, draws=draws, seed=1, progress=False, checkpoint=checkpoint)
    return perf_counter() - wall, process_time() - cpu


def main() -> None:
    for method, draws in RUNS.items():
        seconds(method, 10, None)
        plain, kept = [], []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(TURNS):
                plain.append(seconds(method, draws, None))
                path = Path(folder) / f"{turn}.ckpt"
                kept.append(seconds(method, draws, path))
            size = path.stat().st_size / 1e6
        (wall, cpu), (more_wall, more_cpu) = (np.min(one, axis=0) for one in (plain, kept))
        print(
            f"{method}: {wall:.2f} s, with a checkpoint of {size:.0f} MB {more_wall:.2f} s "
            f"({more_wall / wall - 1:+.1%} wall, {more_cpu / cpu - 1:+.1%} CPU)",
            flush=True,
        )


if __name__ == "__main__":
    main()
