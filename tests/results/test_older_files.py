"""Files that version 0.1 wrote, with their fewer groups, are read as if today's version had written them."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import orthocal as oc
from orthocal.results.files import migrations

OLDER = Path(__file__).with_name("older")


def two(x, theta):
    return np.column_stack([theta[0] * x[:, 0] + theta[1], theta[1] * x[:, 0]])


def line(x, theta):
    return theta[0] * x[:, 0] + theta[1]


def unpacked(name, folder):
    path = folder / name
    path.write_bytes(gzip.decompress((OLDER / f"{name}.gz").read_bytes()))
    return path


@pytest.fixture
def fit(tmp_path):
    """Two outcomes, one with a missing cell; parameters a and b/c."""
    return oc.load(unpacked("posterior_0_1.nc", tmp_path), simulator=two)


def test_what_moved_has_its_group(fit):
    assert set(fit.data["posterior"].variables) == {"chain", "draw", "a", "b\N{DIVISION SLASH}c"}
    assert fit.theta.shape == (2, 4, 2)
    assert np.isnan(fit.record.native_y).sum() == 1
    assert np.isnan(fit.record.native_y[3, 0])
    assert fit.data["observed_data"]["v"].shape == (5,)
    model = two(fit.record.x, fit.theta[1, 2])
    np.testing.assert_allclose(fit.data["model"]["model"].values[1, 2], model, rtol=1e-12)
    assert fit.data["posterior_predictive"]["v"].shape == (2, 4, 5)
    assert fit.data["log_likelihood"]["y"].shape == (2, 4, 6)
    # what the file does not have
    assert not {"prior", "log_prior"} & set(fit.data.children)


def test_it_predicts_reports_and_is_saved_as_one_of_today(fit, tmp_path):
    predicted = fit.predict(fit.record.x, warn=False)
    np.testing.assert_allclose(predicted["bias"], fit.record.at_data("bias"), atol=1e-5)
    assert "Data and fit" in fit.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    again = oc.load(fit.save(tmp_path / "again.nc"), simulator=two)
    assert again.data.attrs["format"] != migrations.FORMAT
    np.testing.assert_array_equal(again.theta, fit.theta)
    np.testing.assert_array_equal(again.record.native_y, fit.record.native_y)
    assert str(again.check()) == str(fit.check())


@pytest.mark.slow
def test_experiments_have_todays_groups_too(tmp_path):
    fit = oc.load(unpacked("experiments_0_1.nc", tmp_path), simulator=line)
    assert fit.parameter_names == ("slope", "offset[rig A]", "offset[rig B]", "mu[offset]", "tau[offset]")
    own = fit["rig B"]
    assert set(own.data["posterior"].data_vars) == {"slope", "offset"}
    np.testing.assert_allclose(own.record.at_data("model")[0, 1, :, 0], line(own.record.x, own.theta[0, 1]), rtol=1e-12)
    assert fit.data["posterior_predictive"]["y[rig A]"].shape == (2, 4, 5)
    again = oc.load(fit.save(tmp_path / "again.nc"))
    np.testing.assert_array_equal(again.theta, fit.theta)
