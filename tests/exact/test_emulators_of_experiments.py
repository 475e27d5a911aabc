"""Draws of the emulators of several experiments: linear emulators with Gaussian coefficients, in closed form.

    f_e(x, theta) = theta_1 x + theta_2 x^2 + H(x) a_e,   a_e ~ N(0, S),   y_e = f_e + b_e + e

theta = sum_e A_e (y_R,e - H a_e), A_e that of all experiments together: with one emulator a_e is the same in both, and
with two they are independent. So the covariance of theta with draws is that without them, and A H S H'A' summed up as
the emulators are. The draws' a have the moments of N(0, S) exactly: 2000 draws of y_R are left to chance, of which 4
standard errors fail in one of 10^4.
"""

import linear_emulator
import numpy as np
import pytest
from linear_emulator import S, known, unknown
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.experiments.draws import draws_of_each

NOISE_SD, DRAWS, COUNT = 0.1, 500, 16


class LinearEmulator(linear_emulator.LinearEmulator):
    """Its draws are uncorrelated with those of other parts."""

    def __init__(self, added=(0.0, 0.0), part=0):
        super().__init__(added)
        self.part = part

    def draws(self, count, seed):
        self.seed = seed
        # columns of an orthogonal matrix
        raw = np.random.default_rng(0).standard_normal((count, 4))
        white = np.linalg.qr(raw - raw.mean(axis=0))[0] * np.sqrt(count)
        own = white[:, 2 * self.part : 2 * self.part + 2] @ np.linalg.cholesky(S).T
        return [LinearEmulator(one) for one in own]


def experiments_with(first, second):
    rng = np.random.default_rng(5)
    problems = {}
    for name, n, emulator in (("A", 40, first), ("B", 25, second)):
        x = rng.random(n)
        y = 1.4 * x - 0.6 * x**2 + 0.2 * np.sin(9 * x) + NOISE_SD * rng.standard_normal(n)
        priors = {one: stats.uniform(-50, 100) for one in "ab"}
        problems[name] = oc.Problem(x, y, emulator, priors, domain=oc.Box(0, 1), noise_cov=NOISE_SD**2, starts=2)
    return oc.Experiments(problems)


def calibrated(experiments, emulator_draws=COUNT):
    method = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=0.3, lengthscale=0.5))
    return oc.calibrate(experiments, method, draws=DRAWS, seed=4, progress=False, emulator_draws=emulator_draws)


def emulators_part(experiments):
    """A H S H'A' of one emulator in all experiments: their domains and weights are the same."""
    rule = next(iter(experiments.problems.values())).rule
    basis = known(rule.nodes[:, 0]) * rule.weights[:, None]
    moved = np.linalg.solve(basis.T @ known(rule.nodes[:, 0]), basis.T @ unknown(rule.nodes[:, 0]))
    return moved @ S @ moved.T


@pytest.mark.parametrize("shared", [True, False], ids=["one emulator", "two emulators"])
def test_the_posterior_is_the_closed_form(shared):
    emulator = LinearEmulator()
    experiments = experiments_with(emulator, emulator if shared else LinearEmulator(part=1))
    posterior, without = calibrated(experiments), calibrated(experiments, 0)
    theta, alone = (one.theta.reshape(-1, 2) for one in (posterior, without))
    sds = np.sqrt(np.diag(np.cov(alone.T) + emulators_part(experiments) / (1 if shared else 2)))
    count = len(theta)
    assert (sds > 1.2 * alone.std(axis=0)).all()
    assert (np.abs(theta.std(axis=0) / sds - 1) < 4 * np.sqrt(2 / (2 * count))).all()
    assert (np.abs(theta.mean(axis=0) - alone.mean(axis=0)) < 4 * np.sqrt(2) * sds / np.sqrt(count)).all()


def test_the_model_of_a_draw_is_its_own_emulators(tmp_path):
    """Model + bias is y_R, which knows nothing of the emulators; predictions are the model's, from a file as well."""
    experiments = experiments_with(LinearEmulator(), LinearEmulator(part=1))
    posterior, without = calibrated(experiments), calibrated(experiments, 0)
    for name, problem in experiments.problems.items():
        own, plain = posterior[name].data, without[name].data
        real = [one["model"]["model"].values + one["bias"]["bias"].values for one in (own, plain)]
        assert np.allclose(*real, atol=1e-8)
        emulator, number = problem.simulator.emulator, own["projection"]["emulator_number"].values.astype(int)
        made, theta = emulator.draws(COUNT, emulator.seed), posterior[name].theta
        expected = made[number[2, 7]](problem.data.x, theta[2, 7])
        assert np.allclose(own["model"]["model"].values[2, 7], expected)
    emulators = {name: one.simulator.emulator for name, one in experiments.problems.items()}
    assert len({one.seed for one in emulators.values()}) == 2
    posterior.save(tmp_path / "fit.nc")
    again = oc.load(tmp_path / "fit.nc", simulator=emulators)
    both = [one["B"].predict(np.array([0.2, 0.6]))["model"].values for one in (posterior, again)]
    assert np.array_equal(*both)
    assert any("B: emulator" in str(one) and "% of a's" in str(one) for one in posterior.check())


