"""The tutorial notebooks and the scripts of the gallery: how they are stored, and, slowly, that they run."""

import ast
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
SCRIPTS = sorted((DOCS / "gallery").glob("plot_*.py"))
#: a notebook is to take less than a minute of one core
MOST_CPU_SECONDS = 60
#: CPU seconds of the kernel and of what it has started
CPU = "import os as _os; print('CPU', sum(_os.times()[:4]))"
#: the physicist's journey: what the notebook of the pendulum must have found, as its own variables say it
JOURNEY = """
import json as _json
_found = {
    "problems": [str(one.check()).count("[problem]") for one in (posterior, refined)],
    "held": float(held),
    "held_later": float(held_later),
    "rms": {name: float(value) for name, value in rms.items()},
    "probability": float(compared.probability("with drag", "without air")),
    "parameters": {
        name: [[*one.summary()[["eti95_lb", "eti95_ub"]].loc[parameter].astype(float), float(truth)]
               for parameter, truth in zip(one.parameter_names, truths[name], strict=True)]
        for name, one in (("without air", posterior), ("with drag", refined))
    },
}
print("FOUND", _json.dumps(_found))
"""


def name_of(path):
    return path.stem


def notebook_of(path):
    return json.loads(path.read_text(encoding="utf-8"))


def source_of(cell):
    return "".join(cell["source"])


def test_there_are_enough():
    assert len(NOTEBOOKS) >= 7
    assert len(SCRIPTS) >= 10


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_of)
def test_a_notebook_is_stored_without_outputs_and_can_be_read(path):
    notebook = notebook_of(path)
    assert (notebook["nbformat"], notebook["nbformat_minor"] >= 5) == (4, True)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    first = notebook["cells"][0]
    assert first["cell_type"] == "markdown"
    assert re.match(r"# \S", source_of(first))
    for cell in notebook["cells"]:
        assert source_of(cell).strip()
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
            ast.parse(source_of(cell))


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if not path.name.startswith("00")], ids=name_of)
def test_a_tutorial_says_what_was_found_and_what_not_to_conclude(path):
    cells = notebook_of(path)["cells"]
    text = "\n".join(source_of(cell) for cell in cells if cell["cell_type"] == "markdown")
    code = "\n".join(source_of(cell) for cell in cells if cell["cell_type"] == "code")
    assert "\n## What not to conclude" in text
    assert ".check()" in code
    assert ".predict(" in code
    # a label that ends with its unit: an axis without one is not read
    assert re.search(r" \[[^\]\"]+\]\"", code)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_of_the_gallery_has_a_title(path):
    words = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    title, line, *rest = words.splitlines()
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert any(rest)


def executed(path, more=()):
    """The texts that the cells ``more``, put behind the notebook, print; the seconds are printed."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    notebook = nbformat.read(path, 4)
    notebook.cells += [nbformat.v4.new_code_cell(source) for source in (*more, CPU)]
    start = time.perf_counter()
    resources = {"metadata": {"path": str(path.parent)}}
    nbclient.NotebookClient(notebook, timeout=900, kernel_name="python3", resources=resources).execute()
    printed = [cell.outputs[0]["text"] for cell in notebook.cells[-1 - len(more) :]]
    seconds = float(printed.pop().split()[1])
    print(f"{path.stem}: {seconds:.1f} CPU s, {time.perf_counter() - start:.0f} s")
    assert seconds < MOST_CPU_SECONDS
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if path.stem != "01_pendulum"], ids=name_of)
def test_a_notebook_runs(path):
    executed(path)


@pytest.mark.slow
def test_the_journey_of_a_physicist():
    """From the README to a prediction, in one notebook: with known truth, so that what it says can be judged."""
    (printed,) = executed(DOCS / "tutorials" / "01_pendulum.ipynb", [JOURNEY])
    found = json.loads(printed.removeprefix("FOUND "))
    assert found["problems"] == [0, 0]
    # where each simulator is closest to the real pendulum lies in each 95 % interval
    for rows in found["parameters"].values():
        for lower, upper, truth in rows:
            assert lower < truth < upper
    # that of g has g itself, once the simulator knows of drag, and not before
    (lower, upper, _), *_ = found["parameters"]["with drag"]
    assert lower < 9.81 < upper
    (lower, upper, _), *_ = found["parameters"]["without air"]
    assert not lower < 9.81 < upper
    # readings that were put aside: with the bias errors are the noise's, .02 rad, and intervals hold
    assert found["rms"]["mean"] < 0.03 < found["rms"]["model"]
    assert found["held"] >= 0.8
    assert found["held_later"] >= 0.8
    assert found["probability"] > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_of_the_gallery_runs(path):
    start, before = time.perf_counter(), os.times()
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    run = subprocess.run([sys.executable, path.name], cwd=path.parent, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"{path.stem}: {seconds:.1f} CPU s, {time.perf_counter() - start:.0f} s", run.stderr, sep="\n")
    assert seconds < MOST_CPU_SECONDS
