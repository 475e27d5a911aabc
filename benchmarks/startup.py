"""CPU time until the library and its command line are there, beside an older revision in the same run.

    python benchmarks/startup.py [REVISION]

The older tree is taken out of the repository by ``git archive``; both run with the same interpreter and libraries.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from history import record

#: the last revision before the tree followed the way of the data
BEFORE = "2680e53"
REPEATS = 11
ROOT = Path(__file__).parents[1]
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
CASES = {
    # the interpreter alone: what both pay, and how far apart equals are
    "python": "pass",
    "import orthocal": "import orthocal",
    "oc.Problem, calibrate, bias, methods": "import orthocal as oc; oc.Problem, oc.calibrate, oc.bias, oc.methods",
    "orthocal --help": "import sys; sys.argv = ['orthocal', '--help']; from orthocal.cli import main; main()",
}


class NotThereError(Exception):
    """The older revision cannot be had."""


def older_tree(revision: str, folder: Path) -> Path:
    """The sources of ``revision``, in ``folder``."""
    archive = folder / "older.zip"
    command = ["git", "-C", str(ROOT), "archive", "--format=zip", "-o", str(archive), revision, "src"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise NotThereError("there is no git") from None
    if done.returncode:
        raise NotThereError(done.stderr.strip())
    shutil.unpack_archive(archive, folder)
    return folder / "src"


def run(script: str, tree: Path, folder: Path) -> tuple[float, str]:
    """CPU seconds (user and system) of a fresh interpreter that sees ``tree``, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {**os.environ, **THREADS, "PYTHONPATH": str(tree)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def times(script: str, trees: tuple[Path, Path], folder: Path) -> np.ndarray:
    """CPU seconds of both trees in turn, (REPEATS, 2), after a first run that compiles the byte code."""
    for tree in trees:
        run(script, tree, folder)
    return np.array([[run(script, tree, folder)[0] for tree in trees] for _ in range(REPEATS)])


def main(revision: str = BEFORE) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            trees = ROOT / "src", older_tree(revision, folder)
        except NotThereError as error:
            print(f"\nStart: revision {revision} cannot be had ({error}); a full clone has it: git fetch --unshallow")
            return
        for tree in trees:
            found = run("import orthocal; print(orthocal.__file__)", tree, folder)[1]
            if not Path(found.strip()).is_relative_to(tree):
                raise RuntimeError(f"{found.strip()} would be measured in place of {tree}: try in a new `make venv`")
        print(f"\nStart of a fresh process, CPU seconds, median of {REPEATS} runs in turn; peer: revision {revision}\n")
        print(f"{'':37} {'ours':>6} {'peer':>6}  ours / peer")
        for title, script in CASES.items():
            ours, peer = np.median(times(script, trees, folder), axis=0)
            print(f"{title:37} {ours:6.3f} {peer:6.3f} {ours / peer:8.2f}", flush=True)
            record(title, ours, "CPU s", f"revision {revision}", peer / ours)


if __name__ == "__main__":
    main(*sys.argv[1:2])
