import numpy as np
import pytest
from scipy import stats

from orthocal import Box, Points, Problem, Simulator, calibrate
from orthocal.errors import NonFiniteError, SimulatorError
from orthocal.examples import MODEL1, MODEL2
from orthocal.problem.prior.parameters import Parameters
from orthocal.problem.search.best_fit import Criterion
from orthocal.problem.search.minima import find_minima
from orthocal.problem.simulator.simulator import BoundSimulator

X = np.linspace(0.05, 1, 25)[:, None]
WAVE = 0.1 * np.sin(30 * X)


def search(function, priors, y, weight=None, starts=32, x=X):
    parameters = Parameters(priors)
    simulator = BoundSimulator(Simulator(function, "difference"), parameters.support, y.shape[1], False)
    weight = np.eye(y.shape[1]) if weight is None else weight
    starts = parameters.starts(starts) if isinstance(starts, int) else np.asarray(starts, dtype=float)
    # so little noise that the prior has no say
    criterion = Criterion.of(simulator, parameters, x, y, weight, 1e-12)
    return find_minima(criterion, starts), simulator


def line(x, theta):
    return theta[0] + theta[1] * x[:, 0]


def test_the_minimum_of_model_1_is_linear_least_squares():
    x, y = MODEL1.simulate(np.random.default_rng(0))
    minima = MODEL1.problem(x, y).loss_minima
    root = np.sqrt(cells(x[:, 0]))
    expected, residual, _, _ = np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)
    assert len(minima) == 1
    np.testing.assert_allclose(minima[0].theta, expected, rtol=1e-8)
    assert minima[0].loss == pytest.approx(residual[0] / 0.2**2, rel=1e-8)


def cells(x):
    """The share of [0, 1] nearest to each point."""
    order = np.argsort(x)
    ends = np.concatenate([[0.0], (x[order][1:] + x[order][:-1]) / 2, [1.0]])
    shares = np.empty(len(x))
    shares[order] = np.diff(ends)
    return shares


def test_uneven_x_do_not_move_the_best_fit():
    """A parabola fitted by a line through the origin, theta* = 3/4, with three quarters of the points in one half."""
    x = np.concatenate([np.linspace(0, 0.5, 50), np.linspace(0.5, 1, 151)[1:]])
    problem = Problem(x, x**2, lambda x, t: t[0] * x, {"t": stats.norm(0, 10)}, domain=Box(0, 1), noise_cov=0.01)
    assert problem.theta_tilde[0] == pytest.approx(0.75, abs=1e-3)
    unweighted = np.sum(x**3) / np.sum(x**2)
    assert abs(unweighted - 0.75) > 0.03


def test_where_nodes_are_few_beside_the_data_all_points_count_alike():
    x = np.linspace(0, 1, 40)
    domain = Points(np.array([[0.2], [0.8]]))
    problem = Problem(x, x**2, lambda x, t: t[0] * x, {"t": stats.norm(0, 10)}, domain=domain, noise_cov=0.01)
    assert problem.loss_minima[0].theta == pytest.approx([np.sum(x**3) / np.sum(x**2)], rel=1e-6)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_model_2_has_eight_symmetric_minima(seed):
    x, y = MODEL2.simulate(np.random.default_rng(seed))
    minima = MODEL2.problem(x, y).minima
    assert len(minima) == 8
    np.testing.assert_allclose(minima[0].theta, [0.2, 0.3], atol=0.01)
    np.testing.assert_allclose([one.loss for one in minima], minima[0].loss, rtol=1e-6)
    t1, t2 = minima[0].theta
    symmetric = [(a, b) for a in (t1, 0.5 - t1, 0.5 + t1, 1 - t1) for b in (t2, 1 - t2)]
    np.testing.assert_allclose([one.theta for one in minima], sorted(symmetric), atol=1e-5)


def test_the_order_of_symmetric_minima_does_not_depend_on_rounding_where_the_fit_is_exact():
    minima = MODEL2.problem(X, MODEL2.truth(X)).minima
    expected = [(a, b) for a in (0.2, 0.3, 0.7, 0.8) for b in (0.3, 0.7)]
    np.testing.assert_allclose([one.theta for one in minima], expected, atol=1e-6)


