"""What the tests of emulators share: every emulator in a small size, a simulator, tables of its runs, problems."""

import numpy as np
from scipy.stats import qmc, uniform

import orthocal as oc

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


def one_outcome(runs):
    return oc.RunTable(runs.theta, np.array(runs.output)[:, :, 0], runs.x, runs.parameter_names)


def problem_with(emulator, seed=3, **options):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 1, 40)
    y = simulate(x, np.array([1.4, 2.0]))[:, 0] + rng.normal(0, 0.5, 40)
    settings = {"parameters": {"a": uniform(1, 1), "b": uniform(-3, 8)}, "domain": oc.Box(0, 1), "noise_cov": 0.25}
    return oc.Problem(x, y, emulator, **{**settings, **options})


class Nearest:
    """A model of a user's: the nearest row."""

    def fit(self, inputs, targets):
        self.inputs, self.targets = inputs, targets

    def predict(self, inputs):
        return self.targets[[np.argmin(np.sum((self.inputs - row) ** 2, axis=1)) for row in inputs]]
