"""Trees with many data in the joint projection: the chain on cells, and integrals finer than the nodes of the box."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import generators, with_holes
from orthocal.bias.sized import Sized, SizedState
from orthocal.methods import fine_nodes
from orthocal.methods.base import Plan
from orthocal.methods.bias_samplers import fitted_bias
from orthocal.methods.joint import regress_cells
from orthocal.methods.joint.gibbs import gibbs_draws
from orthocal.methods.joint.joint import _squares
from orthocal.methods.joint.regress import Linear
from orthocal.methods.joint.regress_cells import cells_draws
from orthocal.problem.noise.noise import NoiseSource

BART = oc.bias.BART(trees=20, cuts=20)


def simulator(x, theta):
    waves = np.sin(np.outer(x[:, 0], [1, 2]) + x[:, -1:] * [1, 2])
    return waves @ theta


def problem(n=2500, d=2, q=1, seed=0, prior=10.0, domain=None, errors=True, **given):
    """Field data with a bias of half a unit, noise of about .2."""
    rng = np.random.default_rng(seed)
    x = rng.random((n, d))
    sd = 0.2 * rng.uniform(0.8, 1.2, (n, q)) if errors else np.full((n, q), 0.2)
    bias = 0.5 * np.sin(9 * x[:, 0]) * np.cos(4 * x[:, -1])
    y = (simulator(x, np.array([1.0, 1.5])) + bias)[:, None] + sd * rng.standard_normal((n, q))
    own = simulator if q == 1 else lambda x, theta: np.stack([simulator(x, theta)] * q, axis=1)
    return oc.Problem(
        x,
        with_holes(y) if q > 1 else y,
        own,
        {"a": stats.norm(1, prior), "b": stats.norm(1, prior)},
        domain=domain or oc.Box(0, 1),
        **(given or {"y_err": sd}),
    )


def regressed(given, draws, on_cells, seed=0, size_drawn=False):
    """Draws of the regression step by either chain, with the same generators."""
    linear, plan = Linear.of(given), Plan(draws, 20, generators(2, seed))
    bias = fitted_bias(BART, given, given.rule.nodes, size_drawn=size_drawn)
    integrals = fine_nodes.fine_integrals(given, bias.samplers)
    nodes = given.rule.nodes if integrals is None else integrals.nodes
    bias = fitted_bias(BART, given, nodes, size_drawn=size_drawn)
    run = cells_draws if on_cells else gibbs_draws
    return run(given, plan, bias, linear, integrals)


@pytest.mark.parametrize(
    "case",
    [{"d": 1}, {"d": 2}, {"d": 3}, {"q": 2}, {"domain": oc.Points(np.random.default_rng(5).random((40, 2)))}],
    ids=["one input", "two", "three", "two outcomes with holes", "nodes of the user"],
)
def test_both_chains_are_the_same_draw_by_draw(case):
    """Given the same random numbers; rounding may tell them apart after many iterations."""
    given = problem(**case)
    one, other = (regressed(given, 5, on_cells) for on_cells in (False, True))
    for name in ("at_nodes", "beta", "moved"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-7, err_msg=name)
    every = np.arange(len(one.beta))
    np.testing.assert_allclose(one.at_data(every), other.at_data(every), atol=1e-7)
    np.testing.assert_allclose(_squares(given.merged, one), other.square, rtol=1e-9)
    if one.missed_square is not None:
        np.testing.assert_allclose(one.missed_square, other.missed_square, atol=1e-7)
    assert one.records.keys() == other.records.keys()


def with_unknown_noise(given, **changes):
    given.noise = replace(given.noise, source=NoiseSource.UNKNOWN, **changes)
    return given


@pytest.mark.parametrize("alike", [False, True])
@pytest.mark.parametrize("size_drawn", [False, True])
def test_both_chains_draw_the_same_noise(alike, size_drawn, monkeypatch):
    """The scatter within cells is in it; rows may have relative variances, and be empty."""
    # the scatter of the data, which the first size is taken from, is smaller between cells
    monkeypatch.setattr(
        Sized, "_start", lambda self, z, w, sd: SizedState(np.full(len(z), 2.0), np.zeros(len(z)), None)
    )
    given = problem()
    if alike:
        y = given.data.y.copy()
        y[:3] = np.nan
        priors = {"a": stats.norm(1, 10), "b": stats.norm(1, 10)}
        given = oc.Problem(given.data.x, y, simulator, priors, domain=given.domain, noise_cov=0.04)
    given = with_unknown_noise(given)
    one, other = (regressed(given, 5, on_cells, size_drawn=size_drawn) for on_cells in (False, True))
    for name in ("at_nodes", "moved", "noise_precision"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-6, err_msg=name)
    assert one.stats.keys() == other.stats.keys() == ({"sd_0"} if size_drawn else set())
    # the noise is .2, and that of a typical row is its unit
    np.testing.assert_allclose(np.sqrt(1 / other.noise_precision * given.noise.cov[0, 0]), 0.2, rtol=0.15)


def test_rows_with_the_same_x_are_merged_first():
    given = problem(n=1500)
    twice = oc.Problem(
        np.vstack([given.data.x] * 2),
        np.vstack([given.data.y] * 2),
        simulator,
        {"a": stats.norm(1, 10), "b": stats.norm(1, 10)},
        domain=oc.Box(0, 1),
        noise_cov=0.04,
    ).merged
    one, other = (regressed(twice, 3, on_cells) for on_cells in (False, True))
    np.testing.assert_allclose(one.at_nodes, other.at_nodes, atol=1e-7)


def test_the_chain_on_cells_is_taken_with_many_data_only():
    few, many = problem(n=regress_cells.LARGE - 1), problem(n=regress_cells.LARGE)
    assert regressed(few, 2, on_cells=True) is None
    assert regressed(many, 2, on_cells=True) is not None
    assert regressed(with_unknown_noise(problem(), by_point=None), 2, on_cells=True) is not None
    assert regressed(with_unknown_noise(problem(q=2), by_point=None), 2, on_cells=True) is None


def test_the_posterior_of_many_data_is_whole():
    """Predictions, the file, check and the size of the bias."""
    given = problem(prior=0.05)
    posterior = oc.calibrate(given, oc.methods.Joint(BART), draws=100, chains=2, seed=1, progress=False)
    stored = {name: posterior.data[name][name] for name in ("model", "bias")}
    predicted = posterior.predict(given.data.x[:20])
    mean = (stored["model"] + stored["bias"]).mean(("chain", "draw")).values[:20]
    np.testing.assert_allclose(predicted["mean"].mean(("chain", "draw")), mean, atol=0.02)
    assert "integrals of the bias are exact" in str(posterior.check())
    # the bias' square has all of its parts: .0625 (1 - sin 18 / 18) (1 + sin 8 / 8) less what the simulator takes
    size = float(posterior.data["bias"]["bias_square"].mean()) if "bias_square" in posterior.data["bias"] else None
    assert size is None or 0.03 < size < 0.08


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_coefficients_of_the_projection_are_those_of_the_drawn_functions(d):
    """theta - theta_tilde = beta + lambda(b), with lambda(b) from the recorded functions at a million points or so."""
    given = problem(d=d, domain=oc.Box(0, 1, nodes=15 if d < 3 else 64))
    linear = Linear.of(given)
    found = regressed(given, 40, on_cells=True)
    fine = 40_001 if d == 1 else 400
    if d < 3:
        ends = (np.arange(fine) + 0.5) / fine
        points = np.stack(np.meshgrid(*[ends] * d, indexing="ij"), axis=-1).reshape(-1, d)
    else:
        points = oc.Box(0, 1).sobol(3, 2**16).nodes
    records = {name.removesuffix("_0"): values[:10] for name, values in found.records.items()}
    drawn = found.samplers[0].predict(np.random.default_rng(0), records, points)
    gradient = given.whitened_gradient(points)[:, 0]
    image = np.linalg.solve(gradient.T @ gradient, gradient.T @ drawn.T).T
    expected = found.beta[:10] + image
    spread = found.moved.std(axis=0)
    assert np.all(np.abs(found.moved[:10] - expected) < 0.1 * spread)
    # the functions at the nodes themselves, the negative control
    plain = found.samplers[0].predict(np.random.default_rng(0), records, given.rule.nodes) @ linear.coefficients.T
    assert np.abs(found.beta[:10] + plain - expected).max() > 0.3 * spread.max()


def test_a_chain_on_cells_goes_on_bit_for_bit(tmp_path):
    given, method = problem(), oc.methods.Joint(BART)
    lengths = {"warmup": 10, "chains": 2, "seed": 1, "progress": False}
    whole = oc.calibrate(given, method, draws=12, **lengths)
    for draws in (5, 12):
        longer = oc.calibrate(given, method, draws=draws, checkpoint=tmp_path / "run.ckpt", **lengths)
    assert np.array_equal(longer.theta, whole.theta)


@pytest.mark.parametrize("prior", [oc.bias.SoftBART(trees=5), oc.bias.BMARS()], ids=["softbart", "bmars"])
def test_draws_without_room_at_the_data_are_made_again(prior):
    """Values at the data from what predictions need: those that were drawn."""
    given = problem(n=300)
    bias, linear = fitted_bias(prior, given, given.rule.nodes), Linear.of(given)
    found = [gibbs_draws(given, Plan(6, 5, generators(2), keep=keep), bias, linear) for keep in (10**9, 10**4)]
    rows = np.array([0, 3, 11])
    np.testing.assert_allclose(found[0].at_data(rows), found[1].at_data(rows), atol=1e-8)
    np.testing.assert_allclose(found[0].moved, found[1].moved, rtol=1e-10)
    left = given.whiten(given.complete_y - given.fit) - found[0].at_data(rows)
    expected = np.einsum("snk,nkl,snl->s", left, given.noise.precision, left)
    np.testing.assert_allclose(found[1].square[rows], expected)


@pytest.mark.slow
def test_check_says_how_well_the_bias_was_integrated():
    for d, words in (
        (2, "integrals of the bias are exact"),
        (3, "integrals of the bias with 16384 nodes: half of them"),
    ):
        posterior = oc.calibrate(problem(d=d), oc.methods.Joint(BART), draws=25, seed=1, progress=False)
        assert words in str(posterior.check())
