"""The fast test suite on every Python from 3.11 on that is installed: ``make test-pythons``.

Interpreters are looked for on PATH, among pyenv's versions and in the folder of ``debian_python.sh``; each gets a
virtual environment of its own, ``.venv-3.12`` and so on, which is made anew when a pyproject.toml has changed.
Arguments go to pytest.
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
DEBIAN = (str(ROOT / "tests" / "debian_python.sh"), "run")


def installed() -> dict[str, list[str]]:
    """Version ("3.12") -> the command that starts it, oldest first; of each version the first one found that runs."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    folders = [*map(Path, os.environ.get("PATH", "").split(os.pathsep)), *sorted(pyenv.glob("*/bin"))]
    commands = [[str(path)] for folder in folders if folder.is_dir() for path in sorted(folder.glob("python3.*"))]
    commands += [[*DEBIAN, f"/usr/bin/{path.name}"] for path in sorted(ROOT.glob(".debian/usr/bin/python3.*"))]
    found: dict[tuple[int, ...], list[str]] = {}
    for command in commands:
        named = re.fullmatch(r"python3\.(\d+)", Path(command[-1]).name)
        version = (3, int(named[1])) if named else (0,)
        if version >= OLDEST and version not in found and runs(command, version):
            found[version] = command
    return {".".join(map(str, version)): found[version] for version in sorted(found)}


def runs(command: list[str], version: tuple[int, ...]) -> bool:
    """Whether it starts, has that version and can make environments; a shim of pyenv may do neither."""
    probe = "import sys, venv, ensurepip; print(*sys.version_info[:2])"
    tried = subprocess.run([*command, "-c", probe], capture_output=True, text=True, check=False)
    if command[0] == DEBIAN[0] and tried.returncode:
        print(f"{command[-1]} of Debian's folder is left out: {tried.stderr.strip()}")
    return tried.stdout.split() == list(map(str, version))


def environment(name: str, command: list[str]) -> list[str]:
    """The command of the virtual environment's interpreter, with the packages and what their tests need."""
    folder = ROOT / f".venv-{name}"
    python, stamp = [*command[:-1], str(folder / "bin" / "python")], folder / "ready"
    changed = max((project / "pyproject.toml").stat().st_mtime for project in PROJECTS)
    if not stamp.exists() or stamp.stat().st_mtime < changed:
        install = [*python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, "-m", "venv", folder], check=True)
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
    for name, command in pythons.items():
        print(f"\nPython {name} ({' '.join(command)})", flush=True)
        try:
            pytest = [*environment(name, command), "-m", "pytest", "-n", "auto", *sys.argv[1:]]
            worked = subprocess.run(pytest, cwd=ROOT, check=False).returncode == 0
        except subprocess.CalledProcessError as error:
            print(error)
            worked = False
        if not worked:
            failed.append(name)
    print(f"\nran on Python {', '.join(pythons)}; " + (f"failed on {', '.join(failed)}" if failed else "all passed"))
    if len(pythons) == 1:
        print("only one Python was found: install others, by pyenv or, as root, by tests/debian_python.sh make")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
