"""Readers of DYNAMITE's files: kinematic tables with their pixel grid, and ensembles of models."""

from __future__ import annotations

import csv
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

import orthocal as oc
from orthocal.applications import Array, BoolArray, IntArray, as_floats, number_of
from orthocal.errors import InputError, OrthocalWarning

from .kinematics import Kinematics, PixelMap
from .moments import MOMENTS
from .readers import checked_kinematics, existing, float_columns

#: along one side of a map
MOST_PIXELS = 100_000
NO_PARAMETERS = ("chi2", "kinchi2", "kinmapchi2", "time_modified", "which_iter", "directory")
_NO_MAPS = (
    "there are no predicted maps: the folders of the models hold neither nn_kinem.out (written by DYNAMITE's "
    "LegacyWeightSolver) nor model_gh_kins_*_fit.ecsv (written by its "
    'Analysis.get_gh_model_kinematic_maps(kinematics_as="file"))'
)


def read_dynamite(
    path: str | Path, bins: str | Path | None = None, apertures: str | Path | None = None, flux: ArrayLike | None = None
) -> Kinematics:
    """Gauss-Hermite kinematics in the form of DYNAMITE.

    Parameters
    ----------
    path
        Table (ECSV) with columns vbin_id, v, dv, sigma, dsigma, h3, dh3, h4, dh4.
    bins, apertures
        Files of the bin of each pixel and of the grid of pixels; by default ``bins.dat`` and ``aperture.dat`` beside
        the table. A bin's centre is the mean of its pixels.
    flux
        Surface brightness of the bins, (n,): the table has none, so by default it is 1 everywhere.

    The formats are those that ``dynamite/data.py`` (class Integrated) reads, in the repository
    dynamics-of-stellar-systems/dynamite. ``aperture.dat``: lower corner x y, extent x y [arcsec], an angle and the
    numbers of pixels nx ny, a line each. ``bins.dat``: number of pixels, then the bin of each pixel, x fastest,
    numbered from 1; 0 is no bin. Lines that begin with ``#`` are comments.
    """
    file = existing(path)
    errors_of = [f"d{name}" for name in MOMENTS]
    columns = float_columns(_ecsv(file), ("vbin_id", *MOMENTS, *errors_of), path)
    grid_x, grid_y = _aperture_grid(existing(apertures or file.with_name("aperture.dat"), "apertures"))
    label = _bin_of_pixels(existing(bins or file.with_name("bins.dat"), "bins"), len(grid_x), len(grid_y))
    identity = columns["vbin_id"] + (1 if columns["vbin_id"].min() == 0 else 0)
    order = np.argsort(identity, kind="stable")
    n = len(identity)
    if not np.array_equal(identity[order], np.arange(1, n + 1)) or set(np.unique(label)) - {-1} != set(range(n)):
        raise InputError(
            f"{path} and the file of bins do not belong together: the table has {n} bins, the pixels have the bins "
            f"1 to {label.max() + 1} (of which {len(set(np.unique(label)) - {-1})} occur); each bin needs pixels"
        )
    inside = label >= 0
    pixels = np.bincount(label[inside], minlength=n)
    at = np.meshgrid(grid_x, grid_y, indexing="ij")
    x, y = (np.bincount(label[inside], centre[inside], n) / pixels for centre in at)
    values, errors = (np.column_stack([columns[name] for name in names])[order] for names in (MOMENTS, errors_of))
    light = np.ones(n) if flux is None else as_floats(flux, "flux")
    if light.shape != (n,) or not (light > 0).all():
        raise InputError(f"flux has shape {light.shape}: give a positive surface brightness for each of the {n} bins")
    read = checked_kinematics(x, y, values, errors, light, pixels.astype(float), str(path))
    return replace(read, pixel_map=PixelMap(grid_x, grid_y, label))


