"""Code of the pages: what can run does, TOML is read by the reader that it is for, and all Python can be parsed."""

import ast
import builtins
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from orthocal.config.campaign_file import read_campaign_file
from orthocal.config.experiments_file import read_any_file
from orthocal.config.priors import priors_of
from orthocal.errors import InputError
from orthocal_galaxy.galaxy_config import settings_from

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the pages are not beside the tests")

#: blocks of TOML that are parts of a file, with the words of the page around them: page, first line
FRAGMENTS = {
    ("experiments.md", "[simulator]"): "the parameters stand in the file that the page links to",
    ("fmu.md", "[simulator.fmu]"): "a section",
    ("servers.md", "[simulator.umbridge]"): "a section",
}
WHOLE = """
[data]
file = "field.csv"
x = ["x"]
y = ["y"]
[simulator]
function = "simulator.py:simulate"
[parameters]
theta = { distribution = "norm", loc = 0, scale = 10 }
"""


def blocks(language):
    """Page, place among its blocks, and text of all blocks in a language."""
    found = re.compile(rf"^```{language}\n(.*?)^```", re.DOTALL | re.MULTILINE)
    return [
        pytest.param(page.name, text, id=f"{page.name}-{i}")
        for page in PAGES
        for i, text in enumerate(found.findall(page.read_text(encoding="utf-8")))
    ]


def needs(text):
    """Names and modules that a block of Python takes from elsewhere."""
    known, missing = set(dir(builtins)), set()
    for statement in ast.parse(text).body:
        nodes = [*ast.walk(statement)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        used, made = ({node.id for node in names if isinstance(node.ctx, kind)} for kind in (ast.Load, ast.Store))
        defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        defined |= {node.arg for node in nodes if isinstance(node, ast.arg)}
        loops = [node.target for node in nodes if isinstance(node, ast.comprehension)]
        defined |= {node.id for target in loops for node in ast.walk(target) if isinstance(node, ast.Name)}
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        defined |= {alias.asname or alias.name.split(".")[0] for node in imports for alias in node.names}
        modules = {getattr(node, "module", None) or node.names[0].name for node in imports}
        missing |= {name for name in modules if importlib.util.find_spec(name.split(".")[0]) is None}
        # of one statement, what is assigned last may be used before: a = a + 1
        first = set() if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) else made
        missing |= used - known - defined - first
        known |= made | defined
    return missing


PYTHON = blocks("python")
#: README's is run by a test of its own; the first page of the site has the same
ALONE = [one for one in PYTHON if not needs(one.values[1]) and one.values[0] not in ("README.md", "index.md")]


def block_of(page):
    (found,) = (one.values[1] for one in PYTHON if one.values[0] == page)
    return found


def run(text, folder, monkeypatch):
    """Execute a block as a script in an empty folder, and return its names."""
    monkeypatch.chdir(folder)
    names = {"__name__": "__main__"}
    exec(compile(text, "block", "exec"), names)
    return names


def test_the_readmes_block_runs_and_says_what_is_true(tmp_path, monkeypatch, capsys):
    names = run(block_of("README.md"), tmp_path, monkeypatch)
    # theta* = 4 + 3 ∫ x² sin 5x dx
    assert abs(float(names["posterior"].summary()["mean"].iloc[0]) - 3.56528) < 0.15
    assert names["posterior"].check(), "README's own example has a problem"
    assert "slope" in capsys.readouterr().out
    assert (tmp_path / "fit.html").stat().st_size > 10_000


def test_the_first_page_of_the_site_has_the_readmes_block():
    assert block_of("index.md") == block_of("README.md")


@pytest.mark.parametrize(("page", "text"), PYTHON)
def test_python_can_be_parsed(page, text):
    ast.parse(text)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "text"), ALONE)
def test_what_needs_nothing_else_runs(page, text, tmp_path, monkeypatch):
    run(text, tmp_path, monkeypatch)


def test_some_blocks_need_nothing_else():
    assert len(ALONE) >= 4
    assert needs("a = b + len(c)") == {"b", "c"}
    assert needs("a = 1\na = a + 1") == set()
    assert needs("a = a.more()\nfrom no_such_module import f") == {"a", "no_such_module"}
    assert needs("a = [b for b in range(3)]") == set()


def is_whole(content):
    return {"data", "simulator", "parameters"} <= set(content)


@pytest.mark.parametrize(("page", "text"), blocks("toml"))
def test_toml_is_read(page, text, tmp_path):
    content = tomllib.loads(text)
    file = tmp_path / "file.toml"
    file.write_text(text, encoding="utf-8")
    if "design" in content:
        assert read_campaign_file(file).design is not None
    elif "kinematics" in content:
        assert settings_from(file, {}).distance == content["distance"]
    elif is_whole(content):
        assert priors_of(read_any_file(file).parameters)
    else:
        first = text.splitlines()[0]
        known = FRAGMENTS.get((page, first))
        assert known, f"{page}: the TOML that begins with {first} is no whole file: make it one, or add it to FRAGMENTS"
        rest = tomllib.loads(WHOLE)
        missing = {name: rest[name] for name in rest if name not in content}
        file.write_text(f"{text}\n{_toml(missing)}", encoding="utf-8")
        assert priors_of(read_any_file(file).parameters)


def _toml(sections):
    """Sections of WHOLE by name, as they are written there."""
    parts = re.findall(r"^\[(\w+)\]\n((?:(?!\[).+\n)+)", WHOLE, re.MULTILINE)
    return "\n".join(f"[{name}]\n{lines}" for name, lines in parts if name in sections)


@pytest.mark.parametrize(("right", "wrong"), [("loc = 0", "locus = 0"), ("file =", "fill ="), ("function", "funktion")])
def test_a_wrong_key_is_noticed(right, wrong, tmp_path):
    with pytest.raises(InputError, match=wrong.split()[0]):
        test_toml_is_read("page.md", WHOLE.replace(right, wrong), tmp_path)
