"""problem.check(): what a run will cost and what speaks against it, for few calls of the simulator."""

import subprocess
import sys
from copy import copy

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.methods.base import METHODS
from orthocal.problem.preflight import probe
from orthocal.problem.preflight.cost import COSTS, in_words
from orthocal.problem.simulator import simulator as simulator_module

X = np.linspace(0.02, 1, 40)
PRIORS = {"a": stats.norm(1, 2), "b": stats.uniform(0.1, 6), "c": stats.norm(0, 1)}
Y = 2 * np.exp(-3 * X) + 0.4 + 0.1 * np.sin(5 * X) + 0.05 * np.random.default_rng(0).standard_normal(40)


class Counted:
    """A simulator that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, x, theta):
        self.calls += 1
        return self.function(x, theta)


def decay(x, theta):
    return theta[0] * np.exp(-theta[1] * x) + theta[2]


def problem(function=decay, priors=PRIORS, y=Y, x=X, **given):
    return oc.Problem(x, y, function, priors, given.pop("domain", oc.Box(0, 1)), noise_cov=0.05**2, **given)


@pytest.fixture
def slow(monkeypatch):
    """No search is cheap enough to be made."""
    monkeypatch.setattr(probe, "CHEAP", 0.0)


def about(found, topic):
    return [one for one in found if one.topic == topic]


def one(found, topic):
    (only,) = about(found, topic)
    return only


def test_few_calls_say_where_it_fits_and_what_a_run_costs(slow):
    function = Counted(decay)
    given = problem(oc.Simulator(function, "difference"))
    found = given.check()
    assert function.calls == given.simulator.calls < 75
    assert not given.searched
    assert found
    # all that is fine was looked at
    assert {item.topic for item in found if item.level == "fine"} == {
        "simulator",
        "parameters",
        "quadrature",
        "priors",
        "cost",
    }
    best = one(found, "best fit")
    assert best.level == "note"
    assert "the run searches from 32 starts" in best.message
    looked = probe.probed(given._setup)
    np.testing.assert_allclose(looked.theta, given.theta_tilde, atol=0.02)
    assert "minima beyond those that 3 short descents may come to" in one(found, "not looked at").message


def told(found):
    """The least and the largest number of calls that a cost speaks of."""
    words = one(found, "cost").message.split("about ")[1].split(" times")[0].split(" to ")
    return tuple(float(words[place].replace(" ", "")) for place in (0, -1))


@pytest.mark.parametrize("linear", [False, True])
def test_the_calls_of_the_default_method_are_foretold(slow, linear):
    def line(x, theta):
        return theta[0] * x + theta[1] * x**2 + theta[2]

    priors = {name: stats.norm(0, 3) for name in "abc"} if linear else PRIORS
    given = problem(oc.Simulator(line if linear else decay, "difference"), priors)
    least, most = told(given.check(draws=100))
    assert most < 1.5 * least
    before = given.simulator.calls
    oc.calibrate(given, draws=100, chains=4, seed=1, progress=False)
    assert 0.75 * least < given.simulator.calls - before < 1.33 * most


def test_a_cheap_simulator_is_searched_and_the_run_does_not_search_again():
    function = Counted(decay)
    given = problem(oc.Simulator(function, "difference"))
    best = one(given.check(), "best fit")
    assert (best.level, given.searched) == ("fine", True)
    assert best.message.startswith("every start of the search led to a = ")
    calls = function.calls
    assert given.check()
    # it asks where it has looked before, and does not search
    assert function.calls - calls < 40


def test_a_parameter_without_effect(slow):
    priors = {**PRIORS, "idle": stats.norm(0, 1)}
    found = problem(priors=priors).check()
    assert not found
    assert "parameter 'idle' has no effect" in one(found, "parameters").message


def test_parameters_that_cannot_be_told_apart(slow):
    priors = {"a": stats.norm(1, 2), "b": stats.norm(1, 2)}
    found = problem(lambda x, theta: (theta[0] + theta[1]) * x, priors, y=2 * X).check()
    assert one(found, "parameters").level == "problem"
    assert "collinear: it answers to a combination of them only" in one(found, "parameters").message


@pytest.mark.parametrize(("unit", "words"), [(1000.0, "that are 1 / "), (1e-4, " times the data's")])
def test_data_in_another_unit(slow, unit, words):
    """Millimetres for metres: over positive amplitudes nothing comes near to the data."""
    priors = {"a": stats.uniform(1, 3), "b": stats.uniform(0.1, 6), "c": stats.uniform(0.1, 1)}
    found = problem(priors=priors, y=unit * Y).check()
    units = [item for item in about(found, "priors") if "numbers of y that are" in item.message]
    assert len(units) == 1
    assert units[0].level == "problem"
    assert words in units[0].message


def test_data_far_from_all_that_the_priors_give(slow):
    priors = {"a": stats.norm(1, 0.1), "b": stats.norm(3, 0.1), "c": stats.norm(5, 0.1)}
    found = problem(priors=priors, y=Y + 30).check()
    assert any("is far from the data" in item.message for item in about(found, "priors"))


def test_a_best_fit_far_out_in_its_prior(slow):
    priors = {**PRIORS, "c": stats.norm(-3, 0.2)}
    found = problem(priors=priors).check()
    far = [item for item in about(found, "priors") if "prior sds from the middle of its prior" in item.message]
    assert [item.message.split(" = ")[0] for item in far] == ["the best fit so far has c"]


def test_a_prior_that_is_surer_than_the_data_and_wrong(slow):
    """The best fit stays with the prior, and says nothing of the data."""
    priors = {"a": stats.norm(2, 0.5), "b": stats.norm(3, 0.5), "c": stats.norm(-0.2, 0.01)}
    found = problem(priors=priors).check()
    (held,) = about(found, "priors")
    assert held.level == "problem"
    assert "the data alone would have c at 0." in held.message


def test_a_best_fit_on_a_bound(slow):
    found = problem(priors={**PRIORS, "b": stats.uniform(0.1, 1)}).check()
    assert any("it lies on a bound of the prior of b" in item.message for item in about(found, "best fit"))


def test_too_few_nodes(slow):
    wavy = lambda x, theta: theta[0] * np.cos(40 * x) + theta[1] * x  # noqa: E731
    priors = {"a": stats.norm(1, 2), "b": stats.norm(1, 2)}
    found = problem(wavy, priors, y=wavy(X, [1.0, 1.0]), domain=oc.Box(0, 1, nodes=8)).check()
    rule = one(found, "quadrature")
    assert rule.level == "note"
    assert "nodes=..." in rule.advice


def test_a_simulator_that_fails_in_a_part_of_the_priors(slow):
    found = problem(lambda x, theta: np.where(theta[1] < 2, np.nan, decay(x, theta))).check()
    (fails,) = [item for item in about(found, "simulator") if "fails at" in item.message]
    assert fails.level == "note"


def test_a_simulator_that_fails_everywhere():
    found = problem(lambda x, theta: np.full(len(x), np.nan)).check()
    assert [item.level for item in found] == ["problem"]
    assert found[0].advice == "nothing else was looked at"


def test_rows_that_depend_on_each_other(slow):
    found = problem(lambda x, theta: decay(x, theta) + 0.01 * len(x)).check()
    assert any("half of the rows are asked for alone" in item.message for item in found.problems)


def test_several_places_that_fit_as_well(slow):
    priors = {"a": stats.norm(0, 2)}
    found = problem(lambda x, theta: theta[0] ** 2 * x, priors, y=2 * X).check()
    best = one(found, "best fit")
    assert best.level == "note"
    assert "came to different places that fit about as well" in best.message


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(2.8e-6, "2.8 µs"), (0.112, "110 ms"), (1.25, "1.2 s"), (73.0, "73 s"), (150.0, "2.5 min"), (4e5, "110 h")],
)
def test_times_as_people_say_them(seconds, words):
    assert in_words(seconds) == words


def test_jobs_that_do_not_pay(slow):
    found = problem(oc.Simulator(decay, jobs=2)).check()
    assert any(item.message.startswith("jobs do not pay") for item in about(found, "cost"))


def test_the_cost_of_a_method_that_is_not_known(slow):
    assert "is not known" in one(problem().check(method="my own"), "cost").message


def test_every_listed_method_states_its_cost():
    assert list(COSTS) == list(METHODS)


def test_the_cost_is_known_where_no_method_is_loaded_yet():
    script = (
        "import sys; import numpy as np, orthocal as oc; from scipy import stats; x = np.linspace(0, 1, 9); "
        "problem = oc.Problem(x, x, lambda x, theta: theta[0] * x, {'a': stats.norm(0, 1)}, noise_cov=0.01); "
        "assert 'orthocal.methods' not in sys.modules; print(problem.check())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "gp with 4 x 1000 draws will call the simulator about" in " ".join(done.stdout.split())


def test_each_cost_is_said_once(slow):
    message = one(problem().check(method="pbart", draws=100), "cost").message
    assert message.startswith("pbart with 4 x 100 draws")
    others = message.partition("; roughly, ")[2].split("; ")
    assert [other.split()[0] for other in others] == ["gp", "ogp", "pcal"]


def test_calls_that_are_held_up_now_and_then_count_in_the_seconds(slow, monkeypatch):
    """A clock of the simulator's own: 10 ms a call, every eighth 80 ms more; the median would tell half of the mean."""
    now, calls = [0.0], [0]
    monkeypatch.setattr(simulator_module, "perf_counter", lambda: now[0])

    def held_up(x, theta):
        calls[0] += 1
        now[0] += 0.01 + 0.08 * (calls[0] % 8 == 0)
        return decay(x, theta)

    look = probe.probed(problem(oc.Simulator(held_up, "difference"))._setup)
    assert look.call == pytest.approx(0.02, rel=0.1)
    # of a single call it would be 10 or 90 ms
    assert 0.01 < look.call_at_nodes < 0.03


