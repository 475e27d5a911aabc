"""Several outcomes through the whole package: invariance, missing cells, every prior, and what is refused."""

import functools

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import largest_error, short, two_outcomes, with_holes
from orthocal.bias import gp_sampler
from orthocal.errors import IdentifiabilityError
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.projection import functional_projection

short_run = functools.partial(short, draws=100, seed=3)


def scaled_problem(x, y, factor, **changes):
    """The problem with the second outcome in another unit."""
    unit = np.array([1.0, factor])
    settings = {
        "domain": oc.Box(0, 1),
        "noise_cov": TWO_OUTCOMES.noise_cov * np.outer(unit, unit),
        **changes,
    }
    return oc.Problem(
        x, y * unit, lambda x, t: TWO_OUTCOMES.simulator(x, t) * unit, TWO_OUTCOMES.parameters, **settings
    )


@pytest.mark.parametrize("factor", [pytest.param(1000.0, marks=pytest.mark.slow), 1e-9])
@pytest.mark.parametrize("noise", ["known", "estimate", "sample"])
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_the_unit_of_an_outcome_does_not_matter(noise, factor, holes):
    x, y = two_outcomes()
    y = with_holes(y) if holes else y
    changes = {} if noise == "known" else {"noise_cov": noise}
    one, other = (short_run(scaled_problem(x, y, unit, **changes)) for unit in (1.0, factor))
    # the sampler may amplify the last digits of the estimated noise
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-7 if noise == "known" else 1e-3)


def test_under_the_identity_the_unit_does_matter():
    x, y = two_outcomes()
    one, other = (scaled_problem(x, y, unit, loss_weight="identity").theta_tilde for unit in (1.0, 1000.0))
    assert abs(one[0] - other[0]) > 1e-3


@pytest.mark.parametrize("weight", ["noise-precision", "identity"])
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.slow
def test_the_order_of_outcomes_and_points_does_not_matter(weight, holes):
    """What the sampler is built from is the same; means of 8000 draws agree within 5 Monte-Carlo errors."""
    x, y = two_outcomes()
    y = with_holes(y) if holes else y
    order = np.random.default_rng(2).permutation(len(x))
    first = TWO_OUTCOMES.problem(x, y, loss_weight=weight)
    turned = oc.Problem(
        x[order],
        y[order][:, ::-1],
        lambda x, t: TWO_OUTCOMES.simulator(x, t)[:, ::-1],
        TWO_OUTCOMES.parameters,
        domain=oc.Box(0, 1),
        noise_cov=TWO_OUTCOMES.noise_cov[::-1, ::-1],
        loss_weight=weight,
    )
    np.testing.assert_allclose(first.theta_tilde, turned.theta_tilde, rtol=1e-8)
    np.testing.assert_allclose(first.sensitivity.gram, turned.sensitivity.gram, rtol=1e-8)
    np.testing.assert_allclose(first.metric, turned.metric[::-1, ::-1], atol=1e-9)
    method = oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5))
    one, other = (oc.calibrate(problem, method, draws=2000, seed=s) for s, problem in enumerate((first, turned)))
    error = one.theta.std() * np.sqrt(2 / 8000)
    assert abs(one.theta.mean() - other.theta.mean()) < 5 * error
    assert abs(one.theta.std() - other.theta.std()) < 5 * error


def test_unwhitened_gradients_are_not_orthogonal():
    """Negative control: the authors' code projects the whitened bias with gradients that are not whitened."""
    x, y = two_outcomes()
    problem = TWO_OUTCOMES.problem(x, y)
    right = functional_projection(
        problem.gradient_at_data,
        problem.gradient_at_nodes,
        problem.rule.weights,
        problem.metric,
        problem.sensitivity,
    )
    unwhitened = np.eye(2)
    from orthocal.projection import sensitivity

    at_data = problem.simulator.gradient(x, problem.theta_tilde)
    at_nodes = problem.simulator.gradient(problem.rule.nodes, problem.theta_tilde)
    wrong = functional_projection(
        at_data,
        at_nodes,
        problem.rule.weights,
        unwhitened,
        sensitivity(at_nodes, problem.rule.weights, unwhitened, ("theta",)),
    )
    m = len(problem.rule.nodes)
    bias = np.random.default_rng(0).standard_normal((3, len(x) + m, 2)).cumsum(axis=1)

    def error(projection):
        """<b*, g> over the lengths of both, in the outcomes' units, from the definition."""
        coefficient = projection.apply(bias).coefficient
        gradient = at_nodes if projection is wrong else problem.gradient_at_nodes
        left = problem.unwhiten(bias[:, len(x) :] - np.einsum("mkp,cp->cmk", gradient, coefficient))
        W, w = problem.weight, problem.rule.weights
        inner = np.einsum("cmk,kl,mlp,m->cp", left, W, at_nodes, w)[:, 0]
        size = np.sqrt(np.einsum("cmk,kl,cml,m->c", left, W, left, w))
        return np.max(np.abs(inner) / size / np.sqrt(problem.sensitivity.gram[0, 0]))

    assert error(right) < 1e-10
    assert error(wrong) > 1e-3


