"""The orbit model as a simulator: what it gives, what it refuses, and how smooth it is in theta."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import orthocal as oc
from orthocal.errors import InputError
from orthocal_galaxy import Bins, MultiGaussian, OrbitModel, OrbitSettings, model as module

THETA = (8.6, 2.9, 0.22)
DATA = Path(__file__).parents[4] / "shared" / "galaxy" / "ngc4570.npz"


def model_of(galaxy, **changes):
    arguments = {
        "distance": 16.0,
        "inclination": 75.0,
        "theta_0": THETA,
        "settings": galaxy.model.settings,
        "halo_radius": 15.0,
        "ridge": galaxy.model.ridge,
        **changes,
    }
    values, errors = (arguments.pop(name, getattr(galaxy.model, name)) for name in ("kinematics", "errors"))
    return OrbitModel(arguments.pop("light", galaxy.light), galaxy.bins, values, errors, **arguments)


def test_shape_places_and_repetition(galaxy):
    model = galaxy.model
    output = model(model.x, THETA)
    assert output.shape == (40, 4)
    assert np.isfinite(output).all()
    assert np.array_equal(output, model(model.bins.centres, THETA))
    assert np.array_equal(output[[7, 3]], model(model.x[[7, 3]], np.array(THETA)))


def test_the_model_agrees_with_what_its_weights_were_fitted_to(galaxy):
    """Within a few errors at theta_0, and much worse with half the mass."""
    model = model_of(galaxy, errors=galaxy.errors, ridge=module.RIDGE)
    scaled = (model(model.x, THETA) - model.kinematics) / model.errors
    assert np.sqrt((scaled**2).mean()) < 3
    far = (model(model.x, (8.6, 1.5, 0.22)) - model.kinematics) / model.errors
    assert (far**2).mean() > 4 * (scaled**2).mean()
    light = model.losvds(THETA).sum(axis=1)
    assert light == pytest.approx(model.orbits.aperture_light, rel=0.15)


def test_velocities_scale_with_the_root_of_the_mass(galaxy):
    """All masses times 1.21: the same orbits, 1.1 times as fast. An exact symmetry of the equations."""
    model = galaxy.model
    slow = model(model.x, (8.0, 2.0, 0.2))
    fast = model(model.x, (8.0 + np.log10(1.21), 2.42, 0.2))
    assert fast[:, :2] == pytest.approx(1.1 * slow[:, :2], rel=0.01, abs=0.5)
    assert fast[:, 2:] == pytest.approx(slow[:, 2:], abs=0.01)


def test_the_galaxy_is_point_symmetric(galaxy):
    """Mirrored bins have opposite velocities: here a bin map that is its own mirror image."""
    axis = np.arange(-6, 7) * 1.0
    label = np.arange(13 * 13).reshape(13, 13)
    centres = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    bins = Bins(label, np.array([-6.0, -6.0]), 1.0, 0.5, centres)
    values = np.tile([0.0, 180.0, 0.0, 0.0], (169, 1))
    values[:, 0] = 10 * centres[:, 0]
    model = OrbitModel(
        galaxy.light,
        bins,
        values,
        np.tile([5.0, 5, 0.03, 0.03], (169, 1)),
        distance=16.0,
        inclination=75.0,
        theta_0=THETA,
        settings=galaxy.model.settings,
    )
    output = model(model.x, THETA)
    assert output[::-1, 0] == pytest.approx(-output[:, 0], abs=1e-6)
    assert output[::-1, 1] == pytest.approx(output[:, 1], abs=1e-6)
    assert np.corrcoef(output[:, 0], values[:, 0])[0, 1] > 0.8


def test_frozen_and_refitted_weights_agree_at_theta_0_alone(galaxy):
    refit = model_of(galaxy, mode="refit")
    model = galaxy.model
    assert refit(model.x, THETA) == pytest.approx(model(model.x, THETA), rel=1e-3, abs=0.02)
    elsewhere = (8.6, 2.3, 0.22)
    misfit = [(((one(model.x, elsewhere) - model.kinematics) / model.errors) ** 2).mean() for one in (model, refit)]
    assert misfit[1] < 0.7 * misfit[0]
    with pytest.raises(InputError, match="no frozen weights"):
        _ = model_of(galaxy, mode="refit", theta_0=None).weights


@pytest.mark.slow
def test_smooth_in_theta(galaxy):
    """Third differences along lines: what no smooth function explains is well below the errors of 3 to 8 km/s."""
    model = galaxy.model
    for direction in ((0.02, 0, 0), (0, 0.02, 0), (0, 0, 0.002)):
        line = [model(model.x, np.array(THETA) + k * np.array(direction)) for k in range(5)]
        rough = np.sqrt((np.diff(line, 3, axis=0) ** 2).mean(axis=(0, 1)) / 20)
        assert (rough < [0.6, 0.6, 0.004, 0.004]).all()


def test_pickles_with_its_weights(galaxy):
    model = model_of(galaxy)
    assert model._weights is None
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy._weights, galaxy.model.weights)
    assert np.array_equal(copy(model.x, THETA), model(model.x, THETA))
    assert copy.identity() == model.identity()
    assert model_of(galaxy, ridge=7.0).identity() != model.identity()


def test_campaign(galaxy, tmp_path):
    model = galaxy.model
    design = np.array([[8.6, 2.9, 0.22], [8.0, 2.5, 0.1], [8.0, -1.0, 0.1]])
    with ThreadPoolExecutor(1) as executor, pytest.warns(oc.OrthocalWarning, match="1 of 3 runs failed.*M/L = -1"):
        runs = oc.campaign(model, design, model.x, executor=executor, store=tmp_path / "runs.db", retries=0)
    assert runs.output.shape == (3, 40, 4)
    assert runs.failed.tolist() == [False, False, True]
    assert np.array_equal(runs.output[0], model(model.x, THETA))


def test_failed_orbits_give_nan(galaxy, monkeypatch):
    def lost(*_):
        raise oc.errors.SimulatorError("an orbit could not be followed")

    monkeypatch.setattr(module.OrbitLibrary, "superpose", lost)
    assert np.isnan(galaxy.model(galaxy.x, THETA)).all()


def spoiled(array, value):
    copy = array.copy()
    copy[3, 1] = value
    return copy


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g: {"kinematics": spoiled(g.truth, np.nan)}, "kinematics has NaN or infinity in bin 3"),
        (lambda g: {"errors": spoiled(g.errors, 0.0)}, "errors must be above 0, and bin 3"),
        (lambda g: {"kinematics": spoiled(g.truth, -5.0)}, "sigma must be above 0, and bin 3"),
        (lambda g: {"errors": g.errors[:, :2]}, r"errors has shape \(40, 2\) for 40 bins"),
        (lambda g: {"inclination": 40.0}, "no oblate body seen at 40 degrees"),
        (lambda g: {"distance": 0.0}, "distance=0.0: give Mpc"),
        (lambda g: {"mode": "thawed"}, 'give "frozen" or "refit"'),
        (lambda g: {"theta_0": None}, "give theta_0"),
        (lambda g: {"theta_0": (8, 3, 1.2)}, "f_DM = 1.2"),
        (lambda g: {"half_light_radius": -1.0}, "half_light_radius"),
        (lambda g: {"settings": "huge"}, 'give "full", "small"'),
    ],
)
def test_mistakes_are_refused(galaxy, change, message):
    with pytest.raises(InputError, match=message):
        model_of(galaxy, **change(galaxy))


def test_places_that_are_no_bins(galaxy):
    with pytest.raises(InputError, match=r"are not bins of this model: give rows of model\.x"):
        galaxy.model(galaxy.x + 0.01, THETA)
    with pytest.raises(InputError, match="are not bins"):
        galaxy.model(galaxy.x[:, :1], THETA)
    with pytest.raises(InputError, match="M/L = -1"):
        galaxy.model(galaxy.x, (8.0, -1.0, 0.1))


@pytest.mark.slow
def test_noise_between_seeds(galaxy):
    """Full settings, weights fitted with each seed's orbits: rms over bins of the sd between three seeds."""
    outputs = []
    for seed in (1, 2, 3):
        model = model_of(galaxy, settings=replace(OrbitSettings.preset("full"), seed=seed))
        outputs.append(model(model.x, THETA))
    noise = np.sqrt(np.var(outputs, axis=0, ddof=1).mean(axis=0))
    assert (noise < [0.6, 0.6, 0.004, 0.004]).all()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.exists(), reason="the NGC 4570 table is not there")
def test_a_real_galaxy():
    """NGC 4570: the small model follows the maps within a few of their (small) errors."""
    data = np.load(DATA)
    bins = Bins(
        data["binmap"].astype(int),
        np.array([data["gx"][0], data["gy"][0]]),
        float(data["pix"]),
        float(data["psf"]),
        np.column_stack([data["xb"], data["yb"]]),
    )
    model = OrbitModel(
        MultiGaussian(*data["mge"].T),
        bins,
        data["kin"],
        data["ekin"],
        distance=17.1,
        inclination=88.0,
        position_angle=float(data["pa"]),
        theta_0=(8.3, 4.6, 0.15),
        settings="small",
        half_light_radius=17.9,
    )
    residual = model(model.x, model.theta_0) - data["kin"]
    assert (np.sqrt((residual**2).mean(axis=0)) < [8, 10, 0.05, 0.05]).all()
    assert np.corrcoef(model(model.x, model.theta_0)[:, 0], data["kin"][:, 0])[0, 1] > 0.99