def test_minima_are_ordered_where_the_best_loss_is_zero():
    def rising_wave(x, theta):
        return np.full(len(x), 100 * (1 - np.cos(theta[0])) + 10 * theta[0])

    minima, _ = search(rising_wave, {"a": stats.uniform(-1, 12)}, np.zeros((25, 1)), starts=[[6.5], [0.0]])
    assert len(minima) == 2
    assert minima[0].theta == pytest.approx([0.0], abs=1e-9)
    # the derivative 100 sin(theta) + 10 is zero
    assert minima[1].theta == pytest.approx([2 * np.pi - np.arcsin(0.1)], abs=1e-4)


def test_minima_are_stationary_and_come_best_first():
    def bumps(x, theta):
        return np.sin(theta[0]) * x[:, 0] + 0.1 * theta[0]

    y = 0.5 * X + 0.2
    minima, _ = search(bumps, {"a": stats.uniform(-10, 20)}, y)

    def loss(value):
        return np.mean((y[:, 0] - bumps(X, [value])) ** 2)

    assert len(minima) >= 5
    losses = [one.loss for one in minima]
    assert losses == sorted(losses)
    for one in minima:
        value = one.theta[0]
        assert one.loss == pytest.approx(loss(value), rel=1e-10)
        # a minimum within the support, whose bounds are -10 and 10
        beside = [loss(max(value - 1e-3, -10)), loss(min(value + 1e-3, 10))]
        assert one.loss <= min(beside) * (1 + 1e-12)
        assert one.loss < max(beside) * (1 - 1e-7)
    grid = np.linspace(-10, 10, 4001)
    assert minima[0].loss <= min(map(loss, grid))


def test_several_starts_at_one_minimum_are_listed_once():
    minima, _ = search(line, {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}, 1 + 2 * X + WAVE)
    assert len(minima) == 1


def test_of_equal_minima_the_one_with_the_higher_prior_density_comes_first():
    def square(x, theta):
        return theta[0] ** 2 * x[:, 0]

    minima, _ = search(square, {"a": stats.norm(-0.5, 2)}, 4 * X + WAVE)
    assert [one.theta[0] for one in minima] == pytest.approx([-2, 2], abs=0.05)
    minima, _ = search(square, {"a": stats.norm(0.5, 2)}, 4 * X + WAVE)
    assert [one.theta[0] for one in minima] == pytest.approx([2, -2], abs=0.05)


def test_of_equal_minima_with_equal_density_the_positive_one_comes_first():
    minima, _ = search(lambda x, theta: theta[0] ** 2 * x[:, 0], {"a": stats.norm(0, 2)}, 4 * X + WAVE)
    assert [one.theta[0] for one in minima] == pytest.approx([2, -2], abs=0.05)


def test_a_better_minimum_goes_before_one_with_a_higher_density():
    def nearly_even(x, theta):
        return (theta[0] ** 2 + 0.001 * theta[0]) * x[:, 0] + 0.02 * theta[0]

    minima, _ = search(nearly_even, {"a": stats.norm(-1, 1)}, 4 * X + 0.04)
    assert minima[0].theta[0] > 0
    assert minima[0].loss < minima[1].loss


def test_the_loss_and_its_minimum_are_weighted_over_the_outcomes():
    weight = np.array([[2.0, -0.7], [-0.7, 0.5]])
    design = np.stack([np.column_stack([np.ones(25), X[:, 0]]), np.column_stack([X[:, 0] ** 2, -np.ones(25)])], axis=1)
    y = np.random.default_rng(3).standard_normal((25, 2))
    minima, _ = search(
        lambda x, theta: design @ theta, {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}, y, weight=weight
    )
    precision = np.einsum("nkp,kl,nlr->pr", design, weight, design)
    theta = np.linalg.solve(precision, np.einsum("nkp,kl,nl->p", design, weight, y))
    residual = y - design @ theta
    assert len(minima) == 1
    np.testing.assert_allclose(minima[0].theta, theta, rtol=1e-6)
    assert minima[0].loss == pytest.approx(np.mean(np.einsum("nk,kl,nl->n", residual, weight, residual)), rel=1e-9)


def test_a_start_where_the_simulator_gives_nan_is_skipped():
    def positive_only(x, theta):
        return theta[0] * x[:, 0] if theta[0] > 0 else np.full(len(x), np.nan)

    minima, simulator = search(positive_only, {"a": stats.norm(0, 10)}, 3 * X, starts=[[-5.0], [4.0], [-1.0]])
    assert len(minima) == 1
    np.testing.assert_allclose(minima[0].theta, [3.0], rtol=1e-8)
    assert simulator.failures >= 2


