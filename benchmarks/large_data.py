"""Gaussian processes with many data: CPU seconds of the whole calibration, peak memory, theta; a process for each case.

python benchmarks/large_data.py               the table, beside the dense form at n = 3000
python benchmarks/large_data.py agreement     the one-pass forms beside the dense one, n = 3000
python benchmarks/large_data.py closed        the same in three inputs without draws: means and sds by formulas
python benchmarks/large_data.py coverage 100  of theta* over 100 data sets with 20 000 points, two inputs
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import resource
import subprocess
import sys
from itertools import product
from time import process_time
from unittest.mock import patch

import numpy as np
from scipy import stats
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

import orthocal as oc
from history import record
from large_trees import THETA, bias, problem, simulator, theta_star, waves
from orthocal.methods.joint import regress_basis as regress_functions
from orthocal.regression.gaussian_process import radial_correlation

#: form, inputs, data
CASES = (
    ("dense", 1, 3_000),
    *(("large", 1, n) for n in (1_000, 3_000, 10_000, 100_000, 1_000_000)),
    ("dense", 2, 3_000),
    *(("large", 2, n) for n in (1_000, 3_000, 10_000, 100_000, 1_000_000)),
    ("dense", 3, 3_000),
    *(("large", 3, n) for n in (3_000, 100_000)),
    ("large", 5, 10_000),
)
DRAWS = 1000


def fitted(given: oc.Problem, draws: int = DRAWS, keep_mb: float = 256, **prior) -> tuple[oc.Posterior, float]:
    """A posterior, and the CPU seconds of all of it, the best fit included."""
    started = process_time()
    method = oc.methods.Joint(oc.bias.GP(**prior))
    posterior = oc.calibrate(given, method, draws=draws, seed=1, progress=False, keep_mb=keep_mb)
    return posterior, process_time() - started


def row(form: str, d: int, n: int) -> str:
    posterior, seconds = fitted(problem(n, d), form=form)
    found, noted = posterior.summary(), posterior.record.run_facts.bias[0]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    apart = np.abs(found["mean"] - theta_star(d)) / found["sd"]
    theta = " ".join(f"{mean:.4f} ± {sd:.5f}" for mean, sd in zip(found["mean"], found["sd"], strict=True))
    moved = "".join(
        f"{noted[name]:8.3f}" if noted.get(name) is not None else "       -" for name in ("moved", "nodes_moved")
    )
    basis = noted.get("functions", 0)
    return f"{form:6}{d:2}{n:9}{seconds:8.1f}{memory:6.2f}   {theta:38}{apart.max():5.1f}{basis:7}{moved}"


def table() -> None:
    print("\nGaussian processes with many data, joint projection, 4 chains x 1000 draws, noise .2 known, nu 3/2")
    print(
        "s: CPU seconds of all; GB: peak memory; apart: |mean - theta*| in sds; moved: by half the functions, the nodes"
    )
    print(f"\n{'form':6}{'d':>2}{'n':>9}{'s':>8}{'GB':>6}   {'theta':38}apart  basis   moved   nodes")
    for case in CASES:
        command = [sys.executable, __file__, *map(str, case)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(line, end="", flush=True)
        what, d, n, seconds = line.split()[:4]
        record(f"{what}, n = {n}, d = {d}", float(seconds), "CPU s")


def gappy(n: int, d: int, gap: bool, nodes: int) -> oc.Problem:
    """The problem, with a hole in the data or without, and nodes that are the same for every form."""
    rng = np.random.default_rng(0)
    x = rng.random((3 * n, d))
    if gap:
        x = x[~((x[:, 0] > 0.3) & (x[:, 0] < 0.6) & ((x[:, -1] > 0.2) | (d == 1)))]
    x = x[:n]
    y = simulator(x, THETA) + bias(x) + 0.2 * rng.standard_normal(n)
    priors = {"a": stats.norm(1, 10), "b": stats.norm(1, 10)}
    rule = oc.Box(np.zeros(d), np.ones(d), nodes=nodes).rules(d)[0]
    return oc.Problem(x, y, simulator, priors, oc.Points(*rule), noise_cov=0.04)


def agreement() -> None:
    """Means in sds of the dense form, relative differences of sds; both have Monte-Carlo errors of .016 and .8 %."""
    print("\n d   nu  length  gap    mean off           sd off         dense s  large s")
    for d, nodes, lengths in ((1, 400, (0.15, 0.8)), (2, 30, (0.15, 0.8)), (3, 512, (0.25, 0.8))):
        for length, gap, nu in product(lengths, (False, True), (0.5, 1.5, 2.5) if d == 1 else (1.5, 2.5)):
            given = gappy(3_000, d, gap, nodes)
            both = [
                fitted(given, 2000, keep_mb=5, nu=nu, sd=0.5, lengthscale=length, form=form)
                for form in ("dense", "large")
            ]
            dense, large = (posterior.summary() for posterior, _ in both)
            off, wide = (large["mean"] - dense["mean"]) / dense["sd"], large["sd"] / dense["sd"] - 1
            figures = f"{off.to_numpy().round(3)!s:18} {wide.to_numpy().round(3)!s:16}"
            print(f"{d:2} {nu:4} {length:7} {gap!s:6} {figures} {both[0][1]:6.1f} {both[1][1]:8.1f}", flush=True)


def dense_theta(given: oc.Problem, length: float, nu: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and sd of theta = beta + lambda(b) for a dense process and flat beta, in closed form."""
    x, nodes, y = given.data.x, given.rule.nodes, given.data.y[:, 0]

    def cov(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return sd**2 * radial_correlation(cdist(a / length, b / length, "sqeuclidean"), nu)

    G, weighted = waves(x), given.rule.weights[:, None] * waves(nodes)
    C = np.linalg.solve(waves(nodes).T @ weighted, weighted.T)
    S = cho_factor(cov(x, x) + 0.04 * np.eye(len(x)))
    SG, across = cho_solve(S, G), C @ cov(nodes, x)
    beta = np.linalg.solve(G.T @ SG, SG.T @ y)
    turn = np.eye(2) - across @ SG
    spread = turn @ np.linalg.solve(G.T @ SG, turn.T) + C @ cov(nodes, nodes) @ C.T - across @ cho_solve(S, across.T)
    return beta + across @ cho_solve(S, y - G @ beta), np.sqrt(np.diag(spread))


def closed() -> None:
    """Of the form for large data mean and sd are those of the Gaussian that draws are made from."""
    seen, drawn = [], regress_functions._drawn

    def noted(problem, plan, linear, design):
        seen.append(design)
        return drawn(problem, plan, linear, design)

    print("\n d   nu  length  gap    mean off           sd off            functions  large s")
    with patch.object(regress_functions, "_drawn", noted):
        for length, gap, nu in product((0.25, 0.8), (False, True), (1.5, 2.5)):
            given = gappy(3_000, 3, gap, 512)
            mean, sd = dense_theta(given, length, nu, 0.5)
            _, seconds = fitted(given, 5, keep_mb=1, nu=nu, sd=0.5, lengthscale=length, form="large")
            found, wide = seen[-1].theta
            off, wider = (found + given.theta_tilde - mean) / sd, wide / sd - 1
            figures = f"{off.round(3)!s:18} {wider.round(4)!s:18} {len(seen[-1].parts[0].sums.functions):8}"
            print(f" 3 {nu:4} {length:7} {gap!s:6} {figures} {seconds:8.1f}", flush=True)


def coverage(sets: int, n: int = 20_000) -> None:
    """How often the 95 % intervals hold theta*, two inputs."""
    inside = np.zeros(2, dtype=int)
    for seed in range(sets):
        posterior, seconds = fitted(problem(n, 2, seed=2000 + seed), keep_mb=10)
        found = posterior.summary()
        inside += ((found["eti95_lb"] < theta_star(2)) & (theta_star(2) < found["eti95_ub"])).to_numpy()
        print(f"{seed + 1} data sets, theta* inside: {inside.tolist()}; {seconds:.0f} CPU s", flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(row(sys.argv[1], *map(int, sys.argv[2:])))
    elif len(sys.argv) == 3:
        coverage(int(sys.argv[2]))
    else:
        {"agreement": agreement, "closed": closed}.get("".join(sys.argv[1:]), table)()
