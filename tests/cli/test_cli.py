"""The command line as a user meets it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import orthocal as oc
from orthocal.cli import main
from orthocal.cli.demo import PROBLEM, SIMULATOR

FILES = ("fit.nc", "fit.html", "fit-parameters.csv", "fit-predictions.csv")
FIELD = "x,y\n" + "\n".join(f"{i / 29},{3 * i / 29 + 0.1 * (-1) ** i}" for i in range(30)) + "\n"


class Result(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def orthocal(monkeypatch, capfd):
    """Run the program in this process, as its entry point does."""

    def run(*arguments, folder):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["orthocal", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Result(int(ended.value.code or 0), *capfd.readouterr())

    return run


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "field.csv").write_text(FIELD)
    (tmp_path / "simulator.py").write_text(SIMULATOR)
    (tmp_path / "problem.toml").write_text(PROBLEM + "draws = 50\nwarmup = 25\n")
    return tmp_path


def refused(run, message):
    """One line on standard error, no traceback, exit code 1."""
    assert run.returncode == 1
    assert run.stderr.startswith("error: ")
    assert run.stderr.count("\n") == 1
    assert message in run.stderr
    assert "Traceback" not in run.stdout + run.stderr


def test_a_look_before_the_run(folder, orthocal, monkeypatch):
    monkeypatch.setattr("orthocal.problem.preflight.probe.CHEAP", 0.0)
    run = orthocal("run", "problem.toml", "--check", folder=folder)
    assert run.returncode == 0, run.stdout
    assert "cost: gp with 4 x 50 draws will call the simulator about" in run.stdout
    assert "-> orthocal run says it" in run.stdout
    assert not (folder / "fit.nc").exists()
    (folder / "simulator.py").write_text(SIMULATOR.replace("theta[0] * x[:, 0]", "x[:, 0]"))
    broken = orthocal("run", "problem.toml", "--check", folder=folder)
    assert broken.returncode == 1
    assert "has no effect on the simulator" in broken.stdout


def test_demo_and_then_its_files(tmp_path, orthocal):
    run = orthocal("demo", "--out", "out", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "theta" in run.stdout
    assert "3.5653" in run.stdout
    assert run.stderr == ""
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {*FILES, "problem.toml", "simulator.py", "field.csv"}
    again = orthocal("run", "out/problem.toml", "--out", "again", folder=tmp_path)
    assert again.returncode == 0, again.stderr
    first, second = (oc.load(tmp_path / name / "fit.nc") for name in ("out", "again"))
    assert (first.theta == second.theta).all()
    report = orthocal("report", "out/fit.nc", "--out", "page.html", folder=tmp_path)
    assert report.returncode == 0, report.stderr
    assert (tmp_path / "page.html").read_text() == (tmp_path / "out" / "fit.html").read_text()


def test_run_writes_beside_the_problem_file(folder, orthocal):
    run = orthocal("run", folder / "problem.toml", folder=folder.parent)
    assert run.returncode == 0, run.stderr
    assert (folder / "fit.nc").is_file()
    assert "Calibration of problem.toml" in (folder / "fit.html").read_text()


BAD = {
    "an unknown key": ('x = "x"\n', 'x = "x"\nz = 1\n', "unknown key 'data.z'"),
    "an unknown table": ("[domain]", "[domian]", "unknown key 'domian'"),
    "a missing key": ('file = "field.csv"\n', "", "missing key 'data.file'"),
    "a wrong type": ("seed = 1", 'seed = "one"', "sampling.seed"),
    "a negative seed": ("seed = 1", "seed = -1", "seed=-1"),
    "a parameter that is a dot": ("theta = {", '"." = {', "parameter name '.'"),
    "not TOML": ("[data]", "[data", "not valid TOML"),
    "a missing file": ("field.csv", "absent.csv", "absent.csv: No such file"),
    "a missing column": ('y = "y"', 'y = "height"', "no column 'height'; there are: x, y"),
    "a missing simulator file": ("simulator.py", "absent.py", "absent.py does not exist"),
    "a missing function": (":simulate", ":run", "no function 'run' in simulator.py"),
    "an unknown distribution": ('"norm"', '"gauss"', "'gauss' is not a continuous distribution"),
    "a wrong prior argument": ("loc = 0", "location = 0", "norm takes loc, scale (unknown: location)"),
    "a domain that is too small": ("upper = 1", "upper = 0.5", "outside the domain"),
    "an unknown method": ("[sampling]", '[method]\nname = "magic"\n[sampling]', "no method 'magic'"),
    "a setting of another method": (
        "[sampling]",
        '[method]\nname = "pbart"\nnu = 1.5\n[sampling]',
        "'pbart' has no nu",
    ),
    "a setting of the projected methods": (
        "[sampling]",
        '[method]\nname = "ogp"\nprojection = "finite"\n[sampling]',
        "'ogp' has no projection",
    ),
    "a setting of a method that has none": (
        "[sampling]",
        '[method]\nname = "none"\nnu = 1.5\n[sampling]',
        "'none' has no nu: its settings are kernel",
    ),
    "a setting of the wrong type": (
        "[sampling]",
        '[method]\nname = "pbart"\ntrees = "many"\n[sampling]',
        "wrong type",
    ),
    "two sources of noise": ('y = "y"', 'y = "y"\ny_err = "y"\n[noise]\ncov = 0.04', "both give the noise"),
    "two kinds of noise": ("[sampling]", '[noise]\nrank = 0\nvarying = "x"\n[sampling]', "rank and varying"),
    "sampled noise of no groups": ("[sampling]", "[noise]\nsample = true\n[sampling]", "goes with noise.groups"),
    "groups that are not there": ("[sampling]", '[noise]\ngroups = "rig"\n[sampling]', "no groups 'rig'"),
    "a rank with a known covariance": ("[sampling]", "[noise]\ncov = 0.04\nrank = 1\n[sampling]", "noise.rank"),
    "an output name with a folder": ("[sampling]", '[output]\nname = "../x"\n[sampling]', "output.name"),
    "a bad smoothness": ("[sampling]", "[method]\nnu = 1\n[sampling]", "nu=1"),
    "a covariance of two": ("[sampling]", "[noise]\ncov = [[1, 0], [0, 1]]\n[sampling]", "cov in [noise] is 2 x 2"),
}


@pytest.mark.parametrize("case", BAD)
def test_mistakes_in_the_problem_file_are_one_line(folder, case, orthocal):
    old, new, message = BAD[case]
    file = folder / "problem.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    before = sorted(path.name for path in folder.iterdir())
    refused(orthocal("run", "problem.toml", folder=folder), message)
    assert [name for name in sorted(path.name for path in folder.iterdir()) if name != "__pycache__"] == before


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("    return 1 / 0", "raised ZeroDivisionError at theta = "),
        ("    return x[:, 0] * float('nan')", "returned NaN or infinity"),
        ("    return theta", "returned an array of shape (1,) for 30 points"),
    ],
)
def test_a_failing_simulator_is_one_line_and_writes_nothing(folder, body, message, orthocal):
    (folder / "simulator.py").write_text(f"def simulate(x, theta):\n{body}\n")
    refused(orthocal("run", "problem.toml", "--out", "new", folder=folder), message)
    assert not (folder / "new").exists()


def test_a_simulator_file_with_an_error_is_one_line(folder, orthocal):
    (folder / "simulator.py").write_text("import nothing_of_this_name\n")
    refused(orthocal("run", "problem.toml", folder=folder), "cannot be loaded: ModuleNotFoundError")


def test_simulator_files_may_be_real_modules(folder, orthocal):
    """Dataclasses with postponed annotations, and a neighbour imported when the function is called."""
    (folder / "neighbour.py").write_text("factor = 1.0\n")
    (folder / "simulator.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "@dataclass\nclass Line:\n    slope: float\n"
        "def simulate(x, theta):\n    import neighbour\n"
        "    return neighbour.factor * Line(theta[0]).slope * x[:, 0]\n"
    )
    run = orthocal("run", "problem.toml", folder=folder)
    assert run.returncode == 0, run.stderr


def test_a_simulator_file_that_exits_is_one_line(folder, orthocal):
    (folder / "simulator.py").write_text("raise SystemExit\n")
    refused(orthocal("run", "problem.toml", folder=folder), "cannot be loaded: SystemExit")


def test_a_report_does_not_replace_its_result(folder, orthocal):
    assert orthocal("run", "problem.toml", folder=folder).returncode == 0
    before = (folder / "fit.nc").read_bytes()
    refused(orthocal("report", "fit.nc", "--out", "fit.nc", folder=folder), "would replace")
    assert (folder / "fit.nc").read_bytes() == before


def test_text_in_a_numeric_column_is_one_line(folder, orthocal):
    (folder / "field.csv").write_text(FIELD.replace("0.0,", "zero,", 1))
    refused(orthocal("run", "problem.toml", folder=folder), "column 'x' of field.csv")


@pytest.mark.parametrize("content", [b"", b"not a result", b"\x89HDF\r\n\x1a\n" + bytes(200)])
def test_reports_of_foreign_files_are_one_line(tmp_path, content, orthocal):
    (tmp_path / "fit.nc").write_bytes(content)
    refused(orthocal("report", "fit.nc", folder=tmp_path), "fit.nc is not a netCDF file")
    assert [path.name for path in tmp_path.iterdir()] == ["fit.nc"]


def test_everything_can_be_said_in_the_problem_file(folder, orthocal):
    (folder / "bins.csv").write_text("position,area\n0.1,1\n0.5,2\n0.9,1\n")
    (folder / "simulator.py").write_text(SIMULATOR + "\n\ndef slope(x, theta):\n    return x\n")
    (folder / "problem.toml").write_text(
        """
