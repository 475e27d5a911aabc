"""Draws of emulators: moments of kriging, gradients, smooth forests, and the spread that held-out runs ask for.

Moments are of 150 draws with fixed seeds: a limit of 4.5 standard errors fails by chance in 7 of 10^6 for each number.
"""

from functools import partial

import numpy as np
import pytest
from scipy.stats import qmc

import orthocal as oc
from orthocal.emulators.emulator import draw_spread, folds, mixture
from orthocal.emulators.gp import ROOM, unresolved
from orthocal.emulators.lazy_sequence import Lazy, Room
from orthocal.errors import InputError
from orthocal.regression.gaussian_process import correlation

DRAWS, LIMIT = 150, 4.5
X, DENSE = np.linspace(0, 1, 6), np.linspace(0, 1, 24)
NEW = np.array([[0.21, 0.47], [0.25, 0.5], [0.81, 0.13], [0.52, 0.93], [0.05, 0.31]])


def simulate(x, theta):
    return np.sin(3 * theta[0] * x + 2 * theta[1]) + theta[1] * x**2


@pytest.fixture(scope="module")
def runs():
    theta = qmc.Sobol(2, seed=3).random(16)
    return oc.RunTable(theta, np.stack([simulate(X, one) for one in theta]), X, ["a", "b"])


@pytest.fixture(scope="module")
def emulators(runs):
    small = {
        "gp": oc.emulators.GP(),
        "bart": oc.emulators.BART(trees=10, draws=12, burn=20),
        "bmars": oc.emulators.BMARS(draws=12, burn=20, moves=10),
    }
    return {name: oc.emulate(runs, one, progress=False) for name, one in small.items()}


@pytest.mark.parametrize("nu", [1.5, 2.5, np.inf])
def test_draws_of_a_process_have_the_moments_of_kriging(nu):
    """Mean, and all variances and covariances: whitened by the error's covariance they are N(0, I).

    With so many rows that the hyperparameters count as known.
    """
    rng = np.random.default_rng(1)
    inputs = rng.random((44, 2))
    targets = np.stack([np.sin(4 * inputs[:, 0]) + inputs[:, 1], np.cos(5 * inputs[:, 1])], axis=1)
    targets += 0.05 * rng.standard_normal(targets.shape)
    fitted = oc.emulators.GP(nu=nu).fit(inputs, targets)
    draws = np.stack([draw.predict(NEW) for draw in fitted.draws(DRAWS, np.random.default_rng(2))])
    for process in fitted.processes:
        (k,) = process.members
        # what a process calls noise changes between the runs
        short = unresolved(process.lengthscale, len(inputs))
        exact = fitted.covariance(process, NEW) + process.noise_var * correlation(NEW, NEW, short, 2.5)
        white = np.linalg.solve(np.linalg.cholesky(exact), (draws[:, :, k] - fitted.predict(NEW)[:, k]).T)
        assert np.abs(white.mean(axis=1)).max() < LIMIT / np.sqrt(DRAWS)
        found = white @ white.T / DRAWS
        assert np.abs(np.diag(found) - 1).max() < LIMIT * np.sqrt(2 / DRAWS)
        assert np.abs(found - np.diag(np.diag(found))).max() < LIMIT / np.sqrt(DRAWS)


def test_what_runs_do_not_resolve_has_slopes():
    """White noise of sd .1 at 40 runs along a line: it changes between them, and draws by its sd over their distance.

    The mean square slope of a process of smoothness 5/2 is 5/3 of that. 150 draws: 4.5 standard errors.
    """
    inputs = np.linspace(0, 1, 40)[:, None]
    noise = 0.1 * np.random.default_rng(3).standard_normal((40, 1))
    fitted = oc.emulators.GP(nu=np.inf).fit(inputs, inputs + noise)
    (process,) = fitted.processes
    assert np.sqrt(process.noise_var) == pytest.approx(0.1, rel=0.3)
    np.testing.assert_allclose(unresolved(process.lengthscale, 40), [1 / 40])
    # two inputs: a volume for each run
    np.testing.assert_allclose(unresolved(np.array([2.0, 1.0]), 200), [0.1, 0.05])
    np.testing.assert_allclose(unresolved(np.array([0.02, 0.01]), 100), [0.02, 0.01])
    draws = fitted.draws(DRAWS, np.random.default_rng(2))
    slopes = np.array([draw.gradient(np.array([[0.51]]))[0, 0, 0] for draw in draws])
    expected = np.sqrt(5 / 3 * process.noise_var) * 40
    assert slopes.std() == pytest.approx(expected, rel=LIMIT / np.sqrt(2 * DRAWS))


