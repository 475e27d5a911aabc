"""Advice for the command line speaks of the problem file and of commands."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.results.file_words import in_file_words

PYTHON = re.compile(r"\boc\.|\w=|noise_cov|emulator_error|\w\(\)")
SOURCE = Path(oc.__file__).parent


def texts_of(path):
    """The texts in a module that are neither its docstrings nor an error's, with text for what is filled in."""
    tree = ast.parse(path.read_text())
    left_out = {id(one) for node in ast.walk(tree) if isinstance(node, ast.Raise) for one in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr):
            left_out |= {id(one) for one in ast.walk(node.body[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in left_out:
            left_out |= {id(one) for one in ast.walk(node)}
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else '"log"' for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def modules():
    """Those that give findings, but for what the words are translated by."""
    for path in sorted(SOURCE.rglob("*.py")):
        if "Finding(" in path.read_text() or path.name == "calibration.py":
            yield path


def test_no_advice_is_for_programs_only():
    """Every sentence that any finding or warning is made of; a new one with a Python name in it fails here."""
    wrong = [
        (path.name, text)
        for path in modules()
        for text in texts_of(path)
        if " " in text and PYTHON.search(in_file_words(text))
    ]
    # of what a program asks for, and the marks around a finding on a page: no findings
    assert [one for one in wrong if one[0] not in ("record.py", "findings.py")] == []


@pytest.mark.parametrize(
    ("python", "file"),
    [
        ("give noise_cov, or more starts; a", "give cov in [noise], or more starts in [sampling]; a"),
        ('give transform="log" or "sqrt", or y_err', 'give transform = "log" or "sqrt" in [data], or y_err in [data]'),
        ("add runs there (oc.next_runs), or", "make more runs there (orthocal next-runs says where), or"),
        ("take more nodes: oc.Box(lower, upper, nodes=...)", "take more nodes: nodes in [domain]"),
        ("run longer: more draws, and more warmup", "run longer: more draws, and more warmup in [sampling]"),
    ],
)
def test_what_becomes_of_advice(python, file):
    assert in_file_words(python) == file


def test_a_result_of_a_problem_file_says_so_in_checks_and_report(tmp_path):
    x = np.linspace(0, 1, 20)
    y = np.random.default_rng(0).standard_normal(20)
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 5)}, oc.Box(0, 1, nodes=10), 1e-4, starts=2)
    posterior = short(problem, "none", draws=10)
    assert "noise_cov" in str(posterior.check())
    posterior.data.attrs["problem_file"] = "problem.toml"
    again = oc.load(posterior.save(tmp_path / "fit.nc"))
    for one in (posterior, again):
        assert "noise_cov" not in str(one.check())
        assert "cov in [noise]" in str(one.check())
    assert "cov in [noise]" in again.report(tmp_path / "fit.html").read_text()
