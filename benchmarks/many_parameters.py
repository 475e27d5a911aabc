"""Many parameters: p = 30 and 50 waves in one input and in two, seconds, effective draws, and coverage.

python benchmarks/many_parameters.py [data sets [parameters [inputs]]], 2 and all by default.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import sys
from time import process_time

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc

CHAINS, DRAWS, ROWS, NOISE_SD = 4, 1000, 2000, 0.1


def waves(x: np.ndarray, p: int) -> np.ndarray:
    """p cosines and sines of x (n, d), (n, p)."""
    if x.shape[1] == 1:
        k = np.arange(p)
        return np.where(k % 2 == 0, np.cos(np.pi * k * x), np.sin(np.pi * (k + 1) * x))
    i, j = np.divmod(np.arange(p), int(np.ceil(np.sqrt(p))))
    return np.cos(np.pi * i * x[:, [0]]) * np.cos(np.pi * j * x[:, [1]])


def simulator(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """A sum of waves whose heights are curved functions of theta, and of its neighbours."""
    heights = theta + 0.05 * theta**2 + 0.02 * theta * np.roll(theta, 1)
    return waves(x.reshape(len(x), -1), len(theta)) @ heights


def bias(x: np.ndarray) -> np.ndarray:
    """Three noise sds, with edges that no wave follows."""
    return 3 * NOISE_SD * np.abs(np.sin(7 * x[:, 0] + 3 * x[:, -1] ** 2))


def case(p: int, d: int, seed: int) -> tuple[oc.Problem, np.ndarray]:
    """A problem, and its theta*."""
    rng = np.random.default_rng(seed)
    truth = 0.5 * rng.standard_normal(p)
    x = rng.random((ROWS, d))
    y = simulator(x, truth) + bias(x) + NOISE_SD * rng.standard_normal(ROWS)
    priors = {f"t{j + 1}": stats.norm(0, 1) for j in range(p)}
    problem = oc.Problem(x, y, simulator, priors, oc.Box(np.zeros(d), np.ones(d)), noise_cov=NOISE_SD**2)
    rule, _ = oc.Box(np.zeros(d), np.ones(d), nodes=4000 if d == 1 else 120).rules(d)
    real, root = simulator(rule.nodes, truth) + bias(rule.nodes), np.sqrt(rule.weights)
    fit = least_squares(lambda theta: root * (real - simulator(rule.nodes, theta)), truth, xtol=1e-12, ftol=1e-12)
    return problem, fit.x


def measured(p: int, d: int, seed: int) -> tuple[float, ...]:
    """CPU seconds of best fit, calibration and check, the least effective draws, and the share of theta* inside."""
    problem, truth = case(p, d, seed)
    started = process_time()
    _ = problem.minima
    found = process_time()
    posterior = oc.calibrate(problem, "gp", DRAWS, CHAINS, seed=1, progress=False)
    drawn = process_time()
    level = [one.topic for one in posterior.check() if one.level == "problem"]
    checked = process_time()
    theta = posterior.theta
    low, high = np.quantile(theta.reshape(-1, p), [0.025, 0.975], axis=0)
    effective = min(float(array_stats.ess(theta[:, :, j], method="bulk")) for j in range(p))
    inside = float(np.mean((low < truth) & (truth < high)))
    if level:
        print(f"  check() has a problem with: {', '.join(level)}")
    return found - started, drawn - found, checked - drawn, effective, inside


def main() -> None:
    given = [int(one) for one in sys.argv[1:]]
    sets = given[0] if given else 2
    print(f"n = {ROWS}, gp, {CHAINS} x {DRAWS} draws, known noise, one core; CPU seconds, mean of {sets} data sets")
    print(
        f"{'p':>3} {'d':>2} {'best fit':>9} {'draws':>7} {'check':>6} {'all':>6} {'least ESS':>10} {'inside 95 %':>12}"
    )
    for p in (30, 50):
        for d in (1, 2):
            if p in (given[1:2] or [p]) and d in (given[2:3] or [d]):
                rows = np.array([measured(p, d, seed) for seed in range(sets)])
                fit, draws, check, _, inside = rows.mean(axis=0)
                whole = fit + draws + check
                least = rows[:, 3].min()
                times = f"{fit:9.1f} {draws:7.1f} {check:6.1f} {whole:6.1f}"
                print(f"{p:3} {d:2} {times} {least:10.0f} {inside:12.3f}", flush=True)


if __name__ == "__main__":
    main()
