"""The walls of the house that ruff, mypy and import-linter do not hold: sizes, names, lazy loading, true paths."""

import ast
import inspect
import io
import os
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import orthocal as oc
from orthocal.lazy_names import stub_imports

PACKAGE = Path(oc.__file__).parent
ROOT = Path(__file__).parents[1]
#: the package, and the applications that lie beside the tests, which an installed package has not
SOURCES = [PACKAGE, *sorted(ROOT.glob("apps/*/src"))]
MODULES = {
    path.relative_to(source).as_posix(): path.read_text(encoding="utf-8")
    for source in SOURCES
    for path in sorted(source.rglob("*.py"))
}
TREES = {name: ast.parse(text) for name, text in MODULES.items()}
PAGES = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")})

#: an installed package has no pages
with_pages = pytest.mark.skipif(not PAGES, reason="the pages are not beside the tests")

MOST_IN_ROOT, LONGEST_MODULE, LONGEST_FUNCTION, MOST_ANY = 12, 400, 60, 49
MOST_IN_FOLDER, SMALLEST_MODULE = 24, 25

#: of these names a class may have several: the public families have members of the same name
NAMESAKES = {"GP", "BART", "BMARS"}

WITHOUT_CODE = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)


def code_lines(text: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that hold code: no docstrings, comments and blanks."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line for token in tokens if token.type not in WITHOUT_CODE for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            lines -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return lines


CODE = {name: code_lines(text, TREES[name]) for name, text in MODULES.items()}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


def test_the_root_holds_a_handful_of_leaves():
    root = sorted(name for name in MODULES if "/" not in name)
    assert len(root) <= MOST_IN_ROOT, f"{len(root)} modules lie in the root, {root}: put the new one into a package"


def test_what_counts_as_code():
    text = '"""What it is."""\n\nONE = 1  # why\n\n\n'
    text += 'def two():\n    """Two,\n    in words."""\n    # a comment\n    return """\n2"""\n'
    assert code_lines(text, ast.parse(text)) == {3, 6, 10, 11}


def test_no_module_is_long():
    long = {name: len(lines) for name, lines in CODE.items() if len(lines) > LONGEST_MODULE}
    assert not long, f"over {LONGEST_MODULE} lines of code, split by idea: {long}"


def test_a_small_module_says_why_it_stands_alone():
    silent = {
        name: len(lines)
        for name, lines in CODE.items()
        if len(lines) < SMALLEST_MODULE
        and not name.endswith(("__init__.py", "errors.py"))
        and "alone" not in ast.get_docstring(TREES[name])
    }
    assert not silent, (
        f"under {SMALLEST_MODULE} lines of code, join them with those that use them or say in the docstring why they "
        f"stand alone: {silent}"
    )


def test_no_function_is_long():
    sizes = {
        f"{name}: {one.name}": len(CODE[name] & set(range(one.lineno, one.end_lineno + 1))) for name, one in functions()
    }
    long = {name: lines for name, lines in sizes.items() if lines > LONGEST_FUNCTION}
    assert not long, f"over {LONGEST_FUNCTION} lines of code, take a step out and name it: {long}"


def test_no_folder_is_crowded():
    folders = Counter(name.rpartition("/")[0] for name in MODULES)
    crowded = {folder: count for folder, count in folders.items() if count > MOST_IN_FOLDER}
    assert not crowded, f"over {MOST_IN_FOLDER} modules in one folder, find the idea that parts them: {crowded}"


def test_a_class_name_stands_for_one_class():
    places: dict[str, list[str]] = {}
    # an application's class may have the name of one of the library's
    for name in (name for name in MODULES if (PACKAGE / name).exists()):
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    shared = {one: where for one, where in places.items() if len(where) > 1 and one not in NAMESAKES}
    assert not shared, f"classes of one name, give each one that says more: {shared}"


def test_few_parameters_may_be_anything():
    loose = [
        f"{name}:{argument.lineno} {argument.arg}"
        for name, function in functions()
        for argument in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
        if argument.annotation is not None and ast.unparse(argument.annotation) in ("Any", "Any | None")
    ]
    shown = "\n".join(loose)
    assert len(loose) <= MOST_ANY, f"{len(loose)} parameters are `Any`, give them a type or a Protocol:\n{shown}"


def test_no_module_has_the_name_of_a_public_function():
    """``import orthocal.compare as m`` would give the function, not the module."""
    public = {name for name in oc.__all__ if inspect.isfunction(getattr(oc, name))}
    assert {"calibrate", "compare", "load"} <= public
    parts = {part: name for name in MODULES for part in name.removesuffix(".py").split("/")}
    shared = {part: name for part, name in parts.items() if part in public}
    assert not shared, f"these have the name of a public function, take a noun: {shared}"


def test_type_checkers_see_the_names_that_are_loaded_on_demand():
    imports = stub_imports(oc.__file__)
    assert [alias.name for node in imports for alias in node.names] == oc.__all__
    assert all(alias.asname == alias.name for node in imports for alias in node.names), "write `from .a import b as b`"


@pytest.mark.parametrize("name", oc.__all__)
def test_every_public_name_can_be_got(name):
    assert getattr(oc, name) is not None
    assert name in dir(oc)


def loaded_by(statement: str, modules: tuple[str, ...]) -> list[str]:
    """Those of ``modules`` that a fresh process has loaded after ``statement``."""
    script = f"{statement}\nimport sys\nprint(*(name for name in {modules!r} if name in sys.modules))"
    # the tree under test, whatever is installed
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import orthocal", ("matplotlib", "sklearn", "numba", "pandas.plotting", "scipy.stats")),
        ("import orthocal.cli", ("matplotlib", "sklearn", "numba")),
    ],
)
def test_what_nobody_asked_for_is_not_loaded(statement, heavy):
    found = loaded_by(statement, heavy)
    assert not found, f"`{statement}` loads {found}: import them inside of the functions that need them"


