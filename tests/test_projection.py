"""The projection: orthogonal, idempotent, self-adjoint, and indifferent to how theta is parametrised."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.linalg import sqrtm

import orthocal as oc
from helpers import largest_error
from orthocal.errors import IdentifiabilityError
from orthocal.examples import MODEL1
from orthocal.projection import finite_projection, functional_projection, sensitivity

SIZES = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(0, 2**32 - 1))


def random_case(sizes, m=12, n=7):
    """Gradients at data and nodes, weights and a metric, all random."""
    q, p, seed = sizes
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((q, q))
    weights = rng.random(m) + 0.1
    metric = root @ root.T + 0.1 * np.eye(q)
    return rng, rng.standard_normal((n, q, p)), rng.standard_normal((m, q, p)), weights / weights.sum(), metric


def names(p):
    return tuple("abc"[:p])


def inner(u, v, weights, metric):
    return np.einsum("k,kq,qr,kr->", weights, u, metric, v)


def project_at_nodes(bias_at_nodes, at_nodes, weights, metric):
    """The projected bias at the nodes: the nodes take the place of the data."""
    sens = sensitivity(at_nodes, weights, metric, names(at_nodes.shape[2]))
    projection = functional_projection(at_nodes, at_nodes, weights, metric, sens)
    return projection.apply(np.concatenate([bias_at_nodes, bias_at_nodes])[None])


@settings(max_examples=50, deadline=None)
@given(SIZES)
def test_functional_projection_is_orthogonal_idempotent_and_self_adjoint(sizes):
    rng, _, at_nodes, weights, metric = random_case(sizes)
    b, c = rng.standard_normal((2, *at_nodes.shape[:2]))
    projected, other = (project_at_nodes(v, at_nodes, weights, metric) for v in (b, c))
    for j in range(at_nodes.shape[2]):
        assert abs(inner(projected.bias[0], at_nodes[:, :, j], weights, metric)) < 1e-10
    assert projected.error[0] < 1e-12
    again = project_at_nodes(projected.bias[0], at_nodes, weights, metric)
    np.testing.assert_allclose(again.bias, projected.bias, atol=1e-10)
    np.testing.assert_allclose(
        inner(projected.bias[0], c, weights, metric), inner(b, other.bias[0], weights, metric), atol=1e-9
    )


@settings(max_examples=50, deadline=None)
@given(SIZES)
def test_functional_projection_is_the_formula_of_the_paper(sizes):
    rng, at_data, at_nodes, weights, metric = random_case(sizes)
    n = len(at_data)
    b = rng.standard_normal((n + len(at_nodes), at_data.shape[1]))
    sens = sensitivity(at_nodes, weights, metric, names(at_data.shape[2]))
    result = functional_projection(at_data, at_nodes, weights, metric, sens).apply(b[None])
    Q = np.einsum("k,kqi,qr,krj->ij", weights, at_nodes, metric, at_nodes)
    eta = np.einsum("k,kq,qr,krj->j", weights, b[n:], metric, at_nodes)
    coefficient = np.linalg.solve(Q, eta)
    np.testing.assert_allclose(sens.gram, Q, atol=1e-10)
    np.testing.assert_allclose(result.coefficient[0], coefficient, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(result.bias[0], b[:n] - at_data @ coefficient, rtol=1e-6, atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(SIZES)
def test_projection_does_not_depend_on_the_parametrisation_of_theta(sizes):
    rng, at_data, at_nodes, weights, metric = random_case(sizes)
    p = at_data.shape[2]
    change = rng.standard_normal((p, p)) + 3 * np.eye(p)
    b = rng.standard_normal((1, len(at_data) + len(at_nodes), at_data.shape[1]))

    def project(at_data, at_nodes):
        sens = sensitivity(at_nodes, weights, metric, names(p))
        return functional_projection(at_data, at_nodes, weights, metric, sens).apply(b).bias

    np.testing.assert_allclose(project(at_data, at_nodes), project(at_data @ change, at_nodes @ change), atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(SIZES)
def test_finite_projection_is_its_formula(sizes):
    rng, at_data, _, _, metric = random_case(sizes)
    n, q, p = at_data.shape
    volumes = rng.random(n)
    factor = rng.standard_normal((n * q, n * q + 2))
    S = factor @ factor.T
    A = np.einsum("n,qr,nrp->nqp", volumes, metric, at_data).reshape(n * q, p)
    b = rng.standard_normal((1, n, q))
    result = finite_projection(at_data, volumes, metric, factor).apply(b)
    coefficient = np.linalg.solve(A.T @ S @ A, A.T @ b.ravel())
    np.testing.assert_allclose(result.coefficient[0], A.T @ b.ravel(), rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(result.bias.ravel(), b.ravel() - S @ A @ coefficient, rtol=1e-6, atol=1e-7)
    assert np.abs(A.T @ result.bias.ravel()).max() < 1e-10 * max(1.0, np.abs(A.T @ b.ravel()).max())
    assert result.error[0] < 1e-12


def test_the_papers_finite_formula_is_not_orthogonal():
    """Negative control: S^1/2 (I - P_A) S^-1/2 b leaves A'b* far from 0; P_B with B = S^1/2 A is right."""
    rng = np.random.default_rng(3)
    n, p = 8, 2
    A = rng.standard_normal((n, p))
    root = rng.standard_normal((n, n))
    S = root @ root.T + 0.5 * np.eye(n)
    b = rng.standard_normal(n)
    half = np.real(sqrtm(S))

    def projected(B):
        return half @ (np.eye(n) - B @ np.linalg.solve(B.T @ B, B.T)) @ np.linalg.solve(half, b)

    assert np.abs(A.T @ projected(A)).max() > 0.1
    assert np.abs(A.T @ projected(half @ A)).max() < 1e-10
    ours = finite_projection(A[:, None, :], np.ones(n), np.eye(1), np.linalg.cholesky(S)).apply(b[None, :, None])
    np.testing.assert_allclose(ours.bias.ravel(), projected(half @ A), atol=1e-10)


