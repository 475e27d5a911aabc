"""The choices of the compiled samplers, which priors on the bias and emulators share: nothing is compiled here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

import numpy as np

from ..errors import InputError

#: bins are bytes
MOST_CUTS = 255


@dataclass(frozen=True)
class Choices:
    """A base: they can be stored, and made again."""

    def describe(self) -> dict[str, Any]:
        """The choices, as what JSON can store."""
        return asdict(self)

    @classmethod
    def stored(cls, settings: Mapping[str, Any]) -> Self:
        """Those among the settings of a stored sampler.

        Examples
        --------
        >>> import orthocal as oc
        >>> prior = oc.bias.BMARS(order=1)
        >>> oc.bias.BMARS.stored({**prior.describe(), "spread": 3.0}) == prior
        True
        """
        return cls(**{name: settings[name] for name in cls.__dataclass_fields__})


@dataclass(frozen=True)
class BARTSettings(Choices):
    """The choices of ``oc.bias.BART``, which explains them."""

    trees: int = 200
    k: float = 2.0
    alpha: float = 0.95
    beta: float = 2.0
    cuts: int = 100
    grid: Literal["quantile", "uniform"] = "quantile"
    least: int = 5
    sweeps: int = 1

    def __post_init__(self) -> None:
        if self.trees < 1 or self.sweeps < 1 or self.least < 0:
            raise InputError("BART needs at least one tree and one sweep, and least must not be negative")
        if not 1 <= self.cuts <= MOST_CUTS:
            raise InputError(f"cuts={self.cuts}: give 1 to {MOST_CUTS} cut points an input")
        if not (0 < self.alpha < 1 and self.beta >= 0 and self.k > 0):
            raise InputError("BART needs 0 < alpha < 1, beta >= 0 and k > 0")
        if self.grid not in ("quantile", "uniform"):
            raise InputError(f'grid={self.grid!r}: give "quantile" or "uniform"')


@dataclass(frozen=True)
class SoftBARTSettings(Choices):
    """The choices of ``oc.bias.SoftBART``, which explains them."""

    trees: int = 50
    k: float = 2.0
    alpha: float = 0.95
    beta: float = 2.0
    bandwidth: float = 0.1
    sparsity: float = 1.0
    sweeps: int = 1

    def __post_init__(self) -> None:
        if self.trees < 1 or self.sweeps < 1:
            raise InputError(
                f"trees={self.trees}, sweeps={self.sweeps}: SoftBART needs at least one tree and one sweep"
            )
        if not (0 < self.alpha < 1 and self.beta >= 0 and self.k > 0):
            raise InputError(
                f"alpha={self.alpha}, beta={self.beta}, k={self.k}: SoftBART needs 0 < alpha < 1, beta >= 0 and k > 0"
            )
        if not (0 < self.bandwidth < np.inf and 0 < self.sparsity < np.inf):
            raise InputError(f"bandwidth={self.bandwidth}, sparsity={self.sparsity}: give positive numbers")


@dataclass(frozen=True)
class BMARSSettings(Choices):
    """The choices of ``oc.bias.BMARS``, which explains them."""

    moves: int = 10
    order: int = 2
    degree: int = 1
    most: int = 50
    least: int = 5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
                raise InputError(f"BMARS has {name}={value!r}: give a whole number of at least 1")

    def describe(self) -> dict[str, Any]:
        return {name: int(value) for name, value in asdict(self).items()}