def test_a_start_where_the_gradient_is_nan_is_skipped():
    simulator = Simulator(
        lambda x, theta: theta[0] * x[:, 0],
        lambda x, theta: x[:, 0] if theta[0] > 0 else np.full(len(x), np.nan),
    )
    problem = Problem(X, 3 * X[:, 0], simulator, {"a": stats.norm(0, 10)}, noise_cov=1.0, starts=[[-5.0], [4.0]])
    assert len(problem.minima) == 1
    np.testing.assert_allclose(problem.loss_minima[0].theta, [3.0], rtol=1e-8)


def test_a_start_where_the_simulator_gives_nan_but_the_gradient_is_finite_is_skipped():
    simulator = Simulator(
        lambda x, theta: theta[0] * x[:, 0] if theta[0] > 0 else np.full(len(x), np.nan), lambda x, theta: x[:, 0]
    )
    problem = Problem(X, 3 * X[:, 0], simulator, {"a": stats.norm(0, 10)}, noise_cov=1.0, starts=[[-5.0], [4.0]])
    assert len(problem.minima) == 1
    np.testing.assert_allclose(problem.loss_minima[0].theta, [3.0], rtol=1e-8)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_minima_do_not_depend_on_the_units_of_theta(unit):
    def square(x, theta):
        return (theta[0] / unit) ** 2 * x[:, 0] + theta[1] / unit

    priors = {"a": stats.norm(0, 2 * unit), "b": stats.norm(0, 2 * unit)}
    minima, _ = search(square, priors, 4 * X - 1 + WAVE)
    assert len(minima) == 2
    np.testing.assert_allclose([one.theta / unit for one in minima], [[2, -1], [-2, -1]], atol=0.1)


def test_nan_at_every_start_is_an_error_that_names_theta():
    with pytest.raises(NonFiniteError, match="NaN or infinity at a = "):
        search(lambda x, theta: np.full(len(x), np.nan), {"a": stats.norm(0, 10)}, 3 * X)


def test_no_start_at_all_is_an_error():
    with pytest.raises(SimulatorError, match="no start"):
        search(line, {"a": stats.norm(0, 3), "b": stats.norm(0, 3)}, X, starts=np.empty((0, 2)))


def test_a_theta_for_which_the_simulator_raises_is_impossible():
    def raises_sometimes(x, theta):
        if theta[0] < 0:
            raise RuntimeError("no solution")
        return theta[0] * x[:, 0]

    minima, simulator = search(raises_sometimes, {"a": stats.norm(0, 10)}, 3 * X)
    assert len(minima) == 1
    assert minima[0].theta == pytest.approx([3.0])
    assert simulator.failures >= 10
    assert simulator.failure.startswith("the simulator raised RuntimeError at a = -")


def test_where_it_raises_at_every_start_it_says_so():
    def raises(x, theta):
        raise RuntimeError("the licence has expired")

    with pytest.raises(SimulatorError, match="the licence has expired"):
        search(raises, {"a": stats.norm(0, 10)}, 3 * X)


def test_a_small_region_where_the_simulator_works_is_found():
    def narrow(x, theta):
        return theta[0] * x[:, 0] if abs(theta[0] - 3.1) < 0.3 else np.full(len(x), np.nan)

    minima, _ = search(narrow, {"a": stats.norm(0, 10)}, 3 * X, starts=4)
    assert minima[0].theta == pytest.approx([3.0])


@pytest.mark.parametrize("weight", ["noise-precision", "identity"])
def test_the_prior_has_its_say_where_data_leave_a_direction_open(weight):
    """a + b is known, a - b only from the priors: the minimum of n loss / noise - 2 log pi in closed form."""
    x = np.linspace(0, 1, 20)
    y = 3 * x + 0.1 * np.random.default_rng(0).standard_normal(20)
    priors = {"a": stats.norm(1, 0.5), "b": stats.norm(0, 2)}
    problem = Problem(
        x, y, lambda x, t: (t[0] + t[1]) * x, priors, Box(0, 1), noise_cov=0.01, loss_weight=weight, starts=4
    )
    design = np.column_stack([x, x])
    shares = 20 * problem.volumes / 0.01
    precision = design.T @ (shares[:, None] * design) + np.diag([4.0, 0.25])
    expected = np.linalg.solve(precision, design.T @ (shares * y) + [4.0, 0.0])
    np.testing.assert_allclose(problem.theta_tilde, expected, rtol=1e-5)
    # least squares alone knows the sum
    assert problem.loss_minima[0].theta.sum() == pytest.approx(
        np.sum(shares * x * y) / np.sum(shares * x * x), rel=1e-5
    )