def test_what_is_asked_for_is_seen():
    assert loaded_by("import scipy.stats", ("numba", "scipy.stats")) == ["scipy.stats"]


def table_of_contributing(title: str) -> list[list[str]]:
    """The cells of the table under a title of CONTRIBUTING.md, its heading left out."""
    section = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]


@with_pages
def test_contributing_shows_the_layers_that_the_linter_holds():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    held = next(contract["layers"] for contract in settings["contracts"] if contract["type"] == "layers")
    shown = [" | ".join(re.findall(r"`(\w+)`", row[0])) for row in table_of_contributing("The layers")]
    assert shown == held, "the table of CONTRIBUTING.md and [tool.importlinter] differ: make them the same"


@pytest.fixture(scope="module")
def entered(tmp_path_factory) -> list[str]:
    """``module: function`` of all that the default method's run enters, in order."""
    folder = tmp_path_factory.mktemp("walk")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}

    def given(*command: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()

    given("-c", "from orthocal.cli import main; main()", "init", "--example", "--quiet")
    printed = given(str(ROOT / "tests" / "walk.py"), "run", "problem.toml", "--quiet")
    return printed[printed.index("entered:") + 1 :]


@with_pages
def test_the_walk_to_the_report_is_what_a_run_enters(entered):
    walk = [
        ": ".join(cell.strip("`") for cell in row[1:3])
        for row in table_of_contributing("From field data to the report")
    ]
    gone = [step for step in walk if step not in entered]
    assert not gone, f"a run does not enter these steps of CONTRIBUTING.md, write what happens now: {gone}"
    assert walk == sorted(walk, key=entered.index), (
        "the steps of CONTRIBUTING.md are not in the order of their first entry"
    )


@with_pages
def test_the_pages_name_files_that_are_there():
    named = re.compile(r"\]\(([^)#:]+?)(?:#[^)]*)?\)|`((?:src|tests|docs|benchmarks)/[\w/.-]*|\w+/\w+\.py)`")
    gone = [
        f"{page.relative_to(ROOT)}: {path}"
        for page in PAGES
        for path in map("".join, named.findall(page.read_text(encoding="utf-8")))
        if not any((place / path).exists() for place in (page.parent, ROOT, PACKAGE, PACKAGE.parent))
    ]
    assert not gone, f"the pages name files that are not there, correct them: {gone}"
