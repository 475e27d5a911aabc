"""Cost against the number of outcomes: PGP with low-rank noise, n = 200; it should grow linearly."""

from __future__ import annotations

from time import perf_counter, process_time

import numpy as np
from scipy import stats

import orthocal as oc
from history import record

N, DRAWS, CHAINS = 200, 500, 4


def problem(q: int) -> oc.Problem:
    """q outcomes that share two parameters, with two factors in their noise."""
    rng = np.random.default_rng(0)
    x = rng.random((N, 1))
    slope, speed, size = rng.uniform(0.5, 1.5, q), rng.uniform(1, 6, q), rng.uniform(0.2, 1, q)
    loadings = rng.normal(0, 0.15, (q, 2))
    cov = loadings @ loadings.T + np.diag(rng.uniform(0.01, 0.04, q))
    y = 2 * slope * x + size * np.sin(speed * x) + rng.multivariate_normal(np.zeros(q), cov, N)
    parameters = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}

    def simulator(x, theta):
        return theta[0] * slope * x + theta[1] * size * x**2

    return oc.Problem(x, y, simulator, parameters, oc.Box(0, 1), noise_cov=oc.LowRankNoise(min(2, q - 1)))


def main() -> None:
    print(f"\nPGP, low-rank noise, n = {N}, {CHAINS} chains x {DRAWS} draws, estimate of the noise included")
    print(f"{'q':>4} {'s':>7} {'CPU s':>7} {'CPU s / q':>10}")
    for q in (2, 5, 10, 25, 50):
        wall, cpu = perf_counter(), process_time()
        oc.calibrate(problem(q), draws=DRAWS, chains=CHAINS, seed=1, progress=False)
        wall, cpu = perf_counter() - wall, process_time() - cpu
        print(f"{q:4d} {wall:7.1f} {cpu:7.1f} {cpu / q:10.2f}", flush=True)
        record(f"{q} outcomes, n = {N}", cpu, "CPU s")


if __name__ == "__main__":
    main()
