"""What is given to others: the conda recipe, and wheel and sdist in a clean environment."""

import os
import re
import subprocess
import sys
import time
import tomllib
from itertools import takewhile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RECIPE = ROOT / "conda" / "recipe" / "meta.yaml"
#: what a requirement of pyproject.toml is called by conda, where that differs; extras become packages of their own
CONDA = {
    "matplotlib": ["matplotlib-base"],
    "h5netcdf": ["h5netcdf", "h5py"],
    "arviz-stats": ["arviz-stats", "xarray-einstats"],
}

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="the recipe is not beside the tests")


def requirement(text):
    """Name and least version of a requirement."""
    found = re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?\s*(?:>=\s*([0-9.]+))?", text)
    return found[1], found[2]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of_recipe(section):
    lines = RECIPE.read_text(encoding="utf-8").split(f"  {section}:\n")[1].splitlines()
    listed = takewhile(lambda line: line.startswith("    - "), lines)
    return dict(requirement(line.removeprefix("    - ")) for line in listed)


def test_the_conda_recipe_has_the_dependencies_of_the_project():
    wanted, least = {"python"}, {}
    for one in project()["dependencies"]:
        name, version = requirement(one)
        wanted |= set(CONDA.get(name, [name]))
        least[CONDA.get(name, [name])[0]] = version
    found = of_recipe("run")
    assert set(found) == wanted, f"the recipe and pyproject.toml differ in {set(found) ^ wanted}"
    assert {name: found[name] for name in least} == least
    assert f">={found['python']}" == project()["requires-python"]
    assert "hatchling" in of_recipe("host")


def run(*words, folder, **settings):
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
    command = [str(word) for word in words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, **settings)


def made(environment, *packages):
    """A virtual environment with these packages; skipped where there is no package index."""
    done = run(sys.executable, "-m", "venv", environment, folder=environment.parent)
    assert done.returncode == 0, done.stderr
    pip = (environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", *packages)
    done = run(*pip, folder=environment.parent, timeout=1800)
    if re.search(r"Could not fetch URL|No matching distribution|NewConnectionError|Temporary failure", done.stderr):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return environment / "bin"


@pytest.mark.slow
def test_a_clean_environment_makes_a_page_in_a_minute(tmp_path):
    """Sdist from the tree, wheel from the sdist, both by the build backend; then init and run as a new user does."""
    tools = made(tmp_path / "tools", "build")
    built = run(tools / "python", "-m", "build", "--outdir", tmp_path / "dist", ROOT, folder=tmp_path, timeout=900)
    assert built.returncode == 0, built.stdout + built.stderr
    (wheel,), (sdist,) = (list((tmp_path / "dist").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
    listed = run("tar", "-tzf", sdist, folder=tmp_path).stdout
    for name in ("conda/recipe/meta.yaml", "src/orthocal/py.typed", "docs/command-line.md"):
        assert f"/{name}\n" in listed, f"{name} is not in the sdist"
    bin_folder = made(tmp_path / "clean", wheel)
    (tmp_path / "project").mkdir()
    began, worked = time.monotonic(), os.times()
    first = run(bin_folder / "orthocal", "init", folder=tmp_path / "project")
    assert first.returncode == 0, first.stderr
    second = run(bin_folder / "orthocal", "run", "problem.toml", folder=tmp_path / "project", timeout=600)
    assert second.returncode == 0, second.stderr
    took, ended = time.monotonic() - began, os.times()
    cpu = ended.children_user + ended.children_system - worked.children_user - worked.children_system
    print(f"from `orthocal init` to the page in a clean environment: {took:.1f} s, {cpu:.1f} s of CPU")
    page = (tmp_path / "project" / "fit.html").read_text(encoding="utf-8")
    assert "Calibration of problem.toml" in page
    assert took < 60
