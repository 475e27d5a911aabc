"""[data] of a problem file: the outcomes' scale and errors of x."""

import numpy as np
import pandas as pd
import pytest

import orthocal as oc
from orthocal.config.problem_file import build_problem, read_problem_file

FILE = """
[data]
file = "field.csv"
x = ["t", "u"]
y = ["c", "v"]
{}
[simulator]
function = "simulator.py:simulate"
[parameters]
a = {{ distribution = "norm", loc = 5, scale = 3 }}
[noise]
cov = {}
"""
SIMULATOR = """
import numpy as np
def simulate(x, theta):
    return np.stack([theta[0] * np.exp(-x[:, 0]), theta[0] * x[:, 1]], axis=1)
"""


def built(folder, lines, cov="0.01"):
    rng = np.random.default_rng(1)
    x = rng.random((20, 2))
    table = pd.DataFrame(
        {"t": x[:, 0], "u": x[:, 1], "c": 5 * np.exp(-x[:, 0]), "v": 5 * x[:, 1], "t_err": 0.1 * x[:, 1]}
    )
    table["u_err"] = 0.02
    table.to_csv(folder / "field.csv", index=False)
    (folder / "simulator.py").write_text(SIMULATOR)
    (folder / "problem.toml").write_text(FILE.format(lines, cov))
    return table, build_problem(read_problem_file(folder / "problem.toml"), folder)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ('transform = "log"', ("log", "log")),
        ('transform = ["log", "sqrt"]', ("log", "sqrt")),
        ('transform = { c = "log" }', ("log", None)),
        ("", ()),
    ],
)
def test_transforms(tmp_path, line, names):
    table, problem = built(tmp_path, line)
    assert problem.data.transforms.names == names
    np.testing.assert_allclose(problem.data.native_y, table[["c", "v"]])


def test_units(tmp_path):
    _, problem = built(tmp_path, 'units = { t = "s", c = "mol/l", a = "mol/l" }')
    assert problem.units == {"t": "s", "c": "mol/l", "a": "mol/l"}
    with pytest.raises(
        oc.OrthocalError, match="units has 'w': give names of inputs, outcomes or parameters, t, u, c, v, a"
    ):
        built(tmp_path, 'units = { w = "s" }')


@pytest.mark.parametrize(
    ("line", "columns"),
    [
        ("x_err = 0.1", (0.1, 0.1)),
        ("x_err = 1", (1.0, 1.0)),
        ("x_err = [0.1, 0]", (0.1, 0.0)),
        ('x_err = ["t_err", "u_err"]', ("t_err", "u_err")),
    ],
)
def test_errors_of_x(tmp_path, line, columns):
    table, problem = built(tmp_path, line)
    for j, column in enumerate(columns):
        expected = table[column] if isinstance(column, str) else column
        np.testing.assert_allclose(problem.input_errors.x_err[:, j], expected)


@pytest.mark.parametrize(
    ("line", "cov", "words"),
    [
        ('transform = "cube"', "0.01", "transform='cube'"),
        ('transform = { z = "log" }', "0.01", "transform names z"),
        ("transform = 3", "0.01", "data.transform"),
        ('x_err = ["t_err", "w"]', "0.01", "has no column 'w'"),
        ('x_err = "t_err"', "0.01", "2 columns"),
        ("x_err = 0.1", '"estimate"', "the scatter of y"),
    ],
)
def test_mistakes(tmp_path, line, cov, words):
    with pytest.raises(oc.OrthocalError, match=words):
        built(tmp_path, line, cov)


