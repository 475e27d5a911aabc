"""The constant beside a sum of trees: its law, and what it is for."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import generators
from orthocal.bias.tree_size import WithOffset


class NoTrees:
    """A bias that is zero."""

    def draw(self, rngs, state, residual, noise_scale=None):
        return 0, np.zeros((len(rngs), residual.shape[1] + 2))

    def record(self, state):
        return {}

    def predict(self, rng, records, x_new):
        return np.zeros((len(records["offset"]), len(x_new)))

    def settings(self):
        return {"unit": 2.0}

    def findings(self):
        return {}


@pytest.mark.parametrize("scale", [1.0, 4.0])
def test_without_trees_the_offset_is_the_conjugate_normal(scale):
    """z of the mean and of the variance of 4000 draws: |z| < 4.5 fails in 7 of a million."""
    rng = np.random.default_rng(0)
    noise_var = rng.uniform(0.5, 2, 10)
    residual = 3 + rng.standard_normal(10)
    sampler = WithOffset(NoTrees(), 2.5, noise_var)
    given = {} if scale == 1.0 else {"noise_scale": np.full(4000, scale)}
    state, values = sampler.draw(generators(4000), None, np.tile(residual, (4000, 1)), **given)
    precision = 1 / 2.5**2 + np.sum(1 / noise_var) / scale
    mean = np.sum(residual / noise_var) / scale / precision
    offsets = state.offset
    assert abs(offsets.mean() - mean) < 4.5 / np.sqrt(4000 * precision)
    assert abs(offsets.var() * precision - 1) < 4.5 * np.sqrt(2 / 4000)
    assert (values == offsets[:, None]).all()
    assert np.array_equal(sampler.predict(rng, sampler.record(state), np.zeros((3, 1))), np.tile(offsets, (3, 1)).T)
    assert sampler.findings() == {"offset_sd": 1.25}


@pytest.mark.parametrize("method", ["pbart", "psoftbart"])
@pytest.mark.slow
def test_a_constant_bias_of_200_noise_sds_does_not_disturb_theta(method):
    """Without the offset pbart's means scatter four times as much as pgp's (.051 and .014 over data sets)."""
    means = {method: [], "pgp": []}
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = np.linspace(0, 1, 60)
        y = np.sin(2 * np.pi * x) + 20 + 0.1 * rng.standard_normal(60)
        problem = oc.Problem(
            x,
            y,
            lambda x, t: t[0] * np.sin(2 * np.pi * x),
            {"t": stats.norm(0, 10)},
            domain=oc.Box(0, 1),
            noise_cov=0.01,
        )
        for name, own in means.items():
            own.append(oc.calibrate(problem, name, draws=150, warmup=100, seed=seed, progress=False).theta.mean())
    assert np.std(means[method]) < 1.7 * np.std(means["pgp"])
    assert np.abs(np.array(means[method]) - 1).max() < 0.1
