"""From a file of kinematics to data and a model: larger bins, the light as Gaussians, the orbits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import orthocal as oc
from orthocal.applications import read_text_table, whole_file
from orthocal.errors import InputError

from ..binning import coarse_bins, pixel_map
from ..dynamite import read_dynamite
from ..kinematics import Kinematics, PixelMap
from ..light import AXIS_RATIOS, MultiGaussian, fit_light
from ..mass import PARAMETERS
from ..model import OrbitModel
from ..orbits import OrbitSettings
from ..readers import existing, read_atlas3d
from ..sky import Bins
from .data import (
    INPUTS,
    GalaxyData,
    check_inside,
    checked_box,
    complete_bins,
    mode_note,
    npz_arrays,
    ranges_of,
    read_run_file,
    runs_note,
)

if TYPE_CHECKING:
    from ..galaxy_config import GalaxyFile
    from ..stages import Stages

PREPARED, KINEMATICS, LIGHT = "prepared.npz", "kinematics.csv", "light.csv"
#: flatter Gaussians would be thinner than this in the galaxy's frame
LEAST_RATIO = 0.05


def prepared_data(config: GalaxyFile, stages: Stages, say: Callable[[str], None]) -> GalaxyData:
    """The data of ``config``, from the folder where they are there already."""
    settings = _settings(config)
    if stages.there(PREPARED, settings):
        say(f"kinematics: there, {stages.folder / PREPARED}")
    else:
        kinematics, light, notes = _prepared(config)
        _write(stages.folder / PREPARED, kinematics, light, notes)
    kinematics, light, notes = _read(stages.folder / PREPARED)
    pixels = kinematics.pixel_map
    assert pixels is not None
    box = checked_box(config.box)
    if config.theta0 is not None:
        check_inside(config.theta0, box, "--theta0")
    bins = Bins(
        pixels.label,
        np.array([pixels.x[0], pixels.y[0]]),
        _size(pixels),
        config.needed("psf"),
        kinematics.points,
    )
    title = config.title or f"Kinematics of {Path(config.needed('kinematics')).name}"
    data = GalaxyData(title, kinematics, bins.x, bins.areas, box, notes=tuple(notes))
    return _with_model(data, light, bins, config) if config.table is None else _with_runs(data, config)


def _with_model(data: GalaxyData, light: MultiGaussian, bins: Bins, config: GalaxyFile) -> GalaxyData:
    pixels = data.kinematics.pixel_map
    assert pixels is not None
    model = OrbitModel(
        light,
        bins,
        data.kinematics.values,
        data.kinematics.errors,
        distance=config.needed("distance"),
        inclination=config.needed("inclination"),
        # the bins' coordinates lie along the galaxy's axes, and the pixels are turned
        position_angle=-pixels.angle,
        theta_0=config.theta0,
        mode=config.mode,
        settings=OrbitSettings.preset(config.orbits),
        halo_radius=config.halo_radius,
        half_light_radius=config.half_light_radius,
        ridge=config.ridge,
    )
    return replace(data, model=model, notes=(*data.notes, mode_note(model)))


def _with_runs(data: GalaxyData, config: GalaxyFile) -> GalaxyData:
    """Runs that exist already, at the same bins, instead of the model."""
    runs, _, _ = read_run_file(config.needed("table"))
    x = np.asarray(runs.x)
    if x.shape != data.x.shape or not np.allclose(x, data.x, atol=1e-6):
        raise InputError(
            f"{config.table}: these runs are not at the {len(data.x)} bins of the kinematics (scaled to [-1, 1]²): "
            "give the same --kinematics, --bins and --seed that they were made with"
        )
    table = oc.RunTable(runs.theta, np.asarray(runs.output), data.x, PARAMETERS, INPUTS, data.kinematics.names)
    box = checked_box({**ranges_of(runs), **config.priors})
    return replace(data, runs=table, box=box, notes=(*data.notes, runs_note(runs, config.needed("table"))))


def _settings(config: GalaxyFile) -> dict[str, Any]:
    file = existing(config.needed("kinematics"), "--kinematics")
    names = (
        *("format", "distance", "inclination", "position_angle", "luminosity", "half_light_radius"),
        *("psf", "bins", "seed"),
    )
    beside = [file.with_name(name) for name in ("bins.dat", "aperture.dat")] if config.format == "dynamite" else []
    return {
        "file": _digest(file, *(one for one in beside if one.is_file())),
        "light": None if config.light is None else _digest(existing(config.light, "--light")),
        **{name: getattr(config, name) for name in names},
    }


def _digest(*files: Path) -> str:
    total = hashlib.sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:12]


def _prepared(config: GalaxyFile) -> tuple[Kinematics, MultiGaussian, list[str]]:
    path = config.needed("kinematics")
    fine = (read_atlas3d if config.format == "atlas3d" else read_dynamite)(path)
    velocity = fine.systemic_velocity()
    fine = fine.shifted(velocity).rotated(config.needed("position_angle"))
    given = _given_light(config)
    if config.format == "dynamite":
        if given is None:
            raise InputError(
                "DYNAMITE's kinematics hold no flux to fit the light to: give --light, a CSV file with the columns "
                "surface_brightness [Lsun/pc^2], sd [arcsec] and axis_ratio, one row a Gaussian"
            )
        fine = replace(fine, flux=given.brightness(fine.x, fine.y, config.needed("psf")))
    coarse, label = coarse_bins(fine, config.bins, config.seed)
    pixels = pixel_map(fine, label) if coarse.pixel_map is None else coarse.pixel_map
    coarse = Kinematics(
        *(coarse.x, coarse.y, coarse.values, coarse.errors, coarse.flux, coarse.pixels), pixel_map=pixels
    )
    notes = [
        f"{fine.n} bins of {Path(path).name} joined to {coarse.n}; the systemic velocity, {velocity:.1f} km/s, is "
        "subtracted, and x runs along the major axis."
    ]
    whole, left_out = complete_bins(coarse)
    if left_out:
        notes.append(left_out[0].upper() + left_out[1:] + ".")
    light = _fitted_light(config, fine, _size(pixels)) if given is None else given
    notes.append(_light_note(config, light, fine, _size(pixels)))
    return whole, light, notes


def _given_light(config: GalaxyFile) -> MultiGaussian | None:
    if config.light is None:
        return None
    table = read_text_table(existing(config.light, "--light"))
    return MultiGaussian(*(table.numbers(name) for name in ("surface_brightness", "sd", "axis_ratio")))


def _light_note(config: GalaxyFile, light: MultiGaussian, fine: Kinematics, pixel: float) -> str:
    """What of the light no bin sees: M/L and the dark-matter fraction depend on it."""
    radius = config.half_light_radius or light.half_light_radius()
    seen = float((light.brightness(fine.x, fine.y) * fine.pixels).sum() * pixel**2)
    whole = float(2 * np.pi * (light.surface_brightness * light.sd**2 * light.axis_ratio).sum())
    said = (
        f"Half-light radius {radius:.1f} arcsec; {max(0.0, 1 - seen / whole):.0%} of the light of the Gaussians lies "
        "outside of the bins."
    )
    if config.light is None and config.half_light_radius is None:
        said += (
            " No bin shows how much there is, and M/L and the dark-matter fraction depend on it: better give "
            "--half-light-radius, or the Gaussians of a deep image (--light)."
        )
    return said


def _fitted_light(config: GalaxyFile, fine: Kinematics, pixel: float) -> MultiGaussian:
    inclination = np.radians(config.needed("inclination"))
    flattest = float(np.hypot(np.cos(inclination), LEAST_RATIO * np.sin(inclination)))
    ratios = [ratio for ratio in AXIS_RATIOS if ratio > flattest]
    if not ratios:
        raise InputError(f"inclination {config.inclination:g}: no oblate galaxy with a disc is seen so, give more")
    return fit_light(
        fine.x,
        fine.y,
        fine.flux,
        config.needed("luminosity"),
        config.needed("distance"),
        half_light_radius=config.half_light_radius,
        psf_sd=config.needed("psf"),
        pixel=pixel,
        axis_ratios=ratios,
    )


def _size(pixels: PixelMap) -> float:
    return float(pixels.x[1] - pixels.x[0])


def _write(path: Path, kinematics: Kinematics, light: MultiGaussian, notes: list[str]) -> None:
    pixels = kinematics.pixel_map
    assert pixels is not None
    gaussians = pd.DataFrame(
        {"surface_brightness": light.surface_brightness, "sd": light.sd, "axis_ratio": light.axis_ratio}
    )
    with whole_file(path.with_name(LIGHT)) as draft:
        gaussians.to_csv(draft, index=False)
    arrays: dict[str, Any] = {
        **{name: getattr(kinematics, name) for name in ("x", "y", "values", "errors", "flux", "pixels")},
        "grid_x": pixels.x,
        "grid_y": pixels.y,
        "label": pixels.label,
        "angle": np.array(pixels.angle),
        "gaussians": gaussians.to_numpy(),
        "notes": np.array(notes),
    }
    with whole_file(path) as draft, draft.open("wb") as file:
        np.savez(file, **arrays)


def _read(path: Path) -> tuple[Kinematics, MultiGaussian, list[str]]:
    needed = (
        "x",
        "y",
        "values",
        "errors",
        "flux",
        "pixels",
        "grid_x",
        "grid_y",
        "label",
        "angle",
        "gaussians",
        "notes",
    )
    arrays = npz_arrays(path, needed)
    pixels = PixelMap(arrays["grid_x"], arrays["grid_y"], arrays["label"].astype(np.intp), float(arrays["angle"]))
    kinematics = Kinematics(**{name: arrays[name] for name in needed[:6]}, pixel_map=pixels)
    return kinematics, MultiGaussian(*arrays["gaussians"].T), [str(note) for note in arrays["notes"]]
