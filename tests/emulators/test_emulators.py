"""Every emulator through one suite: shapes, gradients, missing runs, layouts, its place in a problem."""

import sys

import numpy as np
import pytest
from scipy.stats import qmc, uniform

import orthocal as oc
from orthocal.emulators.fitting import EMULATORS
from orthocal.errors import InputError, OrthocalWarning

#: small, so that the whole suite stays fast
QUICK = {
    "gp": oc.emulators.GP(),
    "bart": oc.emulators.BART(trees=100, draws=200, burn=300),
    "bmars": oc.emulators.BMARS(),
    "forest": oc.emulators.Forest(trees=20),
    "mlp": oc.emulators.MLP(layers=(20,)),
}
STEPS = ("bart", "forest")
LOW, HIGH = np.array([1.0, -3.0]), np.array([2.0, 5.0])


def simulate(x, theta):
    """Two outcomes of very different size, in theta's own units."""
    a, b = (theta - LOW) / (HIGH - LOW)
    return np.stack([100 + 20 * np.sin(2 * x * a + b), 1e-3 * (b * x + a**2)], axis=-1)


def slope(x, theta):
    a, b = (theta - LOW) / (HIGH - LOW)
    wave = 20 * np.cos(2 * x * a + b)
    by_a = np.stack([2 * x * wave, 2e-3 * a * np.ones_like(x)], axis=-1)
    by_b = np.stack([wave, 1e-3 * x], axis=-1)
    return np.stack([by_a, by_b], axis=-1) / (HIGH - LOW)


X = np.linspace(0, 1, 12)


def table(s=60, seed=0):
    theta = LOW + (HIGH - LOW) * qmc.Sobol(2, rng=np.random.default_rng(seed)).random(64)[:s]
    return oc.RunTable(theta, np.stack([simulate(X, one) for one in theta]), X, ["a", "b"], "place", ["warm", "dry"])


@pytest.fixture(scope="module")
def fitted():
    runs = table()
    return {name: oc.emulate(runs, regressor) for name, regressor in QUICK.items()}


def test_every_name_is_tested():
    assert set(QUICK) == set(EMULATORS)


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


def test_variance_grows_beyond_the_runs(fitted):
    inside, outside = (fitted["gp"].variance(X, np.array(theta)) for theta in ([1.5, 1.0], [3.0, 9.0]))
    assert (outside > 10 * inside).all()


def test_failed_runs_are_left_out():
    runs = table()
    output = np.array(runs.output)
    output[[3, 11]] = np.nan
    holey = oc.RunTable(runs.theta, output, X, ["a", "b"])
    kept = runs.subset(np.setdiff1d(np.arange(60), [3, 11]))
    theta = np.array([1.5, 1.0])
    ours = oc.emulate(holey, "gp")
    assert ours.runs.s == 58
    assert np.array_equal(ours(X, theta), oc.emulate(kept, "gp")(X, theta))


def test_missing_cells():
    runs = table()
    output = np.array(runs.output)
    output[5, 3, 0] = np.nan
    with pytest.warns(OrthocalWarning, match="1 of 60 runs have missing cells"):
        oc.emulate(oc.RunTable(runs.theta, output, X), "gp")
    output[::2, 3, 0] = np.nan
    holey = oc.RunTable(runs.theta, output, X)
    with pytest.raises(InputError, match="take the stacked layout"):
        oc.emulate(holey, "gp", layout="components")
    stacked = oc.emulate(holey, QUICK["mlp"])
    theta = np.array([1.5, 1.0])
    error = stacked(X, theta) - simulate(X, theta)
    assert (np.abs(error) < 0.1 * np.std(runs.output, axis=(0, 1))).all()


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


