"""Sums of trees with many data: CPU seconds, peak memory and effective draws of theta, a process for each case.

The problem has two parameters, d inputs, noise .2 and a bias of .5 sin 9 x_1 cos 4 x_d; theta* is by quadrature.

    python benchmarks/large_trees.py            the table
    python benchmarks/large_trees.py 40 10000   coverage over 40 data sets with 10 000 points, two inputs
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import resource
import subprocess
import sys
from time import process_time

import numpy as np
from scipy import stats

import orthocal as oc
from history import record

THETA = np.array([1.0, 1.5])
#: prior, inputs, data
CASES = (
    ("bart", 1, 10_000),
    ("bart", 1, 100_000),
    ("bart", 2, 10_000),
    ("bart", 2, 100_000),
    ("bart", 3, 10_000),
    ("softbart", 2, 10_000),
)
DRAWS = 1000


def waves(x: np.ndarray) -> np.ndarray:
    """The gradient of the simulator, (n, 2)."""
    number = np.arange(1, 3)
    return np.sin(np.outer(x[:, 0], number) + (x[:, -1:] * number if x.shape[1] > 1 else 0))


def simulator(x, theta):
    return waves(x) @ theta


def bias(x: np.ndarray) -> np.ndarray:
    return 0.5 * np.sin(9 * x[:, 0]) * np.cos(4 * x[:, -1])


def problem(n: int, d: int, seed: int = 0) -> oc.Problem:
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    y = simulator(x, THETA) + bias(x) + 0.2 * rng.standard_normal(n)
    priors = {"a": stats.norm(1, 10), "b": stats.norm(1, 10)}
    return oc.Problem(x, y, simulator, priors, oc.Box(0, 1), noise_cov=0.04)


def theta_star(d: int) -> np.ndarray:
    """The projection of the bias needs its first and its last input only."""
    rule = oc.Box(0, 1, nodes=60).rules(min(d, 2))[0]
    G, weighted = waves(rule.nodes), rule.weights[:, None] * waves(rule.nodes)
    return THETA + np.linalg.solve(G.T @ weighted, weighted.T @ bias(rule.nodes))


def fitted(prior: str, d: int, n: int, draws: int, seed: int = 0) -> tuple[oc.Posterior, float]:
    """A posterior, and its CPU seconds; the best fit, which all methods share, is left out."""
    given = problem(n, d, seed)
    _ = given.theta_tilde, given.gradient_at_data
    started = process_time()
    posterior = oc.calibrate(given, prior, draws=draws, seed=1, progress=False)
    return posterior, process_time() - started


def row(prior: str, d: int, n: int, draws: int) -> str:
    posterior, seconds = fitted(prior, d, n, draws)
    found = posterior.summary()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    apart = np.abs(found["mean"] - theta_star(d)) / found["sd"]
    width = " ".join(f"{value:.5f}" for value in found["sd"])
    return (
        f"{prior:9} {d} {n:8} {seconds:7.1f} {memory:6.2f} {found['ess_bulk'].min():6.0f} {found['r_hat'].max():6.3f}"
        f"   {width}   {apart.max():.1f}"
    )


def coverage(sets: int, n: int) -> None:
    """How often the 95 % intervals hold theta*."""
    inside = np.zeros(2, dtype=int)
    for seed in range(sets):
        posterior, seconds = fitted("bart", 2, n, DRAWS, seed=1000 + seed)
        found = posterior.summary()
        inside += ((found["eti95_lb"] < theta_star(2)) & (theta_star(2) < found["eti95_ub"])).to_numpy()
        quality = f"ESS {found['ess_bulk'].min():.0f}, R-hat {found['r_hat'].max():.4f}, {seconds:.0f} CPU s"
        print(f"{seed + 1} data sets, theta* inside: {inside.tolist()}; {quality}", flush=True)


def main(draws: int = DRAWS) -> None:
    print(
        f"\nsums of trees with many data, joint projection, 4 chains x {draws} draws; CPU seconds, peak memory in GB\n"
    )
    print(
        f"{'prior':9} d {'n':>8} {'s':>7} {'GB':>6} {'ESS':>6} {'R-hat':>6}   {'sd of theta':15}   |mean - theta*| / sd"
    )
    for case in CASES:
        command = [sys.executable, __file__, *map(str, case), str(draws)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(line, end="", flush=True)
        what, d, n, seconds = line.split()[:4]
        record(f"{what}, n = {n}, d = {d}", float(seconds), "CPU s")


if __name__ == "__main__":
    if len(sys.argv) == 5:
        print(row(sys.argv[1], *map(int, sys.argv[2:])))
    elif len(sys.argv) == 3:
        coverage(*map(int, sys.argv[1:]))
    else:
        main()
