"""Tables of runs from elsewhere: long or wide, in any order, by the names of their columns."""

import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

import orthocal as oc
from orthocal.errors import FileError
from orthocal.runs.table import RunTable

NAMES = (["g", "drag"], ["t"], ["v", "h"])
X = np.array([0.0, 0.25, 1.5])


def runs(replicates=1):
    rng = np.random.default_rng(0)
    theta = np.repeat(rng.normal(size=(5, 2)), replicates, axis=0)
    return RunTable(theta, rng.normal(size=(5 * replicates, 3, 2)), X, *NAMES)


def long_frame(table):
    return table.to_frame().assign(seconds=1.5, note="fine")


def wide_frame(table, header="{y}[{x!r}]"):
    columns = {name: table.theta[:, j] for j, name in enumerate(table.parameter_names)}
    for k, outcome in enumerate(table.outcome_names):
        for i, x in enumerate(np.asarray(table.x)[:, 0].tolist()):
            columns[header.format(y=outcome, x=x)] = np.asarray(table.output)[:, i, k]
    return pd.DataFrame({"id": np.arange(table.s), **columns})


def shuffled(frame, seed):
    rng = np.random.default_rng(seed)
    return frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]


def read(frame, path, names=NAMES, **form):
    frame.to_csv(path, index=False)
    return RunTable.load(path, *names, **form)


def same(one, other):
    for a, b in ((one.theta, other.theta), (one.x, other.x), (one.output, other.output)):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert (one.parameter_names, one.input_names, one.outcome_names) == (
        other.parameter_names,
        other.input_names,
        other.outcome_names,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.mark.parametrize("replicates", [1, 3])
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), wide=st.booleans())
def test_no_order_of_rows_and_columns_matters(folder, replicates, seed, wide):
    """Long with a column of runs, or wide: the same table, bit for bit, replicates too."""
    table = runs(replicates)
    straight = read(long_frame(table), folder / "straight.csv")
    frame = wide_frame(table) if wide else long_frame(table)
    same(read(shuffled(frame, seed), folder / "runs.csv"), straight)
    assert sorted(map(tuple, straight.theta)) == list(map(tuple, straight.theta))
    assert not straight.ragged


def test_the_emulator_is_the_same_bit_for_bit(folder):
    table = runs()
    long = read(long_frame(table), folder / "long.csv", (NAMES[0], "t", "v"))
    for frame in (shuffled(long_frame(table).drop(columns="run"), 1), shuffled(wide_frame(table), 2)):
        other = read(frame, folder / "other.csv", (NAMES[0], "t", "v"))
        one, two = (oc.emulate(each, "gp", progress=False)(X, [0.1, 0.2]) for each in (long, other))
        assert one.tobytes() == two.tobytes()


def test_what_is_not_used_is_said(folder):
    table = read(long_frame(runs()), folder / "runs.csv", ignore=["note"])
    assert [note.partition(": ")[2] for note in table.notes] == ["5 runs, one row a run and point", "seconds"]
    assert table.subset([0, 1]).notes == table.notes


@pytest.mark.parametrize(
    "header", ["{y}_{x}", "{y}@{x}", "{y} ({x})", "{y}[t={x}]", "{y}_t{x}", "{y}: {x}", "{y} at t={x}", "{y}{x}"]
)
def test_headers_of_wide_tables(folder, header):
    header = header.replace(" at ", " ")
    same(read(wide_frame(runs(), header), folder / "runs.csv"), read(long_frame(runs()), folder / "straight.csv"))


@pytest.mark.parametrize("header", ["{x}", "X{x}", "t={x}", "v_{x}"])
def test_one_outcome_needs_no_name(folder, header):
    table = RunTable(runs().theta, runs().output[:, :, :1], X, NAMES[0], ["t"], ["v"])
    found = read(wide_frame(table, header), folder / "runs.csv", (NAMES[0], "t", "v"))
    assert np.array_equal(np.asarray(found.x)[:, 0], X)
    assert np.array_equal(np.sort(found.output, axis=None), np.sort(table.output, axis=None))


