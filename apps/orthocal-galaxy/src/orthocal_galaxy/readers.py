"""Readers of kinematic tables, one row a bin of the sky: what is flagged becomes missing, what is missing is said."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from orthocal.applications import Array, as_floats, number_of
from orthocal.errors import InputError, OrthocalWarning

from .kinematics import Kinematics
from .moments import MOMENTS
from .stages import shortened

#: errors from here on mark a bin that was not fitted: pipelines write 9999, DYNAMITE's data preparation 1e5
SENTINEL = 9999.0

ATLAS3D_VALUES = ("VPXF", "SPXF", "H3PXF", "H4PXF")
ATLAS3D_ERRORS = ("EVPXF", "ESPXF", "EH3PXF", "EH4PXF")


def read_atlas3d(path: str | Path) -> Kinematics:
    """Stellar kinematics in the form of ATLAS3D: a FITS table, one row a bin.

    Columns: XS, YS centre [arcsec, +x west, +y north]; VPXF, SPXF [km/s], H3PXF, H4PXF and their errors EVPXF,
    ESPXF, EH3PXF, EH4PXF; FLUX surface brightness; BINSIZE pixels in the bin. Cells whose value is not a number, or
    whose error is 0, negative or a flag (9999 or more), are missing. See Cappellari et al. (2011), MNRAS 413, 813 and
    Emsellem et al. (2011), MNRAS 414, 888.
    """
    table = _fits_table(existing(path))
    wanted = ("XS", "YS", *ATLAS3D_VALUES, *ATLAS3D_ERRORS, "FLUX", "BINSIZE")
    columns = float_columns(table, wanted, path)
    values, errors = (np.column_stack([columns[name] for name in names]) for names in (ATLAS3D_VALUES, ATLAS3D_ERRORS))
    return checked_kinematics(
        columns["XS"], columns["YS"], values, errors, columns["FLUX"], columns["BINSIZE"], str(path)
    )


def existing(path: str | Path, argument: str | None = None) -> Path:
    # Path.is_file raises for names that no file can have
    if not os.path.isfile(path):
        cure = f": give it as `{argument}`" if argument else ""
        raise InputError(f"there is no file {path}{cure}")
    return Path(path)


def float_columns(table: pd.DataFrame, wanted: Sequence[str], path: str | Path) -> dict[str, Array]:
    missing = [name for name in wanted if name not in table]
    if missing:
        there = shortened(", ".join(map(str, table.columns)) or "none")
        raise InputError(f"{path} lacks the columns {', '.join(missing)}; there are: {there}")
    if not len(table):
        raise InputError(f"{path} has no rows")
    for name in wanted:
        # Python would make numbers of more texts than a table may hold
        other = (
            [str(cell) for cell in table[name] if number_of(str(cell)) is None] if table[name].dtype == object else []
        )
        if other:
            raise InputError(f"column {name!r} of {path} must be numbers: {other[0][:40]!r} is none")
    return {name: as_floats(table[name], f"column {name!r} of {path}") for name in wanted}


def checked_kinematics(
    x: Array, y: Array, values: Array, errors: Array, flux: Array, pixels: Array, source: str
) -> Kinematics:
    """Flagged cells become NaN, and bins without a place or flux are left out; a warning counts both."""
    # a velocity of 9999 km/s can be real
    absurd = ~np.isfinite(values) | (values <= -SENTINEL) | ((values >= SENTINEL) & [False, True, True, True])
    absurd[:, 1] |= values[:, 1] <= 0
    with np.errstate(invalid="ignore"):
        bad = absurd | ~((errors > 0) & (errors < SENTINEL))
        kept = np.isfinite(x) & np.isfinite(y) & np.isfinite(flux) & (flux > 0) & (pixels > 0)
    if not kept.any() or bad[kept].all():
        raise InputError(f"{source} has no usable cell: all bins are flagged, or lack a position, flux or pixels")
    cells = {name: int(count) for name, count in zip(MOMENTS, bad[kept].sum(axis=0), strict=True) if count}
    left_out = int((~kept).sum())
    if cells or left_out:
        said = [f"{name} in {count}" for name, count in cells.items()]
        text = [f"flagged cells are missing ({', '.join(said)} of {int(kept.sum())} bins)"] if cells else []
        text += [f"{left_out} bins without a position, flux or pixels are left out"] if left_out else []
        warnings.warn(f"{source}: {'; '.join(text)}", OrthocalWarning, stacklevel=3)
    values, errors = (np.where(bad, np.nan, array)[kept] for array in (values, errors))
    flagged = cells | ({"bins": left_out} if left_out else {})
    return Kinematics(x[kept], y[kept], values, errors, flux[kept], pixels[kept], flagged=flagged)


def _fits_table(path: Path) -> pd.DataFrame:
    """The first table of a FITS file that has rows of scalar columns; names in upper case."""
    # slow to import
    from astropy.io import fits
    from astropy.utils.exceptions import AstropyWarning

    try:
        with warnings.catch_warnings():
            # a damaged file is refused below
            warnings.simplefilter("ignore", AstropyWarning)
            # some pipelines write checksums
            warnings.filterwarnings("error", "(Checksum|Datasum) verification failed", AstropyWarning)
            # astropy leaves a file open that it cannot read
            with fits.open(io.BytesIO(path.read_bytes()), memmap=False, checksum=True) as file:
                tables = [hdu for hdu in file if isinstance(hdu, fits.BinTableHDU | fits.TableHDU)]
                if tables:
                    data = tables[0].data
                    scalar = [name for name in data.names if data[name].ndim == 1]
                    return pd.DataFrame(
                        {name.upper(): as_floats(data[name], name) for name in scalar if data[name].dtype.kind in "iuf"}
                    )
    except Exception as error:  # whatever a damaged file makes the reader raise
        raise InputError(f"{path} is not a FITS file, or it is damaged ({type(error).__name__}: {error})") from None
    raise InputError(f"{path} holds no table, or is cut short: give a FITS file with a binary table")
