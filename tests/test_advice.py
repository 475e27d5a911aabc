"""Advice has a form for programs, and one that speaks of the problem file and of commands."""

import ast
import pickle
import re
import warnings
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal import advice
from orthocal.advice import NOISE_COV, Advice, in_files, named_transform
from orthocal.cli.entry import _error_words, _show_warning
from orthocal.findings import Finding, Findings
from orthocal.problem.noise import estimate as noise_remarks
from orthocal.results.run_facts import RunFacts

PYTHON = re.compile(r"\boc\.|\w=|noise_cov|emulator_error|\w\(\)")
SOURCE = Path(oc.__file__).parent
NAMED = {name: one for name, one in vars(advice).items() if isinstance(one, Advice)}


def modules():
    """Those that give findings or warnings about a fit."""
    for path in sorted(SOURCE.rglob("*.py")):
        # of what a program asks for, and the marks around a finding on a page: no findings
        found = "Finding(" in path.read_text() and path.name not in ("record.py", "findings.py")
        if found or path.name == "calibration.py":
            yield path


def texts_of(tree):
    """The texts of a module that are neither docstrings, nor an error's, nor the form for programs."""
    left_out = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Advice"):
            left_out |= {id(one) for one in ast.walk(node)}
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr):
            left_out |= {id(one) for one in ast.walk(node.body[0])}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and id(node) not in left_out:
            left_out |= {id(one) for one in ast.walk(node)}
            yield "".join(str(one.value) if isinstance(one, ast.Constant) else "0" for one in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield node.value


def test_no_advice_is_for_programs_only():
    """Every sentence that any finding or warning is made of; a new one with a Python name in it fails here."""
    texts = [(path.name, text) for path in modules() for text in texts_of(ast.parse(path.read_text()))]
    assert len(texts) > 500
    assert [(name, text) for name, text in texts if " " in text and PYTHON.search(text)] == []


def test_the_form_for_files_has_no_python_in_it():
    own = [node for path in modules() for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    files = [
        ast.unparse(node.args[1]) for node in own if getattr(node.func, "id", "") == "Advice" and len(node.args) == 2
    ]
    assert len(files) > 5
    # keys of a file have a space before their sign
    assert [one for one in (*files, *(one.files for one in NAMED.values())) if PYTHON.search(one)] == []


def test_no_advice_loses_its_second_form_inside_of_braces():
    """f"{NOISE_COV}" is a plain text: it is added, not filled in."""
    for path in SOURCE.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        own = [one for one in nodes if isinstance(one, ast.ImportFrom) and one.module == "advice"]
        names = {alias.name for one in own for alias in one.names}
        filled = [
            node.value.id
            for node in nodes
            if isinstance(getattr(node, "value", None), ast.Name) and isinstance(node, ast.FormattedValue)
        ]
        assert not names & set(filled), path


def test_no_error_names_the_noise_for_programs_only():
    wrong = [
        (path.name, node.value)
        for path in SOURCE.rglob("*.py")
        for raised in ast.walk(ast.parse(path.read_text()))
        if isinstance(raised, ast.Raise)
        for node in ast.walk(raised)
        if isinstance(node, ast.Constant) and "noise_cov" in str(node.value)
    ]
    assert wrong == []


def test_what_is_added_has_both_forms():
    whole = "give " + NOISE_COV + ", or " + named_transform("log", "sqrt") + " there"
    assert whole == 'give noise_cov, or transform="log" or "sqrt" there'
    assert whole.files == 'give cov in [noise], or transform = "log" or "sqrt" in [data] there'
    assert in_files(whole) == whole.files
    assert in_files("give more") == "give more"


@pytest.mark.parametrize("copied", [deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_has_both_forms(copied):
    again = copied(Finding("note", "noise", "it is large", "give " + NOISE_COV))
    assert (again.advice, again.in_files().advice) == ("give noise_cov", "give cov in [noise]")


def test_findings_in_words_of_files():
    found = Findings([Finding("note", "noise", "it is large", "give " + NOISE_COV), Finding("problem", "y", "none")])
    assert str(found.in_files()) == "[problem] y: none\n[note]    noise: it is large -> give cov in [noise]"
    assert "give noise_cov" in str(found)


def test_errors_of_the_command_line_speak_of_files():
    with pytest.raises(oc.errors.InputError, match=r"^noise_cov is -1: a variance must be positive$") as raised:
        oc.Problem([0.0, 1.0], [0.0, 1.0], lambda x, t: t[0] * x, {"a": stats.norm(0, 1)}, noise_cov=-1.0)
    assert _error_words(raised.value) == "cov in [noise] is -1: a variance must be positive"
    assert _error_words(oc.errors.InputError("a file's own words: noise_cov")) == "a file's own words: noise_cov"
    assert "no room" in _error_words(oc.errors.WriteError(28, "no room"))


def test_warnings_of_the_command_line_speak_of_files(capsys):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("give " + NOISE_COV, oc.errors.OrthocalWarning, stacklevel=1)
    _show_warning(caught[0].message, caught[0].category)
    assert capsys.readouterr().err == "note: give cov in [noise]\n"


def test_remarks_of_a_result_file_find_both_forms():
    for one in (noise_remarks.SO_LITTLE, noise_remarks.SO_MANY, noise_remarks.REPEATED, noise_remarks.VARIED):
        notes = RunFacts.read(RunFacts(noise_remarks=(Finding("note", "noise", "so", one),)).written())
        assert notes.noise_remarks[0].in_files().advice == one.files != one
    assert RunFacts.read('{"noise_remarks": [["note", "noise", "so"]]}').noise_remarks[0].advice == ""


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
