"""What is known of a problem before its search for the best fit: all that a first look may use without long work."""

from __future__ import annotations

from typing import Protocol

from ..arrays import Array
from .data.field_data import FieldData
from .domain.domain import Domain, Rule
from .noise.noise import Noise
from .prior.parameters import Parameters
from .search.best_fit import Criterion
from .search.minima import Minimum
from .simulator.simulator import BoundSimulator


class Known(Protocol):
    """A problem; ``minima`` and what follows from them are searched for when they are asked for."""

    data: FieldData
    parameters: Parameters
    simulator: BoundSimulator
    domain: Domain
    _starts: Array

    @property
    def searched(self) -> bool:
        """Whether ``minima`` are known already."""

    @property
    def minima(self) -> tuple[Minimum, ...]: ...

    @property
    def rivals(self) -> tuple[float, ...]: ...

    @property
    def weight(self) -> Array: ...

    @property
    def rule(self) -> Rule: ...

    @property
    def _criterion(self) -> Criterion: ...

    @property
    def _own_noise(self) -> Noise:
        """That of the field data alone."""
