"""Tables of runs: shapes, names, missing cells, and files that come back as they were or are refused."""

import os

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import orthocal as oc
from orthocal.errors import FileError, InputError
from orthocal.runs.table import RunTable

ODD = {
    "parameter_names": ['a,"b"', "# β/γ"],
    "input_names": ["Unnamed: 0", "x y"],
    "outcome_names": ["1", "y;#'"],
    "units": {"1": "m/s²", "# β/γ": '"%"'},
}


def table(ragged=False, **names):
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((4, 2)) * [1e-300, 1e17]
    if ragged:
        sizes = (1, 3, 2, 5)
        output = [rng.standard_normal((size, 2)) for size in sizes]
        output[1][0, 0] = np.nan
        output[2][:] = np.nan
        return RunTable(theta, output, [rng.random((size, 2)) for size in sizes], **names)
    output = rng.standard_normal((4, 3, 2))
    output[1, 0, 0] = np.nan
    output[2] = np.nan
    return RunTable(theta, output, rng.random((3, 2)), **names)


def same(first, second):
    assert first.parameter_names == second.parameter_names
    assert first.input_names == second.input_names
    assert first.outcome_names == second.outcome_names
    assert first.units == second.units
    assert first.ragged == second.ragged
    assert np.array_equal(first.theta, second.theta)
    for one, other in zip(first.long, second.long, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_shapes_and_masks():
    runs = table()
    assert (runs.s, runs.p, runs.d, runs.m, runs.q) == (4, 2, 2, 3, 2)
    assert runs.output.shape == (4, 3, 2)
    assert runs.failed.tolist() == [False, False, True, False]
    assert runs.complete.tolist() == [True, False, False, True]
    assert runs.subset(runs.complete).s == 2
    assert np.array_equal(runs.subset([3]).output[0], runs.output[3])
    assert repr(runs).startswith("RunTable(4 runs, 1 failed; parameters theta1, theta2; 3 points of x1, x2; outcomes")
    with pytest.raises(ValueError, match="read-only"):
        runs.theta[0] = 0


def test_ragged_tables():
    runs = table(ragged=True)
    assert runs.ragged
    assert runs.points.tolist() == [1, 3, 2, 5]
    assert runs.failed.tolist() == [False, False, True, False]
    assert runs.complete.tolist() == [True, False, False, True]
    assert runs.long.run.tolist() == [0, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3]
    with pytest.raises(InputError, match="points of its own"):
        _ = runs.m
    same(runs.subset([1, 3]).subset([1]), runs.subset([3]))


def test_equal_points_for_all_runs_are_common_points():
    x = np.linspace(0, 1, 3)
    runs = RunTable([1.0, 2.0], [x, 2 * x], [x, x.copy()])
    assert not runs.ragged
    assert runs.output.shape == (2, 3, 1)


def test_names_come_from_pandas():
    design = oc.design({"g": stats.norm(0, 1)}, 3)
    runs = RunTable(design, np.zeros((3, 2)), pd.DataFrame({"position": [0.0, 1.0]}))
    assert (runs.parameter_names, runs.input_names, runs.outcome_names) == (("g",), ("position",), ("y",))


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("names", [{}, ODD])
@pytest.mark.parametrize("file", ["runs.nc", "runs.csv", "runs.CSV"])
def test_files_come_back_bit_for_bit(tmp_path, ragged, names, file):
    runs = table(ragged, **names)
    assert runs.save(tmp_path / file) == tmp_path / file
    same(RunTable.load(tmp_path / file), runs)
    assert os.listdir(tmp_path) == [file]


@pytest.mark.parametrize("ragged", [False, True])
def test_frames_come_back(ragged):
    runs = table(ragged, **ODD)
    frame = runs.to_frame()
    assert list(frame.columns) == ["run", *ODD["parameter_names"], *ODD["input_names"], *ODD["outcome_names"]]
    same(RunTable.from_frame(frame), runs)
    same(RunTable.from_frame(pd.DataFrame(frame.to_dict("list")), **ODD), runs)


def test_long_tables_from_elsewhere(tmp_path):
    """No column `run`: the rows with the same theta are a run; runs stand in the order of theta."""
    (tmp_path / "theirs.csv").write_text("g,x,y,note\n2,0,1,a\n1,0,5,b\n2,1,NA,c\n1,1,,d\n")
    runs = RunTable.load(tmp_path / "theirs.csv", "g", "x", "y", {"g": "m/s^2"})
    assert runs.theta[:, 0].tolist() == [1, 2]
    assert np.array_equal(runs.output[..., 0], [[5, np.nan], [1, np.nan]], equal_nan=True)
    assert runs.units == {"g": "m/s^2"}


def damaged_csv(text, path):
    path.write_text(text)
    return path


CSV = '# orthocal runs 1\n# rows: 2\n# columns: {"parameters": ["g"], "inputs": ["x"], "outcomes": ["y"]}\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not a CSV table"),
        ("# columns: {oh\nrun,g,x,y\n0,1,0,1\n", "is not a CSV table"),
        ("a,b\n1,2\n", "parameter_names is missing"),
        (CSV + "run,g,x,y\n0,1,0,1\n", "has 1 rows and its header says 2: it has been cut short"),
        (CSV + "run,g,x,z\n0,1,0,1\n0,1,1,1\n", "no column 'y'; there are: run, g, x, z"),
        (CSV + "run,g,x,y\n0,1,0,1\n0,1,1,high\n", "line 6: 'high' is not a number"),
        (CSV + "run,g,x,y\n0,1,0,1\n0,2,1,1\n", "run 0 has several values of one parameter"),
        (CSV + "run,g,x,y\n0,1,0,1\n,1,1,1\n", "column 'run' has empty cells"),
        (CSV + "run,g,x,y\n0,1,0,1\n1,,1,1\n", "theta has a value that is not finite in run 1"),
        (CSV + "run,g,x,y\n0,1,0,1\n1,1,,1\n", "x has NaN"),
    ],
)
def test_csv_files_that_cannot_be_read(tmp_path, text, message):
    with pytest.raises(FileError, match="runs.csv.*" + message):
        RunTable.load(damaged_csv(text, tmp_path / "runs.csv"))