def test_a_slow_simulator_is_advised_an_emulator(slow, monkeypatch):
    given = problem(oc.Simulator(decay, "difference"))
    monkeypatch.setattr(type(given.simulator), "seconds_a_call", property(lambda self: 0.05))
    cost = one(given.check(), "cost")
    assert cost.level == "note"
    assert "oc.Simulator(f, jobs=...)" in cost.advice
    assert "oc.emulate" in cost.advice


@pytest.fixture(scope="module")
def emulator():
    design = oc.design({"a": stats.uniform(1, 2), "b": stats.uniform(2, 2)}, 16)
    x = np.linspace(0, 0.5, 8)
    output = np.array([a * np.exp(-b * x) for a, b in design.to_numpy()])
    return oc.emulate(oc.RunTable(design, output, x), "gp")


def test_an_emulator_whose_runs_do_not_cover_x_and_theta(emulator):
    priors = {"a": stats.uniform(0, 6), "b": stats.uniform(0, 9)}
    found = problem(emulator, priors, y=2 * np.exp(-3 * X)).check()
    over_x, over_theta = (
        [item for item in about(found, "emulator") if words in item.message]
        for words in ("points x near", "of the prior")
    )
    assert over_x[0].level == "problem"
    assert over_theta[0].level == "note"
    assert any("its error at held-out runs is not known" in item.message for item in about(found, "emulator"))


