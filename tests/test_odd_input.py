"""Input that nobody means to give: one sentence each."""

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.config.simulators import FileFunction
from orthocal.errors import ConfigError, InputError, OrthocalError
from orthocal.sections import Section, read_sections, read_toml

X = np.linspace(0, 1, 20)


class Settings(Section):
    draws: int = 1
    loc: float | list[float] = 0.0
    bounds: dict[str, tuple[float, float]] = {}  # noqa: RUF012
    progress: bool = True


def given(folder, text):
    (folder / "odd.toml").write_text(text, encoding="utf-8")
    return folder / "odd.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("draws = " + "9" * 5000, "is not valid TOML: Exceeds the limit"),
        ("draws = " + "9" * 400, "odd.toml: draws: an integer of more than 64 bits; write it as a float"),
        ("a = " + "[" * 20000 + "]" * 20000, "is not valid TOML: its brackets are nested too deeply"),
        ("a = " + "{b = " * 20000, "is not valid TOML"),
        ('[[a]]\nb = ["c", "\\u0000"]', "odd.toml: a.b: its text holds a NUL"),
        ('"a\\u0000b" = 1', r"odd.toml: a\\x00b: its text holds a NUL"),
        ('a = "\\ud800"', "is not valid TOML"),
    ],
)
def test_files(tmp_path, text, message):
    with pytest.raises(ConfigError, match=message) as error:
        read_toml(given(tmp_path, text))
    assert len(str(error.value)) < 600


@pytest.mark.parametrize("text", ["draws = true", "loc = false", "loc = [1.0, true]", "bounds = { b = [0, true] }"])
def test_truth_is_no_number(tmp_path, text):
    with pytest.raises(ConfigError, match="true and false are no numbers"):
        read_sections(given(tmp_path, text), Settings)
    assert read_sections(given(tmp_path, "progress = false"), Settings).progress is False


def test_messages_stay_short(tmp_path):
    text = "\n".join(f"key{i} = 1" for i in range(1000)) + f"\n{'k' * 100000} = 1"
    with pytest.raises(ConfigError, match=r"unknown key 'key0'.*and 993 more") as error:
        read_sections(given(tmp_path, text), Settings)
    assert len(str(error.value)) < 4000


def test_names_that_no_file_can_have(tmp_path):
    name = "a" * 100_000
    simulator = FileFunction(f"{name}.py:f", tmp_path)
    for read in (lambda: oc.load(name), lambda: oc.RunTable.load(f"{name}.nc"), lambda: simulator(X, [1.0])):
        with pytest.raises(OrthocalError) as error:
            read()
        assert len(str(error.value)) < 4100


def test_half_a_character_can_be_printed():
    assert str(InputError("no column '\ud800'")).encode() == b"no column '\\ud800'"


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b"])
def test_names(name):
    priors = {"a": stats.norm(0, 1)}
    for names in ({"outcome_names": (name,)}, {"input_names": (name,)}):
        with pytest.raises(InputError, match="a name cannot hold a NUL or half a surrogate pair"):
            oc.Problem(X, X, lambda x, t: t[0] * x, priors, noise_cov=1.0, **names)
    with pytest.raises(InputError, match="printable"):
        oc.Problem(X, X, lambda x, t: t[0] * x, {name: stats.norm(0, 1)}, noise_cov=1.0)


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e160, 1e300])
def test_sizes_whose_squares_no_float_holds(size):
    rng = np.random.default_rng(1)
    runs = oc.RunTable(rng.random((10, 1)), size * rng.random((10, 3)), np.arange(3.0), "a", "x", "y")
    with pytest.raises(InputError, match=r"outcome 'y' has numbers of the size .*: give it in another unit"):
        oc.emulate(runs, "gp")
    priors = {"a": stats.norm(0, 1)}
    with pytest.raises(InputError, match="outcome 'y' has numbers of the size"):
        oc.Problem(X, size * X, lambda x, t: t[0] * x, priors, noise_cov=1.0)
    with pytest.raises(InputError, match="input 'x' has numbers of the size"):
        oc.Problem(size * X, X, lambda x, t: t[0] * x, priors, noise_cov=1.0)
    with pytest.raises(InputError, match=r"y_err is .* as must its square"):
        oc.Problem(X, X, lambda x, t: t[0] * x, priors, y_err=size)
    if size in (1e-300, 1e300):
        with pytest.raises(InputError, match="noise's standard deviation"):
            oc.Problem(X, X, lambda x, t: t[0] * x, priors, noise_cov=size)


@pytest.mark.parametrize("size", [1e-100, 1e100])
def test_sizes_that_are_only_odd(size):
    problem = oc.Problem(X, size * X, lambda x, t: size * t[0] * x, {"a": stats.norm(0, 1)}, noise_cov=0.01 * size**2)
    assert problem.theta_tilde[0] == pytest.approx(1, abs=0.05)