@pytest.mark.parametrize("content", [b"", b"nothing of the kind", b"\x89HDF\r\n\x1a\n" + bytes(100)])
def test_files_that_are_not_netcdf(tmp_path, content):
    (tmp_path / "runs.nc").write_bytes(content)
    with pytest.raises(FileError, match="is not a netCDF file, or it is damaged"):
        RunTable.load(tmp_path / "runs.nc")


def test_foreign_changed_and_absent_files(tmp_path, model1_posterior):
    path = tmp_path / "runs.nc"
    with pytest.raises(FileError, match="there is no file"):
        RunTable.load(path)
    with pytest.raises(FileError, match="cannot read"):
        RunTable.load(tmp_path / "runs.csv")
    model1_posterior.save(path)
    with pytest.raises(FileError, match="is not a table of runs"):
        RunTable.load(path)
    table().save(path)
    with xr.open_dataset(path, engine="h5netcdf") as opened:
        changed = opened.load()
    changed["output"][0, 0, 0] += 1e-9
    changed.to_netcdf(path, engine="h5netcdf")
    with pytest.raises(FileError, match="its digest does not fit"):
        RunTable.load(path)
    with pytest.raises(InputError, match="lies in a folder that does not exist"):
        table().save(tmp_path / "absent" / "runs.nc")


def test_every_cut_of_a_netcdf_file_is_noticed(tmp_path):
    table().save(tmp_path / "runs.nc")
    content = (tmp_path / "runs.nc").read_bytes()
    for size in range(0, len(content), len(content) // 20):
        (tmp_path / "cut.nc").write_bytes(content[:size])
        with pytest.raises(FileError):
            RunTable.load(tmp_path / "cut.nc")


X = np.zeros((3, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], [], X), "theta holds no runs"),
        (([[np.nan]], np.zeros((1, 3)), X), "not finite in run 0"),
        (([1.0, 2.0], np.zeros((3, 3)), X), r"output has shape \(3, 3\) for 2 runs at 3 points: give \(2, 3\)"),
        (([1.0, 2.0], np.zeros((2, 4)), X), "give \\(2, 3\\), or \\(2, 3, q\\)"),
        (([1.0, 2.0], np.full((2, 3), np.inf), X), "set a cell to NaN"),
        (([1.0, 2.0], np.zeros((2, 3)), X * np.nan), "x has NaN"),
        (([1.0, 2.0], [np.zeros(3)] * 3, [X] * 3), "one array a run \\(2\\)"),
        (([1.0, 2.0], [np.zeros(3), np.zeros(2)], [X, X]), "run 1 has 3 points and 2 rows of output"),
        (([1.0, 2.0], [np.zeros(3), np.zeros((3, 2))], [X, X + 1]), "another number of inputs or outcomes"),
        (([1.0], np.zeros((1, 3)), X, "y"), "are named 'y': give each its own name"),
        (([1.0], np.zeros((1, 3)), X, "run"), "name 'run'"),
        (([1.0], np.zeros((1, 3)), X, "a\nb"), "printable"),
        (([1.0], np.zeros((1, 3)), X, ("a", "b")), "parameter_names has 2 names but there are 1"),
        (([1.0], np.zeros((1, 3)), X, "g", "x", "y", {"h": "m"}), "units has 'h': there are 'g', 'x', 'y'"),
        (([1.0], np.zeros((1, 3)), X, "g", "x", "y", {"g": 3}), "printable texts"),
    ],
)
def test_mistakes_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        RunTable(*arguments)


