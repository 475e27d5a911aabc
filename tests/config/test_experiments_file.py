"""Several experiments in one problem file: tables of their own, a column of labels, and what is refused."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.cli.commands import app
from orthocal.config.experiments_file import build_any, files_of, read_any_file

SIMULATOR = "def f(x, theta):\n    return theta[0] * x + theta[1]\n"
COMMON = """
private = ["offset"]
[simulator]
function = "model.py:f"
[parameters]
a = { distribution = "norm", loc = 0, scale = 10 }
offset = { distribution = "norm", loc = 0, scale = 5 }
[noise]
cov = 0.01
[domain]
lower = 0
upper = 1
nodes = 15
[method]
sd = 1.0
lengthscale = 0.5
[sampling]
draws = 40
chains = 2
seed = 1
starts = 2
"""
TABLES = """
[data]
x = "x"
y = "y"
[experiments."rig A"]
data = { file = "a.csv" }
[experiments."rig B"]
data = { file = "b.csv", y = "height" }
noise = { cov = 0.04 }
"""
COLUMN = """
[data]
file = "both.csv"
x = "x"
y = "y"
experiment = "rig"
[experiments.B.noise]
cov = 0.04
"""


def values(offset, n, seed):
    x = np.linspace(0, 1, n)
    return x, 2 * x + offset + 0.1 * np.random.default_rng(seed).standard_normal(n)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "model.py").write_text(SIMULATOR)
    rows = {
        name: list(zip(*values(*given), strict=True)) for name, given in {"A": (0.5, 8, 1), "B": (-1, 12, 2)}.items()
    }
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in rows["A"]))
    (tmp_path / "b.csv").write_text("x,height\n" + "".join(f"{x},{y}\n" for x, y in rows["B"]))
    mixed = [(name, *row) for name in ("B", "A") for row in rows[name]]
    (tmp_path / "both.csv").write_text("rig,x,y\n" + "".join(f"{name},{x},{y}\n" for name, x, y in mixed))
    return tmp_path


def built(folder, text):
    path = folder / "problem.toml"
    path.write_text(text)
    return build_any(read_any_file(path), path)


def test_tables_of_their_own(folder):
    found = built(folder, COMMON + TABLES)
    assert found.names == ("rig A", "rig B")
    assert found.parameters.names == ("a", "offset[rig A]", "offset[rig B]")
    assert found["rig B"].data.outcome_names == ("height",)
    assert [float(one.noise.cov[0, 0]) for one in found.problems.values()] == [0.01, 0.04]
    np.testing.assert_allclose(found["rig A"].data.y[:, 0], values(0.5, 8, 1)[1])


def test_a_column_of_labels_is_the_short_way(folder):
    found, other = built(folder, COMMON + COLUMN), built(folder, COMMON + TABLES)
    assert found.names == ("B", "A")
    for short, long in (("A", "rig A"), ("B", "rig B")):
        np.testing.assert_array_equal(found[short].data.y, other[long].data.y)
        np.testing.assert_array_equal(found[short].noise.cov, other[long].noise.cov)


def test_parameters_by_name_and_pooled_ones(folder):
    pooled = COMMON.replace('private = ["offset"]', "").replace(
        "[simulator]", '[private.offset]\npooled = true\nsd = { distribution = "halfnorm", scale = 2 }\n[simulator]', 1
    )
    found = built(folder, pooled + TABLES)
    assert found.pools[0].names == ("mu[offset]", "tau[offset]")
    assert found.pools[0].sd.kwds == {"scale": 2}
    (folder / "model.py").write_text(SIMULATOR + "def line(x, theta):\n    return theta[0] * x\n")
    fewer = TABLES + 'parameters = ["a"]\nsimulator = { function = "model.py:line" }\n'
    assert built(folder, COMMON + fewer).parameters.names == ("a", "offset[rig A]")


def test_settings_are_given_to_the_function_by_name(folder):
    (folder / "model.py").write_text(
        "def f(x, theta, speed, shift=0.0):\n    return speed * theta[0] * x + theta[1] + shift\n"
    )
    rows = (folder / "both.csv").read_text().splitlines()
    speeds = {"A": 2.0, "B": 3.0}
    faster = [rows[0] + ",speed", *(f"{row},{speeds[row[0]]}" for row in rows[1:])]
    (folder / "both.csv").write_text("\n".join(faster) + "\n")
    text = COMMON + COLUMN.replace('experiment = "rig"', 'experiment = "rig"\nsettings = ["speed"]')
    found = built(folder, text + "[experiments.A.simulator]\nsettings = { shift = 0.5 }\n")
    x = np.array([[1.0]])
    assert found["A"].simulator.required(x, np.array([1.0, 0.0])) == 2.5
    assert found["B"].simulator.required(x, np.array([1.0, 0.0])) == 3.0
    with pytest.raises(oc.OrthocalError, match="'x' has 12 values"):
        built(
            folder, text.replace('settings = ["speed"]', 'settings = ["x"]').replace("experiments.B", "experiments.A")
        )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            TABLES + "[experiments.C]\nsampling = { draws = 3 }\n",
            r"\[experiments.C\] has no sampling: an experiment has",
        ),
        (TABLES + '[experiments.C]\nparameters = ["b"]\n', r"b is not in \[parameters\], which has a, offset"),
        (TABLES + "[experiments.C]\nparameters = 3\n", "give a list of names"),
        (TABLES + '[experiments.C]\ndata = { x = "z", y = "y" }\n', "missing key 'data.file'"),
        (COLUMN.replace("experiments.B", "experiments.D"), "has no such label, there are B, A"),
        (COLUMN.replace('experiment = "rig"', 'experiment = "rg"'), "has no column 'rg'"),
        (COLUMN.replace(".noise]\ncov = 0.04", "]\ndata = 5"), r"\[experiments.B\]: data: input should be"),
        ('weights = "many"\n', "weights"),
        ("[experiments]\n", "no experiments: give tables"),
    ],
)
def test_what_is_wrong_is_named(folder, text, words):
    text = text + COMMON if text.startswith("weights") else COMMON + text
    if "weights" in text:
        text += TABLES
    path = folder / "problem.toml"
    path.write_text(text)
    with pytest.raises(oc.OrthocalError, match=words):
        build_any(read_any_file(path), path)


def test_all_files_are_inputs(folder):
    path = folder / "problem.toml"
    path.write_text(COMMON + TABLES)
    assert [one.name for one in files_of(read_any_file(path), path)] == ["problem.toml", "a.csv", "model.py", "b.csv"]


@pytest.mark.slow
def test_run_and_compare(folder, capsys):
    path = folder / "problem.toml"
    path.write_text(COMMON + TABLES)
    app(["run", str(path)], standalone_mode=False)
    shown = capsys.readouterr().out
    assert "offset[rig B]" in shown
    assert "rig A: noise" in shown
    loaded = oc.load(folder / "fit.nc")
    assert list(loaded.experiments) == ["rig A", "rig B"]
    assert loaded.record.problem_file == "problem.toml"
    app(["compare", str(path)], standalone_mode=False)
    assert "from the other experiments" in capsys.readouterr().out
    for name in ("compare.html", "compare-disagreements.csv", "compare-predictions.csv", "fit.html"):
        assert (folder / name).stat().st_size > 100
