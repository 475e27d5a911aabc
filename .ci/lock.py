"""Write ``requirements-dev.lock``: everything that ``make venv`` installs, each file by its digest (``make lock``).

pip chooses the versions, with the index that it is configured for; the digests are those of all files that the index
has of a version, so that the lock holds on other machines and for other versions of Python. No address is written.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import urllib.request
from functools import cache
from pathlib import Path
from urllib.parse import unquote

from pip._internal.models.index import PyPI

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
APPS = sorted(path.parent for path in ROOT.glob("apps/*/pyproject.toml"))
#: hatchling and editables build our own packages, which `make locked` installs without an index
WANTED = [f"{ROOT}[test,lint]", *map(str, APPS), "hatchling", "editables"]
HEAD = """# Made by `make lock`, installed by `make locked`: the developer environment, every file with its digest.
# Resolved on Python {version}; digests are those of all files of a version, for every platform.
"""


def chosen() -> dict[str, str]:
    """Name -> version of all that is to be installed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
        subprocess.run([*command, "--report", report, *WANTED], check=True)
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    found = {one["metadata"]["name"].lower().replace("_", "-"): one["metadata"]["version"] for one in installed}
    for own in ("orthocal", *(app.name for app in APPS)):
        del found[own]
    return dict(sorted(found.items()))


@cache
def index() -> str:
    """The address of the index that pip uses."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return (configured or PyPI.simple_url).rstrip("/")


def digests(name: str, version: str) -> list[str]:
    """SHA-256 of every file of a version, from the index's page of the package."""
    with urllib.request.urlopen(f"{index()}/{name}/") as answer:
        page = answer.read().decode()
    found = re.findall(r'href="[^"]*?([^"/#]+)#sha256=([0-9a-f]{64})"', page)
    # name-version-tags.whl or name-version.tar.gz, the name with dashes, dots or underlines
    own = re.compile(rf"{re.sub('-', '[-_.]', name)}-{re.escape(version)}(-.*\.whl|\.tar\.gz|\.zip)", re.IGNORECASE)
    return sorted({digest for file, digest in found if own.fullmatch(unquote(file))})


def main() -> None:
    lines = [HEAD.format(version=".".join(map(str, sys.version_info[:2])))]
    for name, version in chosen().items():
        hashes = digests(name, version)
        if not hashes:
            raise SystemExit(f"the index has no file of {name} {version} with a digest")
        lines.append(" \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{one}" for one in hashes)]) + "\n")
    LOCK.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
