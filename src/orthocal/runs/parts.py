"""The parts of a table of runs, checked: their shapes, numbers, names and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from ..arrays import Array, Names, as_columns, as_floats, checked_names
from ..errors import InputError
from .reading import RUN


def at_one_point(output: ArrayLike) -> Array:
    """Outputs without inputs, (s, q), as outcomes at a single point, (s, 1, q)."""
    values = as_floats(output, "output")
    if values.ndim != 2:
        raise InputError(f"output has shape {values.shape}: without x, give one row a run and one column an output")
    return values[:, None]


def per_run(x: ArrayLike) -> TypeGuard[Sequence[ArrayLike]]:
    """Whether ``x`` is one array a run: a list of arrays, not of numbers or of rows of numbers."""
    return isinstance(x, list | tuple) and bool(x) and all(hasattr(one, "__array__") and np.ndim(one) for one in x)


def common_points(output: ArrayLike, x: ArrayLike, s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    points, values = as_columns(x, "x"), as_floats(output, "output")
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[:2] != (s, len(points)) or not values.size:
        raise InputError(
            f"output has shape {np.shape(output)} for {s} runs at {len(points)} points: "
            f"give ({s}, {len(points)}), or ({s}, {len(points)}, q) for q outcomes"
        )
    return (points,), (values,)


def own_points(output: ArrayLike, x: Sequence[ArrayLike], s: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    if not isinstance(output, list | tuple | np.ndarray) or len(x) != s or len(output) != s:
        raise InputError(
            f"x is a list of {len(x)} arrays, each the points of one run: give one array a run ({s}) in x and in output"
        )
    points = tuple(as_columns(one, f"x of run {i}") for i, one in enumerate(x))
    values = tuple(as_columns(one, f"output of run {i}") for i, one in enumerate(output))
    for i, (at, value) in enumerate(zip(points, values, strict=True)):
        if len(at) != len(value) or not value.size:
            raise InputError(f"run {i} has {len(at)} points and {len(value)} rows of output: give one row a point")
        if at.shape[1] != points[0].shape[1] or value.shape[1] != values[0].shape[1]:
            raise InputError(f"run {i} has another number of inputs or outcomes than run 0")
    if all(np.array_equal(at, points[0]) for at in points):
        return points[:1], (np.stack(values),)
    return points, values


def refuse_infinite(x: tuple[Array, ...], output: tuple[Array, ...]) -> None:
    if not all(np.isfinite(one).all() for one in x):
        raise InputError("x has NaN or infinite values: the inputs of every point must be known")
    if any(np.isinf(one).any() for one in output):
        raise InputError("output has infinite values: set a cell to NaN where the simulator gave no number")


def all_names(*kinds: tuple[Names, int, str, str, object]) -> list[tuple[str, ...]]:
    """The names of parameters, inputs and outcomes: one table has them all, so they must differ."""
    chosen = [checked_names(*kind) for kind in kinds]
    together = [name for names in chosen for name in names]
    for name in together:
        if not name.strip() or name != name.strip() or not name.isprintable() or name == RUN:
            raise InputError(f"name {name!r}: give a non-empty printable text without spaces around it, not {RUN!r}")
        if together.count(name) > 1:
            raise InputError(f"two of the parameters, inputs and outcomes are named {name!r}: give each its own name")
    return chosen


def checked_units(units: Mapping[str, str], names: tuple[str, ...]) -> dict[str, str]:
    unknown = sorted(set(units) - set(names))
    if unknown:
        raise InputError(f"units has {', '.join(map(repr, unknown))}: there are {', '.join(map(repr, names))}")
    if not all(isinstance(unit, str) and unit.isprintable() for unit in units.values()):
        raise InputError('units must be printable texts, for instance units={"g": "m/s^2"}')
    return {name: units[name] for name in names if name in units}