class Nearest:
    """A model of a user's: the nearest row."""

    def fit(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def predict(self, inputs):
        return self.targets[[np.argmin(np.sum((self.inputs - row) ** 2, axis=1)) for row in inputs]]


def test_an_object_with_fit_and_predict():
    runs = table()
    for layout in ("components", "stacked"):
        emulator = oc.emulate(runs, Nearest(), layout=layout)
        assert emulator.name == "Nearest"
        assert np.allclose(emulator(X, runs.theta[7]), np.array(runs.output)[7])
        assert not emulator.smooth


def test_all_components_give_the_runs_back():
    emulator = oc.emulate(table(), Nearest())
    assert np.allclose(emulator(X, table().theta[3]), np.array(table().output)[3], rtol=1e-6)
    few = oc.emulate(table(), "gp", components=1)
    assert few.components == [1, 1]
    assert (few.variance(X, np.array([1.5, 1.0])) > oc.emulate(table(), "gp").variance(X, np.array([1.5, 1.0]))).all()


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


def test_tables_that_cannot_be_emulated():
    runs = table()
    with pytest.raises(InputError, match=r"give an oc\.RunTable"):
        oc.emulate(np.zeros((3, 3)), "gp")
    with pytest.raises(InputError, match="needs at least 3"):
        oc.emulate(runs.subset([0, 1]), "gp")
    same = np.array(runs.theta)
    same[:, 1] = 2.0
    with pytest.raises(InputError, match="all runs have the same 'b'"):
        oc.emulate(oc.RunTable(same, runs.output, X, ["a", "b"]), "gp")


def test_wrong_arguments_of_an_emulator(fitted):
    with pytest.raises(InputError, match="the runs have 2 parameters"):
        fitted["gp"](X, np.zeros(3))
    with pytest.raises(InputError, match="the runs have 1 inputs"):
        fitted["gp"](np.zeros((4, 2)), np.zeros(2))


def test_very_many_rows():
    """An exact Gaussian process of 1e5 rows would need 80 GB."""
    rng = np.random.default_rng(0)
    theta = rng.uniform(size=(50_000, 2))
    x = [rng.uniform(size=(2, 1)) for _ in theta]
    runs = oc.RunTable(theta, [own * one.sum() for own, one in zip(x, theta, strict=True)], x)
    with pytest.raises(InputError, match=r"100000 rows is too large.*take another emulator"):
        oc.emulate(runs, "gp")


def test_the_hull(fitted):
    emulator = fitted["gp"]
    assert emulator.outside(np.array([[1.5, 1.0], [2.5, 1.0], [1.5, -3.5]])).tolist() == [False, True, True]
    # a corner of the box that no run reaches
    triangle = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.2, 0.2]])
    small = oc.emulate(oc.RunTable(triangle, np.arange(8.0).reshape(4, 2), [0.0, 1.0]), Nearest())
    assert small.outside(np.array([[0.9, 0.9], [0.3, 0.3], [1.0, 0.0]])).tolist() == [True, False, False]


@pytest.mark.parametrize("p", [1, 2, 3, 7])
def test_the_hull_in_several_dimensions(p):
    """Means of the runs are inside; what is further away than any run is not."""
    rng = np.random.default_rng(p)
    theta = rng.normal(size=(40, p))
    runs = oc.RunTable(theta, rng.normal(size=(40, 1)), [0.0])
    emulator = oc.emulate(runs, Nearest())
    mixtures = rng.dirichlet(np.ones(40), size=20) @ theta
    assert not emulator.outside(mixtures).any()
    assert emulator.outside(20 * theta / np.linalg.norm(theta, axis=1, keepdims=True)).all()


def test_comparison():
    pytest.importorskip("sklearn", reason="needs scikit-learn, the extra learn")
    comparison = oc.compare_emulators(table(), ["gp", QUICK["forest"]], folds=3)
    assert comparison.held_out == 60
    assert list(comparison.ranking.index) == ["gp", "forest"]
    assert comparison.best == "gp"
    errors = comparison.table["relative_rmse"].unstack("outcome")
    assert (errors.loc["gp"] < 0.05).all()
    assert (errors.loc["forest"] > 0.05).all()
    assert np.isnan(comparison.table.loc["forest", "coverage"]).all()
    assert (comparison.table.loc["gp", "coverage"] > 0.85).all()
    assert "60 held-out runs" in str(comparison)
    assert len(comparison.figure().axes) == 2


def test_comparison_leaves_out_what_cannot_be_fitted():
    class Broken:
        def fit(self, inputs, targets):
            raise RuntimeError("no licence")

        def predict(self, inputs):
            raise AssertionError

    comparison = oc.compare_emulators(table(), {"broken": Broken(), "ours": Nearest()}, folds=1)
    assert comparison.held_out == 12
    assert "no licence" in comparison.failures["broken"]
    assert "broken was left out" in str(comparison)
    with pytest.raises(InputError, match="no emulator could be fitted"):
        oc.compare_emulators(table(), [Broken()], folds=1)
    with pytest.raises(InputError, match="folds=0"):
        oc.compare_emulators(table(), ["gp"], folds=0)


