"""Simulators that problem and campaign files may name: functions, models of servers, FMUs."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import Field

from ..execution.fmu import FMU, TOLERANCE
from ..execution.servers.umbridge import Derivative, UMBridge
from ..sections import Names, Section
from .tables import TableSection, read_columns


class UMBridgeSection(TableSection):
    """A model of UM-Bridge servers; the keys are the arguments of ``oc.UMBridge``."""

    url: Names
    model: str = "forward"
    points: str | None = None
    x_block: int | None = None
    x_config: str | None = None
    config: dict[str, Any] = Field(default_factory=dict)
    fixed: dict[int, list[float]] = Field(default_factory=dict)
    outputs: list[int] | None = None
    by: Literal["point", "outcome"] = "point"
    derivative: Derivative = "auto"
    timeout: float | None = None
    wait: float = 600.0
    retries: int = 2
    each: int = 1
    seed_config: str | None = None

    def simulator(self, folder: Path, x: pd.DataFrame | None) -> UMBridge:
        """The model; where it takes no x its own points are those of a table, or of the data."""
        settings = self.model_dump(exclude={"points", "separator", "decimal"})
        takes_x = self.x_block is not None or self.x_config is not None
        points = None if takes_x else x
        if self.points is not None and x is not None:
            points = read_columns(folder / self.points, list(x.columns), self)
        return UMBridge(**settings, points=points)


class FMUSection(Section):
    """An FMU; the keys are the arguments of ``oc.FMU``."""

    file: str
    parameters: dict[str, str] | Names
    outputs: Names
    inputs: dict[str, str] | Names = Field(default=["time"])
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    fixed: dict[str, float] = Field(default_factory=dict)
    kind: Literal["auto", "co-simulation", "model-exchange"] = "auto"
    solver: Literal["CVode", "Euler"] = "CVode"
    tolerance: float = TOLERANCE
    timeout: float | None = None

    def simulator(self, folder: Path, names: list[str], x: pd.DataFrame | None) -> FMU:
        """The FMU with the parameters and the inputs of the file, matched by their names."""
        own = FMU(folder / self.file, **self.model_dump(exclude={"file"})).for_parameters(names)
        return own if x is None else own.for_inputs([str(one) for one in x.columns])


class FunctionSection(Section):
    """Of a campaign: a function to call, the model of a server, or an FMU."""

    function: str | None = None
    batched: bool | int = False
    umbridge: UMBridgeSection | None = None
    fmu: FMUSection | None = None
