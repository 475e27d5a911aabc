"""Several outcomes through the whole package: invariance, missing cells, every prior, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.bias import joint_gp
from orthocal.errors import IdentifiabilityError, InputError
from orthocal.examples import MODEL1, TWO_OUTCOMES
from orthocal.projection import functional_projection

PRIORS = {
    "gp": oc.bias.GP(),
    "bart": oc.bias.BART(trees=20),
    "softbart": oc.bias.SoftBART(trees=5),
    "bmars": oc.bias.BMARS(),
    "bnn": oc.bias.BNN(hidden=5),
}


def field_data(seed=0, n=60):
    return TWO_OUTCOMES.simulate(np.random.default_rng(seed), n)


def with_holes(y, share=0.2, seed=1):
    return np.where(np.random.default_rng(seed).random(y.shape) < share, np.nan, y)


def short(problem, method="pgp", draws=100, **options):
    return oc.calibrate(problem, method, draws=draws, warmup=50, chains=2, seed=3, progress=False, **options)


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


@pytest.mark.parametrize("factor", [1000.0, 1e-9])
@pytest.mark.parametrize("noise", ["known", "estimate", "sample"])
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
def test_the_unit_of_an_outcome_does_not_matter(noise, factor, holes):
    x, y = field_data()
    y = with_holes(y) if holes else y
    changes = {} if noise == "known" else {"noise_cov": noise}
    one, other = (short(scaled_problem(x, y, unit, **changes)) for unit in (1.0, factor))
    # the sampler may amplify the last digits of the estimated noise
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-7 if noise == "known" else 1e-3)


def test_under_the_identity_the_unit_does_matter():
    x, y = field_data()
    one, other = (scaled_problem(x, y, unit, loss_weight="identity").theta_tilde for unit in (1.0, 1000.0))
    assert abs(one[0] - other[0]) > 1e-3


@pytest.mark.parametrize("weight", ["noise-precision", "identity"])
@pytest.mark.parametrize("holes", [False, True], ids=["complete", "holes"])
@pytest.mark.slow
def test_the_order_of_outcomes_and_points_does_not_matter(weight, holes):
    """What the sampler is built from is the same; means of 8000 draws agree within 5 Monte-Carlo errors."""
    x, y = field_data()
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


@pytest.mark.parametrize("projection", ["functional", "finite"])
@pytest.mark.parametrize("name", PRIORS)
def test_every_prior_is_orthogonal_in_the_metric_with_missing_cells(name, projection):
    x, y = field_data()
    problem = TWO_OUTCOMES.problem(x, with_holes(y), loss_weight="identity")
    posterior = short(problem, oc.methods.Projected(PRIORS[name], projection), draws=20)
    assert float(posterior.data["sample_stats"]["orthogonality_error"].max()) < 1e-10
    assert np.isfinite(posterior.theta).all()
    bias = posterior.data["posterior"]["bias"].values
    assert bias.shape == (2, 20, len(x), 2)
    assert np.isfinite(bias).all()
    if projection == "finite":
        # from the definition, in the outcomes' units: sum_i v_i b(x_i)' W g(x_i) = 0
        gradient = problem.simulator.gradient(x, problem.theta_tilde)
        inner = np.einsum("csnk,n,nkp->csp", bias, problem.volumes, gradient)
        size = np.sqrt(np.einsum("csnk,n->cs", bias**2, problem.volumes))
        length = np.sqrt(np.einsum("n,nkp->p", problem.volumes, gradient**2))
        assert np.max(np.abs(inner[..., 0]) / size / length[0]) < 1e-10


def test_unwhitened_gradients_are_not_orthogonal():
    """Negative control: the authors' code projects the whitened bias with gradients that are not whitened."""
    x, y = field_data()
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