def test_what_replicates_tell_to_be_scatter_has_none():
    inputs = np.repeat(np.linspace(0, 1, 10), 4)[:, None]
    noise = 0.1 * np.random.default_rng(3).standard_normal((40, 1))
    fitted = oc.emulators.GP(nu=np.inf).fit(inputs, inputs + noise)
    slopes = [draw.gradient(np.array([[0.51]]))[0, 0, 0] for draw in fitted.draws(DRAWS, np.random.default_rng(2))]
    assert np.std(slopes) < 0.5


def test_the_trend_is_uncertain_far_from_the_runs():
    """There its error is most of the variance: with the trend's estimate in the place of its draws this fails."""
    inputs = np.random.default_rng(1).random((24, 1))
    fitted = oc.emulators.GP(nu=2.5).fit(inputs, np.sin(3 * inputs))
    far = np.array([[300.0]])
    draws = np.array([draw.predict(far)[0, 0] for draw in fitted.draws(DRAWS, np.random.default_rng(2))])
    assert draws.var() / fitted.variance(far)[0, 0] == pytest.approx(1, abs=LIMIT * np.sqrt(2 / DRAWS))


@pytest.mark.parametrize(
    ("components", "x"), [(None, DENSE), (1, DENSE), (1, DENSE + 0.02)], ids=["all", "one", "between points"]
)
def test_draws_have_the_emulators_variance(components, x):
    """What few components leave, and what interpolation over x does, is in both.

    Of so many runs and points that the hyperparameters count as known; between the points the waves are uncertain.
    """
    theta = qmc.Sobol(2, seed=3).random(64)
    output = np.stack([simulate(DENSE, one) for one in theta]) + 0.3 * np.sin(40 * DENSE)
    runs = oc.RunTable(theta, output, DENSE, ["a", "b"])
    emulator = oc.emulate(runs, "gp", components=components, progress=False)
    draws = np.stack([draw(x, NEW[0])[:, 0] for draw in emulator.draws(DRAWS, seed=1)])
    var = emulator.variance(x, NEW[0])[:, 0]
    # far below the spread of the runs rounding and what is left out as negligible count
    small = 1e-9 * runs.output.var()
    ratio = (draws.var(axis=0).mean() + small) / (var.mean() + small)
    # the scores of theta stand for their variance where functions of x are uncertain, so that this is no equality
    assert ratio == pytest.approx(1, abs=LIMIT * np.sqrt(2 / DRAWS) if x is DENSE else 0.8)
    assert np.abs(draws.mean(axis=0) - emulator(x, NEW[0])[:, 0]).max() < LIMIT * np.sqrt(var.max() / DRAWS) + 1e-6


@pytest.mark.parametrize("name", ["gp", "bart", "bmars"])
def test_gradients_are_those_of_the_draws(emulators, name):
    draw = emulators[name].draws(3, seed=1)[1]
    assert draw.smooth
    for theta in NEW[:3]:
        found = draw.gradient(X, theta)
        steps = 1e-5 * np.eye(2)
        expected = np.stack([(draw(X, theta + h) - draw(X, theta - h)) / 2e-5 for h in steps], axis=-1)
        np.testing.assert_allclose(found, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["gp", "bart", "bmars"])
def test_a_draw_is_the_same_whatever_was_asked_for_before(emulators, name):
    draws = emulators[name].draws(6, seed=5)
    first = [draw(X, NEW[0]) for draw in draws]
    np.testing.assert_array_equal(draws[4](X, NEW[0]), first[4])
    np.testing.assert_array_equal(emulators[name].draws(6, seed=5)[2](X, NEW[0]), first[2])
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(emulators[name].draws(6, seed=6)[2](X, NEW[0]), first[2])
    # many points at a time, or few
    np.testing.assert_allclose(draws[1](X[:2], NEW[0]), first[1][:2], rtol=1e-12)


@pytest.mark.parametrize("name", ["bart", "bmars"])
def test_the_mean_of_all_draws_is_the_posterior_mean(emulators, name):
    fitted = emulators[name]._fitted[0]
    inputs = np.random.default_rng(0).random((5, 3 if name == "bart" else 2))
    kept = fitted.kept
    each = [fitted.mixed(one) for one in np.eye(kept)]
    every = fitted.mixed(np.full(kept, 1 / kept))
    if name == "bart":
        # gates of no width are the trees themselves
        each, every = ([one._replace(width=1e-9 * one.width) for one in part] for part in (each, [every]))
        (every,) = every
    mean = np.mean([one.predict(inputs) for one in each], axis=0)
    np.testing.assert_allclose(every.predict(inputs), mean, atol=1e-12)
    np.testing.assert_allclose(mean, fitted.predict(inputs), atol=1e-12)


@pytest.mark.parametrize("spread", [0.1, 0.35, 0.8, 1.0, 1.7])
def test_mixtures_have_the_spread_that_is_asked_for(spread):
    for number in (0, 7):
        weights = mixture(500, spread, number, 64, np.random.default_rng(0))
        assert weights.sum() == pytest.approx(1)
        assert np.sum(weights**2) == pytest.approx(spread**2)


