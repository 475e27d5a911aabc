"""The posterior: schema, predictions, files."""

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import orthocal as oc
from helpers import largest_error
from orthocal.errors import FileError, InputError
from orthocal.examples import MODEL1, MODEL2

METHODS = {
    projection: oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5), projection) for projection in ("functional", "finite")
}


@pytest.fixture(scope="module", params=["functional", "finite"])
def posterior(request):
    x, y = MODEL2.simulate(np.random.default_rng(2), n=60)
    return oc.calibrate(MODEL2.problem(x, y), METHODS[request.param], draws=200, chains=3, seed=4)


def test_schema(posterior):
    data = posterior.data
    assert {"posterior", "sample_stats", "observed_data", "constant_data", "prior"} <= set(data.children)
    for name in ("theta1", "theta2"):
        assert data["posterior"][name].dims == ("chain", "draw")
        assert data["posterior"][name].shape == (3, 200)
    assert data["bias"]["bias"].dims == ("chain", "draw", "point", "outcome")
    assert {"orthogonality_error", "acceptance_rate", "lp"} <= set(data["sample_stats"].data_vars)
    assert data.attrs["seed"] == "4"
    assert json.loads(data.attrs["versions"])["numpy"] == np.__version__


def test_orthogonality_holds_in_every_draw(posterior):
    assert largest_error(posterior) < 1e-10


def test_stored_model_is_the_simulator_at_theta(posterior):
    x = posterior.data["constant_data"]["x"].values
    model = posterior.data["model"]["model"].values[1, 17, :, 0]
    np.testing.assert_allclose(model, MODEL2.simulator(x, posterior.theta[1, 17]), rtol=1e-12)


def test_log_density_is_that_of_theta_given_the_bias(posterior):
    residual = posterior.record.y - posterior.record.at_data("model") - posterior.record.at_data("bias")
    expected = -0.5 * (residual**2).sum(axis=(2, 3)) / 0.04
    np.testing.assert_allclose(posterior.data["sample_stats"]["lp"].values, expected, rtol=1e-8)


def test_summary_is_right(posterior):
    summary = posterior.summary(interval=0.9)
    draws = posterior.theta.reshape(-1, 2)
    assert list(summary.index) == ["theta1", "theta2"]
    np.testing.assert_allclose(summary["mean"], draws.mean(axis=0))
    np.testing.assert_allclose(summary["eti90_lb"], np.quantile(draws, 0.05, axis=0), rtol=1e-4)


def test_predictions_add_up_and_have_labels(posterior):
    predicted = posterior.predict(np.linspace(0, 1, 7), draws=50)
    for name in ("model", "bias", "mean", "observation"):
        assert predicted[name].dims == ("chain", "draw", "point", "outcome")
        assert predicted[name].shape == (3, 50, 7, 1)
    np.testing.assert_allclose(predicted["mean"], predicted["model"] + predicted["bias"])
    noise = (predicted["observation"] - predicted["mean"]).values
    # sd of 1050 draws of the noise: 0.2 to within 5 standard errors of 0.0044
    assert noise.std() == pytest.approx(0.2, abs=0.022)


def test_predictions_at_the_data_are_the_stored_draws(posterior):
    x = posterior.data["constant_data"]["x"].values
    stored = posterior.predict()
    predicted = posterior.predict(x)
    np.testing.assert_allclose(stored["bias"], posterior.data["bias"]["bias"])
    np.testing.assert_allclose(predicted["bias"], stored["bias"], atol=1e-5)
    np.testing.assert_allclose(predicted["model"], stored["model"], rtol=1e-12)


def test_the_predicted_bias_is_projected_too(posterior):
    """On the points of the constraint the predicted bias is orthogonal to the gradients."""
    constant = posterior.data["constant_data"].to_dataset()
    problem = MODEL2.problem(constant["x"].values, posterior.record.native_y)
    functional = posterior.data.attrs["projection"] == "functional"
    points, weights = (problem.rule.nodes, problem.rule.weights) if functional else (problem.data.x, problem.volumes)
    bias = posterior.predict(points, draws=20)["bias"].values[..., 0]
    gradient = problem.simulator.gradient(points, constant["theta_tilde"].values)[:, 0]
    inner = np.einsum("csm,m,mp->csp", bias, weights, gradient)
    size = np.sqrt(np.einsum("m,mp,mp->p", weights, gradient, gradient)) * np.abs(bias).max()
    # predictions repeat known values to rounding of the covariance, not to machine precision
    assert np.max(np.abs(inner) / size) < 1e-6


def test_prediction_is_repeatable_and_answers_to_the_seed(posterior):
    x = [0.11, 0.52]
    first, again, other = (posterior.predict(x, seed=seed)["observation"] for seed in (None, None, 3))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("x_new", [[[0.1, 0.2]], [np.nan], "here"])
def test_bad_new_points_are_refused(posterior, x_new):
    with pytest.raises(InputError, match="x_new"):
        posterior.predict(x_new)


def test_a_file_holds_everything_but_the_simulator(posterior, tmp_path):
    path = posterior.save(tmp_path / "fit.nc")
    loaded = oc.load(path)
    np.testing.assert_array_equal(loaded.theta, posterior.theta)
    assert loaded.summary().equals(posterior.summary())
    assert str(loaded.check()) == str(posterior.check())
    with pytest.raises(InputError, match="holds no simulator"):
        loaded.predict([0.5])
    again = oc.load(path, simulator=oc.Simulator(MODEL2.simulator, MODEL2.gradient))
    np.testing.assert_array_equal(
        again.predict([0.3, 0.7])["observation"], posterior.predict([0.3, 0.7])["observation"]
    )
    assert [file.name for file in tmp_path.iterdir()] == ["fit.nc"]