def test_coupled_outcomes_drawn_one_after_the_other_have_the_joint_law(monkeypatch):
    """Too many points for joint draws: one outcome given the others leads to the same posterior of theta and bias."""
    x, y = field_data()
    problem = TWO_OUTCOMES.problem(x, with_holes(y))
    method = oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5))
    joint = oc.calibrate(problem, method, draws=2000, seed=1)
    monkeypatch.setattr(joint_gp, "MOST_POINTS", 10)
    turns = oc.calibrate(problem, method, draws=2000, seed=2)
    error = joint.theta.std() * np.sqrt(2 / 6000)
    assert abs(joint.theta.mean() - turns.theta.mean()) < 5 * error
    assert abs(joint.theta.std() - turns.theta.std()) < 5 * error
    for moment in ("mean", "std"):
        one, other = (getattr(p.data["posterior"]["bias"], moment)(("chain", "draw")).values for p in (joint, turns))
        # the draws of the bias are correlated: about 1000 effective ones, 120 numbers
        scale = joint.data["posterior"]["bias"].std(("chain", "draw")).values
        assert np.max(np.abs(one - other) / scale) < 5 * np.sqrt(2 / 1000)


def test_predictions_at_the_data_points_with_missing_cells_are_the_stored_ones():
    x, y = field_data()
    for name, prior in PRIORS.items():
        posterior = short(TWO_OUTCOMES.problem(x, with_holes(y)), oc.methods.Projected(prior), draws=10)
        bias = posterior.predict(x)["bias"].values
        np.testing.assert_allclose(bias, posterior.data["posterior"]["bias"].values, atol=2e-4, err_msg=name)


@pytest.mark.parametrize("name", PRIORS)
def test_predictions_of_the_finite_projection_are_the_stored_ones_at_the_data(name, tmp_path):
    x, y = field_data()
    method = oc.methods.Projected(PRIORS[name], "finite")
    posterior = short(TWO_OUTCOMES.problem(x, with_holes(y)), method, draws=10)
    stored = posterior.data["posterior"]["bias"].values
    np.testing.assert_allclose(posterior.predict(x)["bias"].values, stored, atol=2e-4)
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"), TWO_OUTCOMES.simulator)
    np.testing.assert_allclose(loaded.predict(x)["bias"].values, stored, atol=2e-4)


def test_the_finite_projection_of_bart_agrees_with_that_of_its_covariance():
    """Coverage is tested elsewhere; here the posterior is near that of a GP on a smooth problem."""
    x, y = MODEL1.simulate(np.random.default_rng(0))
    bart, gp = (
        oc.calibrate(MODEL1.problem(x, y), oc.methods.Projected(prior, "finite"), draws=500, seed=1).theta
        for prior in (oc.bias.BART(), oc.bias.GP(1.5))
    )
    assert abs(bart.mean() - gp.mean()) < 2 * gp.std()
    assert 0.7 < bart.std() / gp.std() < 1.5


@pytest.mark.parametrize("name", PRIORS)
def test_sampled_noise_with_every_prior(name):
    x, y = field_data(n=80)
    posterior = short(TWO_OUTCOMES.problem(x, with_holes(y), noise_cov="sample"), oc.methods.Projected(PRIORS[name]))
    noise = posterior.data["posterior"]["noise_cov"].values
    assert noise.shape == (2, 100, 2, 2)
    assert (np.linalg.eigvalsh(noise) > 0).all()
    np.testing.assert_allclose(np.sqrt(noise[:, :, [0, 1], [0, 1]].mean(axis=(0, 1))), 0.2, rtol=0.35)
    assert float(posterior.data["sample_stats"]["orthogonality_error"].max()) < 1e-10
    drawn = posterior.predict(np.array([[0.5]]), draws=50)
    assert np.isfinite(drawn["observation"].values).all()


def test_a_prior_of_the_users_without_a_noise_scale_is_refused_for_sampled_noise():
    class Flat:
        def prepare(self, setting):
            class Sampler(oc.bias.ChainwiseSampler):
                def one_draw(self, rng, state, residual):
                    return state, np.zeros(len(setting.x) + len(setting.nodes))

            return Sampler()

        def describe(self):
            return {"kind": "flat"}

    x, y = field_data()
    with pytest.raises(InputError, match="Flat cannot be used with sampled noise"):
        short(TWO_OUTCOMES.problem(x, y, noise_cov="sample"), oc.methods.Projected(Flat()))
    assert np.isfinite(short(TWO_OUTCOMES.problem(x, y), oc.methods.Projected(Flat()), draws=10).theta).all()


