"""Outcomes on another scale: log y, sqrt y or logit y, on which noise and bias are added to the simulator.

    T(y_i) = T(f(x_i, theta)) + b(x_i) + e_i

Data and simulator are transformed where they enter a problem, and predictions back where they leave the results: what
lies between knows the transformed scale only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, logit

from ...advice import named_transform
from ...arrays import Array, BoolArray
from ...errors import InputError

#: a word for all outcomes, one an outcome, or outcome -> word; None leaves an outcome as it is
Chosen: TypeAlias = str | Sequence[str | None] | Mapping[str, str | None] | None


class Transform(NamedTuple):
    """T of one outcome, its inverse and its slope T'(y); the y that it takes, and what to do about others."""

    forward: Callable[[Array], Array]
    inverse: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    takes: Callable[[Array], BoolArray]
    needs: str
    advice: str


TRANSFORMS = {
    "log": Transform(
        np.log,
        np.exp,
        lambda y: 1 / y,
        lambda y: y > 0,
        "y > 0",
        "take " + named_transform("sqrt") + ", which takes zeros, or set cells below the limit of detection to NaN",
    ),
    "sqrt": Transform(
        np.sqrt,
        # below zero lies what noise makes of small values: they are zeros
        lambda z: np.maximum(z, 0.0) ** 2,
        lambda y: 0.5 / np.sqrt(y),
        lambda y: y >= 0,
        "y >= 0",
        "leave the transform out for an outcome that can be negative, or set the cell to NaN",
    ),
    "logit": Transform(
        logit,
        expit,
        lambda y: 1 / (y * (1 - y)),
        lambda y: (y > 0) & (y < 1),
        "0 < y < 1",
        "divide by the largest value that is possible, and move shares of 0 and 1 inwards, (k + 0.5) / (m + 1) for k "
        "of m for instance",
    ),
}


@dataclass(frozen=True)
class Transforms:
    """One transform, or None, an outcome; false where there is none at all.

    Attributes
    ----------
    names
        One an outcome; empty for outcomes that are all left as they are.
    """

    names: tuple[str | None, ...] = ()

    def __bool__(self) -> bool:
        return any(self.names)

    def forward(self, native: Array) -> Array:
        """T(y) for values (..., q); not finite where T does not take them."""
        return self._each(native, lambda one, values: one.forward(values))

    def inverse(self, values: Array) -> Array:
        """The values (..., q) back on the outcomes' own scale; T is increasing, so quantiles stay quantiles."""
        return self._each(values, lambda one, column: one.inverse(column))

    def slope(self, native: Array) -> Array:
        """T'(y) for values (..., q) on the outcomes' own scale."""
        slopes = np.ones_like(native)
        return np.where(np.isnan(native), np.nan, self._each(native, lambda one, y: one.slope(y), slopes))

    def has_density(self, native: Array) -> bool:
        """Whether every observation (n, q) has a finite density on its own scale, p(T(y)) T'(y)."""
        return not np.isinf(self.slope(native)).any()

    def labels(self, outcome_names: tuple[str, ...]) -> tuple[str, ...]:
        """What the transformed scale is called: ``log y``."""
        if not self:
            return outcome_names
        pairs = zip(self.names, outcome_names, strict=True)
        return tuple(name if word is None else f"{word} {name}" for word, name in pairs)

    def outcome(self, k: int) -> Transforms:
        """Those of outcome k alone."""
        return Transforms(self.names[k : k + 1])

    def first_wrong(self, native: Array) -> tuple[int, int, int] | None:
        """Row, outcome and number of the cells (n, q) that a transform does not take, or None; NaN is none of them."""
        wrong = np.zeros(native.shape, dtype=bool)
        for k, name in enumerate(self.names):
            if name is not None:
                wrong[:, k] = ~np.isnan(native[:, k]) & ~TRANSFORMS[name].takes(native[:, k])
        if not wrong.any():
            return None
        row, k = np.argwhere(wrong)[0]
        return int(row), int(k), int(wrong[:, k].sum())

    def _each(self, values: Array, of: Callable[[Transform, Array], Array], start: Array | None = None) -> Array:
        """``of`` the columns that have a transform; the others are those of ``start``, or stay what they are."""
        if not self:
            return values if start is None else start
        result = np.array(values if start is None else start)
        with np.errstate(all="ignore"):
            for k, name in enumerate(self.names):
                if name is not None:
                    result[..., k] = of(TRANSFORMS[name], values[..., k])
        return result


def chosen_transforms(transform: Chosen, outcome_names: tuple[str, ...]) -> Transforms:
    """What the user chose, one an outcome."""
    q = len(outcome_names)
    if isinstance(transform, Mapping):
        unknown = [str(name) for name in transform if name not in outcome_names]
        if unknown:
            raise InputError(
                f"transform names {', '.join(unknown)}, but the outcomes are {', '.join(outcome_names)}: give these"
            )
        names = [transform.get(name) for name in outcome_names]
    elif transform is None or isinstance(transform, str):
        names = [transform] * q
    else:
        names = list(transform) if isinstance(transform, Iterable) else [transform]
        if len(names) != q:
            raise InputError(
                f"transform={transform!r}: give one word for all outcomes, or one or None for each of the {q} outcomes"
            )
    for name in names:
        if name is not None and (not isinstance(name, str) or name not in TRANSFORMS):
            known = ", ".join(f'"{one}"' for one in TRANSFORMS)
            raise InputError(f"transform={name!r}: give {known}, or None to leave an outcome as it is")
    return Transforms(tuple(names) if any(names) else ())


def check_outcomes(transforms: Transforms, y: Array, outcome_names: tuple[str, ...]) -> None:
    """An error where a transform does not take an observation."""
    found = transforms.first_wrong(y)
    if found is not None:
        row, k, count = found
        name = str(transforms.names[k])
        raise InputError(
            f"{outcome_names[k]} is {y[row, k]:g} in row {row} ({count} such cell{'s' * (count > 1)}): "
            + named_transform(name)
            + f" needs {TRANSFORMS[name].needs}; "
            + TRANSFORMS[name].advice
        )
