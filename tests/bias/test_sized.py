"""The size of a bias, drawn with it in units of the noise: against quadrature, its prior, and Geweke's test."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import generators
from orthocal.bias.one_hot import prepared, stored_sampler
from orthocal.bias.sized import GriddedSized, Sized, SizedState
from orthocal.regression.compiled import Gridded

N = 12
X = np.linspace(0, 1, N)[:, None]
NODES = np.array([[0.21], [0.77]])
NOISE_VAR = np.linspace(0.2, 0.6, N)
PRIORS = {
    "bart": oc.bias.BART(trees=5, least=0),
    "softbart": oc.bias.SoftBART(trees=5),
    "bmars": oc.bias.BMARS(most=8, least=1),
    "bnn": oc.bias.BNN(hidden=4),
}


def sampler(name, noise_var=NOISE_VAR):
    z = 4 * np.sin(5 * X[:, 0])
    setting = oc.bias.Setting(X, NODES, np.ones(1), noise_var, z, X, unit=2.0)
    return prepared(PRIORS[name], setting, size_drawn=True)


class OneFunction:
    """f = u g with one coefficient u ~ N(0, 1), drawn from its full conditional."""

    def __init__(self, g):
        self.g = g

    def draw(self, rngs, state, residual, noise_scale):
        weight = 1 / (NOISE_VAR * noise_scale.reshape(len(rngs), -1))
        precision = 1 + np.sum(weight * self.g**2, axis=1)
        mean = np.sum(weight * self.g * residual, axis=1) / precision
        u = mean + np.array([rng.standard_normal() for rng in rngs]) / np.sqrt(precision)
        return u, u[:, None] * self.g

    def coefficients(self, state):
        return state**2, np.ones(len(state))

    def rescaled(self, state, factor):
        return state * factor


@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_one_coefficient_against_a_grid(slope):
    """log |c| and u c of b = a + c u g: mean and variance of 4000 chains after 60 steps against quadrature, |z| < 4.5.

    7 false alarms in a million; without the half-Cauchy factor (w = h = 0) both fail.
    """
    g = np.cos(3 * X[:, 0])
    z = slope * g + 0.5 + 0.4 * np.sin(11 * X[:, 0])
    sd, chains = 0.7, 4000
    own, rngs, state = Sized(OneFunction(g), NOISE_VAR), generators(4000), None
    for _ in range(60):
        state, values = own.draw(
            rngs, state, np.tile(z, (chains, 1)), noise_scale=np.full(chains, sd**2), noise_sd=np.full(chains, sd)
        )
    # a is Cauchy: on a grid; v = c u is normal given c, and integrated out
    log_c, a = np.linspace(-12, 9, 211), 0.5 + np.linspace(-4, 4, 401)
    weight = 1 / (NOISE_VAR * sd**2)
    c = np.exp(log_c)[:, None]
    precision = c**-2 + np.sum(weight * g**2)
    left = z - a[:, None]
    pull = left @ (weight * g)
    log_density = 0.5 * pull**2 / precision - 0.5 * np.log(precision) - log_c[:, None] - 0.5 * left**2 @ weight
    log_density = log_density + log_c[:, None] - np.log1p((c / sd) ** 2) - np.log1p((a / sd) ** 2)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    exact_log, exact_v = density.sum(axis=1) @ log_c, np.sum(density * pull / precision)
    drawn = [np.log(np.abs(state.size)), state.size * state.own]
    for values, exact in zip(drawn, (exact_log, exact_v), strict=True):
        assert abs(values.mean() - exact) < 4.5 * values.std() / np.sqrt(chains)
    second = density.sum(axis=1) @ log_c**2
    assert abs((drawn[0] ** 2).mean() - second) < 4.5 * (drawn[0] ** 2).std() / np.sqrt(chains)


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("rows", [False, True])
def test_size_bias_and_noise_together(name, rows):
    """Geweke's test: from the prior, data and posterior in turn leave |c| / s and a / s Cauchy (300 chains).

    ``rows``: with noise of each row's own in every draw. 1 false alarm in 10 000 for each of the two; with the
    half-Cauchy factor left out (w = h = 0) all fail but the trees with steps.
    """
    chains, own, rngs = 300, sampler(name), generators(300)
    rng = np.random.default_rng(3)
    sd = np.exp(0.3 * rng.standard_normal(chains))
    size, offset = sd * np.tan(np.pi * (rng.random((2, chains)) - 0.5))
    state, scale = None, np.full((chains, N), 1e12)
    for _ in range(3 if name == "bnn" else 30):
        # with noise without end, draws of the prior
        state, f = own.own.draw(rngs, state, np.zeros((chains, N)), noise_scale=scale if rows else scale[:, 0])
    if name == "bnn":
        state = state._replace(hidden=rng.standard_normal(state.hidden.shape), step=np.full(chains, 0.1))
        state = state._replace(output=rng.standard_normal(state.output.shape))
        f = own.own._values(own.own.record(state)["weights"], own.own._inputs)
    state, values = SizedState(size, offset, state), offset[:, None] + size[:, None] * f
    for _ in range(12):
        scale = (sd**2)[:, None] * (np.exp(rng.standard_normal((chains, N))) if rows else np.ones((1, N)))
        z = values[:, :N] + np.sqrt(scale * NOISE_VAR) * rng.standard_normal((chains, N))
        state, values = own.draw(rngs, state, z, noise_scale=scale if rows else scale[:, 0], noise_sd=sd)
    assert stats.kstest(2 / np.pi * np.arctan(np.abs(state.size) / sd), "uniform").pvalue > 1e-4
    assert stats.kstest(state.offset / sd, "cauchy").pvalue > 1e-4
    assert np.mean(state.size != size) > 0.99


@pytest.mark.parametrize("name", PRIORS)
def test_what_is_recorded_has_the_size(name):
    rngs, own = generators(3), sampler(name)
    z = np.tile(4 * np.sin(5 * X[:, 0]), (3, 1))
    state, _ = own.draw(rngs, None, z)
    state, values = own.draw(rngs, state, z)
    records, points = own.record(state), np.vstack([X, NODES])
    np.testing.assert_allclose(own.predict(rngs[0], records, points), values, atol=1e-9)
    again = stored_sampler(own.settings()).restore(own.settings(), X, NODES, NOISE_VAR)
    np.testing.assert_allclose(again.predict(rngs[0], records, points), values, atol=1e-9)
    assert isinstance(own, Gridded) == (name == "bart")
    own.summarise(np.abs(state.size)[:, None] / 2)
    assert set(own.findings()) >= {"sd", "sd_interval"}
    assert not set(own.findings()) & {"leaf_sd", "coefficient_scale", "function_sd", "intercept_sd"}


def test_data_in_one_cell_are_one_observation():
    """The same law with cells for data points: two of the twelve share one."""
    own = sampler("bart")
    assert isinstance(own, GriddedSized)
    cells, place = np.unique(own.cells(X), return_inverse=True)
    merged = own.on_cells(cells, place, NODES)
    np.testing.assert_allclose(merged._weight, np.bincount(place, 1 / NOISE_VAR))
    rngs = generators(2)
    state, values = merged.draw(rngs, None, np.tile(np.linspace(-3, 3, len(cells)), (2, 1)))
    records = merged.record(state)
    np.testing.assert_allclose(own.in_cells(records)[:, own.cells(NODES)], values[:, -2:])
    np.testing.assert_allclose(merged.at_cells(records), values[:, :-2])


def test_a_noise_of_each_row_is_the_common_one_where_it_is_the_same():
    z = np.tile(4 * np.sin(5 * X[:, 0]), (3, 1))
    for name in PRIORS:
        found = []
        for scale in (np.full(3, 1.7), np.full((3, N), 1.7)):
            own, rngs, state = sampler(name), generators(3), None
            for _ in range(3):
                # given to the sampler of f, which would see a row's number here
                state, values = own.own.draw(rngs, state, z, noise_scale=scale)
            found.append(values)
        np.testing.assert_allclose(*found, atol=1e-6)