@dataclass(frozen=True)
class DynamiteModels:
    """An ensemble of DYNAMITE's models.

    Attributes
    ----------
    table
        ``all_models.ecsv`` as it is, one row a model.
    theta
        The chosen parameters, one row a model.
    done
        Which models are complete, (s,).
    runs
        The predicted maps, where there are any: a model that is not done or has no map is a failed run.
    report
        What is there and what is missing, in words.
    """

    table: pd.DataFrame
    theta: pd.DataFrame
    done: BoolArray
    runs: oc.RunTable | None
    report: str


def read_dynamite_models(
    path: str | Path,
    parameters: Sequence[str] | str | None = None,
    kinematics: Kinematics | None = None,
    log10: Sequence[str] | str = (),
    folder: str | Path | None = None,
    kinematic_set: str | None = None,
    first_bin: int = 0,
) -> DynamiteModels:
    """The models of a DYNAMITE run: parameters and chi2, and their maps as a table of runs.

    Parameters
    ----------
    path
        ``all_models.ecsv`` (``dynamite/model.py``, class AllModels): a column a parameter, then chi2, kinchi2,
        kinmapchi2, time_modified, orblib_done, weights_done, all_done, which_iter, directory.
    parameters
        The columns that are theta; by default all parameters that differ between models.
    kinematics
        The field data that the models were fitted to. Without them no maps are read: the models have no positions.
    log10
        Those of the parameters that enter theta as their logarithm.
    folder
        Where the folders of the models are, by default ``models`` beside the table.
    kinematic_set, first_bin
        Where models were fitted to several sets: the name of the set, and the number of bins of the sets before it.

    A map is read from ``nn_kinem.out`` (``legacy_fortran/triaxnnls_*.f90``, makekinem: a line with the numbers of bins
    and moments; then a line a bin: its number, observed and model flux, and for each moment model, observed, error) or
    from ``model_gh_kins_<set>_fit.ecsv`` (``dynamite/analysis.py``, get_gh_model_kinematic_maps: flux, v, sigma,
    h3, ...). The two define h3 and h4 differently, so all maps come from the kind that more models have.
    """
    table = _ecsv(existing(path))
    theta = _theta(table, parameters, log10, path)
    done = _done(table) & np.isfinite(theta.to_numpy()).all(axis=1)
    said = [f"{len(table)} models, {int(done.sum())} of them done"]
    runs = None
    if kinematics is None:
        said.append("no maps were read: give `kinematics`, the field data that the models were fitted to")
    elif "directory" not in table:
        said.append("no maps were read: the table has no column `directory`")
    else:
        root = Path(folder) if folder is not None else Path(path).with_name("models")
        folders = [
            root / str(name).strip("/") if ok else None for name, ok in zip(table["directory"], done, strict=True)
        ]
        maps = _maps(folders, kinematic_set, first_bin, kinematics.n)
        if maps is None:
            said.append(_NO_MAPS)
        else:
            runs = _run_table(theta, maps, kinematics)
            said.append(f"{runs.s - int(runs.failed.sum())} of them with maps")
    report = "; ".join(said)
    if not done.all() or (runs is not None and runs.failed.any()):
        warnings.warn(f"{path}: {report}", OrthocalWarning, stacklevel=2)
    return DynamiteModels(table, theta, done, runs, report)


def _run_table(theta: pd.DataFrame, maps: Array, kinematics: Kinematics) -> oc.RunTable:
    """The models that have a theta as runs."""
    kept = np.isfinite(theta.to_numpy()).all(axis=1)
    return oc.RunTable(
        theta[kept],
        maps[kept],
        kinematics.points,
        input_names=["x", "y"],
        outcome_names=list(kinematics.names),
        units=kinematics.units,
    )