def test_auto_takes_the_best(monkeypatch):
    # the function has the name of its module
    monkeypatch.setattr(sys.modules["orthocal.emulators.held_out"], "EMULATORS", {"forest": None, "gp": None})
    assert oc.emulate(table(25), "auto").name == "gp"


def problem_with(emulator, seed=3, **options):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, 40)
    y = simulate(x, np.array([1.4, 2.0]))[:, 0] + rng.normal(0, 0.5, 40)
    settings = {"parameters": {"a": uniform(1, 1), "b": uniform(-3, 8)}, "domain": oc.Box(0, 1), "noise_cov": 0.25}
    return oc.Problem(x, y, emulator, **{**settings, **options})


def one_outcome(runs):
    return oc.RunTable(runs.theta, np.array(runs.output)[:, :, 0], runs.x, runs.parameter_names)


def test_calibration_with_an_emulator_is_that_with_the_simulator():
    emulator = oc.emulate(one_outcome(table()), "gp")
    ours = oc.calibrate(problem_with(emulator), draws=500, seed=1, progress=False)
    exact = oc.calibrate(problem_with(lambda x, theta: simulate(x, theta)[:, 0]), draws=500, seed=1, progress=False)
    mean, sd = exact.theta.mean(axis=(0, 1)), exact.theta.std(axis=(0, 1))
    assert (np.abs(ours.theta.mean(axis=(0, 1)) - mean) < 0.2 * sd).all()
    assert np.allclose(ours.theta.std(axis=(0, 1)), sd, rtol=0.15)
    assert "all draws of theta lie within the hull" in str(ours.check())
    assert ours.emulator is emulator


@pytest.mark.parametrize("name", ["bart", pytest.param("forest", marks=pytest.mark.slow)])
def test_calibration_with_a_step_function(name):
    emulator = oc.emulate(one_outcome(table()), QUICK[name])
    posterior = oc.calibrate(problem_with(emulator), draws=200, seed=1, progress=False)
    assert (np.abs(posterior.theta.mean(axis=(0, 1)) - [1.4, 2.0]) < 0.25 * (HIGH - LOW)).all()
    assert not any(finding.topic == "gradient" for finding in posterior.check().problems)


def test_the_emulators_error_widens_the_posterior():
    few = oc.emulate(one_outcome(table(12)), "gp")
    without, with_error = (problem_with(few, emulator_error=choice) for choice in (False, True))
    var = few.variance(with_error.data.x, with_error.theta_tilde)
    assert np.allclose(with_error.noise.by_point[:, 0, 0], 0.25 + var[:, 0])
    assert np.array_equal(with_error.theta_tilde, without.theta_tilde)
    assert np.array_equal(with_error.weight, without.weight)
    sds = [oc.calibrate(one, draws=300, seed=1, progress=False).theta.std(axis=(0, 1)) for one in (without, with_error)]
    assert (sds[1] >= sds[0] * 0.97).all()


def test_errors_that_cannot_be_carried():
    forest = oc.emulate(one_outcome(table()), QUICK["forest"])
    with pytest.raises(InputError, match="needs an emulator with a variance"):
        problem_with(forest, emulator_error=True)
    with pytest.raises(InputError, match="not noise_cov"):
        problem_with(oc.emulate(one_outcome(table(12)), "gp"), emulator_error=True, noise_cov="sample")


def test_parameters_in_another_order():
    emulator = oc.emulate(one_outcome(table()), Nearest())
    with pytest.raises(InputError, match="in this order"):
        problem_with(emulator, parameters={"b": uniform(-3, 8), "a": uniform(1, 1)})
    with pytest.raises(InputError, match="parameters a, b"):
        problem_with(emulator, parameters={"a": uniform(1, 1)})


def test_draws_outside_of_the_runs_are_reported():
    runs = one_outcome(table())
    part = runs.subset(runs.theta[:, 0] > 1.6)
    with pytest.warns(OrthocalWarning, match="outside of the runs' hull"):
        posterior = oc.calibrate(problem_with(oc.emulate(part, "gp")), draws=100, seed=1, progress=False)
    assert any(finding.topic == "emulator" and finding.level != "fine" for finding in posterior.check())
