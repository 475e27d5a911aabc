"""Every public name says what it is and shows it: a docstring, its parameters, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
from collections.abc import Iterator
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import matplotlib as mpl
import pytest

import orthocal as oc
import orthocal.testing
from orthocal.bias.base import ListedPrior
from orthocal.emulators.base import ListedRegressor
from orthocal.methods.base import ListedMethod
from orthocal.regression.settings import Choices

#: what each member of a family has is shown once, by the Protocols and bases of the family
BASES: dict[str, tuple[type, ...]] = {
    "bias": (oc.bias.BiasPrior, oc.bias.BiasSampler, ListedPrior, Choices),
    "emulators": (oc.emulators.Regressor, ListedRegressor),
    "kernels": (oc.kernels.Kernel,),
    "losses": (oc.losses.Loss,),
    "methods": (oc.methods.Method, ListedMethod),
}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
#: a section with at least one line that is run
EXAMPLE = re.compile(r"^Examples\n-{8}\n(?:.*\n)*?>>> ", re.M)
#: lines of these need a server or a file: they are marked, and run below with a real one
SKIP = "  # doctest: +SKIP"


class Public(NamedTuple):
    """A public function, class, or member of one, and how it is reached."""

    name: str
    thing: object

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.thing) or ""


def of_family(family: ModuleType) -> Iterator[str]:
    """What a family offers: its ``__all__``, or what its package takes over from its modules."""
    # sorted: every process of a run must find the tests in one order, whatever was imported before
    for name in sorted(getattr(family, "__all__", None) or (name for name in vars(family) if not name.startswith("_"))):
        thing = getattr(family, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            yield name


def reachable() -> Iterator[Public]:
    """Functions and classes, each once, with the shortest name."""
    families = {f"oc.{name}": getattr(oc, name) for name in oc.__all__ if inspect.ismodule(getattr(oc, name))}
    names = [Public(f"oc.{name}", getattr(oc, name)) for name in oc.__all__ if f"oc.{name}" not in families]
    for short, family in {**families, "orthocal.testing": orthocal.testing}.items():
        names += [Public(f"{short}.{name}", getattr(family, name)) for name in of_family(family)]
    seen: set[int] = set()
    for one in names:
        if id(one.thing) not in seen:
            seen.add(id(one.thing))
            yield one


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Public methods and properties that orthocal defines."""
    for name, thing in inspect.getmembers_static(cls):
        owner = next((base for base in cls.__mro__ if name in vars(base)), object)
        if name.startswith("_") or not owner.__module__.startswith("orthocal"):
            continue
        inner = thing.__func__ if isinstance(thing, staticmethod | classmethod) else thing
        if inspect.isfunction(inner) or isinstance(inner, property | cached_property):
            yield name, inner


def public() -> Iterator[Public]:
    for one in reachable():
        yield one
        if inspect.isclass(one.thing):
            bases = BASES.get(one.name.split(".")[1], ())
            shown = () if one.thing in bases else bases
            known = {name for base in shown for name, _ in members(base)}
            for name, thing in members(one.thing):
                if name not in known:
                    yield Public(f"{one.name}.{name}", thing)
    for family, bases in BASES.items():
        for base in bases:
            for name, thing in members(base):
                # a Protocol is public itself; a listed base only repeats what its Protocol says
                if not hasattr(getattr(oc, family), base.__name__) and not hasattr(bases[0], name):
                    yield Public(f"oc.{family} {base.__name__}.{name}", thing)


PUBLIC = {one.name: one for one in public()}


def test_the_walk_sees_what_there_is():
    for name in ("oc.calibrate", "oc.Problem", "oc.Problem.theta_tilde", "oc.bias.GP", "oc.errors.InputError"):
        assert name in PUBLIC
    assert "oc.bias.GP.prepare" not in PUBLIC
    assert "oc.bias.BiasPrior.prepare" in PUBLIC
    assert "oc.bias ListedPrior.restore" in PUBLIC
    assert len(PUBLIC) > 280


def test_every_public_name_has_a_docstring():
    missing = [name for name, one in PUBLIC.items() if not one.doc.strip()]
    assert not missing, f"{len(missing)} of {len(PUBLIC)} public names have no docstring: {missing}"


def test_every_public_name_has_an_example():
    missing = [name for name, one in PUBLIC.items() if not EXAMPLE.search(one.doc)]
    assert not missing, f"{len(missing)} of {len(PUBLIC)} public names have no example: {missing}"


def test_nothing_of_other_packages_is_offered_by_a_family():
    own = {name: one.thing for name, one in PUBLIC.items() if name.count(".") == 2 and inspect.isclass(one.thing)}
    foreign = [name for name, thing in own.items() if not thing.__module__.startswith("orthocal")]
    assert not foreign, f"name what the module offers in its __all__, these come from elsewhere: {foreign}"