@pytest.mark.parametrize("method", ["pgp", oc.methods.Projected(oc.bias.BART(trees=10))], ids=["pgp", "pbart"])
@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_an_outcome_without_any_gradient_is_no_obstacle(correlation, method):
    x, y = field_data()
    cov = 0.04 * np.array([[1, correlation], [correlation, 1]])

    def simulator(x, theta):
        return np.column_stack([theta[0] * x[:, 0], np.zeros(len(x))])

    problem = oc.Problem(x, y, simulator, TWO_OUTCOMES.parameters, domain=oc.Box(0, 1), noise_cov=cov)
    posterior = short(problem, method, draws=50)
    assert np.isfinite(posterior.theta).all()
    assert float(posterior.data["sample_stats"]["orthogonality_error"].max()) < 1e-10
    if correlation == 0.0:
        alone = short(problem.outcome(0), method, draws=50)
        assert abs(alone.theta.mean() - posterior.theta.mean()) < 5 * alone.theta.std() / np.sqrt(20)


def test_no_outcome_with_a_gradient_names_the_parameter():
    x, y = field_data()
    problem = oc.Problem(x, y, lambda x, t: np.zeros((len(x), 2)), {"g": stats.norm()}, oc.Box(0, 1), noise_cov=0.04)
    with pytest.raises(IdentifiabilityError, match="'g' has no effect"):
        short(problem)


def test_missing_cells_and_empty_rows_are_reported():
    x, y = field_data()
    y[3] = np.nan
    y[5, 0] = np.nan
    findings = short(TWO_OUTCOMES.problem(x, y)).check()
    (missing,) = [finding for finding in findings if finding.topic == "missing data"]
    assert "3 of 120 cells of y are missing, in 2 rows, 1 of them without any observation" in missing.message


def test_a_missing_cell_has_no_effect_whatever_stands_there():
    x, y = field_data()
    y[7, 1] = np.nan
    posterior = short(TWO_OUTCOMES.problem(x, y))
    problem = TWO_OUTCOMES.problem(x, y)
    problem.complete_y = np.where(np.isnan(y), 1e4, y)
    other = short(problem)
    np.testing.assert_allclose(posterior.theta, other.theta, rtol=1e-8)


def test_a_row_without_observation_gets_a_prediction():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    y[10] = np.nan
    posterior = short(MODEL1.problem(x, y))
    mean = posterior.predict()["mean"].mean(("chain", "draw")).values[10, 0]
    assert abs(mean - MODEL1.truth(x[10:11])[0]) < 0.3
    assert np.isnan(posterior.data["observed_data"]["y"].values[10, 0])


def test_outcomes_compared():
    x, y = field_data()
    comparison = oc.compare_outcomes(TWO_OUTCOMES.problem(x, y), "pgp", draws=200, seed=1)
    table = comparison.summary()
    assert list(comparison.posteriors) == ["y1", "y2", "all together"]
    assert table.loc[("theta", "all together"), "width"] == 1.0
    assert table.loc[("theta", "y2"), "width"] > 3
    assert not comparison.failures
    axes = comparison.figure().axes
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["y1", "y2", "all together"]
    assert "all together" in str(comparison)


def test_an_outcome_that_says_nothing_alone_is_named_in_the_comparison():
    x, y = field_data()

    def simulator(x, theta):
        return np.column_stack([theta[0] * x[:, 0] + theta[1], theta[1] * x[:, 0]])

    parameters = {"a": stats.norm(0, 10), "b": stats.norm(0, 10)}
    problem = oc.Problem(x, y, simulator, parameters, oc.Box(0, 1), noise_cov=TWO_OUTCOMES.noise_cov)
    comparison = oc.compare_outcomes(problem, draws=50, seed=1)
    assert list(comparison.posteriors) == ["y1", "all together"]
    assert "'a' has no effect" in comparison.failures["y2"]
    assert "y2: " in str(comparison)


def test_one_outcome_cannot_be_compared():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    with pytest.raises(InputError, match="nothing to compare"):
        oc.compare_outcomes(MODEL1.problem(x, y))
    with pytest.raises(InputError, match="give an oc"):
        oc.compare_outcomes("problem")


@pytest.mark.parametrize("noise", ["known", "estimate", "sample", "errors"])
def test_the_noise_of_one_outcome_of_a_problem(noise):
    x, y = field_data()
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
    assert np.isfinite(short(alone, draws=10).theta).all()
