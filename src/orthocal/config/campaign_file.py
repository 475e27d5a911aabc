"""A campaign as a TOML file: the simulator, its parameters, the design, the points and how to run it.

See ``docs/campaigns.md`` for every key.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pandas as pd
from pydantic import BeforeValidator, Field

from ..errors import ConfigError
from ..execution.fmu import FMU
from ..execution.program import Program
from ..execution.work.simulation import External
from ..problem.simulator.simulator_function import Simulator
from ..runs.designs import design
from ..sections import Names, Section, read_sections
from .priors import names_of, priors_of
from .simulators import FileFunction, FunctionSection
from .tables import DIALECT_KEYS, TableSection, read_columns


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str | int) else value


class ProgramSection(Section):
    command: str | list[str]
    input_template: str | None = None
    output: str = "output.csv"
    columns: Annotated[list[str | int] | None, BeforeValidator(_one_or_more)] = None
    files: list[str] = Field(default_factory=list)
    folder: str | None = None
    keep: Literal["none", "failed", "all"] = "none"
    link: bool = True
    stop: str | list[str] | None = None


class DesignSection(TableSection):
    kind: Literal["sobol", "lhs", "grid"] = "sobol"
    n: int | list[int] | None = None
    seed: int = 0
    bounds: dict[str, tuple[float, float]] = Field(default_factory=dict)
    file: str | None = None
    more: str | None = None
    replicates: int = Field(default=1, ge=1)


class PointsSection(TableSection):
    file: str
    columns: Names


class RunSection(Section):
    store: str = "runs.db"
    jobs: int | None = Field(default=None, ge=1)
    cluster: str | None = None
    timeout: float | None = Field(default=None, gt=0)
    retries: int = Field(default=1, ge=0)


class OutcomesSection(Section):
    names: Names


class CampaignFile(Section):
    """The whole file."""

    simulator: FunctionSection | None = None
    program: ProgramSection | None = None
    parameters: dict[str, dict[str, Any]] = Field(min_length=1)
    constraint: str | None = None
    design: DesignSection
    x: PointsSection
    run: RunSection = RunSection()
    outcomes: OutcomesSection | None = None
    units: dict[str, str] = Field(default_factory=dict)


def read_campaign_file(path: str | Path) -> CampaignFile:
    """Read and check a campaign file."""
    config = read_sections(path, CampaignFile)
    if (config.simulator is None) == (config.program is None):
        raise ConfigError(f"{path}: give either [simulator] or [program]")
    return config


def build_campaign(config: CampaignFile, folder: Path) -> dict[str, Any]:
    """The arguments of ``oc.campaign`` that a file describes; its paths are relative to ``folder``."""
    folder = folder.resolve()
    run = config.run
    x = read_columns(folder / config.x.file, config.x.columns, config.x)
    return {
        "simulator": _simulator(config, folder, x),
        "design": _design(config, folder),
        "x": x,
        "store": folder / run.store,
        "jobs": run.jobs,
        "cluster": run.cluster,
        "timeout": run.timeout,
        "retries": run.retries,
        "replicates": config.design.replicates,
        "outcome_names": None if config.outcomes is None else config.outcomes.names,
        "units": config.units,
    }


def _simulator(config: CampaignFile, folder: Path, x: pd.DataFrame) -> FileFunction | Simulator | External | FMU:
    if config.program is not None:
        return Program(**config.program.model_dump(), base=folder)
    section = config.simulator or FunctionSection()
    if len(section.model_fields_set - {"batched"}) != 1:
        raise ConfigError("[simulator] takes either a function to call, or umbridge, the model of a server, or an fmu")
    if section.batched and section.function is None:
        raise ConfigError("[simulator]: batched goes with a function")
    if section.fmu is not None:
        return section.fmu.simulator(folder, names_of(priors_of(config.parameters)), x)
    if section.umbridge is not None:
        return section.umbridge.simulator(folder, x)
    assert section.function is not None
    function = FileFunction(section.function, folder)
    return Simulator(function, batched=section.batched) if section.batched else function


def _design(config: CampaignFile, folder: Path) -> pd.DataFrame:
    """The runs of a design or of a table, and below them those of ``more``, which came later."""
    first, more = _first_design(config, folder), config.design.more
    if more is None:
        return first
    later = read_columns(folder / more, list(first.columns), config.design)
    return pd.concat([first, later], ignore_index=True)


def _first_design(config: CampaignFile, folder: Path) -> pd.DataFrame:
    section, priors = config.design, priors_of(config.parameters)
    if section.file is not None:
        if section.model_fields_set - {"file", "more", "replicates", *DIALECT_KEYS}:
            raise ConfigError("[design] with a file takes no other key but more, separator, decimal and replicates")
        return read_columns(folder / section.file, names_of(priors), section)
    if section.n is None:
        raise ConfigError("[design] needs n, the number of runs, or a file")
    return design(priors, section.n, section.kind, section.seed, section.bounds, config.constraint)
