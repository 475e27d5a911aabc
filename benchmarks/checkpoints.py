"""What a checkpoint costs: the same calibration with and without one, in turns, in the same run.

python benchmarks/checkpoints.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
from scipy import stats

import orthocal as oc
from orthocal.execution.checkpoint_file import CheckpointFile

#: method -> draws a chain; a run takes some seconds
RUNS = {"bart": 4000, "pgp": 600, "none": 600}
TURNS = 1
#: numbers that the simulator sorts: about a millisecond, so that draws are not made faster than they can be written
WORK = np.random.default_rng(0).random(20_000)


def problem(n: int = 100) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, n)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(n)

    def simulate(x: Any, theta: Any) -> Any:
        np.sort(WORK)
        return theta[0] * x

    return oc.Problem(x, y, simulate, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04)


class Counted:
    """CPU seconds that a method of the checkpoint takes."""

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


def cpu(method: str, draws: int, checkpoint: Path | None) -> float:
    """CPU seconds of a calibration."""
    own = problem()
    _ = own.minima
    began = process_time()
    oc.calibrate(own, method, draws=draws, seed=1, progress=False, checkpoint=checkpoint)
    return process_time() - began


def main() -> None:
    for name in ("__init__", "_affordable", "_write", "close"):
        Counted.wrap(name)
    for method, draws in RUNS.items():
        cpu(method, 10, None)
        plain, kept, own = [], [], []
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(TURNS):
                plain.append(cpu(method, draws, None))
                path, Counted.seconds = Path(folder) / f"{turn}.ckpt", 0.0
                kept.append(cpu(method, draws, path))
                own.append(Counted.seconds)
            size = path.stat().st_size / 1e6
        share = np.median(own) / np.median(kept)
        print(
            f"{method}: {np.min(plain):.2f} CPU s, with a checkpoint of {size:.0f} MB {np.min(kept):.2f}; "
            f"of these {np.median(own):.3f} are its own, {share:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