def test_a_prior_without_a_highest_point_does_not_pull_to_its_pole():
    x = np.linspace(0, 1, 30)
    problem = Problem(x, 0.5 * x, lambda x, t: t[0] * x, {"a": stats.gamma(0.5)}, Box(0, 1), noise_cov=0.01, starts=8)
    assert problem.theta_tilde == pytest.approx([0.5], abs=0.01)


def test_a_start_that_has_not_finished_at_a_lower_loss_is_not_dropped():
    """Rosenbrock's valley, long and bent, beside a shallow minimum where every descent ends at once."""

    def valley(x, theta):
        a, b = theta
        low = np.array([30 * (b - a**2), 1 - a])
        trap = np.array([3.0, 3.0]) + 1e-3 * np.array([a + 5, b - 20])
        return low if np.linalg.norm(low) < np.linalg.norm(trap) or a > -4 else trap

    def flat(x, theta):
        return np.resize(valley(x, theta), len(x))

    priors = {"a": stats.uniform(-10, 20), "b": stats.uniform(-30, 60)}
    minima, _ = search(flat, priors, np.zeros((2, 1)), x=X[:2], starts=8)
    assert minima[0].theta == pytest.approx([1, 1], abs=1e-4)


def test_no_start_is_called_twice():
    """The values that tell whether a start works are those that its descent begins with."""
    asked = []

    def recorded(x, theta):
        asked.append(tuple(theta))
        return theta[0] * np.exp(-theta[1] * x)

    def slope(x, theta):
        e = np.exp(-theta[1] * x)
        return np.stack([e, -theta[0] * x * e], axis=-1)

    x = np.linspace(0, 3, 40)
    priors = {"a": stats.norm(0, 3), "b": stats.uniform(0.1, 5)}
    problem = Problem(x, 2 * np.exp(-x), Simulator(recorded, slope), priors, Box(0, 3), noise_cov=0.01, starts=8)
    assert problem.theta_tilde == pytest.approx([2, 1], abs=0.02)
    starts = [tuple(one) for one in problem._starts]
    assert [asked.count(one) for one in starts] == [1] * 8


def test_large_data_are_searched_by_a_part_of_them_first():
    rows = []

    def recorded(x, theta):
        rows.append(len(x))
        return theta[0] * np.exp(-theta[1] * x)

    x = np.linspace(0, 3, 30_000)
    y = 2 * np.exp(-x) + 0.1 * np.random.default_rng(0).standard_normal(len(x))
    priors = {"a": stats.norm(0, 3), "b": stats.uniform(0.1, 5)}
    problem = Problem(x, y, recorded, priors, Box(0, 3), noise_cov=0.01)
    assert problem.theta_tilde == pytest.approx([2, 1], abs=0.02)
    assert sum(size == 30_000 for size in rows) < 0.2 * len(rows)


def test_the_search_never_leaves_the_support():
    seen = []

    def recorded(x, theta):
        seen.append(theta.copy())
        return line(x, theta)

    priors = {"a": stats.uniform(0, 1), "b": stats.gamma(2.0)}
    # the unrestricted fit is (2.8, -3)
    minima, _ = search(recorded, priors, 2.8 - 3 * X + WAVE)
    seen = np.array(seen)
    assert (seen >= 0).all()
    assert (seen[:, 0] <= 1).all()
    assert minima[0].theta == pytest.approx([1, 0], abs=1e-5)


@pytest.mark.parametrize(
    ("slope", "prior", "bound"),
    [
        (2.0, stats.uniform(0, 1), 1.0),
        (-2.0, stats.uniform(0, 1), 0.0),
        (5e6, stats.uniform(1e6, 1e6), 2e6),
        (5e-9, stats.uniform(0, 1e-9), 1e-9),
    ],
)
def test_theta_tilde_on_a_bound_is_reported(slope, prior, bound):
    y = 1 + slope * X + slope * WAVE
    problem = Problem(X, y, line, {"level": stats.norm(0, 10), "slope": prior}, noise_cov=slope**2 / 100, starts=8)
    assert problem.theta_tilde[1] == pytest.approx(bound, rel=1e-6, abs=1e-6)
    assert problem.parameters.on_bound(problem.theta_tilde) == ("slope",)


