"""A constraint between the parameters: the prior is pi(theta) 1[constraint] / constant."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any, NamedTuple
from unicodedata import normalize

import numpy as np

from ...arrays import Array, BoolArray
from ...errors import InputError, where_raised

# A condition on the parameters in words, ``"a + b < 1 and c > 2 * a"``: parsed, never run by Python.

#: longer texts are no condition that someone wrote
MOST_CHARACTERS = 2_000
#: more of a piece than this is not shown
MOST_SHOWN = 60

Number = Callable[[Array], Array]


class TruthValues(NamedTuple):
    """Where a condition holds and where it does not, (...): neither, where a value in it is undefined."""

    holds: BoolArray
    fails: BoolArray


Condition = Callable[[Array], TruthValues]

_OPERATORS: dict[type[ast.AST], np.ufunc] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    # of floats: a power that is too large is infinite at once
    ast.Pow: np.float_power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
}
_COMPARISONS: dict[type[ast.AST], np.ufunc] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_FUNCTIONS: dict[str, np.ufunc] = {"abs": np.absolute, "sqrt": np.sqrt, "exp": np.exp, "log": np.log}
_OF_SEVERAL: dict[str, np.ufunc] = {"min": np.minimum, "max": np.maximum}
KNOWN = (
    "a condition has the parameters' names, numbers, + - * / **, < <= > >=, and, or, not, parentheses and "
    f"{', '.join([*_FUNCTIONS, *_OF_SEVERAL])}"
)


def parsed(text: str, names: tuple[str, ...]) -> Callable[[Array], BoolArray]:
    """The condition as a function of theta (..., p); where a value in it is undefined it does not hold."""
    condition = _ConditionReader(text, names).condition()

    def holds(theta: Array) -> BoolArray:
        with np.errstate(all="ignore"):
            return condition(theta).holds

    return holds


class _ConditionReader:
    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self._text = " ".join(text.splitlines())
        # Python reads the names in an expression in this form
        self._places = {normalize("NFKC", name): j for j, name in enumerate(names)}
        self._names = names

    def condition(self) -> Condition:
        """The whole text."""
        stripped = self._text.lstrip()
        self._before = len(self._text) - len(stripped)
        if len(stripped) > MOST_CHARACTERS:
            raise InputError(f"constraint has {len(stripped)} characters: at most {MOST_CHARACTERS} are read")
        try:
            return self._condition(ast.parse(stripped.rstrip(), mode="eval").body)
        except SyntaxError as error:
            place = self._before + (error.offset or 1)
            raise InputError(
                f"constraint {_shortened(self._text)!r} cannot be read at column {place} ({error.msg}): {KNOWN}"
            ) from None
        except (RecursionError, MemoryError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"constraint is nested too deeply, or has too long a number: {KNOWN}") from None

    def _refused(self, node: ast.AST, why: str) -> InputError:
        piece = ast.get_source_segment(self._text[self._before :], node) or type(node).__name__
        # offsets are counted in bytes
        ahead = self._text[self._before :].encode()[: getattr(node, "col_offset", 0)].decode(errors="ignore")
        return InputError(f"constraint: {_shortened(piece)!r} at column {self._before + len(ahead) + 1} {why}")

    def _condition(self, node: ast.expr) -> Condition:
        if isinstance(node, ast.BoolOp):
            parts = [self._condition(one) for one in node.values]
            return _all_of(parts) if isinstance(node.op, ast.And) else _any_of(parts)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return _negated(self._condition(node.operand))
        if isinstance(node, ast.Compare):
            return self._comparison(node)
        raise self._refused(node, f"is not a condition, write for instance 'a + b < 1': {KNOWN}")

    def _comparison(self, node: ast.Compare) -> Condition:
        sides = [self._number(one) for one in (node.left, *node.comparators)]
        for operator in node.ops:
            if type(operator) not in _COMPARISONS:
                raise self._refused(node, "compares by something else than < <= > >=")
        pairs = [
            _compared(_COMPARISONS[type(operator)], left, right)
            for operator, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True)
        ]
        return pairs[0] if len(pairs) == 1 else _all_of(pairs)

    def _number(self, node: ast.expr) -> Number:
        if isinstance(node, ast.Name):
            return self._parameter(node)
        # a truth value is an int to Python, and no number here
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and type(node.value) is not bool:
            try:
                value = np.float64(node.value)
            except OverflowError:
                raise self._refused(node, "is too large a number") from None
            return lambda theta: np.full(theta.shape[:-1], value)
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            function, left, right = _OPERATORS[type(node.op)], self._number(node.left), self._number(node.right)
            return lambda theta: np.asarray(function(left(theta), right(theta)))
        if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
            sign, part = _OPERATORS[type(node.op)], self._number(node.operand)
            return lambda theta: np.asarray(sign(part(theta)))
        if isinstance(node, ast.Call):
            return self._call(node)
        raise self._refused(node, f"is not a number here: {KNOWN}")

    def _parameter(self, node: ast.Name) -> Number:
        if node.id not in self._places:
            readable = [name for name in self._names if name.isidentifier()]
            raise self._refused(
                node,
                f"is not the name of a parameter: there are {', '.join(readable) or 'none that an expression can name'}"
                "; for parameters with other names give a function of theta",
            )
        j = self._places[node.id]
        return lambda theta: theta[..., j]

    def _call(self, node: ast.Call) -> Number:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS and name not in _OF_SEVERAL:
            known = ", ".join([*_FUNCTIONS, *_OF_SEVERAL])
            raise self._refused(node, f"calls something unknown: the functions are {known}")
        few = len(node.args) != 1 if name in _FUNCTIONS else len(node.args) < 2
        if node.keywords or few or any(isinstance(one, ast.Starred) for one in node.args):
            count = "one argument" if name in _FUNCTIONS else "two arguments or more"
            raise self._refused(node, f"must have {count}, each a number")
        parts = [self._number(one) for one in node.args]
        if name in _FUNCTIONS:
            function = _FUNCTIONS[name]
            return lambda theta: np.asarray(function(parts[0](theta)))
        several = _OF_SEVERAL[name]
        return lambda theta: np.asarray(several.reduce([part(theta) for part in parts]))


def _shortened(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _compared(function: np.ufunc, left: Number, right: Number) -> Condition:
    def truth(theta: Array) -> TruthValues:
        a, b = left(theta), right(theta)
        holds = np.asarray(function(a, b), dtype=bool)
        return TruthValues(holds, ~holds & ~np.isnan(a) & ~np.isnan(b))

    return truth


def _all_of(parts: list[Condition]) -> Condition:
    def truth(theta: Array) -> TruthValues:
        each = [part(theta) for part in parts]
        return TruthValues(
            np.logical_and.reduce([one.holds for one in each]), np.logical_or.reduce([one.fails for one in each])
        )

    return truth


def _any_of(parts: list[Condition]) -> Condition:
    return _negated(_all_of([_negated(part) for part in parts]))


def _negated(part: Condition) -> Condition:
    return lambda theta: TruthValues(*reversed(part(theta)))


#: how a constraint that is no expression is written
OPAQUE = "a function"


class Constraint:
    """Which theta are allowed: an expression of the parameters' names, or a function of theta (p,) to True or False.

    Attributes
    ----------
    text
        The expression, or "a function".
    """

    def __init__(self, given: str | Callable[[Array], Any], names: tuple[str, ...]) -> None:
        if not isinstance(given, str) and not callable(given):
            raise InputError(
                f"constraint={given!r}: give a function of theta that returns True or False, or an expression of the "
                "parameters' names, for instance 'a + b < 1'"
            )
        self.given, self._names = given, names
        self.text = given if isinstance(given, str) else OPAQUE
        self._expression = parsed(given, names) if isinstance(given, str) else None

    def __call__(self, theta: Array) -> BoolArray:
        """Whether theta (..., p) is allowed."""
        if self._expression is not None:
            return self._expression(theta)
        rows = theta.reshape(-1, theta.shape[-1])
        return np.array([self._asked(one) for one in rows], dtype=bool).reshape(theta.shape[:-1])

    def _asked(self, theta: Array) -> bool:
        assert not isinstance(self.given, str)
        try:
            answer = self.given(theta.copy())
        except Exception as error:
            raise InputError(
                f"the constraint raised {type(error).__name__} at {self._described(theta)}: {error} "
                f"({where_raised(error)}); it must return True or False for every theta"
            ) from error
        array = np.asarray(answer)
        if array.dtype != bool or array.size != 1:
            raise InputError(
                f"the constraint returned {answer!r} at {self._described(theta)}: it must return True or False, and "
                f"gets the {len(theta)} parameters as one array"
            )
        return bool(array.ravel()[0])

    def _described(self, theta: Array) -> str:
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(self._names, theta, strict=True))
