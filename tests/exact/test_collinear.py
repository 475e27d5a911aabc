"""Parameters of which the simulator answers to combinations only, beside the closed form for a linear simulator.

    y = G u + b - G lambda(b) + e,  lambda(b) = argmin_l ∫ (b - G l)^2 of least norm,  u ~ N(m, V), b ~ GP

so u given y is Gaussian; along directions that G takes to zero it has its prior, given the others.
"""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc

SD, LENGTH, NOISE_VAR, N = 0.3, 0.3, 0.01, 60
MEAN, PRIOR_SD = np.array([1.0, 0.0, 0.0]), np.array([0.5, 1.0, 2.0])
PRIORS = {name: stats.norm(m, s) for name, m, s in zip("abc", MEAN, PRIOR_SD, strict=True)}


def gradient(x, angle):
    return np.column_stack([x, x + angle * np.cos(5 * x), np.ones_like(x)])


def field_data(seed=3):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(N))
    return x, 1.2 * x + 0.3 * np.sin(6 * x) + 0.5 + 0.1 * rng.standard_normal(N)


def exact(x, y, angle, noise_var=NOISE_VAR, limit=1e-6):
    """Mean and covariance of theta; nodes by Gauss and Legendre, singular values below the limit are none."""
    points, weights = np.polynomial.legendre.leggauss(200)
    nodes, weights = (points + 1) / 2, weights / 2
    both = np.concatenate([x, nodes])
    r = np.sqrt(3) * np.abs(both[:, None] - both) / LENGTH
    K = SD**2 * (1 + r) * np.exp(-r)
    G, root = gradient(x, angle), np.sqrt(weights)[:, None] * gradient(nodes, angle)
    lengths = np.linalg.norm(root, axis=0)
    left, singular, right = np.linalg.svd(root / lengths, full_matrices=False)
    kept = singular > limit
    take = (right[kept].T / lengths[:, None] / singular[kept]) @ left[:, kept].T * np.sqrt(weights)
    T = np.hstack([np.eye(len(x)), -G @ take])
    V = np.diag(PRIOR_SD**2)
    gain = V @ G.T @ np.linalg.inv(G @ V @ G.T + T @ K @ T.T + noise_var * np.eye(len(x)))
    return MEAN + gain @ (y - G @ MEAN), V - gain @ G @ V


def simulator(angle):
    return lambda x, t: gradient(x, angle) @ t


def drawn(problem, method, draws=2000, **given):
    posterior = oc.calibrate(problem, method, draws=draws, chains=4, seed=2, progress=False, **given)
    values = [posterior.data["posterior"][name].values.ravel() for name in problem.parameters.names]
    return posterior, np.column_stack(values)


GAUSSIAN = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=SD, lengthscale=LENGTH))


@pytest.mark.parametrize(
    "angle", [0.0, 1e-5, *(pytest.param(one, marks=pytest.mark.slow) for one in (1e-7, 1e-4, 1e-2))]
)
def test_collinear_parameters_have_the_law_of_the_linear_model(angle):
    x, y = field_data()
    problem = oc.Problem(x, y, simulator(angle), PRIORS, oc.Box(0, 1), noise_cov=NOISE_VAR)
    posterior, theta = drawn(problem, GAUSSIAN)
    mean, cov = exact(x, y, angle)
    sd = np.sqrt(np.diag(cov))
    # 8000 independent draws: standard errors of .011 and .8 %, four of them
    assert (theta.mean(axis=0) - mean) / sd == pytest.approx(0, abs=0.045)
    assert theta.std(axis=0) == pytest.approx(sd, rel=0.035)
    # the sum is known to .05 where each of them has a sd of .45
    total = theta[:, 0] + theta[:, 1]
    along = np.array([1.0, 1.0, 0.0])
    assert total.std() == pytest.approx(np.sqrt(along @ cov @ along), rel=0.035)
    assert total.mean() == pytest.approx(along @ mean, abs=0.045 * total.std())
    assert sd[0] > 8 * total.std()
    # what is known of the fit is what it was: b* = y_R - f
    assert posterior.data["sample_stats"]["orthogonality_error"].values.max() < 1e-4


@pytest.mark.slow
def test_data_decide_about_nearly_collinear_parameters_where_they_can():
    """At an angle of 1e-4 the difference of a and b moves f by 1e-4: noise of 2e-6 sees that."""
    rng = np.random.default_rng(5)
    x = np.sort(rng.random(N))
    noise_var, angle = 4e-12, 1e-4
    y = gradient(x, angle) @ np.array([1.3, -0.4, 0.2]) + np.sqrt(noise_var) * rng.standard_normal(N)
    problem = oc.Problem(x, y, simulator(angle), PRIORS, oc.Box(0, 1), noise_cov=noise_var)
    bias = oc.bias.GP(nu=1.5, sd=1e-6, lengthscale=LENGTH)
    _, theta = drawn(problem, oc.methods.Joint(bias))
    # the prior alone, given the sum, has a sd of .45
    assert (theta.std(axis=0)[:2] < 0.02).all()
    assert theta.mean(axis=0) == pytest.approx([1.3, -0.4, 0.2], abs=0.05)


