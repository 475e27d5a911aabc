"""Does the suite notice? Every mutation of ``mutated_lines.py``, one at a time, and the tests that must fail with it.

The tree is copied, and only the copy is changed. Tests that pass with a mutation are worth nothing against that error:
it has survived, and a test is missing.

    python tests/mutations/run.py               all of them
    python tests/mutations/run.py slice hmc     those whose name contains one of these
    python tests/mutations/run.py --jobs 2      so many at a time
"""

from __future__ import annotations

import argparse
import os
import queue
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

from mutated_lines import MUTATIONS, Mutation

ROOT = Path(__file__).parents[2]
#: seconds after which a mutation has hung the tests
PATIENCE = 600
KILLED, SURVIVED, BROKEN = "killed", "SURVIVED", "BROKEN"
#: of pytest: all passed, some failed; anything else is no answer
PASSED, FAILED = 0, 1


class Copy:
    """A copy of the tree in which mutations are tried; what was compiled comes along."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "tree"
        self.root.mkdir(parents=True)
        for part in ("src", "apps", "tests"):
            shutil.copytree(ROOT / part, self.root / part)
        for part in ("pyproject.toml", "conftest.py"):
            shutil.copy2(ROOT / part, self.root)

    def tried(self, mutation: Mutation) -> str:
        """How it ended for a mutation; the copy is afterwards what it was."""
        path, original = self.root / mutation.file, ROOT / mutation.file
        text = path.read_text(encoding="utf-8")
        if text.count(mutation.old) != 1:
            return f"{BROKEN}: its line is there {text.count(mutation.old)} times"
        path.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
        try:
            # a cache knows the file of its function alone, not those that this calls
            with tempfile.TemporaryDirectory() as cache:
                code = self.tests(mutation.tests, cache if path.name.endswith("kernels.py") else None)
        finally:
            # with its time, by which caches are judged
            shutil.copy2(original, path)
        return {PASSED: SURVIVED, FAILED: KILLED}.get(code, f"{BROKEN}: pytest ended with code {code}")

    def tests(self, names: tuple[str, ...], cache: str | None = None) -> int:
        """What pytest ends with for these tests; a new folder for what numba compiles where it is given."""
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        environment = {**os.environ, **one, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        if cache is not None:
            environment["NUMBA_CACHE_DIR"] = cache
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", *names]
        try:
            done = subprocess.run(command, cwd=self.root, env=environment, capture_output=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return FAILED
        return done.returncode


def outcomes(mutations: list[Mutation], jobs: int) -> Iterator[tuple[Mutation, str, float]]:
    """Each mutation, how it ended and after how many seconds."""
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder, ThreadPoolExecutor(jobs) as pool:
        copies: queue.SimpleQueue[Copy] = queue.SimpleQueue()
        for number in range(jobs):
            copies.put(Copy(Path(folder) / str(number)))
        copy = copies.get()
        needed = tuple(dict.fromkeys(name for mutation in mutations for name in mutation.tests))
        if copy.tests(needed) != PASSED:
            sys.exit("the tests fail without any mutation: mend them first")
        copies.put(copy)

        def one(mutation: Mutation) -> tuple[Mutation, str, float]:
            own, start = copies.get(), perf_counter()
            try:
                return mutation, own.tried(mutation), perf_counter() - start
            finally:
                copies.put(own)

        yield from pool.map(one, mutations)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="parts of the names of the mutations to try")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried at a time")
    chosen = parser.parse_args()
    mutations = [one for one in MUTATIONS if not chosen.names or any(name in one.name for name in chosen.names)]
    others = []
    for mutation, outcome, seconds in outcomes(mutations, chosen.jobs):
        print(f"{outcome:9} {seconds:5.0f} s  {mutation.name}", flush=True)
        others += [mutation.name] * (outcome != KILLED)
    print(f"{len(mutations) - len(others)} of {len(mutations)} killed")
    if others:
        sys.exit(f"not killed: {', '.join(others)}")


if __name__ == "__main__":
    main()