[data]
file = "field.csv"
x = ["x"]
y = ["y"]
[simulator]
function = "simulator.py:simulate"
gradient = "simulator.py:slope"
[parameters]
"the slope <b>" = { distribution = "truncnorm", a = -1, b = 5, loc = 2, scale = 1 }
[domain]
file = "bins.csv"
x = "position"
weight = "area"
[noise]
cov = 0.01
[loss]
weight = "identity"
[method]
name = "pgp"
nu = 2.5
sd = 0.3
lengthscale = [0.4]
projection = "finite"
feedback = false
kernel = "slice"
[sampling]
draws = 30
warmup = 0
chains = 2
seed = 3
starts = 4
[output]
folder = "results"
name = "line"
title = "A line"
"""
    )
    run = orthocal("run", "problem.toml", folder=folder)
    assert run.returncode == 0, run.stderr
    posterior = oc.load(folder / "results" / "line.nc")
    assert posterior.parameter_names == ("the slope <b>",)
    assert posterior.theta.shape == (2, 30, 1)
    assert posterior.data.attrs["projection"] == "finite"
    assert "A line" in (folder / "results" / "line.html").read_text()


def test_the_installed_program_starts(tmp_path):
    program = Path(sys.executable).with_name("orthocal")
    run = subprocess.run([program, "run", "absent.toml"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr == "error: cannot read absent.toml: No such file or directory\n"


def test_help_and_version(tmp_path, orthocal):
    assert "demo" in orthocal("--help", folder=tmp_path).stdout
    assert orthocal("--version", folder=tmp_path).stdout == f"orthocal {oc.__version__}\n"


def test_the_commands_are_known_without_numerical_libraries():
    heavy = ("numpy", "scipy", "pandas", "xarray", "matplotlib", "numba", "pydantic", "jinja2")
    script = f"import orthocal.cli, sys; print(*(name for name in {heavy} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_the_problem_file_page_names_every_key():
    """docs/problem-file.md is complete: every key of every table is there."""
    from orthocal.config.problem_file import ProblemFile
    from orthocal.sections import Section

    page = (Path(__file__).parents[2] / "docs" / "problem-file.md").read_text()
    for table, field in ProblemFile.model_fields.items():
        # a key that stands before the tables is shown with a value
        assert (f"`{table} = " if table == "constraint" else f"[{table}]") in page
        kinds = [one for one in (field.annotation, *getattr(field.annotation, "__args__", ())) if isinstance(one, type)]
        for kind in kinds:
            if issubclass(kind, Section):
                for key in kind.model_fields:
                    assert f"`{key}`" in page, f"{table}.{key}"


@pytest.mark.slow
def test_two_outcomes_with_errors_and_missing_cells(tmp_path, orthocal):
    rng = np.random.default_rng(0)
    rows = [
        f"{x:.4f},{2 * x + e[0]:.4f},{'' if i % 5 == 0 else f'{x**2 + e[1]:.4f}'},0.1,0.2"
        for i, (x, e) in enumerate(zip(rng.random(40), rng.normal(0, [0.1, 0.2], (40, 2)), strict=True))
    ]
    (tmp_path / "field.csv").write_text("\n".join(["x,force,speed,force_err,speed_err", *rows]))
    (tmp_path / "simulator.py").write_text(
        "import numpy as np\n\ndef f(x, t):\n    return np.column_stack([t[0] * x[:, 0], x[:, 0] ** 2])\n"
    )
    (tmp_path / "problem.toml").write_text(
        """
[data]
file = "field.csv"
x = ["x"]
y = ["force", "speed"]
y_err = ["force_err", "speed_err"]
[simulator]
function = "simulator.py:f"
[parameters]
g = { distribution = "norm", loc = 0, scale = 10 }
[domain]
lower = 0
upper = 1
[method]
name = "pbart"
trees = 20
[sampling]
seed = 1
draws = 100
"""
    )
    run = orthocal("run", "problem.toml", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    posterior = oc.load(tmp_path / "fit.nc")
    assert posterior.outcome_names == ("force", "speed")
    assert abs(posterior.theta.mean() - 2) < 0.2
    assert json.loads(posterior.data.attrs["method"])["bias"]["trees"] == 20
    assert "8 of 80 cells of y are missing" in (tmp_path / "fit.html").read_text(encoding="utf-8")
