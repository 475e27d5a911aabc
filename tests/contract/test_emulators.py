"""Every emulator through the checks that third parties can run, and through one suite of ours; broken ones fail.

What the checks of ``orthocal.testing`` ask of any emulator is coarse; what is asked here is what ours can do.
"""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from emulator_cases import HIGH, LOW, QUICK, STEPS, Nearest, X, simulate, slope, table
from scipy.stats import qmc

import orthocal as oc
from orthocal.emulators import EMULATORS
from orthocal.errors import InputError
from orthocal.testing import ContractError, check_emulator

#: as small as the coarse checks allow
SMALL = {
    **QUICK,
    "gp": oc.emulators.GP(nu=2.5),
    "bart": oc.emulators.BART(trees=50, draws=100, burn=200),
    "bmars": oc.emulators.BMARS(draws=100, burn=100),
}


FEW = {
    "bart": {"trees": 10, "draws": 10, "burn": 10},
    "bmars": {"draws": 10, "burn": 10},
    "forest": {"trees": 3},
    "mlp": {"layers": (3,)},
}


@pytest.mark.parametrize("name", SMALL)
def test_the_contract_is_kept(name):
    assert len(check_emulator(SMALL[name])) == 14


def test_the_contract_is_kept_by_a_model_of_a_users():
    assert len(check_emulator(Nearest())) == 14


def test_every_name_is_tested():
    assert list(QUICK) == list(EMULATORS)
    for name, kind in EMULATORS.items():
        assert isinstance(QUICK[name], kind)
        assert kind.name == name
        assert kind.words


@pytest.fixture(scope="module")
def fitted():
    runs = table()
    return {name: oc.emulate(runs, regressor) for name, regressor in QUICK.items()}


@pytest.mark.parametrize("name", QUICK)
def test_predictions(fitted, name):
    emulator = fitted[name]
    theta = np.array([[1.3, 0.5], [1.61, 3.3], [1.5, 1.0]])
    truth = np.stack([simulate(X, one) for one in theta])
    ours = np.stack([emulator(X, one) for one in theta])
    assert ours.shape == (3, 12, 2)
    spread = np.std(table().output, axis=(0, 1))
    limit = 0.25 if name in STEPS else 0.03
    assert (np.sqrt(np.mean((ours - truth) ** 2, axis=(0, 1))) < limit * spread).all()
    # a column and a vector are the same x
    assert np.array_equal(emulator(X[:, None], theta[0]), ours[0])


@pytest.mark.parametrize("name", QUICK)
def test_predictions_at_points_without_runs(fitted, name):
    x = np.linspace(0.03, 0.97, 9)
    theta = np.array([1.45, 1.2])
    error = fitted[name](x, theta) - simulate(x, theta)
    limit = 0.25 if name in STEPS else 0.05
    assert (np.sqrt(np.mean(error**2, axis=0)) < limit * np.std(table().output, axis=(0, 1))).all()


@pytest.mark.parametrize("name", [name for name in QUICK if name not in STEPS])
def test_gradient_is_that_of_the_emulator(fitted, name):
    emulator, theta = fitted[name], np.array([1.437, 0.713])
    # the rounding of a Gaussian process without noise is that of an ill-conditioned matrix: its steps are longer, and
    # the differences of fourth order
    share = 2e-3 if name == "gp" else 1e-5
    steps = share * np.diag(HIGH - LOW)
    for x in (X, X + 0.017):
        one, two = ([emulator(x, theta + k * h) - emulator(x, theta - k * h) for h in steps] for k in (1, 2))
        differences = [(8 * a - b) / (12 * h.sum()) for a, b, h in zip(one, two, steps, strict=True)]
        expected = np.stack(differences, axis=-1)
        size = np.abs(expected).max(axis=0)
        assert np.all(np.abs(emulator.gradient(x, theta) - expected) <= 1e-4 * size)