def test_points_of_several_inputs_have_names(folder):
    frame = pd.DataFrame({"g": [1.0, 2.0], "v[b=2, a=0.5]": [3.0, 4.0], "v[a=1,b=-1e-3]": [5.0, 6.0]})
    found = read(frame, folder / "runs.csv", ("g", ["a", "b"], "v"))
    assert found.x.tolist() == [[0.5, 2.0], [1.0, -0.001]]
    assert found.output[:, :, 0].tolist() == [[3, 5], [4, 6]]
    with pytest.raises(FileError, match=r"no column is 'v' at a point as 'v\[a=0.5, b=0.5\]' is"):
        read(
            frame.rename(columns=lambda name: name.replace("a=", "").replace("b=", "")),
            folder / "runs.csv",
            ("g", ["a", "b"], "v"),
        )


def test_numbers_of_columns_are_not_taken_for_points(folder):
    frame = pd.DataFrame({"g": [1.0, 2.0, 0.0], "v_3": [3.0, 4, 8], "v_1": [5.0, 6, 8], "v_2": [7.0, 8, 9]})
    names = ("g", "t", "v")
    with pytest.raises(FileError, match=r'may be numbered, or at t = 1, 2, 3: give points = "header"'):
        read(frame, folder / "runs.csv", names)
    assert read(frame, folder / "runs.csv", names, points="header").x[:, 0].tolist() == [1, 2, 3]
    found = read(frame, folder / "runs.csv", names, points=[0.1, 0.9, 0.5])
    assert found.x[:, 0].tolist() == [0.1, 0.5, 0.9]
    assert found.output[1, :, 0].tolist() == [5, 3, 7]
    (folder / "points.csv").write_text("t,column\n0.5,v_3\n0.1,v_1\n0.9,v_2\n")
    same(read(frame, folder / "runs.csv", names, points=folder / "points.csv"), found)
    same(read(frame, folder / "runs.csv", names, points=[0.5, 0.1, 0.9], columns=["v_3", "v_1", "v_2"]), found)
    with pytest.raises(FileError, match=r"points has 2 rows, and the columns of 'v' in .* are v_3, v_1, v_2"):
        read(frame, folder / "runs.csv", names, points=[0.1, 0.9])


def test_outputs_without_inputs(folder):
    frame = pd.DataFrame({"mass": [3.0, 1.0, 3.0], "g": [2.0, 1.0, 2.0], "size": [5.0, 6.0, 4.0]})
    found = read(frame, folder / "runs.csv", ("g", [], ["size", "mass"]))
    assert found.theta[:, 0].tolist() == [1, 2, 2]
    assert found.output[:, 0].tolist() == [[6, 1], [4, 3], [5, 3]]


def test_names_may_differ(folder):
    frame = long_frame(runs()).rename(columns={"g": "gravity", "t": "time", "v": "speed"})
    names = ({"g": "gravity", "drag": "drag"}, {"t": "time"}, {"v": "speed", "h": "h"})
    same(read(frame, folder / "runs.csv", names), read(long_frame(runs()), folder / "straight.csv"))


def test_parquet(folder):
    pytest.importorskip("pyarrow", reason="needs pyarrow, the extra parquet")
    shuffled(wide_frame(runs()), 3).to_parquet(folder / "runs.parquet")
    same(RunTable.load(folder / "runs.parquet", *NAMES), read(long_frame(runs()), folder / "straight.csv"))
    with pytest.raises(FileError, match=r"no column 'drog'; there are: .*perhaps 'drag' is meant"):
        RunTable.load(folder / "runs.parquet", ["g", "drog"], *NAMES[1:])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("G,x,y\n1,0,2\n", r"no column 'g'; there are: G, x, y; perhaps 'G' is meant"),
        ("a,x,y\n1,0,2\n", r"no column 'g'; there are: a, x, y$"),
        ("g,z,w\n1,0,2\n", r"no column 'x'; there are: g, z, w \(one row a run and point\), and no column is 'y' at"),
        ("g,x,Y\n1,0,2\n", r"no column 'y'; there are: g, x, Y; perhaps 'Y' is meant"),
        ("g,x,y\n", "has no rows"),
        ("g,x,y\n1,0,2\n,1,3\n", r"parameter 'g' is missing or infinite in line 3"),
        ("g,x,y\n1,0,2\n1,,3\n", r"input 'x' is missing or infinite in line 3"),
        ("g,x,y\n1,0,2\n1,1,3\n1,0,4\n", r"line 2 and line 4 of .* have the same parameters and inputs"),
        ("run,g,x,y\na,1,0,2\na,2,1,3\nb,1,0,4\n", r"run a has several values of one parameter, in line 2 and line 3"),
        ("run,g,x,y\na,1,0,2\n,1,1,3\n", r"column 'run' of .* is empty in line 3"),
        ("g,y_0.5,y@0.5\n1,0,2\n", r"columns 'y_0.5' and 'y@0.5' are one point of 'y'"),
        ("g;x;y\n1;0;2\n", r"no column 'g'; .* separated by ';': give separator"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, message):
    (tmp_path / "runs.csv").write_text(text)
    with pytest.raises(FileError, match=message):
        RunTable.load(tmp_path / "runs.csv", "g", "x", "y")


