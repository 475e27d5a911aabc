"""Compiled code that cannot be kept on disk is compiled anew, with one sentence; kept or not, it computes the same."""

import os
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from numba.core import caching
from numba.core.dispatcher import Dispatcher

import orthocal as oc
from orthocal.machine import compiling


def plus_one(value):
    return value + 1


@pytest.fixture(autouse=True)
def _nothing_said_yet():
    compiling._say_that_nothing_is_kept.cache_clear()
    yield
    compiling._say_that_nothing_is_kept.cache_clear()


def test_without_a_folder_for_the_cache_it_is_compiled_all_the_same(monkeypatch):
    monkeypatch.setattr(caching.FunctionCache._impl_class, "_locator_classes", [])
    with pytest.warns(oc.OrthocalWarning, match="NUMBA_CACHE_DIR") as said:
        first, second = compiling.entry(plus_one), compiling.entry(plus_one)
    assert first(1) == second(1) == 2
    assert len(said) == 1


@pytest.mark.parametrize("step", ["save", "load"])
def test_a_disk_that_fails_does_not_end_the_work(monkeypatch, tmp_path, step):
    def fails(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(caching.IndexDataCacheFile, step, fails)
    compiled = compiling.entry(plus_one)
    with pytest.warns(oc.OrthocalWarning, match="cannot be kept on disk"):
        assert compiled(1) == 2


def test_a_damaged_cache_does_not_end_the_work(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    assert compiling.entry(plus_one)(1) == 2
    (index,) = tmp_path.rglob("*.nbi")
    index.write_bytes(b"")
    with pytest.warns(oc.OrthocalWarning, match="cannot be kept on disk"):
        assert compiling.entry(plus_one)(1) == 2


def test_what_is_kept_is_found_again(monkeypatch, tmp_path):
    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))
    for hits in (0, 1):
        compiled = compiling.entry(plus_one)
        assert compiled(1) == 2
        assert sum(compiled.stats.cache_hits.values()) == hits


NO_PLACE = """
import sys, warnings
from pathlib import Path
from numba.core import caching
from numba.core.dispatcher import Dispatcher
caching.FunctionCache._impl_class._locator_classes = []
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for path in sorted(Path(sys.argv[1]).rglob("*_kernels.py")):
        __import__("orthocal." + ".".join(path.relative_to(sys.argv[1]).with_suffix("").parts))
print(len([one for one in said if "NUMBA_CACHE_DIR" in str(one.message)]))
"""


def test_every_compiled_module_loads_where_nothing_can_be_written():
    package = Path(oc.__file__).parent
    run = subprocess.run([sys.executable, "-c", NO_PLACE, package], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "1\n"


def test_what_may_reorder_sums_is_compiled_into_each_caller():
    """Where several compilations of one function exist, LLVM takes one, and another one after the cache is read."""
    package = Path(oc.__file__).parent
    found = {}
    for path in sorted(package.rglob("*_kernels.py")):
        module = import_module(".".join(["orthocal", *path.relative_to(package).with_suffix("").parts]))
        for name, one in vars(module).items():
            if isinstance(one, Dispatcher) and one.targetoptions.get("fastmath"):
                found[name] = one.targetoptions.get("forceinline", False)
    assert found
    assert all(found.values()), found


DRAWS = """
import warnings
import numpy as np
import orthocal as oc
from orthocal.examples import MODEL1
warnings.simplefilter("ignore")
x, y = MODEL1.simulate(np.random.default_rng(0), n=40)
for prior in (oc.bias.BART(trees=10), oc.bias.SoftBART(trees=5), oc.bias.BMARS()):
    posterior = oc.calibrate(
        MODEL1.problem(x, y), oc.methods.Joint(prior), draws=60, warmup=20, chains=1, seed=1, progress=False
    )
    print(posterior.theta.tobytes().hex())
"""
ORBITS = """
from orthocal_galaxy import OrbitSettings, mock_galaxy
few = OrbitSettings(energies=6, momenta=3, latitudes=2, samples=200, velocities=31)
galaxy = mock_galaxy(few, nbin=20)
print(galaxy.truth.tobytes().hex(), galaxy.model(galaxy.model.x, (8.6, 2.9, 0.22)).tobytes().hex())
"""


@pytest.mark.slow
@pytest.mark.parametrize("program", [DRAWS, ORBITS], ids=["draws", "orbits"])
def test_the_numbers_do_not_depend_on_the_cache(program, tmp_path):
    """Compiled in this process, read from the cache, and one entry of it lost, as where a run was killed."""

    def printed():
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "OMP_NUM_THREADS": "1"}
        return subprocess.check_output([sys.executable, "-c", program], env=environment, text=True)

    compiled = printed()
    kept = sorted(tmp_path.rglob("*.nbi"))
    assert len(kept) > 1
    assert printed() == compiled
    for index in (kept[0], kept[-1]):
        index.unlink()
        assert printed() == compiled


READ_ONLY = """
import warnings
import numpy as np
import orthocal as oc
from orthocal.examples import MODEL1
x, y = MODEL1.simulate(np.random.default_rng(0), n=20)
method = oc.methods.Joint(oc.bias.BART(trees=5))
posterior = oc.calibrate(MODEL1.problem(x, y), method, draws=10, warmup=5, chains=1, seed=1)
print(posterior.theta.shape)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs to become another user")
def test_a_user_without_a_home_and_without_rights(tmp_path):
    """The package in a folder of another user, no HOME, and no folder for temporary files either."""
    import shutil

    site = tmp_path / "site"
    shutil.copytree(Path(oc.__file__).parent, site / "orthocal", ignore=shutil.ignore_patterns("__pycache__"))
    numba_there = Path(find_spec("numba").origin).parent.parent
    for place in (site, numba_there, Path(sys.executable).resolve()):
        for path in (place, *place.parents):
            if not path.stat().st_mode & 0o001:
                pytest.skip(f"{path} is closed to others")
    run = subprocess.run(
        [sys.executable, "-W", "always", "-c", READ_ONLY],
        env={"PYTHONPATH": f"{site}:{numba_there}", "PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "(1, 10, 1)\n"
    assert run.stderr.count("cannot be kept on disk") == 1