@pytest.mark.parametrize("name", STEPS)
def test_gradient_of_a_step_function_spans_a_cell(fitted, name):
    emulator, theta = fitted[name], np.array([1.5, 1.0])
    assert not emulator.smooth
    cells = (HIGH - LOW) / (101 if name == "bart" else 60)
    assert (emulator.steps >= cells).all()
    # a coarse design has wide cells
    coarse = oc.emulate(oc.RunTable(table().theta.round(), table().output, X), QUICK["forest"])
    assert (coarse.steps >= 1).all()
    by_hand = [
        (emulator(X, theta + step) - emulator(X, theta - step)) / (2 * step.sum()) for step in np.diag(emulator.steps)
    ]
    assert np.allclose(emulator.gradient(X, theta), np.stack(by_hand, axis=-1), rtol=1e-9)
    # beyond the runs the function is constant: the difference is to one side, and not halved
    low = emulator.runs.theta.min(axis=0)
    one_sided = (emulator(X, low + emulator.steps * [1, 0]) - emulator(X, low)) / emulator.steps[0]
    assert np.allclose(emulator.gradient(X, low)[:, :, 0], one_sided, rtol=1e-9)


def test_gradients_are_about_those_of_the_simulator(fitted):
    theta = np.array([1.5, 1.0])
    exact = slope(X, theta)
    size = np.sqrt(np.mean(exact**2, axis=0))
    for name, limit in (("gp", 0.01), ("mlp", 0.1), ("bmars", 0.3), ("bart", 0.6), ("forest", 0.6)):
        error = np.sqrt(np.mean((fitted[name].gradient(X, theta) - exact) ** 2, axis=0))
        assert (error < limit * size).all(), name


@pytest.mark.parametrize("name", ["gp", "bart", "bmars"])
def test_variance(fitted, name):
    var = fitted[name].variance(X, np.array([1.5, 1.0]))
    assert var.shape == (12, 2)
    assert (var > 0).all()


def test_no_variance(fitted):
    with pytest.raises(InputError, match="has no variance"):
        fitted["forest"].variance(X, np.array([1.5, 1.0]))


@pytest.mark.parametrize("name", QUICK)
def test_runs_with_points_of_their_own(name):
    rng = np.random.default_rng(1)
    theta = LOW + (HIGH - LOW) * qmc.Sobol(2, rng=rng).random(64)
    x = [np.sort(rng.uniform(0, 1, 5 + s % 3)) for s in range(64)]
    runs = oc.RunTable(theta, [simulate(own, one) for own, one in zip(x, theta, strict=True)], x)
    emulator = oc.emulate(runs, QUICK[name])
    at = np.array([1.4, 2.0])
    error = np.sqrt(np.mean((emulator(X, at) - simulate(X, at)) ** 2, axis=0))
    assert (error < (0.35 if name in STEPS else 0.08) * np.std(runs.long.output, axis=0)).all()
    assert emulator.gradient(X, at).shape == (12, 2, 2)


@pytest.mark.parametrize("name", [name for name in QUICK if hasattr(QUICK[name], "seed")])
def test_another_seed_gives_another_emulator(name):
    theta = np.array([1.5, 1.0])
    first, other = (oc.emulate(table(20), type(SMALL[name])(seed=seed, **FEW[name]))(X, theta) for seed in (1, 2))
    assert np.abs(first - other).max() > 0


@pytest.mark.parametrize("layout", ["components", "stacked"])
@pytest.mark.parametrize("name", SMALL)
def test_an_emulator_can_be_pickled_after_its_first_call(name, layout):
    emulator = oc.emulate(table(20), SMALL[name], layout=layout)
    theta = np.array([1.5, 1.0])
    expected = emulator(X, theta)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(emulator))(X, theta), expected)


@pytest.mark.parametrize("name", QUICK)
def test_wrong_arguments_of_an_emulator(fitted, name):
    emulator = fitted[name]
    for function in (emulator, emulator.gradient):
        with pytest.raises(InputError, match="the runs have 2 parameters"):
            function(X, np.zeros(3))
        with pytest.raises(InputError, match="the runs have 1 inputs"):
            function(np.zeros((4, 2)), np.zeros(2))
        with pytest.raises(InputError, match="theta must be numbers"):
            function(X, ["a", "b"])