def test_theta_tilde_near_a_bound_is_not_on_it():
    problem = Problem(X, 0.99 * X, lambda x, theta: theta[0] * x[:, 0], {"a": stats.uniform(0, 1)}, noise_cov=0.01)
    assert problem.theta_tilde == pytest.approx([0.99])
    assert problem.parameters.on_bound(problem.theta_tilde) == ()


def test_of_two_minima_at_one_place_the_better_stays():
    """The prior is so wide that neighbouring minima of a fast oscillation count as one place."""
    x = np.linspace(0, 1, 40)[:, None]
    truth = 812.3

    def wave(x, theta):
        return np.sin(theta[0] * x[:, 0])

    starts = np.linspace(800, 825, 40)[:, None]
    minima, _ = search(wave, {"t": stats.uniform(0, 1e6)}, wave(x, [truth])[:, None], starts=starts, x=x)
    assert minima[0].theta == pytest.approx([truth], abs=1e-3)


def test_a_rough_simulator_has_one_minimum_where_nothing_parts_two():
    """Steps of the output end the search at several places of one valley; two valleys stay two."""

    def steps(x, theta):
        return np.round(theta[0] * x[:, 0], 5)

    def symmetric(x, theta):
        return np.abs(theta[0]) * x[:, 0]

    x = np.linspace(0, 1, 30)[:, None]
    y = 0.31 * x[:, 0] + 0.01 * np.sin(9 * x[:, 0])
    rough = Problem(x, y, Simulator(steps, "difference", step=1e-2), {"a": stats.uniform(0, 1)}, noise_cov=1e-4)
    assert len(rough.minima) == 1
    near = Problem(x, 0.1 * y, Simulator(symmetric, "difference"), {"a": stats.uniform(-1, 2)}, noise_cov=1e-4)
    assert len(near.minima) == 2


@pytest.mark.parametrize(
    ("lean", "level", "words"),
    [
        (0.0, "problem", "2 minima fit equally well"),
        (0.01, "problem", "standard errors behind"),
        (0.03, "note", "standard errors behind"),
        (0.1, "fine", "the best of 2 minima"),
    ],
)
def test_another_minimum_that_is_as_good_is_a_problem(lean, level, words):
    """(t^2 - 1) x is the same at -t and t; a second effect of t tells the two apart, not at all, a little, clearly."""
    x = np.linspace(0, 1, 40)
    y = 0.05 * x + 5 * lean * x**2 + 0.05 * np.random.default_rng(1).standard_normal(40)
    simulator = Simulator(lambda x, t: (t[0] ** 2 - 1) * x + 5 * lean * t[0] * x**2, "difference")
    problem = Problem(x, y, simulator, {"t": stats.norm(0.3, 2)}, Box(0, 1), noise_cov=0.0025)
    posterior = calibrate(problem, draws=100, seed=1, progress=False)
    (found,) = (one for one in posterior.check() if words in one.message)
    assert found.level == level


def test_replicates_count_one_by_one_in_what_another_minimum_is_behind():
    """Rows with the same x are one in the search; the standard error is that of the rows."""
    x, rng = np.repeat(np.linspace(0, 1, 10), 3), np.random.default_rng(1)
    y = 0.6 + x + 0.2 * rng.standard_normal(30)
    simulator = Simulator(lambda x, t: (t[0] ** 2 - 1) * x + 0.5 * t[0] * x**2, "difference")
    problem = Problem(x, y, simulator, {"t": stats.norm(0.3, 2)}, noise_cov=0.04)
    same, apart = (
        Criterion.of(problem.simulator, problem.parameters, at[:, None], y[:, None], np.eye(1), 0.04)
        for at in (x, x + 1e-7 * rng.standard_normal(30))
    )
    assert problem.misfit > 2  # where it is one, the noise alone counts
    pair = [one.theta for one in problem.minima]
    assert same.advantage(*pair) == pytest.approx(apart.advantage(*pair), rel=1e-4)
