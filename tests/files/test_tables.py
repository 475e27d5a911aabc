"""CSV tables: a number is the one that its text says, or an error names the line."""

import numpy as np
import pytest

from orthocal.errors import FileError
from orthocal.files.tables import Dialect, number_of, read_text_table


def table(folder, text, *dialect):
    path = folder / "field.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_text_table(path, Dialect(*dialect), path.name)


def test_names_are_trimmed_and_numbers_keep_every_digit(tmp_path):
    read = table(tmp_path, "\ufeff x , y\n 0.1,0.30000000000000004\r\n\n1e-3,NA\n", ",")
    assert read.names == ("x", "y")
    assert read.lines == [2, 4]
    assert read.numbers("x").tolist() == [0.1, 1e-3]
    np.testing.assert_array_equal(read.numbers("y"), [0.1 + 0.2, np.nan])


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("x;y\n0,5;1,3\n-2;1e-3\n", (";", ",")),
        ("x\ty\n0.5\t1.3\n-2\t1e-3\n", ("\t", ".")),
        ("x|y\n0.5|1.3\n-2|.001\n", ("|", ".")),
        ("  x    y\n 0.5  1.3  \n  -2 1e-3\n", (" ", ".")),
    ],
)
def test_dialects(tmp_path, text, dialect):
    read = table(tmp_path, text, *dialect)
    assert read.numbers("x").tolist() == [0.5, -2]
    assert read.numbers("y").tolist() == [1.3, 0.001]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # x = 1, y = 3 for pandas
        ("x,y\n0,5,1,3\n", r"line 2 of field.csv has 4 cells, and its header names 2 columns: .* decimal commas.*"),
        ("x,y\n1,2,\n", "line 2 .* has 3 cells, and its header names 2 columns"),
        ("x,y\n1\n", "line 2 .* has 1 cells, and its header names 2 columns; a missing cell is an empty one"),
        ("x;y\n0,5;1,3\n", r'separated by \';\', give separator = ";", decimal = ","'),
        ("x\ty\n0,5\t1,3\n", r'give separator = "\\t", decimal = ","'),
        ("x,y,x\n1,2,3\n", "has two columns 'x': give each column a name of its own"),
        ("x,y\n1,2\n1,high\n", "column 'y' of field.csv, line 3: 'high' is not a number; leave a missing cell empty"),
        (
            "x,y\ns,m/s\n0,1\n",
            "column 'x' of field.csv, line 2: 's' is not a number, .* line 2 holds the units, delete",
        ),
        ('x,y\n0,1\n"0,5",2\n', r"line 3: '0,5' is not a number with a decimal point: give decimal = \",\""),
        ("x,y\n0,1\n1_000,2\n", "line 3: '1_000' is not a number"),
        ("x,y\n0,1\n\u0661,2\n", "line 3: '\u0661' is not a number"),
        ("x,y\n0,1\n1e999,2\n", "line 3: '1e999' is not a number that a float can hold"),
        (
            "x;y\n1;2\n",
            "has no column 'x'; there are: x;y; its cells seem to be separated by ';': give separator = \";\"",
        ),
        ("1,2\n3,4\n", "no column 'x'; .* the first line must hold the names of the columns, and it holds numbers"),
        ("", "is not a CSV table: it is empty"),
        ('x,y\n"1,2\n', "is not a CSV table: line 2: unexpected end of data"),
        (b"x,y\n\xff,2\n", "is not a CSV table: it is not text in UTF-8 .*; save it as UTF-8"),
        ("x,\0,y\n1,2,3\n", r"has a column '\\x00': its name must be printable text"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(tmp_path, text, message):
    def read():
        found = table(tmp_path, text)
        return [found.numbers(name) for name in ("x", "y")]

    with pytest.raises(FileError, match=message):
        read()


@pytest.mark.parametrize(
    ("dialect", "message"), [((",", ","), "both ','"), (("::",), "separator"), ((",", "'"), "deci")]
)
def test_dialects_that_no_reader_could_tell(tmp_path, dialect, message):
    with pytest.raises(FileError, match=message):
        table(tmp_path, "x\n1\n", *dialect)


def test_a_point_is_no_decimal_comma(tmp_path):
    with pytest.raises(FileError, match=r"'1.234' is not a number"):
        table(tmp_path, "x\n1,5\n1.234\n", ";", ",").numbers("x")
    assert number_of("1.234,5", ",") is None
    assert number_of("1,5", ",") == 1.5
    assert number_of("1,5") is None


def test_labels(tmp_path):
    read = table(tmp_path, "g,h,i\n12345678901,a,1.5\n2,,2\n")
    assert read.labels("g").tolist() == [12345678901, 2]
    assert read.labels("h").isna().tolist() == [False, True]
    assert read.labels("i").tolist() == [1.5, 2.0]
