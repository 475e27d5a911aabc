"""The joint projection beside the paper's algorithm: effective draws a CPU second, and calls a draw, in one run."""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

from time import process_time

import numpy as np

import orthocal as oc
from history import record
from orthocal.examples import MODEL1, MODEL2_PART, MODEL3

CHAINS, DRAWS, REPEATS = 4, 1000, 5


def measured(model, method: str, seed: int) -> tuple[float, float, float]:
    """CPU seconds, the smallest effective sample size, and calls a draw; the best fit is shared, and left out."""
    problem = model.problem(*model.simulate(np.random.default_rng(seed)), domain=oc.Box(0, 1))
    _ = problem.theta_tilde, problem.gradient_at_data
    started = process_time()
    posterior = oc.calibrate(problem, method, draws=DRAWS, chains=CHAINS, seed=seed, progress=False)
    seconds = process_time() - started
    calls = posterior.record.run_facts.simulator_calls / posterior.theta[:, :, 0].size
    return seconds, float(posterior.summary()["ess_bulk"].min()), calls


def main() -> None:
    print(f"joint projection, n = 100, {CHAINS} chains x {DRAWS} draws; median of {REPEATS} data sets")
    print(f"{'model':32} {'gp: s':>6} {'ESS/s':>7} {'calls':>6} | {'pgp: s':>6} {'ESS/s':>7} {'calls':>6} | ESS/s")
    for model in (MODEL1, MODEL2_PART, MODEL3):
        measured(model, "gp", 0), measured(model, "pgp", 0)
        rows = [(*measured(model, "gp", seed), *measured(model, "pgp", seed)) for seed in range(REPEATS)]
        a, b, c, d, e, f = np.median(rows, axis=0)
        line = f"{model.title:32} {a:6.2f} {b / a:7.0f} {c:6.2f} | {d:6.2f} {e / d:7.0f} {f:6.2f}"
        print(f"{line} | {(b / a) / (e / d):.2f}x", flush=True)
        record(f"{model.name}, gp", b / a, "effective draws a CPU second", "pgp", (b / a) / (e / d))


if __name__ == "__main__":
    main()
