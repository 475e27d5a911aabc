"""One BART sweep with predictions, beside bartz on the same data: CPU milliseconds."""

from __future__ import annotations

from time import process_time

import bartz
import jax
import jax.numpy as jnp
import numpy as np

import orthocal as oc
from history import record
from orthocal.bias.base import Setting

TREES = 200
CASES = ((100, 1, 15, 1000), (1000, 5, 15, 300), (10_000, 5, 15, 60), (100_000, 5, 15, 20))


def data(n: int, d: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.random((n, d))
    y = np.sin(6 * x[:, 0]) + (x[:, 1] ** 2 + x[:, 2] * x[:, 3] / 2 if d > 3 else 0) + 0.2 * rng.standard_normal(n)
    return x, 5 * (y - y.mean()), rng.random((m, d))


def timed(step, repeats: int) -> float:
    """CPU ms a call, the median of five blocks, after as many calls to warm up."""
    for _ in range(repeats):
        step()
    blocks = []
    for _ in range(5):
        started = process_time()
        for _ in range(repeats // 5):
            step()
        blocks.append((process_time() - started) / (repeats // 5))
    return 1000 * float(np.median(blocks))


def ours(x, y, nodes, repeats):
    n, d = x.shape
    setting = Setting(x, nodes, np.ones(d), np.ones(n), y, np.ones((n, 1)), 1.0)
    sampler = oc.bias.BART(trees=TREES).prepare(setting)
    rng = np.random.default_rng(1)
    state, _ = sampler.draw([rng], None, y[None])
    size = sum(part.nbytes for part in state.own[0]) / 1e6
    # bartz has no offset
    return sampler.own, timed(lambda: sampler.draw([rng], state, y[None]), repeats), size


def theirs(sampler, y, repeats):
    n = len(y)
    Wishart = bartz.mcmcstep.Wishart
    state = bartz.mcmcstep.init(
        X=jnp.asarray(sampler._bins[:, :n]),
        y=jnp.asarray(y, dtype=jnp.float32),
        offset=0.0,
        max_split=jnp.asarray(sampler._cuts, dtype=jnp.uint8),
        num_trees=TREES,
        p_nonterminal=bartz.mcmcstep.make_p_nonterminal(6),
        leaf_prior_cov_inv=Wishart(None, None, jnp.float32(sampler.leaf_sd**-2)),
        error_cov_inv=Wishart(jnp.float32(1e8), jnp.float32(1e8), jnp.float32(1.0)),
        min_points_per_leaf=5,
    )
    nodes = jnp.asarray(sampler._bins[:, n:])

    @jax.jit
    def step(key, state):
        key, use = jax.random.split(key)
        state = bartz.mcmcstep.step(use, state)
        return key, state, bartz.grove.evaluate_forest(nodes, state.forest, sum_batch_axis=0)

    now = [jax.random.key(0), state]

    def once():
        key, state, at_nodes = step(*now)
        now[:] = [key, state]
        jax.block_until_ready(at_nodes)

    return timed(once, repeats)


def main() -> None:
    print(f"\nBART, {TREES} trees, one sweep with predictions at 15 nodes, CPU ms; peer: bartz {bartz.__version__}\n")
    print(f"{'n':>6} {'d':>2} {'ours':>8} {'bartz':>8}  ratio  memory of a forest")
    for n, d, m, repeats in CASES:
        x, y, nodes = data(n, d, m)
        sampler, mine, size = ours(x, y, nodes, repeats)
        other = theirs(sampler, y, repeats)
        print(f"{n:6} {d:2} {mine:8.3f} {other:8.3f} {other / mine:5.1f}x  {size:.2f} MB", flush=True)
        record(f"one sweep, n = {n}, d = {d}", mine, "CPU ms", f"bartz {bartz.__version__}", other / mine)


if __name__ == "__main__":
    main()
