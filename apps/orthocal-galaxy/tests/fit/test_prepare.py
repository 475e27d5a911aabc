"""From files of kinematics to the data and the model of a fit, and the settings of it."""

from __future__ import annotations

import numpy as np
import pytest
from astropy.table import Table

import orthocal as oc
from orthocal.errors import InputError
from orthocal_galaxy import PARAMETERS, MultiGaussian
from orthocal_galaxy.fit.prepare import prepared_data
from orthocal_galaxy.galaxy_config import settings_from
from orthocal_galaxy.stages import Stages


@pytest.fixture
def atlas3d_file(tmp_path):
    """A rotating disc seen at 60 degrees, major axis to the north-east, 15 x 15 spaxels."""
    axis = 0.8 * np.arange(-7, 8)
    x, y = (one.ravel() for one in np.meshgrid(axis, axis, indexing="ij"))
    major, minor = (x * -1 + y) / np.sqrt(2), (x + y) / np.sqrt(2)
    v = 120 * major / np.hypot(2, np.hypot(major, minor / 0.6))
    flux = np.exp(-np.hypot(major, minor / 0.6) / 2)
    columns = {"XS": x, "YS": y, "VPXF": 1500 + v, "SPXF": 150 + 0 * x, "H3PXF": -v / 1500, "H4PXF": 0 * x}
    columns |= dict.fromkeys(("EVPXF", "ESPXF"), 3.0 + 0 * x) | dict.fromkeys(("EH3PXF", "EH4PXF"), 0.02 + 0 * x)
    path = tmp_path / "disc.fits"
    Table({**columns, "FLUX": flux, "BINSIZE": np.ones(len(x), dtype=np.int32)}).write(path)
    return path


def disc_settings(path, **others):
    known = {"distance": 16.0, "inclination": 60.0, "position_angle": 45.0, "luminosity": 1e10, "psf": 0.5}
    known |= {"bins": 20, "orbits": "small", "theta0": "8,3,0.2", "kinematics": str(path)}
    return settings_from(None, {**known, **others})


def test_data_from_kinematics(atlas3d_file, tmp_path):
    said = []
    data = prepared_data(disc_settings(atlas3d_file), Stages(tmp_path / "a"), said.append)
    assert data.kinematics.n == 20
    assert data.areas.sum() == pytest.approx(225 * 0.64)
    # x runs along the major axis: what was north-east, and recedes, is at negative x
    assert np.corrcoef(data.kinematics.x, data.kinematics.values[:, 0])[0, 1] < -0.9
    assert abs(data.kinematics.values[:, 0].mean()) < 15
    assert "1500.0 km/s" in data.notes[0]
    assert "frozen" in data.notes[-1]
    assert said == []
    light = np.loadtxt(tmp_path / "a" / "light.csv", delimiter=",", skiprows=1)
    assert (light[:, 2] > 0.5).all()
    again = prepared_data(disc_settings(atlas3d_file), Stages(tmp_path / "a"), said.append)
    assert "kinematics: there" in said[0]
    assert again.digest == data.digest
    assert again.model.identity() == data.model.identity()
    with pytest.raises(InputError, match=r"psf 0\.5, now 0\.6"):
        prepared_data(disc_settings(atlas3d_file, psf=0.6), Stages(tmp_path / "a"), said.append)


def test_pixels_and_model_lie_in_the_same_frame(atlas3d_file, tmp_path):
    """The light that the model expects in each bin follows the flux that was observed there."""
    data = prepared_data(disc_settings(atlas3d_file), Stages(tmp_path / "b"), print)
    expected = data.model.orbits.aperture_light
    observed = data.kinematics.flux * data.kinematics.pixels
    assert np.abs(expected / expected.sum() / (observed / observed.sum()) - 1).max() < 0.1


def test_existing_runs_for_kinematics(atlas3d_file, tmp_path):
    x = prepared_data(disc_settings(atlas3d_file), Stages(tmp_path / "c"), print).x
    rng = np.random.default_rng(0)
    theta, output = rng.random((6, 3)), rng.random((6, 20, 4))
    oc.RunTable(theta, output, x).save(tmp_path / "runs.nc")
    # no model is made, so nothing need be said of its weights
    config = disc_settings(atlas3d_file, table=str(tmp_path / "runs.nc"), theta0=None)
    data = prepared_data(config, Stages(tmp_path / "c"), print)
    assert data.model is None
    assert data.runs.parameter_names == PARAMETERS
    assert "6 runs that existed already, from runs.nc" in data.notes[-1]
    # the priors are the ranges of the runs, where none are given
    assert data.box["ml"] == (theta[:, 1].min(), theta[:, 1].max())
    given = config.model_copy(update={"priors": {"ml": (0.1, 0.9)}})
    assert prepared_data(given, Stages(tmp_path / "c"), print).box["ml"] == (0.1, 0.9)
    oc.RunTable(theta, output, x + 0.1).save(tmp_path / "runs.nc")
    with pytest.raises(InputError, match="not at the 20 bins"):
        prepared_data(config, Stages(tmp_path / "c"), print)


def test_light_outside_of_the_bins(atlas3d_file, tmp_path):
    """A half-light radius of a catalogue sets the scale: half of the luminosity lies within it."""
    free = prepared_data(disc_settings(atlas3d_file), Stages(tmp_path / "e"), print)
    assert "better give --half-light-radius" in free.notes[1]
    fixed = prepared_data(disc_settings(atlas3d_file, half_light_radius=5.0), Stages(tmp_path / "f"), print)
    assert "Half-light radius 5.0 arcsec" in fixed.notes[1]
    assert "better" not in fixed.notes[1]
    plain, scaled = (
        MultiGaussian(*np.loadtxt(tmp_path / name / "light.csv", delimiter=",", skiprows=1).T) for name in "ef"
    )
    assert plain.luminosities(16.0).sum() == pytest.approx(1e10)
    assert plain.share_within(plain.half_light_radius()) == pytest.approx(0.5)
    assert scaled.luminosities(16.0).sum() * scaled.share_within(5.0) == pytest.approx(5e9)