def test_of_a_grid_whole_rows_are_held_out():
    grid = np.stack(np.meshgrid(np.arange(7.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
    masks = list(folds(grid))
    assert len(masks) == 4
    for number, held in enumerate(masks):
        values = set(grid[held, number % 2])
        assert values < {1.0, 2.0, 3.0, 4.0, 5.0}
        assert held.sum() == 7 * len(values)


class Straight:
    """An emulator that is wrong by ``error``, with draws of sd 1 about it."""

    def __init__(self, error, added=0.0):
        self.error, self.added = error, added

    def __call__(self, x, theta):
        return np.full((len(x), 1), self.error + self.added)

    def gradient(self, x, theta):
        return np.ones((len(x), 1, 1))

    def drawn(self, count, seed, spread):
        return [Straight(self.error, one) for one in np.random.default_rng(seed).standard_normal(count)]


class Rough(Straight):
    """Its draws are off by N(0, 1) at each x by itself, and it is wrong by the same everywhere."""

    def __call__(self, x, theta):
        return np.zeros((len(x), 1)) + self.error + np.reshape(self.added, (-1, 1))

    def drawn(self, count, seed, spread):
        return [Rough(self.error, one) for one in np.random.default_rng(seed).standard_normal((count, 25))]


@pytest.mark.parametrize("error", [0.3, 2.0, 40.0])
def test_the_spread_is_the_error_at_held_out_runs(error):
    theta = np.random.default_rng(0).random((12, 1))
    runs = oc.RunTable(theta, np.zeros((12, 3)), np.arange(3.0), ["a"])
    (found,) = draw_spread(lambda part: Straight(error), runs)
    # the same 24 draws everywhere: their sd is known to 15 %
    assert found == pytest.approx(min(error, 5.0), rel=0.4)


def test_an_error_of_all_points_together_counts_as_what_it_does_to_theta():
    """f = theta + error at 25 points: an error of .3 moves theta by .3, draws that are rough over x by 1 / 5."""
    theta = np.random.default_rng(0).random((12, 1))
    runs = oc.RunTable(theta, np.zeros((12, 25)), np.arange(25.0), ["a"])
    (found,) = draw_spread(lambda part: Rough(0.3), runs)
    assert found == pytest.approx(0.3 * 5, rel=0.4)


def test_refused(runs, emulators):
    with pytest.raises(InputError, match="count=0"):
        emulators["gp"].draws(0)
    forest = oc.emulate(runs, oc.emulators.Forest(trees=3), progress=False)
    assert not forest.has_draws
    with pytest.raises(InputError, match="'forest' has no draws"):
        forest.draws(3)


class Bayesian:
    """A regressor of the user's: a straight line with an uncertain height."""

    layout = "components"

    def fit(self, inputs, targets):
        self.coefficients = np.linalg.lstsq(np.c_[np.ones(len(inputs)), inputs], targets, rcond=None)[0]
        return self

    def predict(self, inputs):
        return np.c_[np.ones(len(inputs)), inputs] @ self.coefficients

    def draws(self, count, rng):
        moved = []
        for height in rng.standard_normal(count):
            other = Bayesian()
            other.coefficients = self.coefficients + np.array([[height], [0], [0]])
            moved.append(other)
        return moved


def test_a_regressor_of_the_users_may_have_draws(runs):
    emulator = oc.emulate(runs, Bayesian(), progress=False)
    assert emulator.has_draws
    first, second = emulator.draws(2, seed=0)
    assert not np.allclose(first(X, NEW[0]), second(X, NEW[0]))


def test_draws_are_held_while_there_is_room():
    """The first stay, and the others are made again, the same; who is gone leaves room for others."""
    asked = []

    def made(number):
        asked.append(number)
        return np.full(10, number)

    def draws(room):
        return Lazy([partial(made, number) for number in range(4)], room, lambda values: int(values.nbytes))

    room = Room(250)
    first = draws(room)
    for _ in range(2):
        assert [int(one[0]) for one in first] == [0, 1, 2, 3]
    assert asked == [0, 1, 2, 3, 3]
    assert first[-4] is first[0]
    assert room.free == 10
    second = draws(room)
    assert second[0] is not second[0]
    del first
    assert room.free == 250
    assert second[0] is second[0]


def test_a_process_holds_its_draws(emulators):
    before = ROOM.free
    draws = emulators["gp"].draws(4, 1)
    first, again = draws[0], draws[0]
    assert all(a is b for a, b in zip(first._fitted, again._fitted, strict=True))
    assert before - ROOM.free == sum(one.nbytes for one in first._fitted)
    del draws, first, again
    assert ROOM.free == before
