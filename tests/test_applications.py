"""Applications stand on the public names of orthocal, and orthocal knows none of them."""

import ast
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import orthocal as oc
from orthocal import applications

ROOT = Path(__file__).parents[1]
APPS = sorted(ROOT.glob("apps/*/src/*"))
#: modules that are public beside ``import orthocal``
PUBLIC = (*(name for name in oc.__all__ if isinstance(getattr(oc, name), ModuleType)), "applications", "testing")


def is_public(module: str, name: str) -> bool:
    """Whether ``from module import name`` takes a public name."""
    if module == "orthocal":
        return name in (*oc.__all__, "__version__")
    place = module.removeprefix("orthocal.")
    if place not in PUBLIC or name.startswith("_"):
        return False
    public = import_module(module)
    listed = getattr(public, "__all__", ())
    # a family without a list offers what its package takes over from its modules
    return name in listed if place == "applications" else not isinstance(getattr(public, name), ModuleType)


def private_names(text: str) -> list[str]:
    """What a module takes of orthocal that is not public."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.startswith("orthocal.")]
        elif isinstance(node, ast.ImportFrom) and not node.level and str(node.module).split(".")[0] == "orthocal":
            found += [f"{node.module}.{one.name}" for one in node.names if not is_public(node.module, one.name)]
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            module = owner.replace("oc", "orthocal", 1)
            if owner == "oc" or (owner.startswith("oc.") and module.removeprefix("orthocal.") in PUBLIC):
                found += [] if is_public(module, node.attr) else [f"{owner}.{node.attr}"]
    return found


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_an_application_takes_public_names_only(app):
    modules = sorted(app.rglob("*.py"))
    assert len(modules) > 5
    private = {path.name: names for path in modules if (names := private_names(path.read_text(encoding="utf-8")))}
    assert not private, f"private names of orthocal, make them public or the application's own: {private}"


def test_private_names_are_noticed():
    text = "import orthocal as oc\nimport orthocal.problem\nfrom orthocal.files import whole_file\n"
    text += (
        "from orthocal.applications import Grid, names_of_stub\nfrom orthocal.bias import GP, gp\nfrom . import mass\n"
    )
    text += "oc.calibrate\noc.problem\noc.bias.GP\noc.bias.gp\noc.RunTable.load\n"
    assert private_names(text) == [
        "orthocal.problem",
        "orthocal.files.whole_file",
        "orthocal.applications.names_of_stub",
        "orthocal.bias.gp",
        "oc.problem",
        "oc.bias.gp",
    ]


def test_the_library_knows_no_application():
    names = tuple(app.name for app in APPS)
    package = Path(oc.__file__).parent
    known = [
        path.name
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(one.name.startswith(names) for one in node.names))
        or (isinstance(node, ast.ImportFrom) and str(node.module).startswith(names))
    ]
    assert names
    assert not known


@pytest.mark.parametrize("name", applications.__all__)
def test_every_name_for_applications_can_be_got_and_is_on_its_page(name):
    assert getattr(applications, name) is not None
    page = (ROOT / "docs" / "applications.md").read_text(encoding="utf-8")
    assert f"`{name}`" in page, "add it to docs/applications.md"
