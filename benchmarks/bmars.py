"""BMARS moves beside pyBASS on the same data: CPU microseconds a move."""

from __future__ import annotations

import contextlib
import io
from time import process_time

import numpy as np
import pyBASS

import orthocal as oc
from history import record
from orthocal.bias.base import Setting

CASES = ((100, 1), (100, 5), (1000, 5))
MOVES = 10


def ours(x, y, draws: int = 3000) -> float:
    n, d = x.shape
    setting = Setting(x, np.random.default_rng(1).random((15, d)), np.ones(d), np.ones(n), y, np.ones((n, 1)), 1.0)
    sampler = oc.bias.BMARS(moves=MOVES).prepare(setting)
    rng = np.random.default_rng(2)
    state, _ = sampler.draw([rng], None, y[None])
    for _ in range(500):
        state, _ = sampler.draw([rng], state, y[None])
    started = process_time()
    for _ in range(draws):
        state, _ = sampler.draw([rng], state, y[None])
    return (process_time() - started) / draws / MOVES


def theirs(x, y, moves: int = 2000) -> float:
    with contextlib.redirect_stdout(io.StringIO()):
        started = process_time()
        pyBASS.bass(x, y, nmcmc=moves, nburn=moves // 2, thin=1)
        return (process_time() - started) / moves


def main() -> None:
    print("\nBMARS, one move with its share of coefficients and predictions, CPU microseconds; peer: pyBASS\n")
    print(f"{'n':>6} {'d':>2} {'ours':>8} {'pyBASS':>8}  ratio")
    for n, d in CASES:
        rng = np.random.default_rng(0)
        x = rng.random((n, d))
        y = 5 * np.sin(6 * x[:, 0]) + (5 * x[:, 1] ** 2 if d > 1 else 0) + rng.standard_normal(n)
        mine, other = 1e6 * ours(x, y), 1e6 * theirs(x, y)
        print(f"{n:6} {d:2} {mine:8.2f} {other:8.1f} {other / mine:5.0f}x", flush=True)
        record(f"one move, n = {n}, d = {d}", mine, "CPU µs", "pyBASS", other / mine)


if __name__ == "__main__":
    main()
