"""Functions of problem and campaign files, and how many theta they are called for at a time."""

import numpy as np
import pytest

import orthocal as oc
from orthocal.config.campaign_file import build_campaign, read_campaign_file
from orthocal.config.problem_file import build_problem, read_problem_file
from orthocal.errors import ConfigError, InputError

X = np.linspace(0, 1, 12)
CODE = """
import numpy as np
def one(x, theta):
    return theta[0] * np.exp(-theta[1] * x)
def many(x, theta):
    return theta[:, :1] * np.exp(-theta[:, 1:] * np.ravel(x))
"""
PARAMETERS = """
[parameters]
a = { distribution = "norm", loc = 2, scale = 1 }
b = { distribution = "uniform", loc = 0.1, scale = 4 }
"""
PROBLEM = """
[data]
file = "field.csv"
x = "x"
y = "y"
[noise]
cov = 0.01
[sampling]
starts = 2
[simulator]
"""
CAMPAIGN = """
[design]
n = 4
[x]
file = "field.csv"
columns = "x"
[simulator]
"""


@pytest.fixture
def folder(tmp_path):
    rows = [f"{x},{y}" for x, y in zip(X, 2 * np.exp(-X), strict=True)]
    (tmp_path / "field.csv").write_text("\n".join(["x,y", *rows]))
    (tmp_path / "code.py").write_text(CODE)
    return tmp_path


def problem(folder, simulator):
    (folder / "problem.toml").write_text(PROBLEM + simulator + PARAMETERS)
    return build_problem(read_problem_file(folder / "problem.toml"), folder)


def test_a_batched_function_has_the_same_best_fit(folder):
    one = problem(folder, 'function = "code.py:one"')
    for batched in ("true", "8"):
        many = problem(folder, f'function = "code.py:many"\nbatched = {batched}')
        np.testing.assert_array_equal(many.theta_tilde, one.theta_tilde)


def test_jobs_and_a_time_out_are_the_simulators(folder):
    found = problem(folder, 'function = "code.py:one"\njobs = 3\ntimeout = 2.5').simulator._many
    assert (found.jobs, found.timeout) == (3, 2.5)


@pytest.mark.parametrize(
    ("simulator", "words"),
    [
        ('function = "code.py:one"\njobs = 0', "jobs=0: give the number of processes"),
        ('function = "code.py:many"\njobs = 2\nbatched = true', "leave one of them out"),
        ('runs = "runs.csv"\nbatched = true', "with runs has no batched"),
        ('runs = "runs.csv"\ntimeout = 3.0', "with runs has no timeout"),
    ],
)
def test_what_does_not_fit(folder, simulator, words):
    with pytest.raises((ConfigError, InputError), match=words):
        problem(folder, simulator)


def test_a_campaign_in_batches(folder):
    (folder / "campaign.toml").write_text(CAMPAIGN + 'function = "code.py:many"\nbatched = 3' + PARAMETERS)
    runs = oc.campaign(**build_campaign(read_campaign_file(folder / "campaign.toml"), folder), progress=False)
    assert len(runs.theta) == 4
    np.testing.assert_array_equal(runs.output[..., 0], [a * np.exp(-b * X) for a, b in runs.theta])