def _ecsv(path: Path) -> pd.DataFrame:
    """An ECSV table of scalar columns (astropy's APE 6): a header behind ``#``, the names, and a line a row."""
    lines = _lines(path)
    header = list(takewhile(lambda line: line.startswith("#"), lines))
    if not header or not header[0].startswith("# %ECSV"):
        raise InputError(f"{path} is not an ECSV table: its first line does not begin with '# %ECSV'")
    comma = any(re.match(r"#\s*delimiter:\s*['\"]?,", line) for line in header)
    body = [line for line in lines[len(header) :] if line.strip()]
    try:
        rows = list(csv.reader(body, delimiter="," if comma else " ", skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise InputError(f"{path} is damaged: {error}") from None
    declared = sum(bool(re.match(r"#\s*-\s*(\{\s*)?name:", line)) for line in header)
    uneven = [row for row, cells in enumerate(rows) if len(cells) != declared]
    if not rows or uneven:
        where = f"row {uneven[0]} has {len(rows[uneven[0]])} cells" if uneven else "it has no rows"
        raise InputError(f"{path} is damaged: its header declares {declared} columns, and {where}")
    if len(set(rows[0])) < declared:
        raise InputError(f"{path} is damaged: two of its columns have the same name")
    return pd.DataFrame({name: _typed([row[j] for row in rows[1:]]) for j, name in enumerate(rows[0])})


def _typed(cells: list[str]) -> pd.Series[Any]:
    """Numbers or truth values where all cells are; an empty cell is a missing one."""
    if cells and set(cells) <= {"True", "False"}:
        return pd.Series([cell == "True" for cell in cells], dtype=bool)
    numbers = [number_of(cell.strip()) for cell in cells]
    return pd.Series(cells, dtype=object) if None in numbers else pd.Series(numbers, dtype=float)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, OSError):
        raise InputError(f"{path} is not a text file") from None


def _numbers(path: Path) -> list[list[float]]:
    """The numbers in each line of a text file, up to the first that is no number; comments are left out."""
    rows = []
    for line in _lines(path):
        numbers = []
        for word in [] if line.lstrip().startswith("#") else line.split():
            try:
                # Fortran leaves out the E before an exponent of three digits
                numbers.append(float(re.sub(r"(?<=\d)([+-]\d{3})$", r"e\1", word)))
            except ValueError:
                break
        if numbers:
            rows.append(numbers)
    return rows


def _aperture_grid(path: Path) -> tuple[Array, Array]:
    """Centres of the columns (nx,) and rows (ny,) of pixels."""
    rows = _numbers(path)
    fits = [len(row) for row in rows[:4]] == [2, 2, 1, 2] and np.isfinite(
        [one for row in rows[:4] for one in row]
    ).all()
    if not fits or min(rows[1] + rows[3]) <= 0 or any(one % 1 or one > MOST_PIXELS for one in rows[3]):
        raise InputError(
            f"{path} is not an aperture file of DYNAMITE: it must hold corner, extent, angle and numbers of pixels"
        )
    (x, y), (width, height), _, (nx, ny) = rows[:4]
    if abs(width / nx - height / ny) > 1e-3 * width / nx:
        raise InputError(f"{path}: pixels of {width / nx:.4g} x {height / ny:.4g} arcsec; they must be squares")
    return x + (np.arange(int(nx)) + 0.5) * width / nx, y + (np.arange(int(ny)) + 0.5) * height / ny


def _bin_of_pixels(path: Path, nx: int, ny: int) -> IntArray:
    """The bin of each pixel, (nx, ny), from 0; -1 where there is none."""
    numbers = [number for row in _numbers(path) for number in row]
    if not numbers or numbers[0] != nx * ny or len(numbers) != nx * ny + 1:
        count = f"announces {numbers[0]:g} and holds {len(numbers) - 1}" if numbers else "holds no"
        raise InputError(f"{path} {count} bins of pixels, but the aperture file has {nx} x {ny} pixels")
    if any(not 0 <= one <= nx * ny or one % 1 for one in numbers[1:]):
        raise InputError(f"{path} holds something that is not the number of a bin, 0 to {nx * ny}")
    return np.array(numbers[1:]).reshape(ny, nx).T.astype(np.intp) - 1


def _theta(
    table: pd.DataFrame, parameters: Sequence[str] | str | None, log10: Sequence[str] | str, path: str | Path
) -> pd.DataFrame:
    if parameters is None:
        found = [name for name in table if name not in NO_PARAMETERS and not str(name).endswith("_done")]
        parameters = [str(name) for name in found if table[name].nunique() > 1]
        if not parameters:
            raise InputError(f"{path}: no parameter differs between models; name those that are theta in `parameters`")
    parameters = [parameters] if isinstance(parameters, str) else list(parameters)
    log10 = [log10] if isinstance(log10, str) else list(log10)
    if set(log10) - set(parameters):
        raise InputError(f"log10 names {', '.join(sorted(set(log10) - set(parameters)))}: they are not parameters")
    columns = float_columns(table, parameters, path)
    for name in log10:
        if not (columns[name] > 0).all():
            raise InputError(f"{path}: parameter {name} has values that are not positive and has no logarithm")
    return pd.DataFrame(
        {f"log10 {k}" if k in log10 else k: np.log10(v) if k in log10 else v for k, v in columns.items()}
    )


def _done(table: pd.DataFrame) -> BoolArray:
    """Complete models: older tables have no column all_done."""
    done = np.ones(len(table), dtype=np.bool_)
    for name in ("all_done",) if "all_done" in table else ("orblib_done", "weights_done"):
        if name in table:
            done &= table[name].astype(str).to_numpy() == "True"
    return done


def _maps(folders: Sequence[Path | None], kinematic_set: str | None, first: int, n: int) -> Array | None:
    """The maps of all models, (s, n, 4), NaN where there is none; None where no model has any."""
    legacy = [one / "nn_kinem.out" if one is not None else None for one in folders]
    fitted = [_gauss_hermite_file(one, kinematic_set) if one is not None else None for one in folders]
    there = [[one is not None and one.is_file() for one in files] for files in (legacy, fitted)]
    if not any(map(any, there)):
        return None
    use_legacy = sum(there[0]) >= sum(there[1])
    maps = np.full((len(folders), n, 4), np.nan)
    for i, (file, ok) in enumerate(zip(legacy if use_legacy else fitted, there[0 if use_legacy else 1], strict=True)):
        if file is not None and ok:
            maps[i] = _legacy_map(file, first, n) if use_legacy else _fitted_map(file, n)
    # no orbit reached the bin: all its moments are written as 0
    maps[~(maps[:, :, 1] > 0)] = np.nan
    maps[~np.isfinite(maps)] = np.nan
    return maps


def _gauss_hermite_file(folder: Path, kinematic_set: str | None) -> Path | None:
    files = sorted(folder.glob(f"model_gh_kins_{'*' if kinematic_set is None else kinematic_set}_fit.ecsv"))
    if len(files) > 1:
        raise InputError(f"{folder} holds maps of {len(files)} kinematic sets: name one in `kinematic_set`")
    return files[0] if files else None


def _legacy_map(path: Path, first: int, n: int) -> Array:
    rows = _numbers(path)
    moments = int(rows[0][1]) if rows and len(rows[0]) == 2 and np.isfinite(rows[0][1]) else 0
    if moments < 4:
        raise InputError(f"{path} is not a map of DYNAMITE with four moments: its first line must say bins and moments")
    body = rows[1 + first : 1 + first + n]
    if len(rows) - 1 != rows[0][0] or len(body) != n or any(len(row) != 3 + 3 * moments for row in rows[1:]):
        raise InputError(f"{path} does not fit: it must hold {n} bins from number {first + 1} on, and be whole")
    return np.array(body)[:, 3:15:3]


def _fitted_map(path: Path, n: int) -> Array:
    columns = float_columns(_ecsv(path), MOMENTS, path)
    if len(columns["v"]) != n:
        raise InputError(f"{path} has {len(columns['v'])} bins, but the kinematics have {n}")
    return np.column_stack([columns[name] for name in MOMENTS])
