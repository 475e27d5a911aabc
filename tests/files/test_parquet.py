"""Parquet tables, and problems whose data are in one."""

import sys

import numpy as np
import pytest

import orthocal as oc
from orthocal.config.problem_file import build_problem, read_problem_file
from orthocal.errors import ConfigError, FileError
from orthocal.files.tables import ParquetTable

pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow, the extra parquet")
parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow, the extra parquet")


def written(folder, columns, **options):
    path = folder / "field.parquet"
    parquet.write_table(pyarrow.table(columns), path, **options)
    return path


def test_numbers_are_what_the_file_says_and_null_is_missing(tmp_path):
    exact = np.random.default_rng(0).standard_normal(50)
    columns = {
        "x": exact,
        "single": exact.astype(np.float32),
        "whole": np.arange(50),
        "holes": [None, *range(49)],
        "coded": pyarrow.array(np.arange(50) % 3).dictionary_encode(),
        "none": pyarrow.nulls(50),
    }
    table = ParquetTable(written(tmp_path, columns, row_group_size=7))
    assert len(table) == 50
    np.testing.assert_array_equal(table.numbers("x"), exact)
    np.testing.assert_array_equal(table.numbers("single"), exact.astype(np.float32).astype(float))
    np.testing.assert_array_equal(table.numbers("whole"), np.arange(50.0))
    np.testing.assert_array_equal(table.numbers("holes"), [np.nan, *range(49)])
    np.testing.assert_array_equal(table.numbers("coded"), np.arange(50) % 3)
    assert np.isnan(table.numbers("none")).all()


def test_labels_are_texts_or_numbers(tmp_path):
    columns = {"text": ["a", None, "b"], "whole": [3, 1, 2], "real": [0.5, None, 1.0], "odd": ["a\0", "b", "c"]}
    columns["coded"] = pyarrow.array(["u", "v", "u"]).dictionary_encode()
    table = ParquetTable(written(tmp_path, columns))
    assert table.labels("text").tolist()[::2] == ["a", "b"]
    assert table.labels("text").isna().tolist() == [False, True, False]
    assert table.labels("whole").tolist() == [3, 1, 2]
    assert table.labels("coded").tolist() == ["u", "v", "u"]
    assert table.labels("real").isna().tolist() == [False, True, False]
    with pytest.raises(FileError, match=r"column 'odd' of .*, row 0: 'a\\x00' is no label"):
        table.labels("odd")


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["m", "1.5", "2"], "'y' of .* holds string, not numbers: .* if its first row holds the units, delete it"),
        ([True, False, True], "'y' of .* holds bool, not numbers"),
        ([[1.0], [2.0], [3.0]], "'y' of .* holds tables or lists: give one number a row"),
        ([2**60 + 1, 1, 2], "'y' of .* has whole numbers with more digits than a float can hold"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[s]"), "'y' of .* holds timestamp.*, not numbers"),
    ],
)
def test_what_is_no_number_is_refused_by_its_name(tmp_path, column, message):
    table = ParquetTable(written(tmp_path, {"x": [1.0, 2.0, 3.0], "y": column}))
    with pytest.raises(FileError, match=message):
        table.numbers("y")


def test_names_that_occur_twice_or_not_at_all_are_refused(tmp_path):
    twice = pyarrow.Table.from_arrays([pyarrow.array([1.0])] * 2, names=["x", "x"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(FileError, match="has two columns 'x'"):
        ParquetTable(tmp_path / "twice.parquet")
    with pytest.raises(FileError, match="has no column 'z'; there are: x, y"):
        ParquetTable(written(tmp_path, {"x": [1.0], "y": [2.0]})).numbers("z")


def test_damaged_files_are_one_sentence(tmp_path):
    path = written(tmp_path, {"x": np.arange(1000.0)}, write_page_checksum=True)
    whole = path.read_bytes()
    for content in (b"", b"PAR1", b"x,y\n1,2\n", whole[:-20], whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(FileError, match="is not a Parquet table that can be read, or is damaged"):
            ParquetTable(path)
    # a page with another digit: its checksum knows
    path.write_bytes(whole[:600] + bytes([whole[600] ^ 1]) + whole[601:])
    with pytest.raises(FileError, match="is damaged"):
        ParquetTable(path).numbers("x")
    with pytest.raises(FileError, match=r"cannot read .*nowhere.parquet: No such file"):
        ParquetTable(tmp_path / "nowhere.parquet")


def test_without_pyarrow_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    path = written(tmp_path, {"x": [1.0]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(FileError, match=r"a Parquet table needs pyarrow: install orthocal\[parquet\], or write .* CSV"):
        ParquetTable(path)


PROBLEM = """
[data]
file = "field.{kind}"
x = "x"
y = "y"
groups = "g"
{more}
[simulator]
function = "simulator.py:simulate"
[parameters]
a = {{ distribution = "norm", loc = 0, scale = 3 }}
[domain]
lower = 0
upper = 1
[noise]
cov = 0.01
"""


def problem_of(folder, kind, more=""):
    (folder / "problem.toml").write_text(PROBLEM.format(kind=kind, more=more))
    (folder / "simulator.py").write_text("def simulate(x, theta):\n    return theta[0] * x\n")
    return build_problem(read_problem_file(folder / "problem.toml"), folder)


def test_a_problem_file_takes_parquet_as_it_takes_csv(tmp_path):
    rng = np.random.default_rng(3)
    x, g = rng.random(30), ["u", "v", "w"] * 10
    y = [None, *(2 * x[1:]).tolist()]
    written(tmp_path, {"x": x, "y": y, "g": g})
    rows = [f"{a!r},{'' if b is None else repr(b)},{c}" for a, b, c in zip(x.tolist(), y, g, strict=True)]
    (tmp_path / "field.csv").write_text("x,y,g\n" + "\n".join(rows) + "\n")
    one, other = (problem_of(tmp_path, kind) for kind in ("parquet", "csv"))
    np.testing.assert_array_equal(one.data.x, other.data.x)
    np.testing.assert_array_equal(one.data.y, other.data.y)
    assert one.data.groups.of_rows == other.data.groups.of_rows
    assert one.data.input_names == ("x",)
    np.testing.assert_array_equal(one.theta_tilde, other.theta_tilde)
    with pytest.raises(ConfigError, match="is a Parquet table: separator and decimal are for CSV"):
        problem_of(tmp_path, "parquet", 'separator = ";"')
    written(tmp_path, {"x": [0.5, None], "y": [1.0, 2.0], "g": ["u", "v"]})
    with pytest.raises(oc.errors.InputError, match="x has NaN or infinite values in 1 of 2 rows"):
        problem_of(tmp_path, "parquet")
