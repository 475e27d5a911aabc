"""Negative controls: a prior that breaks one clause of the contract is noticed; and the example that keeps it."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import orthocal as oc
from helpers import largest_error
from orthocal.examples import MODEL1
from orthocal.testing import ContractError, check_bias_prior

EXAMPLE = Path(__file__).parents[2] / "docs" / "skeletons" / "bias_prior.py"
specification = importlib.util.spec_from_file_location("fourier_prior", EXAMPLE)
fourier_prior = importlib.util.module_from_spec(specification)
specification.loader.exec_module(fourier_prior)
FourierFeatures, FourierSampler = fourier_prior.FourierFeatures, fourier_prior.FourierSampler


def test_the_example_of_the_documentation_calibrates(tmp_path):
    x, y = MODEL1.simulate(np.random.default_rng(1))
    posterior = oc.calibrate(MODEL1.problem(x, y), oc.methods.Projected(FourierFeatures()), draws=250, seed=1)
    summary = posterior.summary()
    assert abs(summary["mean"].item() - MODEL1.theta_star[0]) < 4 * summary["sd"].item()
    assert largest_error(posterior) < 1e-10
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"))
    np.testing.assert_array_equal(loaded.theta, posterior.theta)
    assert loaded.report(tmp_path / "fit.html").is_file()


class Broken(FourierFeatures):
    """A prior whose sampler breaks one clause."""

    def __init__(self, **changes):
        super().__init__()
        self._changes = changes

    def prepare(self, setting):
        return type("BrokenSampler", (FourierSampler,), self._changes)(self, setting)

    def describe(self):
        return {"kind": "broken"}


def two_functions(self, rng, state, residual):
    """The authors' mistake: the values at the nodes are drawn independently of those at the data."""
    _, values = FourierSampler.one_draw(self, rng, state, residual)
    weights, other = FourierSampler.one_draw(self, rng, state, residual)
    return weights, np.concatenate([values[: len(residual)], other[len(residual) :]])


def from_the_global_generator(self, rng, state, residual):
    return FourierSampler.one_draw(self, np.random.default_rng(), state, residual)


def deaf(self, rng, state, residual):
    self.first = getattr(self, "first", residual)
    return FourierSampler.one_draw(self, rng, state, self.first)


def hidden_state(self, rng, state, residual):
    self.count = getattr(self, "count", 0) + 1
    weights, values = FourierSampler.one_draw(self, rng, state, residual)
    return (weights, values) if self.count % 5 else (2 * weights, 2 * values)


def too_few(self, rng, state, residual):
    weights, values = FourierSampler.one_draw(self, rng, state, residual)
    return weights, values[: len(residual)]


def noise_free(self, rng, state, residual):
    """Adds a share of the residual whatever the noise."""
    weights, _ = FourierSampler.one_draw(self, rng, state, residual)
    weights = weights + 0.1 * self.design[: len(residual)].T @ residual
    return weights, self.design @ weights


def deaf_to_the_scale(self, rng, state, residual, noise_scale=1.0):
    return FourierSampler.one_draw(self, rng, state, residual)


def elsewhere(self, record, x_new):
    return self.at(x_new + 0.2) @ record["weights"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"one_draw": too_few}, "shape"),
        ({"one_draw": two_functions}, "two values"),
        ({"one_draw": from_the_global_generator}, "same generators gave different draws"),
        ({"one_draw": hidden_state}, "different draws|same way"),
        ({"one_draw": deaf}, "do not follow the residual"),
        ({"one_draw": noise_free}, "still depend on the residual"),
        ({"one_draw": deaf_to_the_scale, "takes_noise_scale": True}, "enormous noise scale"),
        ({"one_prediction": elsewhere}, "predictions at known points"),
        ({"settings": lambda self: {"kind": (1, 2)}}, "JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_prior_is_noticed(changes, message):
    with pytest.raises(ContractError, match=message):
        check_bias_prior(Broken(**changes))
