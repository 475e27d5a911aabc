"""Kinematic tables: what is read, what is flagged, and which files are refused."""

from pathlib import Path

import numpy as np
import pytest
from astropy.io import fits
from astropy.table import Table

from orthocal.errors import InputError, OrthocalWarning
from orthocal_galaxy.dynamite import read_dynamite, read_dynamite_models
from orthocal_galaxy.kinematics import Kinematics, PixelMap
from orthocal_galaxy.moments import MOMENTS
from orthocal_galaxy.readers import read_atlas3d

NGC4570 = Path(__file__).parents[4] / "shared" / "galaxy" / "NGC4570_4moments_ATLAS3d.fits"


def atlas3d_columns(n=25):
    """A rotating disc on a grid of 0.8 arcsec, receding at 1700 km/s."""
    side = round(np.sqrt(n))
    x, y = (axis.ravel() for axis in np.meshgrid(*2 * [0.8 * (np.arange(side) - side // 2)], indexing="ij"))
    v = 50 * x + 10 * y
    columns = {"XS": x, "YS": y, "VPXF": 1700 + v, "SPXF": 120 - x**2, "H3PXF": -v / 1e4, "H4PXF": 0.02 + 0 * x}
    errors = {"EVPXF": 2.0, "ESPXF": 3.0, "EH3PXF": 0.01, "EH4PXF": 0.02}
    columns |= {name: np.full(n, error) for name, error in errors.items()}
    return columns | {"FLUX": np.exp(-np.hypot(x, y)), "BINSIZE": np.ones(n, dtype=np.int32), "KINFLAG": np.ones(n)}


def written(path, columns):
    Table(columns).write(path, overwrite=True)
    return path


def test_atlas3d(tmp_path):
    columns = atlas3d_columns()
    read = read_atlas3d(written(tmp_path / "galaxy.fits", columns))
    assert read.n == 25
    assert read.names == MOMENTS
    assert read.units["v"] == "km/s"
    assert read.flagged == {}
    np.testing.assert_allclose(read.values[:, 1], columns["SPXF"])
    np.testing.assert_allclose(read.errors[0], [2, 3, 0.01, 0.02])
    np.testing.assert_allclose(read.points, np.column_stack([columns["XS"], columns["YS"]]))
    np.testing.assert_allclose(read.flux, columns["FLUX"])
    with pytest.raises(ValueError, match="read-only"):
        read.values[0] = 0


def test_flagged_cells_are_missing_and_counted(tmp_path):
    columns = atlas3d_columns()
    columns["EVPXF"][:2] = [9999, 1e5]
    columns["ESPXF"][:3] = [0, -1, np.nan]
    columns["SPXF"][5] = 0
    columns["H4PXF"][7] = -9999
    columns["VPXF"][:] += 9000  # a velocity above 9999 km/s is none of a flag
    columns["XS"][10] = np.nan
    columns["FLUX"][11] = 0
    with pytest.warns(OrthocalWarning, match=r"v in 2, sigma in 4, h4 in 1 of 23 bins\); 2 bins without"):
        read = read_atlas3d(written(tmp_path / "galaxy.fits", columns))
    assert read.flagged == {"v": 2, "sigma": 4, "h4": 1, "bins": 2}
    assert read.n == 23
    assert np.array_equal(read.observed[:3], [[0, 0, 1, 1], [0, 0, 1, 1], [1, 0, 1, 1]])
    assert np.array_equal(np.isnan(read.errors), ~read.observed)
    columns["EVPXF"][:] = columns["ESPXF"][:] = columns["EH3PXF"][:] = columns["EH4PXF"][:] = 9999
    with pytest.raises(InputError, match="no usable cell"):
        read_atlas3d(written(tmp_path / "galaxy.fits", columns))


def test_missing_columns_are_named(tmp_path):
    columns = {name: value for name, value in atlas3d_columns().items() if name not in ("SPXF", "EH3PXF")}
    with pytest.raises(InputError, match=r"lacks the columns SPXF, EH3PXF; there are: XS, YS, VPXF"):
        read_atlas3d(written(tmp_path / "galaxy.fits", columns))


def test_other_files_are_refused(tmp_path):
    good = written(tmp_path / "galaxy.fits", atlas3d_columns()).read_bytes()
    for name, content in {"short": good[:3000], "cut": good[:-2880], "text": b"XS,YS\n1,2\n", "empty": b""}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(
            InputError, match=f"{name} is not a FITS file, or it is damaged|{name} holds no table, or is cut"
        ):
            read_atlas3d(tmp_path / name)
    fits.PrimaryHDU(np.zeros((3, 3))).writeto(tmp_path / "image.fits")
    with pytest.raises(InputError, match="holds no table"):
        read_atlas3d(tmp_path / "image.fits")
    with pytest.raises(InputError, match="there is no file"):
        read_atlas3d(tmp_path / "nowhere.fits")


def test_systemic_velocity(tmp_path):
    read = read_atlas3d(written(tmp_path / "galaxy.fits", atlas3d_columns()))
    assert read.systemic_velocity() == pytest.approx(1700)
    np.testing.assert_allclose(read.shifted().values[:, 0], 50 * read.x + 10 * read.y, atol=1e-9)
    np.testing.assert_allclose(read.shifted(100).values[:, 0], read.values[:, 0] - 100)
    far = Kinematics(read.x + 50, read.y, read.values, read.errors, read.flux, read.pixels)
    with pytest.raises(InputError, match="cannot be estimated"):
        far.systemic_velocity()


@pytest.mark.parametrize("x_axis", ["west", "east"])
def test_rotation_lays_the_major_axis_along_x(x_axis):
    """A position angle of 30 degrees points from the centre to (sin 30 east, cos 30 north)."""
    east, north = np.sin(np.radians(30)), np.cos(np.radians(30))
    x = np.array([east if x_axis == "east" else -east, 0.0])
    one = np.ones((2, 4))
    pixels = PixelMap(np.arange(3.0), np.arange(4.0), np.zeros((3, 4), dtype=np.intp))
    galaxy = Kinematics(x, np.array([north, 0.0]), one, one, one[:, 0], one[:, 0], pixel_map=pixels)
    turned = galaxy.rotated(30, x_axis)
    np.testing.assert_allclose(np.abs(turned.points), [[1, 0], [0, 0]], atol=1e-12)
    back = turned.pixel_map.corners()
    assert back[0].shape == (4, 5)
    np.testing.assert_allclose(np.hypot(*back), np.hypot(*pixels.corners()))
    with pytest.raises(InputError, match="x_axis"):
        galaxy.rotated(30, "north")


def test_shapes_are_checked():
    one = np.ones(3)
    with pytest.raises(InputError, match=r"errors has shape \(3, 2\) for 3 bins: give \(3, 4\)"):
        Kinematics(one, one, np.ones((3, 4)), np.ones((3, 2)), one, one)


def dynamite_files(folder, first=1, delimiter=" ", rows=None):
    """Four bins on a grid of 3 x 2 pixels of 0.5 arcsec; one pixel belongs to none."""
    ids = np.arange(4)
    columns = {"vbin_id": ids + first}
    for j, name in enumerate(MOMENTS):
        columns |= {name: 10.0 * (ids + 1) / 100 ** (j > 1), f"d{name}": 0.1 + 0.01 * ids}
    table = Table(columns, meta={"PSF": {"sigma": [1.06], "weight": [1.0]}})[rows or list(ids)]
    table.write(folder / "kins.ecsv", format="ascii.ecsv", delimiter=delimiter, overwrite=True)
    (folder / "aperture.dat").write_text(
        "#counter_rotation_boxed_aperturefile_version_2 \n"
        "\t-1.0\t-0.5 \n\t1.5\t1.0 \n\t-36.0 \n\t3\t2 \n aperture = -(pa) + 90\n"
    )
    (folder / "bins.dat").write_text("#Counterrotaton_binning_version_1\n   6\n  1  1  2\n  0  3  4\n")
    return folder / "kins.ecsv"


@pytest.mark.parametrize(
    "options",
    [{}, {"first": 0}, {"delimiter": ","}, {"rows": [2, 0, 3, 1]}],
    ids=["plain", "from 0", "comma", "shuffled"],
)
def test_dynamite(tmp_path, options):
    read = read_dynamite(dynamite_files(tmp_path, **options))
    np.testing.assert_allclose(read.values[:, 0], [10, 20, 30, 40])
    np.testing.assert_allclose(read.values[:, 2], [0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(read.errors[:, 3], [0.1, 0.11, 0.12, 0.13])
    np.testing.assert_allclose(read.points, [[-0.5, -0.25], [0.25, -0.25], [-0.25, 0.25], [0.25, 0.25]])
    assert read.pixels.tolist() == [2, 1, 1, 1]
    assert read.pixel_map.label.tolist() == [[0, -1], [0, 2], [1, 3]]
    assert read.pixel_map.counts(4).tolist() == [2, 1, 1, 1]
    np.testing.assert_allclose(read.pixel_map.corners()[0][:, 0], [-1, -0.5, 0, 0.5])


def test_dynamite_files_that_do_not_fit(tmp_path):
    path = dynamite_files(tmp_path)
    with pytest.raises(InputError, match="surface brightness for each of the 4 bins"):
        read_dynamite(path, flux=[1, 2])
    with pytest.raises(InputError, match=r"there is no file .*: give it as `bins`"):
        read_dynamite(path, bins=tmp_path / "none.dat")
    bins = (tmp_path / "bins.dat").read_text()
    for text, message in {
        bins.replace("0  3  4", "0  3"): "announces 6 and holds 5 bins of pixels",
        bins.replace("0  3  4", "0  3  3"): "do not belong together: the table has 4 bins",
        "": "holds no bins",
    }.items():
        (tmp_path / "bins.dat").write_text(text)
        with pytest.raises(InputError, match=message):
            read_dynamite(path)
    (tmp_path / "aperture.dat").write_text("-1 -0.5\n1.5 2\n0\n3 2\n")
    with pytest.raises(InputError, match=r"pixels of 0\.5 x 1 arcsec; they must be squares"):
        read_dynamite(path)
    (tmp_path / "aperture.dat").write_text("hello\n")
    with pytest.raises(InputError, match="not an aperture file"):
        read_dynamite(path)


def test_ecsv_files_that_are_refused(tmp_path):
    path = dynamite_files(tmp_path)
    whole = path.read_text()
    for text, message in {
        whole[: len(whole) - 20]: "is damaged: its header declares 9 columns, and row 4 has",
        whole[whole.index("vbin_id v") :]: "is not an ECSV table",
        whole[: whole.index("vbin_id v")]: "it has no rows",
        whole[: whole.index("\n1 ")] + "\n": "has no rows",
        whole.replace("dsigma", "esigma"): r"lacks the columns dsigma; there are: vbin_id, v, dv",
        whole.replace("\n2 20.0", "\n2 twenty"): "column 'v'",
    }.items():
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            read_dynamite(path)
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(InputError, match="not a text file"):
        read_dynamite(path)


def legacy_map(path, model, sets=1):
    """nn_kinem.out: number, two fluxes, and model, observed, error of each moment; ``sets`` maps below each other."""
    lines = [f" {len(model) * sets} 4"]
    for i, row in enumerate(np.tile(model, (sets, 1))):
        moments = "".join(f"{value:13.5E}{99:13.5E}{1:13.5E}" for value in row)
        lines.append(f"{i + 1:8d}{0.1:13.5E}{0.2:13.5E}{moments}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def models_file(folder, **changes):
    columns = {
        "m-bh": [1e6, 1e7, 1e8],
        "a-bh": [0.001] * 3,
        "ml": [2.0, 3.0, 4.0],
        "chi2": [5.0, 4.0, np.nan],
        "kinchi2": [5.0, 4.0, np.nan],
        "time_modified": ["2024-01-01T00:00:00", "2024-01-02T00:00:00", ""],
        "orblib_done": [True, True, True],
        "weights_done": [True, True, False],
        "all_done": [True, True, False],
        "which_iter": [0, 0, 1],
        "directory": [f"orblib_000_00{i}/ml0{i}.00/" for i in range(3)],
    } | changes
    table = Table({name: value for name, value in columns.items() if value is not None})
    table.write(folder / "all_models.ecsv", format="ascii.ecsv", overwrite=True)
    return folder / "all_models.ecsv"


def test_models_with_legacy_maps(tmp_path):
    data = read_dynamite(dynamite_files(tmp_path))
    model = data.values + 1
    model[2] = 0  # no orbit reaches this bin
    for i in range(2):
        legacy_map(tmp_path / f"models/orblib_000_00{i}/ml0{i}.00/nn_kinem.out", model + 10 * i * (model > 0), sets=2)
    file = tmp_path / "models/orblib_000_000/ml00.00/nn_kinem.out"
    file.write_text(file.read_text().replace(f"{1.1:13.5E}", "  1.10000-101", 1))
    with pytest.warns(OrthocalWarning, match="3 models, 2 of them done; 2 of them with maps"):
        read = read_dynamite_models(models_file(tmp_path), kinematics=data, log10="m-bh", first_bin=4)
    assert read.runs.parameter_names == ("log10 m-bh", "ml")
    np.testing.assert_allclose(read.runs.theta, [[6, 2], [7, 3], [8, 4]])
    assert read.runs.outcome_names == MOMENTS
    assert read.runs.failed.tolist() == [False, False, True]
    np.testing.assert_allclose(read.runs.output[1, [0, 1, 3]], model[[0, 1, 3]] + 10, rtol=1e-5)
    assert np.isnan(read.runs.output[:2, 2]).all()
    assert read.done.tolist() == [True, True, False]
    with pytest.warns(OrthocalWarning):
        first = read_dynamite_models(tmp_path / "all_models.ecsv", ["ml"], data)
    assert first.runs.output[0, 0, 2] == pytest.approx(1.1e-101)
    with pytest.raises(InputError, match="must hold 4 bins from number 6 on"):
        read_dynamite_models(tmp_path / "all_models.ecsv", ["ml"], data, first_bin=5)
    file.write_text(file.read_text()[:-30])
    with pytest.raises(InputError, match="must hold 4 bins from number 1 on"):
        read_dynamite_models(tmp_path / "all_models.ecsv", ["ml"], data)
    file.write_text("4 2\n")
    with pytest.raises(InputError, match="four moments"):
        read_dynamite_models(tmp_path / "all_models.ecsv", ["ml"], data)


def test_models_with_fitted_maps(tmp_path):
    data = read_dynamite(dynamite_files(tmp_path))
    for i in range(2):
        folder = tmp_path / f"models/orblib_000_00{i}/ml0{i}.00"
        folder.mkdir(parents=True)
        Table(dict(zip(("flux", *MOMENTS), [np.ones(4), *data.values.T + i], strict=True))).write(
            folder / "model_gh_kins_kin0_fit.ecsv", format="ascii.ecsv"
        )
    path = models_file(tmp_path, all_done=[True, True, True])
    with pytest.warns(OrthocalWarning, match="2 of them with maps"):
        read = read_dynamite_models(path, "ml", data)
    np.testing.assert_allclose(read.runs.output[1], data.values + 1)
    folder.joinpath("model_gh_kins_kin1_fit.ecsv").write_text((folder / "model_gh_kins_kin0_fit.ecsv").read_text())
    with pytest.raises(InputError, match="maps of 2 kinematic sets: name one in `kinematic_set`"):
        read_dynamite_models(path, "ml", data)
    with pytest.warns(OrthocalWarning, match="1 of them with maps"):
        read_dynamite_models(path, "ml", data, kinematic_set="kin1")


def test_models_without_maps(tmp_path):
    data = read_dynamite(dynamite_files(tmp_path))
    path = models_file(tmp_path, all_done=None, weights_done=[True, True, True])
    read = read_dynamite_models(path)
    assert read.runs is None
    assert read.done.all()
    assert list(read.theta) == ["m-bh", "ml"]
    assert read.table["kinchi2"][1] == 4
    assert "give `kinematics`" in read.report
    assert "neither nn_kinem.out" in read_dynamite_models(path, kinematics=data).report
    assert (
        "no column `directory`"
        in read_dynamite_models(models_file(tmp_path, directory=None, all_done=[True] * 3), kinematics=data).report
    )


def test_parameters_of_models_are_checked(tmp_path):
    path = models_file(tmp_path, all_done=[True] * 3)
    with pytest.raises(InputError, match=r"lacks the columns mbh; there are: m-bh"):
        read_dynamite_models(path, ["mbh"])
    with pytest.raises(InputError, match="log10 names ml"):
        read_dynamite_models(path, ["m-bh"], log10=["ml"])
    with pytest.raises(InputError, match="not positive"):
        read_dynamite_models(models_file(tmp_path, ml=[1.0, 0.0, 2.0]), log10=["ml"])
    with pytest.raises(InputError, match="no parameter differs"):
        read_dynamite_models(models_file(tmp_path, **{"m-bh": [1.0] * 3, "ml": [2.0] * 3}))


@pytest.mark.skipif(not NGC4570.is_file(), reason="the table of NGC 4570 is not here")
def test_ngc4570():
    read = read_atlas3d(NGC4570)
    assert read.n == 1517
    assert read.flagged == {}
    assert read.systemic_velocity() == pytest.approx(1759, abs=2)
    galaxy = read.shifted().rotated(159.3)
    # the disc lies along x: velocity changes along x, not along y
    slope = np.linalg.lstsq(galaxy.points, galaxy.values[:, 0], rcond=None)[0]
    assert abs(slope[1]) < 0.1 * abs(slope[0])