def test_subsets_that_cannot_be():
    with pytest.raises(InputError, match="none is left"):
        table().subset([])
    with pytest.raises(InputError, match="the table has 4 runs"):
        table().subset([7])


OWN = {"parameter_names": ("g",), "input_names": ("x",), "outcome_names": ("y",)}
CHANGED = "if you changed it yourself, delete the line \"# checksum: \" and the column 'checksum'"


def saved(path):
    return RunTable([1.5, 2.5], [[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0], **OWN).save(path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0,1.5,1.0,2.0,", "0,1.5,1.0,2.1,", "line 8 of .*runs.csv has changed since it was saved"),
        ("1,2.5,0.0,3.0,", "1,2.5,0.0,3.00,", "line 9 of .*runs.csv has changed"),
        ('"parameters": ["g"]', '"parameters": ["x"]', "the lines above the table of .*, or its header, have changed"),
        ("run,g,x,y,", "run,g,y,x,", "or its header, have changed"),
        ("# checksum", "# dhecksum", "or its header, have changed"),
        (",checksum", ",dhecksum", "or its header, have changed"),
        ("# orthocal runs 1", "# orthocal runs 3", "another version of the format"),
    ],
)
def test_a_changed_csv_table_is_refused_with_its_line(tmp_path, old, new, message):
    path = saved(tmp_path / "runs.csv")
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(FileError, match=message):
        RunTable.load(path)


def test_a_row_for_another_is_noticed(tmp_path):
    path = saved(tmp_path / "runs.csv")
    lines = path.read_text().splitlines()
    lines[-1] = lines[-2]
    path.write_text("\n".join(lines))
    with pytest.raises(FileError, match=r"line 10 .* has changed"):
        RunTable.load(path)


def test_a_table_that_was_changed_on_purpose(tmp_path):
    """Without its checksums it is a table of the version before."""
    path = saved(tmp_path / "runs.csv")
    lines = [
        line.rpartition(",")[0] if "," in line and line[0] != "#" else line for line in path.read_text().splitlines()
    ]
    path.write_text("\n".join(line for line in lines if not line.startswith("# checksum")).replace("2.0", "2.5"))
    assert RunTable.load(path).output[0, :, 0].tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    "note", ["columns: 5", "columns: " + "[" * 20000, 'rows: "2"', "rows: " + "9" * 5000, "units: []"]
)
def test_lines_above_a_table_that_say_nothing(tmp_path, note):
    (tmp_path / "runs.csv").write_text(f"# {note}\nrun,g,x,y\n0,1,0,1\n")
    with pytest.raises(FileError, match=r"line 1, .* cannot be read; fix or delete it"):
        RunTable.load(tmp_path / "runs.csv", **OWN)


def test_decimal_commas_of_runs(tmp_path):
    (tmp_path / "runs.csv").write_text("g,x,y\n0,5,1,3,1,5\n")
    with pytest.raises(FileError, match=r"line 2 .* has 6 cells, .* give separator = \";\", decimal = \",\""):
        RunTable.load(tmp_path / "runs.csv", **OWN)
    (tmp_path / "runs.csv").write_text("g; x;y\n0,5;1,3;1,5\n1;1,3;2\n")
    runs = RunTable.load(tmp_path / "runs.csv", **OWN, separator=";", decimal=",")
    assert runs.theta[:, 0].tolist() == [0.5, 1.0]
    assert runs.output.ravel().tolist() == [1.5, 2.0]


def test_parameters_in_order_by_name():
    runs = table()
    names = runs.parameter_names[::-1]
    other = runs.ordered(names)
    assert other.parameter_names == names
    np.testing.assert_array_equal(other.theta, runs.theta[:, ::-1])
    same(other.ordered(runs.parameter_names), runs)
    assert runs.ordered(["else"]) is runs