def test_a_truncated_file_is_one_clear_error(model1_posterior, tmp_path):
    path = model1_posterior.save(tmp_path / "fit.nc")
    content = path.read_bytes()
    for share in (0.0, 0.1, 0.5, 0.99):
        path.write_bytes(content[: int(share * len(content))])
        with pytest.raises(FileError, match=r"fit\.nc"):
            oc.load(path)


@pytest.mark.slow
def test_flipped_bytes_are_noticed_or_harmless(model1_posterior, tmp_path):
    """Wherever a byte is changed, loading gives the same posterior or a FileError, never something else."""
    path = model1_posterior.save(tmp_path / "fit.nc")
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(len(content), size=30):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        path.write_bytes(changed)
        try:
            loaded = oc.load(path)
        except FileError:
            refused += 1
        else:
            np.testing.assert_array_equal(loaded.theta, model1_posterior.theta)
    assert refused > 15


def test_a_foreign_file_is_one_clear_error(tmp_path):
    text = tmp_path / "notes.nc"
    text.write_text("not a result")
    foreign = tmp_path / "foreign.nc"
    xr.Dataset({"a": ("b", [1.0])}).to_netcdf(foreign, engine="h5netcdf")
    pickled = tmp_path / "pickle.nc"
    pickled.write_bytes(b"\x80\x04cos\nsystem\n(S'false'\ntR.")
    for path, message in ((text, "not a netCDF"), (pickled, "not a netCDF"), (foreign, "not written by orthocal")):
        with pytest.raises(FileError, match=message):
            oc.load(path)
    with pytest.raises(FileError, match="no file"):
        oc.load(tmp_path / "absent.nc")


@pytest.mark.parametrize("change", ["value", "attribute", "group"])
def test_a_tampered_file_is_one_clear_error(model1_posterior, tmp_path, change):
    import h5py

    path = model1_posterior.save(tmp_path / "fit.nc")
    with h5py.File(path, "a") as file:
        if change == "value":
            file["posterior/theta"][0, 0] += 1e-9
        elif change == "attribute":
            file.attrs["notes"] = "{}"
        else:
            del file["sample_stats"]
    with pytest.raises(FileError, match="changed or damaged"):
        oc.load(path)


def test_a_failed_save_leaves_nothing_behind(model1_posterior, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(xr.DataTree, "to_netcdf", fail)
    with pytest.raises(OSError, match="disk full"):
        model1_posterior.save(tmp_path / "fit.nc")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="does not exist"):
        model1_posterior.save(tmp_path / "nowhere" / "fit.nc")


def test_odd_names_survive(tmp_path):
    x, y = MODEL1.simulate(np.random.default_rng(3), n=30)
    name, outcome = "</script><b>'x'\"", "y $ < & '"
    problem = oc.Problem(
        x, y, MODEL1.simulator, {name: stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.04, outcome_names=outcome
    )
    posterior = oc.calibrate(problem, METHODS["functional"], draws=20, warmup=0, seed=1)
    loaded = oc.load(posterior.save(tmp_path / "fit.nc"))
    assert loaded.parameter_names == (name,)
    assert loaded.outcome_names == (outcome,)
    assert list(loaded.summary().index) == [name]


def test_one_chain_and_few_draws_work():
    x, y = MODEL1.simulate(np.random.default_rng(3), n=30)
    posterior = oc.calibrate(MODEL1.problem(x, y), METHODS["functional"], draws=4, chains=1, warmup=0, seed=1)
    assert not posterior.check().ok
    assert posterior.theta.shape == (1, 4, 1)


def burn(x, theta):
    """A little work."""
    return theta[0] * x + 0 * np.sin(np.arange(5_000.0)).sum()


# starting a process may take seconds on a busy machine, and then a slow simulator is pointed out
@pytest.mark.filterwarnings("ignore:.*calls of the simulator")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_times_know_the_stages_and_the_cpu_of_other_processes(tmp_path, jobs, monkeypatch):
    # so short a run would not pay for starting processes
    for name in ("WORTH", "WORTH_A_START", "WORTH_A_COPY"):
        monkeypatch.setattr(f"orthocal.execution.work.calls.{name}", 0.0)
    x = np.linspace(0, 1, 20)
    y = 2 * x + 0.1 * np.random.default_rng(0).standard_normal(20)
    simulator = oc.Simulator(burn, jobs=jobs)
    problem = oc.Problem(x, y, simulator, {"a": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.01, starts=2)
    posterior = oc.calibrate(problem, "none", draws=20, warmup=0, chains=2, seed=1, progress=False)
    times = posterior.times()
    assert list(times.index) == ["best fit", "sampling", "checks", "total"]
    assert list(times.columns) == ["wall", "cpu", "simulator", "calls"]
    np.testing.assert_allclose(times.iloc[:-1].sum(), times.loc["total"], rtol=1e-9, atol=1e-9)
    assert (times.loc["best fit"] > 0).all()
    assert times.loc["total", "calls"] == posterior.record.run_facts.simulator_calls
    assert times.loc["total", "wall"] == posterior.record.run_facts.seconds
    # the calls of the chains are shared out among processes, and all that they do is CPU time
    assert problem.simulator.worker_cpu > 0 if jobs == 2 else problem.simulator.worker_cpu == 0
    assert times.loc["total", "cpu"] > problem.simulator.worker_cpu
    again = oc.load(posterior.save(tmp_path / "fit.nc")).times()
    pd.testing.assert_frame_equal(again, times)
    report = posterior.report(tmp_path / "fit.html").read_text()
    assert "time: best fit" in report
    assert "s of CPU" in report
    # what was found before takes nothing
    second = oc.calibrate(problem, "none", draws=20, warmup=0, chains=2, seed=1, progress=False).times()
    assert (second.loc["best fit"] == 0).all()
