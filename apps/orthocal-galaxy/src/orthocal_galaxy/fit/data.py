"""What a fit of a galaxy starts from: kinematics in bins, the model or its runs, and the ranges of the parameters."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

import orthocal as oc
from orthocal.applications import Array, BoolArray, as_floats
from orthocal.errors import InputError

from ..kinematics import Kinematics, PixelMap
from ..mass import PARAMETERS
from ..mock import MockGalaxy
from ..model import OrbitModel
from ..readers import existing
from ..stages import fingerprint, shortened

Ranges = Mapping[str, tuple[float, float]]
INPUTS = ("x", "y")
#: the name of the fit to all outcomes
TOGETHER = "all together"
#: what the parameters are called in figures and tables
LABELS = {"log10_mbh": "log10 M_BH [Msun]", "ml": "M/L [Msun/Lsun]", "f_dm": "dark-matter fraction"}


class Truth(NamedTuple):
    """What is known of a mock galaxy: theta (p,) and the maps without noise (n, 4)."""

    theta: Array
    maps: Array


@dataclass(frozen=True, eq=False)
class GalaxyData:
    """All that a fit needs.

    Attributes
    ----------
    title
        Of the report.
    kinematics
        v, sigma, h3, h4 and errors in n bins; NaN is a missing cell.
    x
        The bins as inputs of the simulator, (n, 2).
    areas
        Of the bins, (n,).
    box
        Parameter -> range of its uniform prior.
    model
        The simulator, or None where ``runs`` are given.
    runs
        Runs that exist already.
    truth
        Of a mock galaxy.
    notes
        What the reader of the report should know about the data.
    """

    title: str
    kinematics: Kinematics
    x: Array
    areas: Array
    box: dict[str, tuple[float, float]]
    model: OrbitModel | None = None
    runs: oc.RunTable | None = None
    truth: Truth | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.truth is not None:
            check_inside(self.truth.theta, self.box, "the true theta")

    @property
    def priors(self) -> dict[str, Any]:
        """Uniform over the box."""
        return {name: stats.uniform(low, high - low) for name, (low, high) in self.box.items()}

    @property
    def digest(self) -> str:
        """Changes with the data and the priors."""
        kinematics = self.kinematics
        return fingerprint(self.x, self.areas, kinematics.values, kinematics.errors, [*self.box.items()])

    def problem(
        self, simulator: Callable[[Array, Array], Array], k: int | None = None, emulator_error: bool = False
    ) -> oc.Problem:
        """The calibration problem of all outcomes, or of outcome ``k`` alone, for a simulator of just these."""
        kinematics = self.kinematics
        columns = slice(None) if k is None else slice(k, k + 1)
        return oc.Problem(
            self.x,
            kinematics.values[:, columns],
            simulator,
            self.priors,
            # every bin counts the same, as in the likelihood: bins are made for errors of about the same size. Where
            # both weigh the bins differently, a small bias leaves theta between their two best ones
            domain=oc.Points(self.x, np.ones(len(self.x))),
            y_err=kinematics.errors[:, columns],
            outcome_names=kinematics.names[columns],
            input_names=INPUTS,
            emulator_error=emulator_error,
        )

    def frame(self) -> pd.DataFrame:
        """The kinematics as a table, one row a bin."""
        kinematics = self.kinematics
        columns = {"x_arcsec": kinematics.x, "y_arcsec": kinematics.y, "area": self.areas}
        for k, name in enumerate(kinematics.names):
            columns |= {name: kinematics.values[:, k], f"{name}_err": kinematics.errors[:, k]}
        return pd.DataFrame(columns)


def mock_data(galaxy: MockGalaxy, seed: int) -> GalaxyData:
    """A data set of the mock galaxy."""
    bins = galaxy.bins
    values = galaxy.noisy(np.random.default_rng([seed, 2]))
    counts = bins.areas / bins.pixel**2
    x, y = bins.centres.T
    light = galaxy.light.brightness(x, y, bins.psf_sd)
    pixel_map = PixelMap(*bins.axes, bins.bin_map)
    kinematics = Kinematics(x, y, values, galaxy.errors, light, counts, pixel_map=pixel_map)
    notes = (
        f"A mock galaxy: its true theta is ({', '.join(f'{one:g}' for one in galaxy.theta_true)}). Its mass-to-light "
        "ratio falls outwards, which the model does not know, so the best theta is another.",
        mode_note(galaxy.model, own=False),
    )
    return GalaxyData(
        "The mock galaxy",
        kinematics,
        bins.x,
        bins.areas,
        dict(galaxy.prior_box),
        galaxy.model,
        truth=Truth(galaxy.theta_true, galaxy.truth),
        notes=notes,
    )


def mode_note(model: OrbitModel, own: bool = True) -> str:
    """How the weights of the orbits came about, to the data themselves or to others, and what follows from it."""
    fitted = "to the same kinematics" if own else "to another, deeper data set of the same galaxy"
    if model.mode == "frozen":
        at = ", ".join(f"{one:g}" for one in np.asarray(model.theta_0))
        return (
            f"The weights of the orbits are frozen: they were fitted {fitted} at theta = ({at}), in all bins. The "
            "simulator is a fixed function of theta, but held-out bins are not unknown to its weights."
        )
    said = f"The weights of the orbits were fitted anew {fitted} at every theta, and make up for much of a wrong one."
    if own:
        said += (
            " The simulator depends on the data, which the calibration does not know of. Its intervals and held-out "
            "errors are likely to be too small."
        )
    return said


def read_run_file(path: str | Path) -> tuple[oc.RunTable, Array | None, Array | None]:
    """An existing table of runs, with y and its errors where the file has them.

    ``.npz``: theta (s, p), output (s, n, q), x (n, d), and if there are y and y_err (n, q), theta_names, output_names.
    Other files are those of ``oc.RunTable.save``.
    """
    file = existing(path, "--table")
    if file.suffix.lower() != ".npz":
        return _in_order(oc.RunTable.load(file), None, None, path)
    arrays = npz_arrays(file, ("theta", "output", "x"))
    names = [
        [str(one) for one in np.atleast_1d(arrays[key])] if key in arrays else None
        for key in ("theta_names", "output_names")
    ]
    runs = oc.RunTable(arrays["theta"], arrays["output"], arrays["x"], names[0], None, names[1])
    field = [as_floats(arrays[key], key) if key in arrays else None for key in ("y", "y_err")]
    return _in_order(runs, field[0], field[1], path)


def _in_order(
    runs: oc.RunTable, y: Array | None, errors: Array | None, path: str | Path
) -> tuple[oc.RunTable, Array | None, Array | None]:
    """The same with parameters and outcomes in our order, where they bear our names."""
    if runs.ragged or runs.p != 3 or runs.d != 2 or runs.q != 4:
        raise InputError(
            f"{path}: {runs.p} parameters, {runs.d} inputs and {runs.q} outcomes: a table of a galaxy has theta "
            "(s, 3), x (n, 2), output (s, n, 4) and y and y_err (n, 4), every run at the same x"
        )
    columns, outcomes = (
        [given.index(name) for name in ours] if set(given) == set(ours) else list(range(len(ours)))
        for given, ours in ((runs.parameter_names, PARAMETERS), (runs.outcome_names, Kinematics.names))
    )
    n = len(np.asarray(runs.x))
    for array in (y, errors):
        if array is not None and array.shape != (n, 4):
            raise InputError(f"{path}: y or y_err has shape {array.shape} for {n} bins: give ({n}, 4)")
    ordered = oc.RunTable(
        runs.theta[:, columns], np.asarray(runs.output)[:, :, outcomes], runs.x, PARAMETERS, INPUTS, Kinematics.names
    )
    y, errors = (None if array is None else array[:, outcomes] for array in (y, errors))
    return ordered, y, errors


def ranges_of(runs: oc.RunTable) -> dict[str, tuple[float, float]]:
    """Parameter -> its range in the runs."""
    ends = zip(runs.theta.min(axis=0), runs.theta.max(axis=0), strict=True)
    return {name: (float(low), float(high)) for name, (low, high) in zip(PARAMETERS, ends, strict=True)}


def npz_arrays(path: Path, needed: Sequence[str]) -> dict[str, Any]:
    """The arrays of a NumPy file; nothing in the file is run."""
    try:
        # NumPy leaves a file open that it cannot read
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except Exception as error:  # whatever a damaged file makes the reader raise
        said = shortened(f"{type(error).__name__}: {error}")
        raise InputError(f"{path} is not a NumPy file of plain arrays ({said})") from None
    missing = [name for name in needed if name not in arrays]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}; there are: {shortened(', '.join(arrays)) or 'none'}")
    return arrays


def table_data(
    path: str | Path, bin_file: str | Path | None = None, ranges: Ranges | None = None, title: str | None = None
) -> GalaxyData:
    """Field data and runs of a ``.npz`` table.

    ``bin_file`` is a ``.npz`` with the pixels of the bins: binmap (nx, ny) with -1 for none, gx (nx,), gy (ny,), the
    centres xb, yb (n,) along major and minor axis, arcsec, and pa, the angle between the pixels' x and the major axis.
    Without it all bins weigh the same and are drawn as the cells nearest to their centres.
    """
    runs, y, errors = read_run_file(path)
    if y is None or errors is None:
        raise InputError(f"{path} has no y and y_err: give --kinematics, the field data in the bins of the runs")
    x = np.asarray(runs.x)
    n = len(x)
    areas: Array = np.ones(n)
    kinematics = Kinematics(x[:, 0], x[:, 1], y, errors, areas, areas)
    if bin_file is not None:
        kinematics, areas = _with_pixels(kinematics, Path(bin_file), n)
    box = checked_box({**ranges_of(runs), **(ranges or {})})
    notes = (runs_note(runs, path),)
    return GalaxyData(title or Path(path).stem, kinematics, x, areas, box, runs=runs, notes=notes)


def runs_note(runs: oc.RunTable, path: str | Path) -> str:
    """Where the runs come from."""
    return f"{runs.s} runs that existed already, from {Path(path).name}; how they were made is not known here."


def _with_pixels(kinematics: Kinematics, path: Path, n: int) -> tuple[Kinematics, Array]:
    arrays = npz_arrays(existing(path, "--bin-map"), ("binmap", "gx", "gy", "xb", "yb"))
    label = np.asarray(arrays["binmap"], dtype=np.intp)
    if label.max() != n - 1 or np.shape(arrays["xb"]) != (n,):
        raise InputError(
            f"{path} has {label.max() + 1} bins, but the table of runs has {n}: they do not belong together"
        )
    pixels = PixelMap(arrays["gx"], arrays["gy"], label, -float(arrays.get("pa", 0.0)))
    counts = pixels.counts(n).astype(float)
    if (counts == 0).any():
        raise InputError(f"{path}: bin {int(np.argmin(counts))} has no pixels")
    placed = replace(kinematics, x=arrays["xb"], y=arrays["yb"], pixels=counts, pixel_map=pixels)
    return placed, counts * float(arrays["gx"][1] - arrays["gx"][0]) ** 2


def checked_box(ranges: Ranges) -> dict[str, tuple[float, float]]:
    """The ranges in the order of the parameters, each with low < high."""
    if set(ranges) != set(PARAMETERS):
        raise InputError(f"priors are for {', '.join(ranges)}: give a range for each of {', '.join(PARAMETERS)}")
    box = {}
    for name in PARAMETERS:
        low, high = (float(end) for end in ranges[name])
        if not (np.isfinite([low, high]).all() and low < high):
            raise InputError(f"the prior of {name} is {low:g} to {high:g}: give low < high")
        box[name] = (low, high)
    if box["ml"][0] <= 0 or box["f_dm"][0] < 0 or box["f_dm"][1] >= 1:
        raise InputError("M/L must be above 0, and the dark-matter fraction at least 0 and below 1")
    return box


def check_inside(theta: ArrayLike, box: Ranges, what: str) -> None:
    """Refuse a theta outside of the box."""
    values = as_floats(theta, what)
    if values.shape != (len(box),):
        raise InputError(f"{what} has {values.size} numbers: give one for each of {', '.join(box)}")
    for value, (name, (low, high)) in zip(values, box.items(), strict=True):
        if not low <= value <= high:
            raise InputError(
                f"{what} has {name} = {value:g}, outside of its prior, {low:g} to {high:g}: move it, or widen the prior"
            )


def complete_bins(kinematics: Kinematics) -> tuple[Kinematics, str | None]:
    """The bins without missing cells, which is what the weights of the orbits need, and what was left out in words."""
    whole: BoolArray = np.asarray(kinematics.observed.all(axis=1))
    if whole.all():
        return kinematics, None
    if whole.sum() < 4:
        raise InputError(f"{int(whole.sum())} bins have all four moments: the fit needs more, take larger bins")
    number = np.cumsum(whole) - 1
    pixels = kinematics.pixel_map
    if pixels is not None:
        kept = (pixels.label >= 0) & whole[np.maximum(pixels.label, 0)]
        pixels = replace(pixels, label=np.where(kept, number[np.maximum(pixels.label, 0)], -1).astype(np.intp))
    parts = {name: getattr(kinematics, name)[whole] for name in ("x", "y", "values", "errors", "flux", "pixels")}
    lost = int((~whole).sum())
    said = f"{lost} of {kinematics.n} bins lack a moment and are left out: the weights of the orbits need all four"
    return replace(kinematics, **parts, pixel_map=pixels), said
