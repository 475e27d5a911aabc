"""The fit of a galaxy: its stages, what it starts from, its tables and figures."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.comparison.outcomes import TOGETHER
from orthocal.errors import FileError, IdentifiabilityError, InputError
from orthocal_galaxy import PARAMETERS
from orthocal_galaxy.fit.data import Truth, check_inside, checked_box, complete_bins, mock_data, table_data
from orthocal_galaxy.fit.figures import reflected_density
from orthocal_galaxy.fit.fit import fit_galaxy, relative_squared_error
from orthocal_galaxy.fit.page import write_all
from orthocal_galaxy.fit.tables import as_markdown, fit_frame, grids, remarks
from orthocal_galaxy.galaxy_config import Sampling
from orthocal_galaxy.kinematics import Kinematics, PixelMap
from orthocal_galaxy.stacked_emulator import StackedEmulator
from orthocal_galaxy.stages import Stages

SHARED = Path(__file__).parents[5] / "shared" / "galaxy"
BOX = {"log10_mbh": (7.0, 9.0), "ml": (2.0, 4.0), "f_dm": (0.0, 0.4)}
QUICK = Sampling(methods=["pgp"], draws=60, chains=2, warmup=20, held_out=4)
THETA = np.array([8.2, 2.9, 0.15])


def easy_model(x, theta):
    """Four maps that are linear in theta, with gradients that differ."""
    u = (np.asarray(theta) - [8.0, 3.0, 0.2]) / [1.0, 1.0, 0.2]
    r = np.hypot(*x.T)
    v = 100 * x[:, 0] * (1 + 0.2 * u[1] + 0.2 * u[2] * r) + 20 * u[0] * x[:, 1]
    sigma = 180 * np.exp(-r) * (1 + 0.3 * u[0]) + 60 + 20 * u[1] * r + 20 * u[2] * x[:, 1] ** 2
    h3 = -x[:, 0] / 15 + 0.05 * (u[0] * x[:, 0] + u[1] * x[:, 1] + u[2] * x[:, 0] ** 3)
    h4 = 0.05 * (u[0] * np.exp(-r) + u[1] * x[:, 0] ** 2 + u[2] * r)
    return np.column_stack([v, sigma, h3, h4])


@pytest.fixture(scope="module")
def run_file(tmp_path_factory):
    """A table of 16 runs in 24 bins, with field data at THETA."""
    rng = np.random.default_rng(5)
    x = rng.uniform(-1, 1, (24, 2))
    theta = oc.design({name: stats.uniform(low, high - low) for name, (low, high) in BOX.items()}, 16).to_numpy()
    output = np.stack([easy_model(x, one) for one in theta])
    errors = np.tile([2.0, 2.0, 0.01, 0.01], (24, 1))
    y = easy_model(x, THETA) + errors * rng.standard_normal((24, 4))
    path = tmp_path_factory.mktemp("runs") / "runs.npz"
    arrays = {"theta": theta, "output": output, "x": x, "y": y, "y_err": errors}
    np.savez(path, **arrays, theta_names=["a", "b", "c"], output_names=["v", "sigma", "h3", "h4"])
    return path


@pytest.fixture(scope="module")
def fitted(run_file, tmp_path_factory):
    folder, said = tmp_path_factory.mktemp("fit"), []
    data = table_data(run_file, ranges=BOX)
    fit = fit_galaxy(data, QUICK, Stages(folder), said.append)
    write_all(fit, folder)
    return fit, folder, said


def test_stages_keep_refuse_and_redo(tmp_path):
    stages = Stages(tmp_path / "new")
    assert not stages.there("part/a.json", {"bins": 3})
    stages.write_json("part/a.json", [1, 2])
    again = Stages(tmp_path / "new")
    assert again.there("part/a.json", {"bins": 3})
    assert again.read_json("part/a.json") == [1, 2]
    with pytest.raises(InputError, match=r"other settings \(bins 3, now 4\): give another --out, or --redo"):
        again.there("part/a.json", {"bins": 4})
    # what was refused stays as it was
    assert Stages(tmp_path / "new").there("part/a.json", {"bins": 3})
    (tmp_path / "new/part/a.json-wal").touch()
    assert not Stages(tmp_path / "new", redo=True).there("part/a.json", {"bins": 4})
    assert not list((tmp_path / "new/part").iterdir())
    # a stage that was ended before its file was there may have other settings
    assert not Stages(tmp_path / "new").there("part/a.json", {"bins": 5})


def test_stages_of_a_damaged_folder(tmp_path):
    (tmp_path / "settings.json").write_text("{")
    with pytest.raises(FileError, match="damaged"):
        Stages(tmp_path)
    (tmp_path / "settings.json").unlink()
    (tmp_path / "a.json").write_text("1")
    with pytest.raises(InputError, match="nothing is known of them"):
        Stages(tmp_path).there("a.json", {})
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        Stages(tmp_path / "file" / "below")


def test_all_stages_and_files(fitted):
    fit, folder, _ = fitted
    assert set(fit.posteriors) == {(one, "pgp") for one in ("v", "sigma", "h3", "h4", TOGETHER)}
    assert not fit.failures
    for name in ("kinematics.csv", "emulators.csv", "joint.csv", "univariate.csv", "held-out.csv", "report.md"):
        assert (folder / name).stat().st_size > 50, name
    for name in ("fits/v-pgp.nc", "fits/all-together-pgp.nc", "held-out/pgp.json", "maps-pgp.png", "posteriors.png"):
        assert (folder / name).is_file(), name
    assert not list(folder.glob("**/.writing-*"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "src=" not in page
    for title in ("All outcomes together", "Each outcome alone", "Held-out bins", "Maps, pgp", "Emulators"):
        assert f">{title}</h2>" in page


def test_linear_model_is_found_again(fitted):
    """The truth is a linear model without bias: all six joint z-scores are within 4, false alarms 4e-4."""
    fit, _, _ = fitted
    table = fit_frame(fit, together=True).set_index("parameter").loc[list(PARAMETERS)]
    z = (table["mean"] - THETA) / table["sd"]
    assert (z.abs() < 4).all(), z
    alone = fit_frame(fit, together=False).groupby("parameter")["sd"].min().loc[list(PARAMETERS)]
    # all together know at least as much as the best of them, but for the errors of a few draws
    assert (table["sd"] < 1.3 * alone).all()
    assert (fit.held_out["with_bias"] < [0.05, 0.1, 0.7, 1.0]).all()


def test_same_command_does_nothing_anew(fitted, run_file):
    fit, folder, _ = fitted
    before = {path: path.stat().st_mtime_ns for path in folder.glob("*/*")}
    said = []
    again = fit_galaxy(table_data(run_file, ranges=BOX), QUICK, Stages(folder), said.append)
    assert said == []
    assert {path: path.stat().st_mtime_ns for path in folder.glob("*/*")} == before
    for key, posterior in fit.posteriors.items():
        assert np.array_equal(posterior.theta, again.posteriors[key].theta)
    assert as_markdown(next(grids(again))) == as_markdown(next(grids(fit)))
    more = Sampling(**{**QUICK.model_dump(), "draws": 70})
    with pytest.raises(InputError, match=r"draws 60, now 70"):
        fit_galaxy(table_data(run_file, ranges=BOX), more, Stages(folder))


def test_goes_on_after_a_stage_was_lost(fitted, run_file):
    fit, folder, _ = fitted
    (folder / "fits/h3-pgp.nc").unlink()
    said = []
    again = fit_galaxy(table_data(run_file, ranges=BOX), QUICK, Stages(folder), said.append)
    assert [one for one in said if one.startswith("  fit of")] == [one for one in said if "fit of h3 by pgp" in one]
    assert np.array_equal(again.posteriors["h3", "pgp"].theta, fit.posteriors["h3", "pgp"].theta)


def test_a_fit_that_fails_is_said_and_the_others_go_on(fitted, run_file, tmp_path, monkeypatch):
    _, folder, _ = fitted
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "fits/h3-pgp.nc").unlink()

    def refuse(*_, **__):
        raise IdentifiabilityError("the data cannot determine it")

    monkeypatch.setattr("orthocal.calibrate", refuse)
    said = []
    fit = fit_galaxy(table_data(run_file, ranges=BOX), QUICK, Stages(copy), said.append)
    assert fit.failures == {("h3", "pgp"): "the data cannot determine it"}
    assert "  h3, pgp failed: the data cannot determine it" in said
    assert len(fit.posteriors) == 4
    assert not (copy / "fits/h3-pgp.nc").exists()


class Elsewhere:
    """A posterior with another M/L."""

    def __init__(self, posterior):
        self.theta = posterior.theta + np.array([0, 1.5, 0])
        self.summary = posterior.summary


def test_remarks_and_marks_of_a_mock(fitted):
    fit, _, _ = fitted
    stars = dict.fromkeys((*fit.data.kinematics.names, TOGETHER), THETA)
    known = replace(fit, data=replace(fit.data, truth=Truth(THETA, fit.data.kinematics.values)), stars=stars)
    text = "\n".join(remarks(known))
    assert "theta_star lies inside for" in text
    assert "relative to that of the best single outcome" in text
    assert "does not meet" not in text
    # an outcome that wants another value is named
    moved = {**known.posteriors, ("h4", "pgp"): Elsewhere(known.posteriors["h4", "pgp"])}
    assert "ml by pgp: the interval of h4 alone does not meet" in "\n".join(remarks(replace(known, posteriors=moved)))
    joint, alone, *_ = grids(known)
    assert [row[0] for row in joint.rows] == ["pgp", "theta_star", "theta_true"]
    assert [row[:2] for row in alone.rows][:2] == [["v", "pgp"], ["v", "theta_star"]]
    assert all(len(row) == len(joint.header) for row in joint.rows)


def test_stacked_emulators(fitted):
    """Its gradient is that of differences, and its outcomes those of its parts."""
    fit, _, _ = fitted
    runs = fit.runs
    parts = [
        oc.emulate(oc.RunTable(runs.theta, runs.output[:, :, k], runs.x, PARAMETERS, ["x", "y"], [name]), "gp")
        for k, name in enumerate(runs.outcome_names[:2])
    ]
    both = StackedEmulator(parts, runs)
    assert both(runs.x, THETA).shape == (24, 2)
    assert np.array_equal(both(runs.x, THETA)[:, 1:], parts[1](runs.x, THETA))
    step = 1e-5 * np.eye(3)
    differences = [(both(runs.x, THETA + one) - both(runs.x, THETA - one)) / 2e-5 for one in step]
    np.testing.assert_allclose(both.gradient(runs.x, THETA), np.stack(differences, axis=-1), rtol=1e-3, atol=1e-4)
    assert both.variance(runs.x, THETA).shape == (24, 2)


def test_relative_squared_error():
    y = np.array([1.0, 2.0, np.nan, 4.0])
    assert relative_squared_error(y, y, np.array([0.0, 2.0])) == 0
    assert relative_squared_error(y, np.full(4, 1.0), np.array([0.0, 2.0])) == pytest.approx(1)
    assert relative_squared_error(y, np.full(4, 3.0), np.array([0.0, 2.0])) == pytest.approx(6 / 10)


def test_density_ends_at_the_prior():
    values = np.random.default_rng(0).random(4000) ** 2
    grid = np.linspace(0, 1, 400)
    density = reflected_density(values, grid)
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=0.01)
    # the density 1 / (2 sqrt(u)) is highest at the bound
    assert np.argmax(density) == 0
    assert reflected_density(np.full(9, 0.5), grid).sum() == 1


def test_bins_that_lack_a_moment_are_left_out():
    values = np.ones((6, 4))
    values[2, 3] = np.nan
    label = np.array([[0, 1, 2], [3, 4, 5]])
    given = Kinematics(*np.arange(12.0).reshape(2, 6), values, values, np.ones(6), np.ones(6))
    given = replace(given, pixel_map=PixelMap(np.arange(2.0), np.arange(3.0), label))
    whole, said = complete_bins(given)
    assert "1 of 6 bins lack a moment" in said
    assert whole.n == 5
    assert whole.pixel_map.label.tolist() == [[0, 1, -1], [2, 3, 4]]
    assert whole.x.tolist() == [0, 1, 3, 4, 5]
    assert complete_bins(whole) == (whole, None)
    values[:4] = np.nan
    with pytest.raises(InputError, match="take larger bins"):
        complete_bins(replace(given, values=values))


def test_missing_cells_of_a_table_are_allowed(run_file, tmp_path):
    arrays = dict(np.load(run_file))
    arrays["y"][3, 2] = np.nan
    np.savez(tmp_path / "holes.npz", **arrays)
    data = table_data(tmp_path / "holes.npz")
    assert np.isnan(data.problem(easy_model).data.y).sum() == 1
    # without ranges the priors are those of the runs
    assert data.box["ml"] == (arrays["theta"][:, 1].min(), arrays["theta"][:, 1].max())


def test_pixels_of_a_table(run_file, tmp_path):
    label = np.arange(24).reshape(6, 4)
    label[0, 0] = 1
    label[5, 3] = 0
    label = np.where(label == 23, 0, label)
    bins = {"binmap": label, "gx": 0.5 * np.arange(6), "gy": 0.5 * np.arange(4), "xb": np.ones(24), "yb": np.ones(24)}
    np.savez(tmp_path / "bins.npz", **bins)
    with pytest.raises(InputError, match="23 bins, but the table of runs has 24"):
        table_data(run_file, tmp_path / "bins.npz")
    bins["binmap"] = np.vstack([np.arange(24).reshape(6, 4), [[3, 3, -1, -1]]])
    bins["gx"] = 0.5 * np.arange(7)
    np.savez(tmp_path / "bins.npz", **bins, pa=30.0)
    data = table_data(run_file, tmp_path / "bins.npz")
    assert data.areas[3] == pytest.approx(3 * 0.25)
    assert data.kinematics.pixel_map.angle == -30
    # in the loss every bin counts the same
    assert data.problem(easy_model).domain.weights[3] == pytest.approx(1 / 24)


def test_mock_data(galaxy):
    data = mock_data(galaxy, 1)
    assert data.x.shape == (len(galaxy.bins), 2)
    assert np.array_equal(data.areas, galaxy.bins.areas)
    assert not np.array_equal(data.kinematics.values, galaxy.model.kinematics)
    assert np.array_equal(data.kinematics.values, mock_data(galaxy, 1).kinematics.values)
    assert data.digest != mock_data(galaxy, 2).digest
    assert data.kinematics.pixel_map.counts(len(galaxy.bins)).sum() == (galaxy.bins.bin_map >= 0).sum()
    with pytest.raises(InputError, match=r"the true theta has ml = 3, outside of its prior, 4 to 5"):
        replace(data, box={**data.box, "ml": (4.0, 5.0)})


def test_boxes():
    assert list(checked_box(dict(reversed(BOX.items())))) == list(PARAMETERS)
    for ranges, words in (
        ({"ml": (1, 2)}, "a range for each of"),
        ({**BOX, "ml": (2, 1)}, "give low < high"),
        ({**BOX, "f_dm": (0, 1.5)}, "below 1"),
    ):
        with pytest.raises(InputError, match=words):
            checked_box(ranges)
    check_inside(THETA, BOX, "theta")
    with pytest.raises(InputError, match="widen the prior"):
        check_inside([9.5, 3, 0.2], BOX, "theta")
    with pytest.raises(InputError, match="has 2 numbers"):
        check_inside([9.5, 3], BOX, "theta")


def test_tables_that_do_not_fit(run_file, tmp_path):
    (tmp_path / "no.npz").write_text("no")
    with pytest.raises(InputError, match="not a NumPy file of plain arrays"):
        table_data(tmp_path / "no.npz")
    arrays = dict(np.load(run_file))
    np.savez(tmp_path / "half.npz", theta=arrays["theta"])
    with pytest.raises(InputError, match="lacks output, x"):
        table_data(tmp_path / "half.npz")
    np.savez(tmp_path / "runs.npz", **{name: arrays[name] for name in ("theta", "output", "x")})
    with pytest.raises(InputError, match="no y and y_err: give --kinematics"):
        table_data(tmp_path / "runs.npz")
    np.savez(tmp_path / "short.npz", **{**arrays, "y": arrays["y"][:5]})
    with pytest.raises(InputError, match=r"shape \(5, 4\) for 24 bins: give \(24, 4\)"):
        table_data(tmp_path / "short.npz")
    np.savez(tmp_path / "two.npz", **{**arrays, "theta": arrays["theta"][:, :2], "theta_names": ["a", "b"]})
    with pytest.raises(InputError, match="2 parameters"):
        table_data(tmp_path / "two.npz")


def test_names_of_a_table_give_the_order(run_file, tmp_path):
    arrays = dict(np.load(run_file))
    plain = table_data(run_file)
    columns, outcomes = [2, 0, 1], [1, 0, 3, 2]
    shuffled = {name: arrays[name][..., outcomes] for name in ("output", "y", "y_err")}
    names = {"theta_names": [PARAMETERS[k] for k in columns], "output_names": [Kinematics.names[k] for k in outcomes]}
    np.savez(tmp_path / "runs.npz", x=arrays["x"], theta=arrays["theta"][:, columns], **shuffled, **names)
    data = table_data(tmp_path / "runs.npz")
    assert data.box == plain.box
    assert np.array_equal(data.runs.theta, plain.runs.theta)
    assert np.array_equal(data.runs.output, plain.runs.output)
    assert np.array_equal(data.kinematics.values, plain.kinematics.values)
    assert np.array_equal(data.kinematics.errors, plain.kinematics.errors)


def test_other_data_are_refused_before_anything_is_written(fitted, run_file, tmp_path):
    _, folder, _ = fitted
    copy = shutil.copytree(folder, tmp_path / "copy")
    data = table_data(run_file, ranges=BOX)
    other = replace(data, kinematics=replace(data.kinematics, values=data.kinematics.values + 1))
    before = (copy / "kinematics.csv").read_text()
    with pytest.raises(InputError, match="was made with other settings"):
        fit_galaxy(other, QUICK, Stages(copy))
    assert (copy / "kinematics.csv").read_text() == before
