"""requirements-dev.lock: all that the developer environment needs, every file with its digest, and nobody's address."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
pytestmark = pytest.mark.skipif(not LOCK.exists(), reason="the lock is not beside the tests")


def locked():
    """Name -> version and digests."""
    text = LOCK.read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {line[0].split("==")[0]: (Version(line[0].split("==")[1]), line[1:]) for line in lines}


def needed():
    """The requirements of the packages, of their tests and of the linters, extras of their own unfolded."""
    project, *apps = (
        tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        for path in (ROOT / "pyproject.toml", *ROOT.glob("apps/*/pyproject.toml"))
    )
    given = [*project["dependencies"], *(one for app in apps for one in app["dependencies"])]
    waiting, found = ["test", "lint"], [one for one in map(Requirement, given) if one.name != project["name"]]
    while waiting:
        for one in map(Requirement, project["optional-dependencies"][waiting.pop()]):
            if one.name == project["name"]:
                waiting += one.extras
            else:
                found.append(one)
    return [*found, Requirement("hatchling"), Requirement("editables")]


def test_everything_is_there_in_a_version_that_fits():
    there = locked()
    required = needed()
    assert len(required) > 20
    for one in required:
        if one.marker is None or one.marker.evaluate({"python_version": "3.11"}):
            version, _ = there[canonicalize_name(one.name)]
            assert version in one.specifier, f"{one} is locked at {version}: run `make lock`"


def test_every_file_has_a_digest_and_no_address():
    for name, (_, digests) in locked().items():
        assert digests, name
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", one) for one in digests), name
    assert "/" not in LOCK.read_text(encoding="utf-8")