def test_an_emulator_that_covers_them(emulator):
    x = np.linspace(0.01, 0.49, 30)
    priors = {"a": stats.uniform(1.2, 1.6), "b": stats.uniform(2.2, 1.6)}
    chosen = copy(emulator)
    chosen.choice = oc.emulators.base.Choice({"gp": 0.01}, {"y": 0.02}, 40)
    found = problem(chosen, priors, y=2 * np.exp(-3 * x), x=x, domain=oc.Box(0, 0.5)).check()
    messages = [item.message for item in about(found, "emulator") if item.level == "fine"]
    assert "its runs have points x near all rows of the data and all of the domain" in messages
    (held,) = [item for item in about(found, "emulator") if "held-out runs, in noise" in item.message]
    # 0.02 with a noise of 0.05
    assert (held.level, held.message[-5:]) == ("note", "y 0.4")


@pytest.mark.slow
def test_predictions_where_the_runs_have_no_points(emulator):
    x = np.linspace(0.01, 0.49, 30)
    priors = {"a": stats.uniform(1.2, 1.6), "b": stats.uniform(2.2, 1.6)}
    given = problem(emulator, priors, y=2 * np.exp(-3 * x), x=x, domain=oc.Box(0, 0.5))
    posterior = oc.calibrate(given, draws=10, chains=2, seed=1, progress=False)
    words = "the emulator's runs have no points x near 1 of 2 points of x_new"
    with pytest.warns(oc.OrthocalWarning) as said:
        posterior.predict(np.array([0.25, 0.9]))
    assert any(str(item.message).startswith(words) for item in said)
    posterior.predict(np.array([0.25, 0.3]))
