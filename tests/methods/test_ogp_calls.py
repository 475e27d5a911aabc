"""How often the orthogonal Gaussian process calls the simulator: once a draw, with one gradient."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.methods.rivals.gradients import Gradients

DRAWS, WARMUP, CHAINS = 150, 50, 2


class Counted:
    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, x, theta):
        self.calls += 1
        return self.function(x, theta)


def decay(x, t):
    return t[0] * np.exp(-t[1] * x) + t[2]


def decay_gradient(x, t):
    e = np.exp(-t[1] * x)
    return np.column_stack([e, -t[0] * x * e, np.ones(len(x))])


def line(x, t):
    return t[0] + t[1] * x


def line_gradient(x, t):
    return np.column_stack([np.ones(len(x)), x])


def wave(x, t):
    return np.sin(2 * np.pi * (x + t[0]))


def wave_gradient(x, t):
    return 2 * np.pi * np.cos(2 * np.pi * (x + t[0]))[:, None]


#: simulator, gradient, priors, truth, and the size of what it misses: half of the draws of the last have no minimum
CASES = {
    "line": (line, line_gradient, [stats.norm(0, 3)] * 2, [1.0, 2.0], 0.5),
    "decay": (decay, decay_gradient, [stats.norm(0, 3), stats.uniform(0.1, 8), stats.norm(0, 3)], [2, 3, 0.5], 0.2),
    "wave": (wave, wave_gradient, [stats.uniform(-0.25, 1)], [0.25], 2.0),
}


def counted(name, gradient):
    simulator, slope, priors, truth, size = CASES[name]
    rng = np.random.default_rng(1)
    x = np.sort(rng.random(40))
    y = simulator(x, np.array(truth, dtype=float)) + size * np.sin(4 * np.pi * x) + 0.2 * rng.standard_normal(40)
    f, g = Counted(simulator), Counted(slope)
    used = oc.Simulator(f, g if gradient == "given" else "difference")
    parameters = {f"t{j}": prior for j, prior in enumerate(priors)}
    problem = oc.Problem(x, y, used, parameters, oc.Box(0, 1, nodes=20), noise_cov=0.04, starts=4)
    # the best fit and what belongs to the problem alone are not the draws'
    _ = problem.sensitivity, problem.fit, problem.quadrature_error, problem.gradient_error, problem.loss_minima
    f.calls = g.calls = 0
    posterior = oc.calibrate(problem, "ogp", draws=DRAWS, warmup=WARMUP, chains=CHAINS, seed=1, progress=False)
    return f.calls, g.calls, len(priors), posterior


@pytest.mark.parametrize("name", CASES)
def test_a_draw_costs_at_most_three_calls_and_one_gradient(name):
    calls, gradients, *_ = counted(name, "given")
    steps = CHAINS * (DRAWS + WARMUP)
    print(f"{name}: {calls / steps:.2f} calls and {gradients / steps:.2f} gradients a draw")
    assert gradients <= steps + 20
    assert calls <= 3 * steps


def test_gradients_by_differences_cost_their_own_calls_alone():
    calls, _, p, by_differences = counted("decay", "difference")
    steps = CHAINS * (DRAWS + WARMUP)
    print(f"{calls / steps:.2f} calls a draw, of which {2 * p} are the gradient")
    assert calls <= (3 + 2 * p) * steps
    exact = counted("decay", "given")[3].theta.reshape(-1, p)
    theta = by_differences.theta.reshape(-1, p)
    assert (np.abs(theta.mean(axis=0) - exact.mean(axis=0)) < 0.2 * exact.std(axis=0)).all()


def test_second_derivatives_from_gradients_that_are_known():
    """Of a function that is cubic in theta they are exact."""
    rng = np.random.default_rng(0)
    x = np.linspace(0, 1, 12)

    def cubic(x, t):
        return t[0] * x + t[1] + t[0] ** 2 * t[1] * x - 0.5 * t[1] ** 3 * x**2

    problem = oc.Problem(
        x, cubic(x, [0.5, 1.0]), cubic, {"a": stats.norm(0, 2), "b": stats.norm(0, 2)}, oc.Box(0, 1), noise_cov=1.0
    )
    gradients = Gradients(problem, 2)
    theta, along = np.array([0.4, 0.9]), rng.standard_normal((len(problem.rule.nodes), 1))
    gradients.at(theta)
    assert gradients.second_derivative(theta, along, np.eye(2)) is None
    for other in theta + 0.1 * rng.standard_normal((40, 2)):
        gradients.at(other)
    root = np.array([[0.2, 0.0], [0.1, 0.3]])
    found, error = gradients.second_derivative(theta, along, root)
    at, (a, b) = problem.rule.nodes[:, 0], theta
    cells = along[:, 0]
    second = np.array([[cells @ (2 * b * at), cells @ (2 * a * at)], [cells @ (2 * a * at), cells @ (-3 * b * at**2)]])
    np.testing.assert_allclose(found, root.T @ second @ root, atol=1e-6)
    assert error < 1e-6


def test_a_simulator_that_fails_beside_the_posterior():
    """f at the data may work where the gradient at the nodes does not: such a theta is impossible, and no error."""

    def half(x, t):
        return np.where((t[0] > 0.9) & (x.max() > 0.95), np.nan, t[0] * x + 0.3 * t[0] ** 2)

    rng = np.random.default_rng(2)
    x = np.sort(0.9 * rng.random(25))
    y = half(x, [0.85]) + 0.1 * rng.standard_normal(25)
    problem = oc.Problem(x, y, half, {"t": stats.uniform(0, 2)}, oc.Box(0, 1, nodes=20), noise_cov=0.01, starts=4)
    posterior = oc.calibrate(problem, "ogp", draws=50, warmup=50, chains=2, seed=1, progress=False)
    assert posterior.theta.max() <= 0.9
    assert posterior.theta.std() > 0