def test_replicates_may_be_numbered_at_each_theta(tmp_path):
    (tmp_path / "runs.csv").write_text(
        "g,rep,x,y\n1,1,0,5\n1,2,0,4\n1,1,1,6\n1,2,1,9\n2,1,0,0\n2,2,0,1\n2,1,1,2\n2,2,1,3\n"
    )
    found = RunTable.load(tmp_path / "runs.csv", "g", "x", "y", run="rep")
    assert found.theta[:, 0].tolist() == [1, 1, 2, 2]
    assert sorted(found.output[:, :, 0].tolist()) == [[0, 2], [1, 3], [4, 9], [5, 6]]


def test_frames_have_their_points_aligned():
    """Pandas: the runs as they appear, their common points in the order of x."""
    frame = long_frame(runs())
    mixed = RunTable.from_frame(pd.read_csv(io.StringIO(shuffled(frame, 5).to_csv(index=False))), *NAMES)
    assert not mixed.ragged
    assert np.array_equal(np.asarray(mixed.x)[:, 0], X)


def test_inputs_and_outcomes_in_order_by_name():
    table = RunTable(
        [[1.0], [2.0]], np.arange(12.0).reshape(2, 3, 2), [[0, 5], [1, 6], [2, 7]], "g", ["a", "b"], ["u", "v"]
    )
    other = table.ordered(["g"], ["b", "a"], ["v"])
    assert other.x[0].tolist() == [5, 0]
    assert other.output[1].tolist() == [[7], [9], [11]]
    assert table.ordered(["g"], ["c", "d"], ["w"]) is table


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("g,v_0,5,v_1", "columns 'v_0' and '5' name points of 'v' in two ways: if the header has decimal commas"),
        ("g,v-1,v-2,v-3", r"column 'v-1' may be 'v' at 1 or at -1: write v\[1\]"),
    ],
)
def test_headers_that_can_be_read_in_two_ways_are_refused(tmp_path, header, words):
    (tmp_path / "wide.csv").write_text(f"{header}\n1,2,3,4\n2,3,4,5\n")
    with pytest.raises(FileError, match=words):
        RunTable.load(tmp_path / "wide.csv", ["g"], ["t"], ["v"])


def test_negative_points_of_the_header(tmp_path):
    (tmp_path / "wide.csv").write_text("g,v-1,v0,v_2.5\n1,2,3,4\n2,3,4,5\n")
    assert RunTable.load(tmp_path / "wide.csv", ["g"], ["t"], ["v"]).x.tolist() == [[-1.0], [0.0], [2.5]]


def test_rows_that_are_missing_are_missing_cells(folder):
    """Where most runs have all points; otherwise each has its own."""
    frame = long_frame(runs())
    found = read(frame.drop(index=4), folder / "runs.csv")
    assert not found.ragged
    assert np.isnan(found.output).sum() == 2
    assert found.notes[-1] == "1 of 5 runs have no row for some of the points: missing cells"
    assert read(frame.drop(index=[4, 10]), folder / "runs.csv").ragged
