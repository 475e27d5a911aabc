"""An ordinary differential equation of some milliseconds: one process beside two, in the same run.

Wall times mean something on idle cores only. So the CPU times are shown, too: those of the program itself, which no
other process can take over, and those of the calls in the processes. From these follows the wall time on two idle
cores, if nothing of the program's own work overlaps with the processes', and by how much faster that is than one
process. Before both, what ``problem.check()`` tells.

    python benchmarks/parallel_calls.py [draws a chain, default 1000]
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import sys
import warnings
from time import perf_counter, process_time

import numpy as np
from scipy import stats
from scipy.integrate import solve_ivp

import orthocal as oc

CHAINS = 4
PRIORS = {"length": stats.uniform(0.5, 1.5), "damping": stats.uniform(0.0, 1.0), "start": stats.norm(0.8, 0.3)}


def pendulum(t, theta):
    """The angle of a damped pendulum at the times t: its length, damping and first angle are theta."""
    length, damping, start = theta

    def motion(_, state):
        return [state[1], -9.81 / length * np.sin(state[0]) - damping * state[1]]

    times = np.unique(t)
    angle = solve_ivp(motion, (0.0, 4.0), [start, 0.0], t_eval=times, rtol=1e-8, atol=1e-8).y[0]
    return angle[np.searchsorted(times, t)]


def observed():
    """A pendulum whose damping grows with its speed, seen with noise."""

    def motion(_, state):
        return [state[1], -9.81 / 1.1 * np.sin(state[0]) - 0.15 * state[1] * (1 + abs(state[1]))]

    t = np.linspace(0.05, 3.95, 40)
    angle = solve_ivp(motion, (0.0, 4.0), [1.0, 0.0], t_eval=t, rtol=1e-9, atol=1e-9).y[0]
    return t, angle + 0.02 * np.random.default_rng(1).standard_normal(len(t))


def problem(jobs: int) -> oc.Problem:
    return oc.Problem(*observed(), oc.Simulator(pendulum, jobs=jobs), PRIORS, oc.Box(0, 4), noise_cov=0.02**2)


def told(draws: int) -> None:
    """What a look before the run says of its cost."""
    given, began = problem(1), perf_counter()
    (cost,) = [one.message for one in given.check(draws=draws) if one.topic == "cost"]
    print(
        f"problem.check(), {given.simulator.calls} calls, {perf_counter() - began:.1f} s: {cost.split(';')[0]}",
        flush=True,
    )


def run(jobs: int, draws: int) -> tuple[float, float, float, oc.Problem, np.ndarray]:
    """Wall seconds, CPU seconds here and of calls in other processes, the problem and its draws."""
    given, wall, cpu = problem(jobs), perf_counter(), process_time()
    with warnings.catch_warnings():
        # that an emulator would be faster
        warnings.simplefilter("ignore", oc.OrthocalWarning)
        posterior = oc.calibrate(given, draws=draws, chains=CHAINS, seed=1, progress=False)
    return perf_counter() - wall, process_time() - cpu, given.simulator.worker_cpu, given, posterior.theta


def main() -> None:
    draws = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"pendulum, three parameters, {CHAINS} chains x {draws} draws; load {os.getloadavg()[0]:.1f}")
    told(draws)
    rows = [run(jobs, draws) for jobs in (1, 2)]
    for jobs, (wall, own, others, given, _) in enumerate(rows, 1):
        calls = given.simulator.calls
        searched = given.simulator.search.calls
        print(
            f"jobs={jobs}: {wall:6.1f} s wall, {own:5.1f} s CPU here, {others:5.1f} s in processes; {calls} calls, "
            f"{searched} for the best fit, {(calls - searched) / (CHAINS * draws):.2f} a draw",
            flush=True,
        )
    one, two = rows
    print(f"the same draws: {np.array_equal(one[4], two[4])}; wall {one[0] / two[0]:.2f}x as fast", flush=True)
    print(f"by CPU times, on two idle cores: {one[1] / (two[1] + two[2] / 2):.2f}x as fast")


if __name__ == "__main__":
    main()
