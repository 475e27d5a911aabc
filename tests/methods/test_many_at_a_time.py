"""Every method has the draws of single calls where the simulator takes many theta at a time, and asks for many."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.execution.work import calls

X = np.linspace(0.05, 1, 12)
PRIORS = {"a": stats.norm(1, 2), "b": stats.uniform(0.1, 4)}
Y = 2 * np.exp(-X) + 0.2 * X + 0.05 * np.random.default_rng(0).standard_normal(len(X))


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x)


class Batch:
    def __init__(self):
        self.sizes = []

    def __call__(self, x, theta):
        self.sizes.append(len(theta))
        return theta[:, :1] * np.exp(-theta[:, 1:] * x)


def draws(simulator, method):
    problem = oc.Problem(X, Y, simulator, PRIORS, oc.Box(0, 1, nodes=12), noise_cov=0.05**2, starts=3)
    posterior = oc.calibrate(problem, method, draws=6, chains=2, warmup=4, seed=1, progress=False)
    predicted = posterior.predict(np.array([0.3, 0.7]))
    return problem, posterior.theta, predicted["model"].to_numpy()


@pytest.mark.parametrize(("method", "most"), [("gp", 12), ("pcal", 48), ("ogp", 12), ("pgp", 12), ("none", 12)])
def test_draws_and_predictions_are_those_of_single_calls(method, most):
    function = Batch()
    (_, theta, model), (_, *others) = draws(decay, method), draws(oc.Simulator(function, batched=True), method)
    np.testing.assert_array_equal(theta, others[0])
    np.testing.assert_array_equal(model, others[1])
    # predictions of all draws at least; gradients of all draws of PCAL
    assert max(function.sizes) == most


@pytest.mark.slow
# on a busy machine waiting for processes takes so long that the simulator is called slow
@pytest.mark.filterwarnings("ignore:.* calls of the simulator")
@pytest.mark.parametrize("method", ["gp", "pcal", "ogp", "pgp", "ko", "none"])
def test_they_are_those_of_several_processes(method, monkeypatch):
    for name in ("WORTH", "WORTH_A_COPY", "LONG"):
        monkeypatch.setattr(calls, name, -1.0)
    one = draws(decay, method)
    # a closure goes to copies of this process
    two = draws(oc.Simulator(lambda x, theta: decay(x, theta), jobs=3), method)
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[2], two[2])
    assert two[0].simulator.worker_cpu > 0


def test_an_outcome_of_a_problem_asks_for_many_too():
    def two_outcomes(x, theta):
        return np.stack([theta[:, :1] * np.exp(-theta[:, 1:] * x), theta[:, :1] * x], axis=-1)

    y = np.stack([Y, 2 * X], axis=1)
    given = {"domain": oc.Box(0, 1, nodes=12), "noise_cov": [0.05**2, 0.05**2], "starts": 3}
    many = oc.Problem(X, y, oc.Simulator(two_outcomes, batched=True), PRIORS, **given).outcome(0)
    single = oc.Problem(X, y, lambda x, theta: two_outcomes(x, theta[None])[0], PRIORS, **given).outcome(0)
    assert many.simulator.many_at_a_time
    np.testing.assert_array_equal(many.theta_tilde, single.theta_tilde)
