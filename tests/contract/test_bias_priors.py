"""Every bias prior through one suite: the checks of third parties, threads, stored draws, odd inputs, bad settings."""

import itertools
import json

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import orthocal as oc
from helpers import generators, setting
from orthocal.bias.base import PRIORS as LISTED
from orthocal.bias.one_hot import stored_sampler
from orthocal.errors import InputError
from orthocal.machine.threads import one_blas_thread
from orthocal.testing import check_bias_prior

PRIORS = {
    "gp": oc.bias.GP(1.5, 1.0, 0.5),
    "bart": oc.bias.BART(trees=30),
    "softbart": oc.bias.SoftBART(trees=20),
    "bmars": oc.bias.BMARS(),
    "bnn": oc.bias.BNN(hidden=8),
}
VARIANTS = PRIORS | {
    "gp, fitted": oc.bias.GP(np.inf),
    "gp, two lengths": oc.bias.GP(np.inf, 1.0, [0.3, 0.6, 0.9]),
    "bmars, order 1": oc.bias.BMARS(order=1),
    "bmars, order 3": oc.bias.BMARS(order=3, degree=2),
    "bnn, two layers": oc.bias.BNN(hidden=6, layers=2, weight_sd=2),
}
#: how closely predictions repeat known values; a Gaussian process to rounding of its covariance
ROUNDING = {"gp": 1e-5, "bart": 1e-12, "softbart": 1e-10, "bmars": 1e-10, "bnn": 1e-10}
#: those whose draws have no fixed length
GROWING = ("bart", "softbart", "bmars")
every_prior = pytest.mark.parametrize("name", PRIORS)


def test_the_list_is_complete():
    assert set(PRIORS) == set(LISTED)


@pytest.mark.parametrize(
    "name", [*(name for name in PRIORS if name != "bnn"), pytest.param("bnn", marks=pytest.mark.slow), "gp, fitted"]
)
def test_the_contract_is_kept(name):
    assert len(check_bias_prior(VARIANTS[name])) == 9


@every_prior
def test_threads_do_not_change_the_draws(name, monkeypatch):
    x = np.random.default_rng(6).random((50, 2))
    residual = np.tile(np.sin(6 * x[:, 0]), (4, 1))
    results = []
    for threads, limit in ((1, 10**12), (2, 0)):
        monkeypatch.setattr("orthocal.regression.compiled.THREADED_COST", limit)
        sampler, state, rngs = PRIORS[name].prepare(setting(x)), None, generators(4)
        # as in a calibration: BLAS itself gives other last digits with two threads on some processors
        with threadpool_limits(threads, "blas"), one_blas_thread():
            for _ in range(3):
                state, values = sampler.draw(rngs, state, residual)
        results.append(values)
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("name", VARIANTS)
def test_predictions_are_the_drawn_functions_also_after_restoring(name):
    """With a strong signal, so that moves are rejected, too, and must be undone; the nodes lie outside, too."""
    rng, kind = np.random.default_rng(6), name.split(",")[0]
    x, nodes = 7 + 3 * rng.random((40, 3)), 6 + 5 * rng.random((9, 3))
    response = 30 * np.sin(x[:, :1].T) + rng.standard_normal((3, 40))
    given = setting(x, nodes, residual=response[0], unit=3.0)
    sampler, state, rngs, points = VARIANTS[name].prepare(given), None, generators(3), np.vstack([x, nodes])
    settings = json.loads(json.dumps(sampler.settings()))
    restored = stored_sampler(settings).restore(settings, x, nodes, np.ones(40))
    assert restored.settings() == sampler.settings()
    # what a fit has found is not known any more
    assert restored.findings() == sampler.findings() or name == "gp, fitted"
    records, drawn = [], []
    for _ in range(20):
        state, values = sampler.draw(rngs, state, response)
        records.append(sampler.record(state))
        drawn.append(values)
        predicted = sampler.predict(rng, records[-1], points)
        np.testing.assert_allclose(predicted, values, rtol=1e-7, atol=ROUNDING[kind])
    if kind == "softbart":
        proposed, accepted = state.own[0].counts.T
        assert np.all(accepted < 0.9 * proposed)
    if kind == "bnn":
        assert records[0]["weights"].shape == (3, sampler.findings()["weights"])
    if kind == "gp":
        again = [each.draw(generators(3), None, response)[1] for each in (sampler, restored)]
        np.testing.assert_array_equal(*again)
    # stored draws are brought to one length with zeros
    lengths = {len(value[0]) for record in records for value in [next(iter(record.values()))]}
    assert (len(lengths) > 1) == name.startswith(GROWING)
    stored = {label: together([record[label] for record in records]) for label in records[0]}
    one, other = (each.predict(np.random.default_rng(0), stored, points) for each in (sampler, restored))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, np.concatenate(drawn), rtol=1e-7, atol=ROUNDING[kind])


def together(records):
    longest = max(record.shape[1] for record in records)
    return np.concatenate(
        [np.pad(one, [(0, 0), (0, longest - one.shape[1])] + [(0, 0)] * (one.ndim - 2)) for one in records]
    )


