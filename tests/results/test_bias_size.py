"""How large the bias is, against what is known of it."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.examples import MODEL1, TWO_OUTCOMES


def calibrated(example, method="gp", seed=0, **options):
    problem = example.problem(*example.simulate(np.random.default_rng(seed)), domain=oc.Box(0, 1, nodes=60))
    return oc.calibrate(problem, method, draws=200, seed=1, progress=False, **options)


def true_size(example):
    x = ((np.arange(20000) + 0.5) / 20000)[:, None]
    real = example.truth(x).reshape(len(x), -1)
    bias = real - example.simulator(x, np.array(example.theta_star)).reshape(len(x), -1)
    return np.sqrt(np.mean(bias**2, axis=0)), np.mean(bias**2, axis=0) / real.var(axis=0)


@pytest.mark.parametrize("method", ["gp", "pgp", "ogp"])
def test_the_size_of_model_1s_bias(method):
    """The true one lies in the 99.9 % interval; the joint projection knows it without the simulator."""
    table = calibrated(MODEL1, method).bias_size(0.999)
    (rms,), (share,) = true_size(MODEL1)
    row = table.loc["y"] if "y" in table.index else table.iloc[0]
    assert row["rms_lower"] < rms < row["rms_upper"]
    assert row["noise_sds"] == pytest.approx(row["rms"] / 0.2)
    assert row["share_lower"] < share < row["share_upper"]


def test_several_outcomes_have_a_row_each():
    """The second's bias is .006, far below the noise of .2: what is found is its uncertainty."""
    table = calibrated(TWO_OUTCOMES).bias_size(0.999)
    rms, _ = true_size(TWO_OUTCOMES)
    assert len(table) == 2
    first, second = (row for _, row in table.iterrows())
    assert first["rms_lower"] < rms[0] < first["rms_upper"]
    assert rms[1] < second["rms_upper"] < 0.2


def test_without_a_bias_there_is_none():
    assert (calibrated(MODEL1, "none").bias_size()["rms"] == 0).all()


def test_it_is_kept_in_the_file_and_asks_for_the_simulator_only_where_it_must(tmp_path):
    joint, projected = (calibrated(MODEL1, method) for method in ("gp", "pgp"))
    loaded = oc.load(joint.save(tmp_path / "joint.nc"))
    assert loaded.bias_size().equals(joint.bias_size())
    with pytest.raises(oc.OrthocalError, match="holds no simulator"):
        oc.load(projected.save(tmp_path / "projected.nc")).bias_size()


def test_it_is_what_the_predictions_say():
    posterior = calibrated(MODEL1)
    nodes, weights = (posterior.data["constant_data"][name].values for name in ("nodes", "node_weights"))
    bias = posterior.predict(nodes)["bias"].values[..., 0]
    expected = np.sqrt(np.einsum("m,csm->cs", weights, bias**2)).mean()
    assert posterior.bias_size()["rms"].iloc[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("interval", [0, 1, 1.5])
def test_an_interval_is_a_probability(interval):
    with pytest.raises(oc.OrthocalError, match="between 0 and 1"):
        calibrated(MODEL1, "none").bias_size(interval)
