"""Speed beside a peer, measured in one run on one core: CPU seconds and effective draws a CPU second.

python benchmarks/run.py             all parts, one after the other
python benchmarks/run.py bart joint  these parts
python benchmarks/run.py --list      their names
python benchmarks/run.py --record bart  the same, kept in benchmarks/history.json
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import platform
import sys
import traceback
from importlib import import_module
from time import perf_counter, process_time

import numpy as np
from arviz_stats.base import array_stats

import orthocal as oc
from history import append, record, taken
from orthocal.examples import MODEL1, MODEL2, MODEL3
from plain_algorithm import plain_algorithm

CHAINS, DRAWS, WARMUP, REPEATS = 4, 1000, 200, 3


def effective(theta: np.ndarray) -> float:
    """The smallest effective sample size of the parameters, theta (c, s, p)."""
    return min(float(array_stats.ess(theta[:, :, j], method="bulk")) for j in range(theta.shape[2]))


#: the default as it is, with hyperparameters found from the data, and the paper's algorithm with those of the peer
METHODS = {"gp": oc.methods.Joint(), "pgp": oc.methods.Projected(oc.bias.GP(nu=1.5, sd=1.0, lengthscale=0.5))}


def ours(model, method: oc.methods.Method, data_seed: int) -> tuple[float, float]:
    x, y = model.simulate(np.random.default_rng(data_seed))
    started = process_time()
    posterior = oc.calibrate(model.problem(x, y), method, draws=DRAWS, chains=CHAINS, warmup=WARMUP, seed=1)
    return process_time() - started, effective(posterior.theta)


def peer(model, data_seed: int) -> tuple[float, float]:
    x, y = model.simulate(np.random.default_rng(data_seed))
    started = process_time()
    problem = model.problem(x, y)
    chains = [plain_algorithm(problem, DRAWS, WARMUP, np.random.default_rng(c)) for c in range(CHAINS)]
    return process_time() - started, effective(np.stack(chains))


def main() -> None:
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.machine()}, one core")
    print(f"n = 100, {CHAINS} chains x {DRAWS} draws with best fit and warm-up ({WARMUP}); median of {REPEATS} runs")
    print("peer: the published algorithm in plain NumPy, hyperparameters given, factorised in every iteration,")
    print("one random-walk step\n")
    columns = f"{'s':>8} {'ESS':>6} {'ESS/s':>8}"
    print(f"{'model':8} {'method':6} {columns} | {'peer:':>6}{columns} | time  ESS/s")
    for model in (MODEL1, MODEL2, MODEL3):
        c, d = np.median([peer(model, seed) for seed in range(REPEATS)], axis=0)
        theirs = f"{'':6}{c:8.2f} {d:6.0f} {d / c:8.0f}"
        for name, method in METHODS.items():
            ours(model, method, 0)  # compiles
            a, b = np.median([ours(model, method, seed) for seed in range(REPEATS)], axis=0)
            times = (b / a) / (d / c)
            own = f"{model.title:8} {name:6} {a:8.2f} {b:6.0f} {b / a:8.0f}"
            print(f"{own} | {theirs} | {c / a:4.1f}x {times:5.0f}x", flush=True)
            record(f"{model.name}, {name}", b / a, "effective draws a CPU second", "plain NumPy", times)


#: module and function of each; a package that one needs and that is not there stops that one alone
PARTS = {
    "published": ("__main__", "main"),
    "bart": ("bart", "main"),
    "bmars": ("bmars", "main"),
    "joint": ("joint", "main"),
    "large_data": ("large_data", "table"),
    "large_trees": ("large_trees", "main"),
    "nothing_plugged_in": ("nothing_plugged_in", "table"),
    "outcomes": ("outcomes", "main"),
    "replicates": ("replicates", "main"),
    "startup": ("startup", "main"),
    "threads": ("threads", "main"),
}


def run(names: list[str], kept: bool = False) -> int:
    """These parts, each whatever becomes of the others; how many failed."""
    failed = 0
    for name in names:
        started, cpu = perf_counter(), process_time()
        taken(name)  # what a part that failed has left
        try:
            module, function = PARTS[name]
            getattr(import_module(module), function)()
        except Exception:
            traceback.print_exc()
            failed += 1
        else:
            if kept:
                append(taken(name))
        print(
            f"[{name}: {perf_counter() - started:.0f} s, CPU of this process {process_time() - cpu:.0f} s]", flush=True
        )
    return failed


if __name__ == "__main__":
    kept = "--record" in sys.argv
    asked = [name for name in sys.argv[1:] if name != "--record"] or list(PARTS)
    if asked == ["--list"]:
        print(*PARTS)
    elif unknown := [name for name in asked if name not in PARTS]:
        sys.exit(f"no part of the benchmarks is called {', '.join(unknown)}: {', '.join(PARTS)}")
    else:
        sys.exit(run(asked, kept) > 0)