@pytest.mark.slow
def test_the_command_runs_it(tmp_path, capsys):
    from orthocal.cli.commands import run

    built(tmp_path, 'transform = { c = "log" }\nx_err = 0.01')
    with (tmp_path / "problem.toml").open("a") as file:
        file.write('[method]\nname = "none"\n[sampling]\ndraws = 20\nchains = 2\nwarmup = 50\nseed = 1\nstarts = 2\n')
    run(tmp_path / "problem.toml")
    said = capsys.readouterr().out
    assert "that of log c is" in said
    assert "errors in x" in said
    assert "on the scale of log c and v" in (tmp_path / "fit.html").read_text()
    assert oc.load(tmp_path / "fit.nc").record.scale_names == ("log c", "v")


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_runs_are_matched_by_name_and_tables_have_dialects(tmp_path, order):
    """f = a - b x, learnt from runs whose columns are in either order."""
    rng = np.random.default_rng(2)
    theta, x = rng.random((30, 2)), np.linspace(0, 1, 6)
    oc.RunTable(theta, theta[:, :1] - theta[:, 1:] * x, x, ["a", "b"], ["t"], ["y"]).ordered(order).save(
        tmp_path / "r.nc"
    )
    rows = [f"{t:.2f};{0.9 - 0.2 * t:.4f}".replace(".", ",") for t in x]
    (tmp_path / "field.csv").write_text("\n".join(["t ; y", *rows]))
    uniform = '{ distribution = "uniform", loc = 0, scale = 1 }'
    (tmp_path / "problem.toml").write_text(
        '[data]\nfile = "field.csv"\nseparator = ";"\ndecimal = ","\nx = "t"\ny = "y"\n'
        f'[simulator]\nruns = "r.nc"\nemulator = "gp"\n[parameters]\na = {uniform}\nb = {uniform}\n'
        "[noise]\ncov = 0.0001\n"
    )
    problem = build_problem(read_problem_file(tmp_path / "problem.toml"), tmp_path)
    np.testing.assert_allclose(problem.data.y[:, 0], 0.9 - 0.2 * x, rtol=1e-12)
    np.testing.assert_allclose(problem.theta_tilde, [0.9, 0.2], atol=0.02)


LABELLED = """
[data]
file = "field.csv"
x = ["t", "machine"]
y = "y"
{}
[simulator]
function = "simulator.py:simulate"
[parameters]
a = {{ distribution = "norm", loc = 5, scale = 3 }}
[noise]
cov = 0.01
{}
"""


def labelled(folder, machines, data="", domain=""):
    rows = [f"{t / 10},{machine},{t}" for t, machine in enumerate(machines)]
    (folder / "field.csv").write_text("\n".join(["t,machine,y", *rows]))
    (folder / "simulator.py").write_text("def simulate(x, theta):\n    return theta[0] * x[:, 0]\n")
    (folder / "problem.toml").write_text(LABELLED.format(data, domain))
    return build_problem(read_problem_file(folder / "problem.toml"), folder)


def test_a_column_of_words_holds_labels(tmp_path):
    made = labelled(tmp_path, ["B2", "A1", "B2", "C"])
    assert made.categories == {"machine": {"A1": 0.0, "B2": 1.0, "C": 2.0}}
    np.testing.assert_array_equal(made.data.x[:, 1], [1, 0, 1, 2])


def test_numbers_are_labels_where_the_file_says_so(tmp_path):
    machines = [12, 7, 12, 7]
    assert not labelled(tmp_path, machines).categories
    domain = "[domain]\nlower = 0\nupper = 1\nlabels = {machine = {7 = 3, 12 = 1}}"
    made = labelled(tmp_path, machines, 'categorical = "machine"', domain)
    assert made.categories == {"machine": {"7": 7.0, "12": 12.0}}
    nodes, weights = made.rule
    assert weights[nodes[:, 1] == 7].sum() == pytest.approx(0.75)
    alone = labelled(tmp_path, machines, 'categorical = "machine"', "[domain.labels]\nmachine = {7 = 3, 12 = 1}")
    assert repr(alone.domain) == "Box(0, 0.3) x machine (7, 12)"


def test_nodes_of_a_file_may_have_labels(tmp_path):
    (tmp_path / "nodes.csv").write_text("t,machine\n0.5,B\n0.1,A")
    made = labelled(tmp_path, ["A", "B", "A"], domain='[domain]\nfile = "nodes.csv"\nx = ["t", "machine"]')
    np.testing.assert_array_equal(made.rule.nodes, [[0.5, 1], [0.1, 0]])


@pytest.mark.parametrize(
    ("machines", "words"),
    [
        ([1, 2, "x", 4], "column 'machine' of field.csv, line 4: 'x' is not a number"),
        (["kg", 2, 3, 4], "if line 2 holds the units, delete it"),
        (["1.5.2", "1.5.3"], "'1.5.2' is not a number"),
        (["A", "", "B"], "column 'machine' of x has no label in 1 of 3 rows, the first is row 1"),
    ],
)
def test_cells_that_are_neither_are_refused(tmp_path, machines, words):
    with pytest.raises(oc.OrthocalError, match=words):
        labelled(tmp_path, machines)