@pytest.mark.parametrize("method", ["bmars", pytest.param("bart", marks=pytest.mark.slow)])
def test_other_priors_of_the_bias_leave_the_same_to_the_prior(method):
    """Given the sum s, a is N(1 + .2 (s - 1), .2) whatever the bias is."""
    x, y = field_data()
    problem = oc.Problem(x, y, simulator(0.0), PRIORS, oc.Box(0, 1), noise_cov=NOISE_VAR)
    _, theta = drawn(problem, method, draws=500, warmup=200)
    left = theta[:, 0] - 1 - 0.2 * (theta[:, 0] + theta[:, 1] - 1)
    # 2000 draws: four standard errors
    assert left.mean() == pytest.approx(0, abs=4 * np.sqrt(0.2 / 2000))
    assert left.std() == pytest.approx(np.sqrt(0.2), rel=4 / np.sqrt(4000))


@pytest.mark.slow
def test_uniform_priors_are_kept_along_a_valley():
    """Given a + b = s, a - b is uniform between the ends that the support leaves."""
    x, _ = field_data()
    y = 1.1 * x + 0.1 * np.random.default_rng(7).standard_normal(N)
    priors = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}
    problem = oc.Problem(x, y, lambda x, t: (t[0] + t[1]) * x, priors, oc.Box(0, 1), noise_cov=NOISE_VAR)
    assert len(problem.minima) == 1
    _, theta = drawn(problem, GAUSSIAN, draws=4000)
    total = theta.sum(axis=1)
    share = (theta[:, 0] - theta[:, 1]) / np.minimum(total, 2 - total)
    # of the 16 000 draws some 8000 are different ones: the largest distance of a chance of .0001
    assert stats.kstest(share, stats.uniform(-1, 2).cdf).statistic < 0.025


@pytest.mark.slow
def test_a_product_has_its_prior_along_the_curve_of_equal_products():
    """a and b uniform and a b = c: a has a density of 1 / a between its ends, E a = 1 / log 3."""
    x, _ = field_data()
    c = 1.1
    y = c * x + 0.01 * np.random.default_rng(8).standard_normal(N)
    priors = {"a": stats.uniform(0.5, 1.0), "b": stats.uniform(0.5, 2.0)}
    problem = oc.Problem(x, y, lambda x, t: t[0] * t[1] * x, priors, oc.Box(0, 1), noise_cov=1e-4)
    assert len(problem.minima) == 1
    bias = oc.bias.GP(nu=1.5, sd=0.01, lengthscale=LENGTH)
    _, theta = drawn(problem, oc.methods.Joint(bias), draws=4000)
    assert theta.prod(axis=1) == pytest.approx(c, abs=0.08)
    # four standard errors of 8000 draws
    assert theta[:, 0].mean() == pytest.approx(1 / np.log(3), abs=4 * 0.285 / np.sqrt(8000))
    assert theta[:, 1].mean() == pytest.approx(c * (2 - 2 / 3) / np.log(3), abs=4 * 0.42 / np.sqrt(8000))


def test_check_names_what_is_determined_and_what_is_not():
    x, y = field_data()
    priors = {name: stats.norm(0, 1) for name in ("heat", "loss", "gain", "level")}
    problem = oc.Problem(
        x, y, lambda x, t: (t[0] - 2 * t[1] + 1e3 * t[2]) * x + t[3], priors, oc.Box(0, 1), noise_cov=NOISE_VAR
    )
    posterior, _ = drawn(problem, GAUSSIAN, draws=250)
    (said,) = (one for one in posterior.check() if one.topic == "parameters")
    assert said.level == "note"
    assert "changes along heat - 0.001 gain and loss + 0.002 gain" in said.message
    assert "The data determine heat - 2 loss + 1e+03 gain" in said.message
    for method in ("pgp", "ogp", "pcal"):
        with pytest.raises(oc.errors.IdentifiabilityError, match=r"collinear .* or take the joint projection"):
            oc.calibrate(problem, method, draws=10, progress=False)


def test_a_parameter_without_effect_is_refused_beside_collinear_ones():
    x, y = field_data()
    problem = oc.Problem(x, y, lambda x, t: (t[0] + t[1]) * x + 0 * t[2], PRIORS, oc.Box(0, 1), noise_cov=NOISE_VAR)
    with pytest.raises(oc.errors.IdentifiabilityError, match="parameter 'c' has no effect"):
        oc.calibrate(problem, "gp", draws=10, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
def test_large_data_leave_it_to_the_prior_too(d):
    rng = np.random.default_rng(9)
    x = rng.random((6000, d))
    y = 1.2 * x[:, 0] + 0.1 * np.sin(6 * x[:, -1]) + 0.1 * rng.standard_normal(6000)
    priors = {"a": PRIORS["a"], "b": PRIORS["b"]}
    simulator = lambda x, t: (t[0] + t[1]) * x[:, 0]  # noqa: E731
    box = oc.Box(np.zeros(d), np.ones(d))
    _, theta = drawn(oc.Problem(x, y, simulator, priors, box, noise_cov=NOISE_VAR), "gp", draws=500)
    total = theta.sum(axis=1)
    assert total.std() < 0.02
    left = theta[:, 0] - 1 - 0.2 * (total - 1)
    assert left.mean() == pytest.approx(0, abs=4 * np.sqrt(0.2 / 2000))
    assert left.std() == pytest.approx(np.sqrt(0.2), rel=4 / np.sqrt(4000))
