"""Conditions in words: what is read means what Python means, and nothing else is read."""

import numpy as np
import pytest

from orthocal.errors import InputError
from orthocal.problem.prior.constraints import parsed

NAMES = ("a", "b", "c")
THETA = np.random.default_rng(0).normal(0, 2, (200, 3))


@pytest.mark.parametrize(
    "text",
    [
        "a + b < 1",
        "a + b < 1 and c > 2 * a",
        "a < b < c",
        "not (a < 0) or b >= -c / 2",
        "  -a ** 2 + 3.5e-1 <= +b",
        "abs(a) < 1 and max(a, b, c) > min(a, b)",
        "exp(a) < 2 and (b > 0 or c > 0) and not c > 3",
    ],
)
def test_a_condition_means_what_python_means(text):
    functions = {"abs": abs, "min": min, "max": max, "exp": np.exp}
    expected = [eval(text.strip(), functions, dict(zip(NAMES, one, strict=True))) for one in THETA]
    np.testing.assert_array_equal(parsed(text, NAMES)(THETA), expected)
    assert parsed(text, NAMES)(THETA[0]).shape == ()
    assert parsed(text, NAMES)(THETA.reshape(4, 50, 3)).shape == (4, 50)


def test_what_is_undefined_does_not_hold_unless_something_else_does():
    theta = np.array([[-1.0, 0, 0], [0.25, 0, 0], [4.0, 0, 0]])
    np.testing.assert_array_equal(parsed("sqrt(a) < 1", NAMES)(theta), [False, True, False])
    np.testing.assert_array_equal(parsed("not sqrt(a) < 1", NAMES)(theta), [False, False, True])
    np.testing.assert_array_equal(parsed("a < 0 or log(a) < 0", NAMES)(theta), [True, True, False])


def test_huge_powers_are_infinite_at_once():
    np.testing.assert_array_equal(parsed("a < 9**9**9", NAMES)(THETA), True)
    np.testing.assert_array_equal(parsed("9**9**9**9 < a", NAMES)(THETA), False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot be read at column 1"),
        ("a +", "cannot be read at column"),
        ("a b < 1", "cannot be read at column"),
        ("a = 1", "cannot be read at column"),
        ("a + b", "'a \\+ b' at column 1 is not a condition"),
        ("a", "'a' at column 1 is not a condition"),
        ("True", "'True' at column 1 is not a condition"),
        ("a < True", "'True' at column 5 is not a number"),
        ("a < 1 and b", "'b' at column 11 is not a condition"),
        ("a < d", "'d' at column 5 is not the name of a parameter: there are a, b, c"),
        ("a < 'b'", "\"'b'\" at column 5 is not a number"),
        ("a < 1j", "'1j' at column 5 is not a number"),
        ("a == b", "compares by something else"),
        ("a in (b, c)", "not a number"),
        ("a is b", "compares by something else"),
        ("a % 2 < 1", "'a % 2' at column 1 is not a number"),
        ("a < (b < c)", "'b < c' at column 6 is not a number"),
        ("__import__('os').system('true') < 1", "calls something unknown"),
        ("a.real < 1", "'a.real' at column 1 is not a number"),
        ("open < 1", "'open' at column 1 is not the name"),
        ("sin(a) < 1", "'sin\\(a\\)' at column 1 calls something unknown: the functions are abs"),
        ("abs(a, b) < 1", "must have one argument"),
        ("max(a) < 1", "must have two arguments"),
        ("max(*a) < 1", "must have two arguments"),
        ("max(a, b, key=c) < 1", "must have two arguments"),
        ("(lambda: 1)() < a", "calls something unknown"),
        ("[a][0] < 1", "is not a number"),
        ("(a if b else c) < 1", "is not a number"),
        ("(a := 3) < 1", "is not a number"),
        ("a < 1" + "0" * 400, "too large a number"),
        ("a < " + "9" * 1900, "too large a number"),
        ("a < " + "(" * 300 + "1" + ")" * 300, "cannot be read|nested too deeply"),
        ("a < " + "-" * 1900 + "1", "nested too deeply|cannot be read"),
        ("a < 1 or " * 1000 + "b < 2", "characters"),
    ],
)
def test_anything_else_is_refused_with_its_place(text, words):
    with pytest.raises(InputError, match=words):
        parsed(text, NAMES)


def test_columns_are_counted_in_characters_and_lines_are_joined():
    with pytest.raises(InputError, match="'d' at column 7"):
        parsed("  θ < d", ("θ",))
    assert parsed("θ <\n 1", ("θ",))(np.array([0.5]))


def test_names_that_are_no_words_cannot_be_used():
    with pytest.raises(InputError, match=r"'M' at column 1.*none that an expression can name.*give a function"):
        parsed("M / L < 1", ("M/L",))