def parameters_shown(doc: str) -> list[str]:
    """Names of the section Parameters, in its order."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", doc, re.S | re.M)
    lines = [] if section is None else re.findall(r"^(\w.*)$", section[1], re.M)
    return [name.strip().lstrip("*") for line in lines for name in line.split(",")]


@pytest.mark.parametrize("name", [name for name, one in PUBLIC.items() if parameters_shown(one.doc)])
def test_the_parameters_shown_are_those_of_the_signature(name):
    thing = PUBLIC[name].thing
    taken = [one for one in inspect.signature(thing).parameters if one not in ("self", "cls")]
    shown = parameters_shown(PUBLIC[name].doc)
    assert sorted(shown) == sorted(taken), f"{name} takes {taken}, its docstring shows {shown}"


def test_parameters_that_are_not_taken_are_seen():
    doc = "f(x).\n\nParameters\n----------\nx, y\n    Numbers.\nz\n    Another.\n\nExamples\n--------\n>>> 1\n1"
    assert parameters_shown(doc) == ["x", "y", "z"]


class Raising(doctest.DocTestRunner):
    """What an example raises goes on where it was not expected: so a missing extra skips the test, with its reason."""

    def report_failure(self, out, test, example, got):
        raise AssertionError(f"{test.name}\n{example.source}expected\n{example.want}got\n{got}")

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


def run(name: str, doc: str) -> None:
    test = doctest.DocTestParser().get_doctest(doc, {"__name__": "__main__"}, name, None, None)
    assert test.examples
    with mpl.rc_context({"backend": "agg"}):
        Raising(optionflags=FLAGS, verbose=False).run(test, clear_globs=True)


RUNNING = [name for name, one in PUBLIC.items() if EXAMPLE.search(one.doc) and SKIP not in one.doc]
#: examples that fit several times, draw or write pages: with all others they take a minute, and run with the slow tests
LONGER = (
    *("oc.Comparison", "oc.EmulatorComparison", "oc.ExperimentComparison", "oc.OutcomeComparison", "oc.compare_"),
    *("oc.SimulatorComparison", "oc.Experiments.", "oc.Pooled", "oc.Posterior.", "oc.emulators.", "oc.examples."),
    *("oc.LowRankNoise", "oc.VaryingNoise", "oc.next_runs", "orthocal.testing"),
)
#: of these, those that everybody uses
USED = ("oc.Posterior.check", "oc.Posterior.predict", "oc.Posterior.summary")


def timed(name: str) -> object:
    longer = name.startswith(LONGER) and name not in USED
    return pytest.param(name, marks=pytest.mark.slow) if longer else name


def test_the_names_of_longer_examples_are_there():
    gone = [start for start in (*LONGER, *USED) if not any(name.startswith(start) for name in RUNNING)]
    assert not gone, f"no public name begins with these any more: {gone}"


@pytest.mark.parametrize("name", [timed(name) for name in RUNNING])
def test_the_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(name, PUBLIC[name].doc)


def test_a_wrong_example_is_seen():
    with pytest.raises(AssertionError, match=r"expected\n3\ngot\n2"):
        run("wrong", ">>> 1 + 1\n3\n")
    with pytest.raises(ZeroDivisionError):
        run("wrong", ">>> 1 / 0\n")


SKIPPED = [name for name, one in PUBLIC.items() if SKIP in one.doc]


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SKIPPED if name.startswith("oc.UMBridge")])
def test_the_example_runs_with_a_server(name, umbridge_url):
    doc = PUBLIC[name].doc.replace(SKIP, "").replace("http://localhost:4242", umbridge_url)
    run(name, doc.replace('"decay"', '"jacobian"'))


@pytest.fixture(scope="module")
def umbridge_url():
    pytest.importorskip("umbridge", reason="needs umbridge, the extra umbridge")
    from serving import Server

    with Server() as server:
        yield server.url


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SKIPPED if name.startswith("oc.FMU")])
def test_the_example_runs_with_an_fmu(name, spring, tmp_path, monkeypatch):
    shutil.copy(spring, tmp_path / "spring.fmu")
    monkeypatch.chdir(tmp_path)
    run(name, PUBLIC[name].doc.replace(SKIP, ""))


@pytest.fixture(scope="module")
def spring(tmp_path_factory):
    pytest.importorskip("fmpy", reason="needs fmpy, the extra fmpy")
    pytest.importorskip("pythonfmu", reason="pythonfmu builds the FMUs of the tests, in the extra test")
    from fmu_models import build_spring

    return build_spring(tmp_path_factory.mktemp("spring"))


def test_every_skipped_example_is_run_with_what_it_needs():
    assert SKIPPED
    assert all(name.startswith(("oc.UMBridge", "oc.FMU")) for name in SKIPPED)
