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
APPS = sorted(path.parent for path in ROOT.glob("apps/*/pyproject.toml"))
#: what a requirement of pyproject.toml is called by conda, where that differs; extras become packages of their own
CONDA = {
    "matplotlib": ["matplotlib-base"],
    "h5netcdf": ["h5netcdf", "h5py"],
    "arviz-stats": ["arviz-stats", "xarray-einstats"],
    "astropy": ["astropy-base"],
}

pytestmark = pytest.mark.skipif(not RECIPE.is_file(), reason="the recipe is not beside the tests")


def requirement(text):
    """Name and least version of a requirement."""
    found = re.match(r"([A-Za-z0-9_.-]+)(?:\[[^]]*\])?\s*(?:>=\s*([0-9.]+))?", text)
    return found[1], found[2]


def project(folder):
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def of_recipe(name, section):
    """The requirements of one of its packages; those that are its own packages are templates."""
    output = RECIPE.read_text(encoding="utf-8").split(f"  - name: {name}\n")[1].split("  - name: ")[0]
    lines = output.split(f"      {section}:\n")[1].splitlines()
    listed = [line.strip(" -") for line in takewhile(lambda line: line.startswith("        - "), lines)]
    own = [re.fullmatch(r'{{ pin_subpackage\("([a-z-]+)", exact=True\) }}', one) for one in listed]
    return dict((found[1], None) if found else requirement(one) for found, one in zip(own, listed, strict=True))


@pytest.mark.parametrize("folder", [ROOT, *APPS], ids=lambda folder: project(folder)["name"])
def test_the_conda_recipe_has_the_dependencies_of_the_project(folder):
    given = project(folder)
    wanted, least = {"python"}, {}
    for one in given["dependencies"]:
        name, version = requirement(one)
        wanted |= set(CONDA.get(name, [name]))
        least[CONDA.get(name, [name])[0]] = version
    found = of_recipe(given["name"], "run")
    assert set(found) == wanted, f"the recipe and pyproject.toml differ in {set(found) ^ wanted}"
    assert {name: found[name] for name in least} == least
    assert f">={found['python']}" == given["requires-python"]
    assert "hatchling" in of_recipe(given["name"], "host")


@pytest.mark.parametrize("folder", APPS, ids=lambda folder: folder.name)
def test_an_application_is_released_with_the_library(folder):
    own, library = project(folder), project(ROOT)
    assert own["name"] == folder.name
    assert own["version"] == library["version"]
    assert own["requires-python"] == library["requires-python"]
    assert f"orthocal=={library['version']}" in own["dependencies"]
    assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


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


def of_tree(tools, folder, out):
    """Sdist of a distribution, and its wheel from the sdist, by the build backend."""
    built = run(tools / "python", "-m", "build", "--outdir", out, folder, folder=out.parent, timeout=900)
    assert built.returncode == 0, built.stdout + built.stderr
    return [
        next(out.glob(f"{folder.name.replace('-', '_') if folder != ROOT else 'orthocal'}-{end}"))
        for end in ("*.whl", "*.tar.gz")
    ]


@pytest.mark.slow
def test_a_clean_environment_makes_a_page_in_a_minute(tmp_path):
    """The wheels in a clean environment: init and run as a new user does, then the applications."""
    tools = made(tmp_path / "tools", "build")
    wheel, sdist = of_tree(tools, ROOT, tmp_path / "dist")
    listed = run("tar", "-tzf", sdist, folder=tmp_path).stdout
    needed = (
        "conda/recipe/meta.yaml",
        "src/orthocal/py.typed",
        "docs/command-line.md",
        "apps/orthocal-galaxy/README.md",
    )
    for name in needed:
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

    demo = run(bin_folder / "orthocal", "demo", "--out", "demo", folder=tmp_path / "project", timeout=600)
    assert demo.returncode == 0, demo.stderr
    for command, name in (("galaxy", "orthocal-galaxy"), ("study", "orthocal-studies")):
        alone = run(bin_folder / "orthocal", command, "--help", folder=tmp_path)
        assert (alone.returncode, alone.stderr.count("\n")) == (2, 1)
        assert f"pip install {name}" in alone.stderr
    wheels = [of_tree(tools, folder, tmp_path / "dist")[0] for folder in APPS]
    made(tmp_path / "clean", wheel, *wheels)
    for command in ("galaxy", "study"):
        helped = run(bin_folder / "orthocal", command, "--help", folder=tmp_path)
        assert helped.returncode == 0, helped.stderr
        assert "Usage: orthocal" in helped.stdout
    studied = run(
        *(bin_folder / "orthocal", "study", "table1", "--replications", "1", "--methods", "none", "--draws", "40"),
        folder=tmp_path / "project",
        timeout=600,
    )
    assert studied.returncode == 0, studied.stderr
    assert (tmp_path / "project" / "study-table1" / "table1.html").is_file()
