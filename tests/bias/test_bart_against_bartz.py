"""BART's posterior against bartz, an independent implementation, on three data sets.

Mean and second moment of the function at the data points agree within Monte-Carlo error from batch means: with 24
batches on either side |z| > 5.5 has probability below 5e-6 a comparison, 120 comparisons in all; seeds are fixed.
"""

import numpy as np
import pytest

import orthocal as oc
from helpers import setting

TREES, POINTS, BATCHES, LENGTH, WARMUP = 20, 60, 24, 500, 1000


def data(d):
    rng = np.random.default_rng(d)
    x = rng.random((POINTS, d))
    truth = 3 * np.sin(6 * x[:, 0]) + (2 * x[:, 1] ** 2 if d > 1 else 0) + (4 * x[:, 2] * x[:, 3] if d > 3 else 0)
    return x, truth - truth.mean() + rng.standard_normal(POINTS)


def ours(x, response):
    """Draws at the data points, (draws, n), with the sampler whose grid and leaves bartz shall have too."""
    # the trees alone: bartz has no offset
    sampler = oc.bias.BART(trees=TREES, least=0, cuts=20).prepare(setting(x, residual=response)).own
    rng = np.random.default_rng(0)
    state, draws = None, []
    for _ in range(WARMUP + BATCHES * LENGTH):
        state, values = sampler.draw([rng], state, response[None])
        draws.append(values[0])
    return sampler, np.array(draws[WARMUP:])


def theirs(sampler, response):
    jax = pytest.importorskip("jax", reason="bartz needs jax")
    bartz = pytest.importorskip("bartz", reason="the other implementation, in the extra test")
    import jax.numpy as jnp

    step, make, Wishart = bartz.mcmcstep.step, bartz.mcmcstep.init, bartz.mcmcstep.Wishart
    state = make(
        X=jnp.asarray(sampler._bins),
        y=jnp.asarray(response, dtype=jnp.float32),
        offset=0.0,
        max_split=jnp.asarray(sampler._cuts, dtype=jnp.uint8),
        num_trees=TREES,
        p_nonterminal=bartz.mcmcstep.make_p_nonterminal(6, 0.95, 2.0),
        leaf_prior_cov_inv=Wishart(None, None, jnp.float32(sampler.leaf_sd**-2)),
        # so sharp a prior holds the noise variance at 1 to within 0.0002
        error_cov_inv=Wishart(jnp.float32(1e8), jnp.float32(1e8), jnp.float32(1.0)),
    )

    @jax.jit
    def run(keys, state):
        def body(state, key):
            state = step(key, state)
            return state, bartz.grove.evaluate_forest(state.X, state.forest, sum_batch_axis=0)

        return jax.lax.scan(body, state, keys)

    _, draws = run(jax.random.split(jax.random.key(1), WARMUP + BATCHES * LENGTH), state)
    return np.asarray(draws)[WARMUP:]


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 5])
def test_posterior_agrees_with_bartz(d):
    x, response = data(d)
    sampler, mine = ours(x, response)
    other = theirs(sampler, response)
    chosen = np.arange(0, POINTS, 3)
    centre = (mine.mean(axis=0) + other.mean(axis=0))[chosen] / 2
    for power in (1, 2):
        means, errors = [], []
        for draws in (mine, other):
            values = (draws[:, chosen] - centre) ** power
            batches = values.reshape(BATCHES, LENGTH, -1).mean(axis=1)
            means.append(batches.mean(axis=0))
            errors.append(batches.std(axis=0, ddof=1) / np.sqrt(BATCHES))
        z = (means[0] - means[1]) / np.hypot(*errors)
        print(f"d = {d}, moment {power}: z has rms {np.sqrt(np.mean(z**2)):.2f}, largest {np.abs(z).max():.2f}")
        assert np.abs(z).max() < 5.5