@pytest.mark.slow
def test_coupled_outcomes_drawn_one_after_the_other_have_the_joint_law(monkeypatch):
    """Too many points for joint draws: one outcome given the others leads to the same posterior of theta and bias."""
    x, y = two_outcomes()
    problem = TWO_OUTCOMES.problem(x, with_holes(y))
    method = oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5))
    joint = oc.calibrate(problem, method, draws=2000, seed=1)
    monkeypatch.setattr(gp_sampler, "MOST_JOINT_POINTS", 10)
    turns = oc.calibrate(problem, method, draws=2000, seed=2)
    error = joint.theta.std() * np.sqrt(2 / 6000)
    assert abs(joint.theta.mean() - turns.theta.mean()) < 5 * error
    assert abs(joint.theta.std() - turns.theta.std()) < 5 * error
    for moment in ("mean", "std"):
        one, other = (getattr(p.data["bias"]["bias"], moment)(("chain", "draw")).values for p in (joint, turns))
        # the draws of the bias are correlated: about 1000 effective ones, 120 numbers
        scale = joint.data["bias"]["bias"].std(("chain", "draw")).values
        assert np.max(np.abs(one - other) / scale) < 5 * np.sqrt(2 / 1000)


def test_the_finite_projection_of_bart_agrees_with_that_of_its_covariance():
    """Coverage is tested elsewhere; here the posterior is near that of a GP on a smooth problem."""
    x, y = MODEL1.simulate(np.random.default_rng(0))
    bart, gp = (
        oc.calibrate(MODEL1.problem(x, y), oc.methods.Projected(prior, "finite"), draws=500, seed=1).theta
        for prior in (oc.bias.BART(), oc.bias.GP(1.5))
    )
    assert abs(bart.mean() - gp.mean()) < 2 * gp.std()
    assert 0.7 < bart.std() / gp.std() < 1.5


@pytest.mark.parametrize("method", ["pgp", oc.methods.Projected(oc.bias.BART(trees=10))], ids=["pgp", "pbart"])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_an_outcome_without_any_gradient_is_no_obstacle(correlation, method):
    x, y = two_outcomes()
    cov = 0.04 * np.array([[1, correlation], [correlation, 1]])

    def simulator(x, theta):
        return np.column_stack([theta[0] * x[:, 0], np.zeros(len(x))])

    problem = oc.Problem(x, y, simulator, TWO_OUTCOMES.parameters, domain=oc.Box(0, 1), noise_cov=cov)
    posterior = short_run(problem, method, draws=50)
    assert np.isfinite(posterior.theta).all()
    assert largest_error(posterior) < 1e-10
    if correlation == 0.0:
        alone = short_run(problem.outcome(0), method, draws=50)
        assert abs(alone.theta.mean() - posterior.theta.mean()) < 5 * alone.theta.std() / np.sqrt(20)


def test_no_outcome_with_a_gradient_names_the_parameter():
    x, y = two_outcomes()
    problem = oc.Problem(x, y, lambda x, t: np.zeros((len(x), 2)), {"g": stats.norm()}, oc.Box(0, 1), noise_cov=0.04)
    with pytest.raises(IdentifiabilityError, match="'g' has no effect"):
        short_run(problem)


def test_missing_cells_and_empty_rows_are_reported():
    x, y = two_outcomes()
    y[3] = np.nan
    y[5, 0] = np.nan
    findings = short_run(TWO_OUTCOMES.problem(x, y)).check()
    (missing,) = [finding for finding in findings if finding.topic == "missing data"]
    assert "3 of 120 cells of y are missing, in 2 rows, 1 of them without any observation" in missing.message


def test_a_missing_cell_has_no_effect_whatever_stands_there():
    x, y = two_outcomes()
    y[7, 1] = np.nan
    posterior = short_run(TWO_OUTCOMES.problem(x, y))
    problem = TWO_OUTCOMES.problem(x, y)
    problem.complete_y = np.where(np.isnan(y), 1e4, y)
    other = short_run(problem)
    np.testing.assert_allclose(posterior.theta, other.theta, rtol=1e-8)


def test_a_row_without_observation_gets_a_prediction():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    y[10] = np.nan
    posterior = short_run(MODEL1.problem(x, y))
    mean = posterior.predict()["mean"].mean(("chain", "draw")).values[10, 0]
    assert abs(mean - MODEL1.truth(x[10:11])[0]) < 0.3
    assert np.isnan(posterior.record.native_y[10, 0])


@pytest.mark.parametrize("noise", ["known", "estimate", "sample", "errors"])
def test_the_noise_of_one_outcome_of_a_problem(noise):
    x, y = two_outcomes()
    y = with_holes(y)
    changes = {"noise_cov": "estimate" if noise == "errors" else noise} if noise != "known" else {}
    if noise == "errors":
        changes["y_err"] = np.random.default_rng(0).uniform(0.1, 0.3, y.shape)
    problem = TWO_OUTCOMES.problem(x, y, **changes)
    alone = problem.outcome(1)
    assert alone.data.outcome_names == ("y2",)
    np.testing.assert_allclose(alone.noise.cov, problem.noise.cov[1:, 1:])
    assert alone.noise.source == problem.noise.source
    if noise == "errors":
        np.testing.assert_allclose(alone.noise.by_point[:, 0, 0], problem.noise.by_point[:, 1, 1])
    assert np.isfinite(short_run(alone, draws=10).theta).all()
