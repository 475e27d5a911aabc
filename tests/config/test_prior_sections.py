"""Joint priors and a constraint in files."""

import numpy as np
import pytest
from scipy import stats

from orthocal.config.campaign_file import build_campaign, read_campaign_file
from orthocal.config.priors import names_of, priors_of
from orthocal.config.problem_file import build_problem, read_problem_file
from orthocal.errors import InputError

JOINT = {"distribution": "multivariate_normal", "mean": [0, 1], "cov": [[1, 0.3], [0.3, 2]]}
FILE = """
constraint = "a + b < 1 and c > 2 * a"

[data]
file = "field.csv"
x = "x"
y = "y"

[simulator]
function = "simulator.py:f"

[parameters]
"a, b" = { distribution = "multivariate_normal", mean = [0, 1], cov = [[1, 0.3], [0.3, 2]] }
c = { distribution = "norm", loc = 1, scale = 1 }

[noise]
cov = 0.01
"""


@pytest.fixture
def folder(tmp_path):
    x = np.linspace(0, 1, 12)
    rows = "\n".join(f"{one:.6f},{0.2 + 0.5 * one + one**2:.6f}" for one in x)
    (tmp_path / "field.csv").write_text(f"x,y\n{rows}\n")
    (tmp_path / "simulator.py").write_text("def f(x, t):\n    return t[0] + t[1] * x[:, 0] + t[2] * x[:, 0] ** 2\n")
    (tmp_path / "problem.toml").write_text(FILE)
    return tmp_path


def test_a_problem_file(folder):
    problem = build_problem(read_problem_file(folder / "problem.toml"), folder)
    assert problem.parameters.names == ("a", "b", "c")
    assert problem.parameters.constraint.text == "a + b < 1 and c > 2 * a"
    np.testing.assert_allclose(problem.theta_tilde, [0.2, 0.5, 1.0], atol=0.05)


def test_a_mistake_in_the_expression_is_named(folder):
    (folder / "problem.toml").write_text(FILE.replace("c > 2 * a", "d > 2 * a"))
    with pytest.raises(InputError, match="'d' at column 15 is not the name of a parameter"):
        build_problem(read_problem_file(folder / "problem.toml"), folder)


def test_the_design_of_a_campaign(folder):
    (folder / "campaign.toml").write_text(
        'constraint = "a + b < 1"\n[simulator]\nfunction = "simulator.py:f"\n[parameters]\n"a, b" = '
        '{ distribution = "multivariate_t", loc = [0, 1], shape = [[1, 0], [0, 1]], df = 5 }\n[design]\nn = 16\n'
        '[x]\nfile = "field.csv"\ncolumns = "x"\n'
    )
    design = build_campaign(read_campaign_file(folder / "campaign.toml"), folder)["design"]
    assert list(design.columns) == ["a", "b"]
    assert len(design) == 16
    assert (design["a"] + design["b"] < 1).all()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"mean": [0]}, "'a, b': multivariate_normal cannot be made"),
        ({"cov": [[1, 2], [2, 1]]}, "'a, b': multivariate_normal cannot be made"),
        ({"cov": "wide"}, "'a, b': multivariate_normal cannot be made"),
        ({"scale": 3}, "'a, b': multivariate_normal takes mean, cov"),
    ],
)
def test_joint_priors_that_do_not_fit_are_refused(changed, words):
    with pytest.raises(InputError, match=words):
        priors_of({"a, b": JOINT | changed})


def test_names_are_split_for_joint_priors_only():
    found = priors_of({"a, b": JOINT, "k[0,1]": {"distribution": "norm"}})
    assert names_of(found) == ["a", "b", "k[0,1]"]


def test_new_distributions_of_scipy_by_their_names():
    found = priors_of(
        {
            "a": {"distribution": "Normal", "mu": 1, "sigma": 2},
            "b": {"distribution": "Normal", "mu": 1, "sigma": 2, "truncate": [0, float("inf")]},
            "c": {"distribution": "Uniform", "a": -1, "b": 3},
        }
    )
    half = stats.truncnorm(-0.5, np.inf, 1, 2)
    for prior, twin in zip(found.values(), (stats.norm(1, 2), half, stats.uniform(-1, 4)), strict=True):
        np.testing.assert_allclose(prior.ppf([0.1, 0.8]), twin.ppf([0.1, 0.8]))


@pytest.mark.parametrize(
    "settings", [{"loc": 0, "scale": 1}, {"mu": "zero", "sigma": 1}, {"mu": 0, "sigma": 1, "truncate": 3}]
)
def test_new_distributions_that_cannot_be_made_are_refused(settings):
    with pytest.raises(InputError, match="parameter 'a': Normal cannot be made"):
        priors_of({"a": {"distribution": "Normal", **settings}})