@pytest.mark.parametrize("name", QUICK)
def test_settings_do_not_predict(name):
    with pytest.raises(InputError, match=f"settings of {QUICK[name].words} have not been fitted"):
        QUICK[name].predict(np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emulator": "kriging"}, "there is no emulator 'kriging': give one of auto, gp"),
        ({"emulator": 3}, "give a name, or an object with fit and predict"),
        ({"emulator": "gp", "layout": "wide"}, "layout='wide'"),
        ({"emulator": "gp", "components": 0}, "components=0"),
        ({"emulator": "bart", "components": 3}, "components go with"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        oc.emulate(table(), **arguments)


@pytest.mark.parametrize("name", QUICK)
def test_tables_that_cannot_be_emulated(name):
    runs = table()
    with pytest.raises(InputError, match=r"give an oc\.RunTable"):
        oc.emulate(np.zeros((3, 3)), name)
    with pytest.raises(InputError, match="needs at least 3"):
        oc.emulate(runs.subset([0, 1]), name)
    same = np.array(runs.theta)
    same[:, 1] = 2.0
    with pytest.raises(InputError, match="all runs have the same 'b'"):
        oc.emulate(oc.RunTable(same, runs.output, X, ["a", "b"]), name)


@pytest.mark.parametrize(
    ("family", "absent"), [("emulators", ("sklearn", "matplotlib")), ("bias", ("sklearn", "matplotlib", "numba"))]
)
def test_what_is_not_used_is_not_loaded(family, absent):
    program = f"import sys, orthocal; orthocal.{family}; print([name for name in {absent} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


class Broken:
    """A good emulator with one thing changed."""

    def __init__(self, runs, changes):
        self.inner, self.changes, self.calls = oc.emulate(runs, SMALL["mlp"], progress=False), changes, 0
        self.parameter_names, self.has_variance = runs.parameter_names, True
        for name, value in changes.items():
            if not callable(value):
                setattr(self, name, value)

    def __call__(self, x, theta):
        self.calls += 1
        return self.changed("call", self.inner(x, theta), x, theta)

    def gradient(self, x, theta):
        return self.changed("gradient", self.inner.gradient(x, theta), x, theta)

    def variance(self, x, theta):
        return self.changed("variance", np.full((len(x), self.inner.runs.q), 1.0), x, theta)

    def outside(self, theta):
        return self.changed("outside", self.inner.outside(theta), None, theta)

    def changed(self, name, value, x, theta):
        return self.changes[name](self, value, x, theta) if name in self.changes else value


def shift_in_place(self, value, x, theta):
    theta += 1
    return value


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameter_names": ("b", "a")}, "the runs have the parameters"),
        ({"call": lambda self, value, x, theta: value[:, 0]}, "a call returned shape"),
        ({"call": lambda self, value, x, theta: np.full_like(value, np.nan)}, "NaN or infinity"),
        ({"call": shift_in_place}, "changed in place"),
        ({"call": lambda self, value, x, theta: value + 1e-9 * self.calls}, "the same theta gave different output"),
        ({"call": lambda self, value, x, theta: value + id(self) * 1e-9}, "gave another emulator"),
        ({"call": lambda self, value, x, theta: self.inner(x, np.array([1.5, 1.0]))}, "of the spread of the runs"),
        ({"gradient": lambda self, value, x, theta: value[:, :, :1]}, "the gradient returned shape"),
        ({"gradient": lambda self, value, x, theta: -value}, "the gradient differs from differences"),
        ({"gradient": lambda self, value, x, theta: value[:, :, ::-1]}, "the gradient differs from differences"),
        ({"variance": lambda self, value, x, theta: -value}, "the variance is negative"),
        ({"variance": lambda self, value, x, theta: 1e-16 * value}, "times the emulator's sd"),
        ({"outside": lambda self, value, x, theta: ~value}, "counts as outside"),
        ({"outside": lambda self, value, x, theta: value & False}, "does not count as outside"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_broken_emulator_is_noticed(changes, message):
    with pytest.raises(ContractError, match=message):
        check_emulator(lambda runs: Broken(runs, changes))


def test_the_good_one_behind_the_broken_ones_passes():
    assert check_emulator(lambda runs: Broken(runs, {}))


def test_what_is_no_emulator_is_noticed():
    with pytest.raises(ContractError, match="lacks some of"):
        check_emulator(lambda runs: lambda x, theta: np.zeros((len(x), runs.q)))


def test_an_emulator_for_complete_tables_only_is_noticed():
    """It takes missing cells for zeros."""

    def make(runs):
        return Broken(oc.RunTable(runs.theta, np.nan_to_num(np.array(runs.output)), runs.x, ["a", "b"]), {})

    with pytest.raises(ContractError, match="runs with missing cells"):
        check_emulator(make)
