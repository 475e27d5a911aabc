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
RUNS = {"bart": 1000, "pgp": 3000, "none": 3000}
TURNS = 2


def problem(n: int = 100) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = np.linspace(0.0, 1.0, n)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(n)
    return oc.Problem(x, y, lambda x, theta: theta[0] * x, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04)


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
    for name in ("__init__", "begun", "offered", "ended", "known", "record", "close"):
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