@pytest.mark.parametrize("projection", ["functional", "finite"])
def test_an_unprojected_bias_fails_the_check(projection, monkeypatch):
    """Negative control: without the projection the diagnostic and ``check`` say so."""
    from dataclasses import replace

    from orthocal.methods import projected as module

    name = f"{projection}_projection"
    original = getattr(module, name)

    def without(*arguments):
        real = original(*arguments)
        return replace(real, directions=0 * real.directions, own_directions=0 * real.own_directions)

    monkeypatch.setattr(module, name, without)
    x, y = MODEL1.simulate(np.random.default_rng(1))
    method = oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5), projection)
    posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=50, warmup=0, seed=1)
    assert float(posterior.data["sample_stats"]["orthogonality_error"].min()) > 1e-10
    assert any(finding.topic == "orthogonality" for finding in posterior.check().problems)


def test_the_papers_finite_formula_fails_the_check(monkeypatch):
    """Negative control in the sampler itself: P_A in the place of P_B."""
    from dataclasses import replace

    from orthocal.methods import projected as module

    def papers(at_data, volumes, metric, factor):
        real = finite_projection(at_data, volumes, metric, factor)
        S = factor @ factor.T + 1e-9 * np.eye(len(factor))
        half = np.real(sqrtm(S))
        A = real.constraint
        # b - S^1/2 (I - P_A) S^-1/2 b = directions (constraint' b)
        constraint = np.linalg.solve(half, A)
        directions = half @ A @ np.linalg.inv(A.T @ A)
        return replace(real, constraint=constraint, directions=directions, own_directions=directions)

    monkeypatch.setattr(module, "finite_projection", papers)
    x, y = MODEL1.simulate(np.random.default_rng(1))
    method = oc.methods.Projected(oc.bias.GP(0.5, 1.0, 0.5), "finite")
    posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=50, warmup=0, seed=1)
    assert largest_error(posterior) > 1e-10
    assert not posterior.check().ok


def test_collinear_and_missing_sensitivities_are_named():
    x = np.linspace(0, 1, 9)[:, None, None]
    weights, metric = np.full(9, 1 / 9), np.eye(1)
    names = ("a", "b", "c")
    found = sensitivity(np.concatenate([x, x**2, 2 * x], axis=2), weights, metric, names)
    with pytest.raises(IdentifiabilityError, match=r"'a', 'c' are collinear .* take the joint projection"):
        found.require_told_apart(names)
    with pytest.raises(IdentifiabilityError, match="'b' has no effect"):
        sensitivity(np.concatenate([x, 0 * x], axis=2), weights, metric, ("a", "b"))


def test_nearly_collinear_sensitivities_are_projected_accurately():
    rng = np.random.default_rng(0)
    base = rng.standard_normal((12, 1, 1))
    at_nodes = np.concatenate([base, base + 1e-5 * rng.standard_normal((12, 1, 1))], axis=2)
    result = project_at_nodes(rng.standard_normal((12, 1)), at_nodes, np.full(12, 1 / 12), np.eye(1))
    assert result.error[0] < 1e-13


def test_functional_and_finite_agree_on_a_dense_grid():
    """With many evenly spread points both constraints are the same integral, and so are the posteriors."""
    rng = np.random.default_rng(4)
    x = (np.arange(300) + 0.5)[:, None] / 300
    y = MODEL1.truth(x) + 0.2 * rng.standard_normal(300)
    sds = []
    for projection in ("functional", "finite"):
        problem = MODEL1.problem(x, y)
        method = oc.methods.Projected(oc.bias.GP(2.5, 1.0, 0.5), projection)
        sds.append(oc.calibrate(problem, method, seed=1).summary()[["mean", "sd"]].to_numpy().ravel())
    np.testing.assert_allclose(sds[0], sds[1], rtol=0.05)
