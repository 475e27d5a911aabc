"""The projected sampler with a GP bias against its exact law, for simulators that are linear in theta.

False alarms: the sampled mean and sd of each case are compared with the exact ones in units of their Monte-Carlo
error; |z| > 4.5 has probability 7e-6, so that the whole file alarms falsely with a probability below 0.002. Seeds
are fixed.
"""

import numpy as np
import pytest
from closed_form import Law, projected_law
from scipy import stats

import orthocal as oc
from helpers import largest_error
from orthocal.examples import MODEL1

Z_LIMIT = 4.5
DRAWS = 1000
CHAINS = 4


def exact_law(problem: oc.Problem, design, **options) -> Law:
    """The law for f = design(x) theta."""
    return projected_law(
        problem.data.x,
        problem.data.y[:, 0],
        design(problem.data.x),
        problem.rule.nodes,
        problem.rule.weights,
        design(problem.rule.nodes),
        problem.volumes,
        **options,
    )


def z_scores(theta: np.ndarray, law: Law) -> np.ndarray:
    """z of the means and of the sds of draws (c, s, p); errors from the exact autocorrelation."""
    total = theta.shape[0] * theta.shape[1]
    draws = theta.reshape(total, -1)
    sd = np.sqrt(np.diag(law.cov))
    # the slowest direction of the autoregression bounds the autocorrelation of every coordinate
    rho = np.max(np.abs(np.linalg.eigvals(law.lag_one)))
    mean_error = sd * np.sqrt((1 + rho) / (1 - rho) / total)
    sd_error = sd * np.sqrt((1 + rho**2) / (1 - rho**2) / (2 * total))
    return np.concatenate([(draws.mean(axis=0) - law.mean) / mean_error, (draws.std(axis=0) - sd) / sd_error])


@pytest.mark.parametrize("feedback", [True, False], ids=["feedback", "cut"])
@pytest.mark.parametrize("projection", ["functional", "finite"])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("data_seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
def test_model_1(data_seed, nu, projection, feedback):
    x, y = MODEL1.simulate(np.random.default_rng(data_seed))
    problem = MODEL1.problem(x, y)
    method = oc.methods.Projected(oc.bias.GP(nu=nu, sd=1.0, lengthscale=0.5), projection, feedback)
    posterior = oc.calibrate(problem, method, draws=DRAWS, chains=CHAINS, seed=100 + data_seed)
    law = exact_law(problem, lambda x: x, nu=nu, finite=projection == "finite", feedback=feedback)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)
    assert largest_error(posterior) < 1e-10


@pytest.mark.parametrize("projection", ["functional", "finite"])
@pytest.mark.parametrize("d", [1, 2])
def test_two_parameters_with_replicates(d, projection):
    """Two parameters, one or two inputs, and a third of the points measured twice."""
    rng = np.random.default_rng(7)
    x = rng.random((40, d))
    x = np.vstack([x, x[:13]])

    def design(x):
        return np.column_stack([np.ones(len(x)), x[:, 0] ** 2])

    y = np.sin(3 * x.sum(axis=1)) + 0.3 * rng.standard_normal(len(x))
    problem = oc.Problem(
        x,
        y,
        lambda x, theta: design(x) @ theta,
        {"a": stats.norm(0, 2), "b": stats.norm(0, 2)},
        domain=oc.Box(0, 1),
        noise_cov=0.09,
    )
    method = oc.methods.Projected(oc.bias.GP(nu=1.5, sd=0.8, lengthscale=0.4), projection)
    posterior = oc.calibrate(problem, method, draws=DRAWS, chains=CHAINS, seed=3)
    law = exact_law(
        problem,
        design,
        nu=1.5,
        sd=0.8,
        lengthscale=0.4,
        noise_var=0.09,
        prior_var=4.0,
        finite=projection == "finite",
    )
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)
    assert largest_error(posterior) < 1e-10


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [oc.kernels.AdaptiveMetropolis(), oc.kernels.Slice(), pytest.param(oc.kernels.HMC(), marks=pytest.mark.slow)],
    ids=repr,
)
def test_other_kernels_have_the_same_law(kernel):
    """Matern 1/2 is where inexact theta steps show most."""
    x, y = MODEL1.simulate(np.random.default_rng(0))
    problem = MODEL1.problem(x, y)
    method = oc.methods.Projected(oc.bias.GP(nu=0.5, sd=1.0, lengthscale=0.5), kernel=kernel)
    posterior = oc.calibrate(problem, method, draws=500, chains=CHAINS, seed=5)
    law = exact_law(problem, lambda x: x, nu=0.5)
    assert np.all(np.abs(z_scores(posterior.theta, law)) < Z_LIMIT)


def test_a_single_random_walk_step_has_another_law():
    """Negative control: the paper's single Metropolis step is not a draw from Pi(theta | b*, y), and it shows."""
    x, y = MODEL1.simulate(np.random.default_rng(0))
    problem = MODEL1.problem(x, y)
    kernel = oc.kernels.AdaptiveMetropolis(steps=1)
    method = oc.methods.Projected(oc.bias.GP(nu=0.5, sd=1.0, lengthscale=0.5), kernel=kernel)
    posterior = oc.calibrate(problem, method, draws=4000, chains=CHAINS, seed=5)
    law = exact_law(problem, lambda x: x, nu=0.5)
    assert np.max(np.abs(z_scores(posterior.theta, law))) > 10


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_draws_are_almost_independent_in_model_1(nu):
    x, y = MODEL1.simulate(np.random.default_rng(11))
    method = oc.methods.Projected(oc.bias.GP(nu=nu, sd=1.0, lengthscale=0.5))
    summary = oc.calibrate(MODEL1.problem(x, y), method, draws=DRAWS, chains=CHAINS, seed=2).summary()
    assert summary["ess_bulk"].min() > 0.8 * DRAWS * CHAINS
    assert summary["r_hat"].max() < 1.01