@every_prior
def test_a_noise_scale_is_a_noise_of_that_size(name):
    """These priors take no hyperparameter from the noise: a scale of 4 and a variance of 4 are the same sampler."""
    rng = np.random.default_rng(0)
    x = rng.random((30, 2))
    residual = 3 * np.sin(6 * x[:, 0]) + rng.standard_normal(30)

    def run(noise_var, **scale):
        sampler = PRIORS[name].prepare(setting(x, x[:4], np.full(30, noise_var), residual))
        state, rngs = None, [np.random.default_rng(s) for s in range(2)]
        for _ in range(5):
            state, values = sampler.draw(rngs, state, np.tile(residual, (2, 1)), **scale)
        return values

    if name != "gp":
        # the Gaussian process takes another factor of the same covariance, which has a test of its own
        np.testing.assert_allclose(run(1.0, noise_scale=np.full(2, 4.0)), run(4.0), rtol=1e-8, atol=1e-10)
    assert np.abs(run(1.0) - run(4.0)).max() > 1e-3


ODD = {
    "constant": np.full((8, 1), 0.5),
    "replicates": np.repeat(np.linspace(0, 1, 4), 5)[:, None],
    "five points": np.random.default_rng(0).random((5, 1)),
    "one point": np.random.default_rng(0).random((1, 2)),
    "thirty inputs": np.random.default_rng(0).random((20, 30)),
    "integers": np.arange(20.0)[:, None] % 3,
    "one constant of three": np.column_stack([np.ones(20), np.linspace(1e9, 1e9 + 1, 20), np.arange(20) % 2]),
}
#: draws until something that explodes has done so
ODD_DRAWS = {"gp": 5, "bart": 20, "softbart": 100, "bmars": 200, "bnn": 5, "bnn, two layers": 5}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize(("name", "size"), [*itertools.product(ODD_DRAWS, (1e6, 1.0, 1e-9)), ("bmars", 1e9)])
def test_odd_inputs_work(name, case, size):
    rng, x = np.random.default_rng(9), ODD[case]
    residual = size * rng.standard_normal(len(x))
    network = oc.bias.BNN(hidden=5, leapfrogs=5, layers=2 if "two" in name else 1)
    prior = network if name.startswith("bnn") else PRIORS[name]
    sampler = prior.prepare(setting(x, np.vstack([x[:2] + 1, x[:2]]), residual=residual))
    state, twice = None, min(2, len(x))
    for _ in range(ODD_DRAWS[name]):
        state, values = sampler.draw([rng], state, residual[None])
        assert np.isfinite(values).all()
    # of the residual's own size at the data, where noise of sd 1 does not hide it
    assert np.abs(values[0, : len(x)]).max() < 10 * max(size, 1.0)
    rounding = 1e-9 * getattr(sampler, "offset", max(size, 1.0))
    np.testing.assert_allclose(values[:, :twice], values[:, -twice:], rtol=0, atol=rounding)


BAD = {
    "GP": [
        ({"nu": 1.0}, "0.5, 1.5, 2.5"),
        ({"sd": -1.0}, "sd=-1.0.*positive"),
        ({"sd": "large"}, "sd=large.*positive"),
        ({"lengthscale": 0.0}, "lengthscale=0.0.*positive"),
        ({"lengthscale": [0.1, np.nan]}, "lengthscale.*positive"),
    ],
    "BART": [
        ({"trees": 0}, "tree"),
        ({"cuts": 256}, "cuts"),
        ({"alpha": 1.0}, "alpha"),
        ({"grid": "log"}, "grid"),
        ({"sweeps": 0}, "sweeps|tree"),
        ({"k": 0.0}, "k"),
    ],
    "SoftBART": [
        ({"trees": 0}, "trees"),
        ({"sweeps": 0}, "sweeps"),
        ({"alpha": 1.0}, "alpha"),
        ({"beta": -1.0}, "beta"),
        ({"k": 0.0}, "k"),
        ({"bandwidth": 0.0}, "bandwidth"),
        ({"sparsity": float("nan")}, "sparsity"),
    ],
    "BMARS": [
        ({"moves": 0}, "moves"),
        ({"order": 0}, "order"),
        ({"degree": 0}, "degree"),
        ({"degree": 1.5}, "degree"),
        ({"most": 0}, "most"),
        ({"most": True}, "most"),
        ({"least": 0}, "least"),
    ],
    "BNN": [
        ({"hidden": 0}, "hidden"),
        ({"hidden": 2.5}, "hidden"),
        ({"layers": 3}, "layers"),
        ({"layers": True}, "layers"),
        ({"weight_sd": 0.0}, "weight_sd"),
        ({"weight_sd": float("nan")}, "weight_sd"),
        ({"weight_sd": "3"}, "weight_sd"),
        ({"leapfrogs": 0}, "leapfrogs"),
        ({"trajectories": -1}, "trajectories"),
    ],
}


@pytest.mark.parametrize(
    ("kind", "options", "message"), [(kind, *case) for kind, cases in BAD.items() for case in cases]
)
def test_bad_settings_are_refused(kind, options, message):
    with pytest.raises(InputError, match=message):
        getattr(oc.bias, kind)(**options)