@pytest.fixture
def dynamite_file(tmp_path):
    """The same kind of disc, bins of one pixel, major axis along x, in DYNAMITE's form, with a table of its light."""
    axis = 0.8 * np.arange(-7, 8)
    y, x = (one.ravel() for one in np.meshgrid(axis, axis, indexing="ij"))
    v = 120 * x / np.hypot(2, np.hypot(x, y / 0.6))
    columns = {"vbin_id": np.arange(225) + 1, "v": v, "sigma": 150 + 0 * x, "h3": -v / 1500, "h4": 0 * x}
    columns |= dict.fromkeys(("dv", "dsigma"), 3.0 + 0 * x) | dict.fromkeys(("dh3", "dh4"), 0.02 + 0 * x)
    path = tmp_path / "kins.ecsv"
    Table(columns).write(path, format="ascii.ecsv")
    (tmp_path / "aperture.dat").write_text("#version 2\n-6 -6\n12 12\n0\n15 15\n")
    numbers = " ".join(str(k + 1) for k in range(225))
    (tmp_path / "bins.dat").write_text(f"#version 1\n225\n{numbers}\n")
    (tmp_path / "light.csv").write_text("surface_brightness,sd,axis_ratio\n5000,1,0.7\n800,4,0.6\n")
    return path


def test_bins_of_dynamite_follow_the_light(dynamite_file, tmp_path):
    options = {"format": "dynamite", "light": str(tmp_path / "light.csv"), "position_angle": 90.0}
    settings = disc_settings(dynamite_file, **options)
    data = prepared_data(settings, Stages(tmp_path / "a"), print)
    assert np.corrcoef(data.kinematics.x, data.kinematics.values[:, 0])[0, 1] > 0.9
    # small bins where it is bright, as the bins of a table with fluxes have it
    radius = np.hypot(data.kinematics.x, data.kinematics.y)
    assert data.areas[radius < 2].mean() < 0.5 * data.areas[radius > 4].mean()
    # another grid of pixels is other data
    (tmp_path / "aperture.dat").write_text("#version 2\n-7.5 -7.5\n15 15\n0\n15 15\n")
    with pytest.raises(InputError, match=r"prepared\.npz was made with other settings \(file "):
        prepared_data(settings, Stages(tmp_path / "a"), print)
    with pytest.raises(InputError, match="DYNAMITE's kinematics hold no flux"):
        prepared_data(disc_settings(dynamite_file, **{**options, "light": None}), Stages(tmp_path / "b"), print)


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"theta0": "8,3,0.7"}, "--theta0 has f_dm = 0.7, outside of its prior, 0 to 0.5"),
        ({"theta0": "8,3"}, "--theta0 has 2 numbers"),
        ({"theta0": None}, "give theta_0"),
        ({"distance": None}, "--distance is missing"),
        ({"kinematics": "nowhere.fits"}, "there is no file nowhere.fits"),
        ({"priors": "ml=3:2"}, "give low < high"),
        ({"inclination": 20.0}, "no oblate galaxy"),
    ],
)
def test_kinematics_that_cannot_be_fitted(atlas3d_file, tmp_path, others, words):
    with pytest.raises(InputError, match=words):
        prepared_data(disc_settings(atlas3d_file, **others), Stages(tmp_path / "d"), print)


def test_settings(tmp_path):
    file = tmp_path / "galaxy.toml"
    file.write_text('kinematics = "a.fits"\nbins = 50\npsf = 0.5\ntheta0 = [8, 3, 0.2]\n[priors]\nml = [2, 4]\n')
    settings = settings_from(file, {"bins": 60, "psf": None})
    assert settings.bins == 60
    assert settings.psf == 0.5
    assert settings.kinematics == str(tmp_path / "a.fits")
    assert settings.box["ml"] == (2, 4)
    assert settings.box["f_dm"] == (0.0, 0.5)
    priors = settings_from(None, {"priors": "ml=3.6:5.7, f_dm=0.05:0.25"}).priors
    assert priors == {"ml": (3.6, 5.7), "f_dm": (0.05, 0.25)}
    assert settings_from(None, {}).compared == ["gp"]
    assert settings_from(None, {"compare": "none"}).compared == []
    assert len(settings_from(None, {"emulator": "auto"}).compared) == 5
    assert settings_from(None, {"emulator": "auto", "compare": "gp,bmars"}).compared == ["gp", "bmars"]
    for options, words in (
        ({"priors": "ml"}, "give name=low:high"),
        ({"priors": "mass=1:2"}, "there is no parameter mass"),
        ({"methods": "pgq"}, "there is no method 'pgq'"),
        ({"emulator": "gpp"}, "there is no emulator 'gpp': they are gp, "),
        ({"compare": "gp,auto"}, "there is no emulator 'auto'"),
        ({"draws": 1}, "draws: "),
        ({"inclination": 95.0}, "inclination: "),
    ):
        with pytest.raises(InputError, match=words):
            settings_from(None, options)
    file.write_text("sky = 1")
    with pytest.raises(InputError, match="unknown key 'sky'"):
        settings_from(file, {})
    file.write_text("a =")
    with pytest.raises(InputError, match="not valid TOML"):
        settings_from(file, {})
    with pytest.raises(InputError, match="cannot read"):
        settings_from(tmp_path / "none.toml", {})
