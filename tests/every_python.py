"""The fast test suite on every Python from 3.11 on that is installed: ``make test-pythons``.

Interpreters are looked for on PATH and among pyenv's versions; each gets a virtual environment of its own,
``.venv-3.12`` and so on, which is made anew when a pyproject.toml has changed. Arguments go to pytest.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
OLDEST = (3, 11)
PROJECTS = [ROOT, *(path.parent for path in sorted(ROOT.glob("apps/*/pyproject.toml")))]


def installed() -> dict[str, Path]:
    """Version ("3.12") -> interpreter, the oldest first; the first one found of each version that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted(pyenv.glob("*/bin"))]
    found: dict[tuple[int, ...], Path] = {}
    for folder in folders:
        for path in sorted(folder.glob("python3.*")) if folder.is_dir() else ():
            if not re.fullmatch(r"python3\.\d+", path.name):
                continue
            version = tuple(map(int, path.name.removeprefix("python").split(".")))
            if version >= OLDEST and version not in found and runs(path, version):
                found[version] = path
    return {".".join(map(str, version)): found[version] for version in sorted(found)}


def runs(path: Path, version: tuple[int, ...]) -> bool:
    """Whether it starts, has that version and can make environments; a shim of pyenv may do neither."""
    probe = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    tried = subprocess.run([path, "-c", probe], capture_output=True, text=True, check=False)
    return tried.stdout.split() == list(map(str, version))


def environment(name: str, path: Path) -> Path:
    """The interpreter of the virtual environment, with the packages and what their tests need."""
    folder = ROOT / f".venv-{name}"
    python, stamp = folder / "bin" / "python", folder / "ready"
    changed = max((project / "pyproject.toml").stat().st_mtime for project in PROJECTS)
    if not stamp.exists() or stamp.stat().st_mtime < changed:
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([path, "-m", "venv", folder], check=True)
        subprocess.run([*install, "--upgrade", "pip"], check=True)
        apps = [word for app in PROJECTS[1:] for word in ("--editable", app)]
        subprocess.run([*install, "--editable", f"{ROOT}[test]", *apps], check=True)
        stamp.touch()
    return python


def main() -> int:
    pythons = installed()
    if not pythons:
        print(f"no Python from {OLDEST[0]}.{OLDEST[1]} on was found, neither on PATH nor in pyenv")
        return 1
    failed = []
    for name, path in pythons.items():
        print(f"\nPython {name} ({path})", flush=True)
        try:
            command = [environment(name, path), "-m", "pytest", "-n", "auto", *sys.argv[1:]]
            worked = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
        except subprocess.CalledProcessError as error:
            print(error)
            worked = False
        if not worked:
            failed.append(name)
    print(f"\nran on Python {', '.join(pythons)}; " + (f"failed on {', '.join(failed)}" if failed else "all passed"))
    if len(pythons) == 1:
        print("only one Python was found: install others (pyenv install 3.12 3.13) to test on them as well")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