def test_a_prior_of_theta_counts_for_theta_itself():
    """Not for what the field data say alone: a prior that is narrower than the emulators' part keeps theta to it."""
    experiments = experiments_with(LinearEmulator(), LinearEmulator(part=1))
    narrow = {name: stats.norm(1, 0.2) if name == "a" else stats.uniform(-50, 100) for name in "ab"}
    problems = {
        name: oc.Problem(
            one.data.x, one.data.y[:, 0], one.simulator.emulator, narrow, oc.Box(0, 1), noise_cov=NOISE_SD**2, starts=2
        )
        for name, one in experiments.problems.items()
    }
    theta = calibrated(oc.Experiments(problems), 256).theta.reshape(-1, 2)
    free = np.cov(calibrated(experiments, 256).theta.reshape(-1, 2).T)
    expected = np.linalg.inv(np.linalg.inv(free) + np.diag([1 / 0.2**2, 0]))
    # the mixture of 256 draws of the emulators is no Gaussian: its part of theta's variance is known to 9 %
    assert theta.std(axis=0) == pytest.approx(np.sqrt(np.diag(expected)), rel=0.15)


def test_one_experiment_has_the_draws_of_its_problem():
    (name, problem), *_ = experiments_with(LinearEmulator(), LinearEmulator()).problems.items()
    method = oc.methods.Joint(oc.bias.GP(nu=1.5, sd=0.3, lengthscale=0.5))
    alone, together = (
        oc.calibrate(one, method, draws=50, seed=4, progress=False)
        for one in (problem, oc.Experiments({name: problem}))
    )
    assert np.array_equal(alone.theta, together.theta)


def test_refused():
    problems = experiments_with(LinearEmulator(), LinearEmulator()).problems
    data = problems["A"].data
    plain = oc.Problem(
        data.x, data.y[:, 0], lambda x, theta: known(x[:, 0]) @ theta, problems["A"].parameters.given, oc.Box(0, 1)
    )
    with pytest.raises(InputError, match="no emulator that has draws"):
        oc.calibrate(oc.Experiments({"A": plain, "B": plain}), draws=10, emulator_draws=8, progress=False)
    mixed = oc.calibrate(oc.Experiments({"A": plain, "B": problems["B"]}), draws=20, emulator_draws=8, progress=False)
    assert mixed["A"].record.run_facts.emulator_draws == 0
    assert mixed["B"].record.run_facts.emulator_draws == 8


def test_emulators_of_the_same_runs_have_the_same_draws():
    theta = np.random.default_rng(1).random((12, 2))
    x = np.linspace(0, 1, 6)
    tables = [oc.RunTable(one, np.stack([known(x) @ row for row in one]), x, ["a", "b"]) for one in (theta, theta**2)]
    first, again, other = (oc.emulate(one, "gp", progress=False) for one in (tables[0], tables[0], tables[1]))
    problems = {
        name: experiments_with(one, one).problems["A"] for name, one in zip("ABC", (first, again, other), strict=True)
    }
    plan = oc.methods.Plan(10, 0, [np.random.default_rng(1)], emulator_draws=4, emulator_seed=3)
    seeds = {name: one.seed for name, one in draws_of_each(problems, plan).items()}
    assert seeds == {"A": 3, "B": 3, "C": 4}


def test_each_experiment_has_the_part_of_its_own_emulator():
    """The draws go together: an emulator that is sure of itself is not blamed for the other."""

    class Sure(LinearEmulator):
        def draws(self, count, seed):
            return [self] * count

    experiments = experiments_with(LinearEmulator(), Sure())
    posterior = calibrated(experiments)
    said = {one.topic: one for one in posterior.check() if "part of the variance" in one.message}
    assert said["A: emulator"].level == "problem"
    assert "0% of a's" in said["B: emulator"].message
    assert said["B: emulator"].level == "fine"
    moved = posterior["A"].data["constant_data"]["emulator_shift"].values
    # the mean over the domains of both: half of what it does to one alone
    assert np.allclose(moved.T @ moved / len(moved), emulators_part(experiments) / 4)
