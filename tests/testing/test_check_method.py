"""Negative controls: a method that breaks one clause of the contract is noticed, and the clause is named."""

import dataclasses

import numpy as np
import pytest

import orthocal as oc
from orthocal.testing import ContractError, check_method


class Broken:
    """A sound method whose draws are spoiled in one way."""

    def __init__(self, spoil, method=None):
        self._spoil, self._method = spoil, method or oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5))

    def run(self, problem, plan):
        return self._spoil(problem, self._method.run(problem, plan), plan)

    def describe(self):
        return self._method.describe()


def changed(name, change):
    """The draws with one field changed."""
    return lambda problem, draws, plan: dataclasses.replace(draws, **{name: change(getattr(draws, name))})


def from_the_global_generator(problem, draws, plan):
    noise = np.random.default_rng().standard_normal(draws.bias.shape)
    return dataclasses.replace(draws, bias=draws.bias + noise)


def deaf(problem, draws, plan):
    rngs = [np.random.default_rng(0), np.random.default_rng(1)]
    return oc.methods.NoBias().run(problem, plan._replace(rngs=rngs))


def in_place(problem, draws, plan):
    problem.data.y.flags.writeable = True
    problem.data.y[...] += 1
    return draws


def where_it_fails(problem, draws, plan):
    """Nothing is impossible: theta goes anywhere, the model with it."""
    theta = draws.theta.copy()
    theta[..., 1] = 2.5
    model = problem.simulator.batch(problem.data.x, theta.reshape(-1, 2)).reshape(draws.model.shape)
    return dataclasses.replace(draws, theta=theta, model=model, stats={**draws.stats, "lp": theta[..., 0]})


def unprojected(problem, draws, plan):
    """A free bias that claims to be orthogonal."""
    return dataclasses.replace(draws, stats={**draws.stats, "orthogonality_error": np.zeros_like(draws.stats["lp"])})


def crashes(problem, draws, plan):
    if problem.noise.source == "unknown":
        raise KeyError("noise")
    return draws


class Unstorable(Broken):
    def describe(self):
        return {"kind": (1, 2)}


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (Broken(changed("theta", lambda theta: theta[:, :-1])), r"theta has shape \(2, 9, 2\), expected \(2, 10, 2\)"),
        (Broken(changed("bias", lambda bias: np.full_like(bias, np.nan))), "bias has NaN"),
        (Broken(changed("stats", lambda stats: {})), "stats has no"),
        (Broken(changed("model", lambda model: model + 1)), "model is not the simulator at theta"),
        (Broken(in_place), "changed the problem's y in place"),
        (Broken(from_the_global_generator), "same generators gave a different bias"),
        (Broken(deaf), "different generators gave the same theta"),
        (Unstorable(lambda problem, draws, plan: draws), "JSON"),
        (Broken(where_it_fails), "drawn where the simulator fails"),
        (Broken(changed("bias", lambda bias: 1.1 * bias)), "predicted at the data differs from the draws"),
        (Broken(unprojected, oc.methods.KO(1.5, 1.0, 0.5)), "not orthogonal to df/dtheta, as it claims"),
        (Broken(crashes), r"sampled noise: KeyError .* where an OrthocalError should say what to do"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_method_is_noticed(method, message):
    with pytest.raises(ContractError, match=message):
        check_method(method)
