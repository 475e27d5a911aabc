"""A calibration as a TOML file: data from CSV or Parquet, the simulator from a Python file, everything else in words.

See ``docs/problem-file.md`` for every key.
"""

from __future__ import annotations

from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

import pandas as pd
from pydantic import ConfigDict, Field

from ..bias import GP, Independent
from ..comparison.comparison import METHODS, OUTPUT_METHODS
from ..emulators import Emulator
from ..emulators.choice import emulate
from ..errors import ConfigError
from ..execution.servers.umbridge import UMBridge
from ..kernels.base import KERNELS
from ..losses import Chosen, Huber
from ..methods import KO, OGP, Joint, Method, NoBias, Projected, SGaSP, method_by_name
from ..methods.base import MOST_KEPT
from ..problem.domain.domain import Box, Domain, Points
from ..problem.domain.labels import Labels
from ..problem.problem import STARTS, Problem
from ..problem.simulator.simulator_function import Simulator
from ..runs.table import RunTable
from ..sections import Names, Section, read_sections
from .noise_section import NoiseSection, noise_of
from .priors import names_of, priors_of
from .simulators import FileFunction, FMUSection, UMBridgeSection
from .tables import (
    DIALECT_KEYS,
    RunsSection,
    Table,
    TableSection,
    columns_of,
    inputs_of,
    labels_of,
    load_runs,
    read_table,
    rows_where,
)

# [domain] of a problem file: a box, a table of nodes, weights of labels.

Numbers = float | list[float]


class DomainSection(TableSection):
    lower: Numbers | None = None
    upper: Numbers | None = None
    nodes: int | None = None
    file: str | None = None
    x: Names | None = None
    weight: str | None = None
    labels: dict[str, dict[str, float]] | None = None


def domain_of(config: DomainSection | None, folder: Path, categorical: list[str]) -> Domain | Labels | None:
    """The domain that a section describes; columns that are ``categorical`` hold labels."""
    if config is None:
        return None
    if config.labels is not None:
        within = config.model_copy(update={"labels": None})
        alone = config.model_fields_set <= {"labels"}
        return Labels(None if alone else cast(Domain | None, domain_of(within, folder, categorical)), config.labels)
    if config.file is not None:
        if config.x is None or config.lower is not None or config.upper is not None:
            raise ConfigError("[domain] with a file takes the columns x and weight, and no box")
        table = read_table(folder / config.file, config)
        weights = None if config.weight is None else columns_of(table, [config.weight]).iloc[:, 0]
        return Points(inputs_of(table, config.x, categorical), weights)
    if config.lower is None or config.upper is None or config.x is not None or config.weight is not None:
        raise ConfigError("[domain] needs lower and upper, or a file with the columns x and weight")
    return Box(config.lower, config.upper, config.nodes)


class DataSection(TableSection):
    """The field data; ``experiment`` is a column that says what a row belongs to, ``label`` one of these.

    ``settings`` are columns with one value each, which the simulator's function is given by name.
    """

    file: str
    x: Names | None = None
    y: Names
    y_err: Names | None = None
    transform: str | list[str] | dict[str, str] | None = None
    x_err: float | list[float] | Names | None = None
    groups: str | None = None
    categorical: Names | None = None
    experiment: str | None = None
    label: str | None = None
    settings: Names | None = None
    units: dict[str, str] | None = None


class SimulatorSection(TableSection):
    """A function to call, runs to emulate, the model of a server, or an FMU; a function gets ``settings`` by name."""

    function: str | None = None
    settings: dict[str, float | str | bool] | None = None
    gradient: str = "auto"
    jobs: int | None = None
    batched: bool | int = False
    timeout: float | None = None
    runs: str | None = None
    emulator: str = "auto"
    error: bool = False
    umbridge: UMBridgeSection | None = None
    fmu: FMUSection | None = None


class LossSection(Section):
    """What "closest" means; ``k`` is where Huber's loss turns, in noise sds."""

    weight: Literal["noise-precision", "identity"] | list[list[float]] = "noise-precision"
    kind: Literal["squared", "absolute", "huber"] = "squared"
    k: float | None = None


class MethodSection(Section):
    """The method; other keys are the settings of its bias prior, ``nu`` of a Gaussian process for instance."""

    model_config = ConfigDict(extra="allow")

    name: str = "gp"
    projection: Literal["functional", "finite"] = "functional"
    feedback: bool = True
    kernel: Literal["laplace", "adaptive", "slice", "hmc"] = "laplace"


class SamplingSection(Section):
    draws: int = 1000
    warmup: int = 200
    chains: int = 4
    seed: int | None = None
    starts: int = STARTS
    keep_mb: float = MOST_KEPT / 1e6
    emulator_draws: int | None = None


class OutputSection(Section):
    folder: str = "."
    name: str = "fit"
    title: str | None = None


class CompareSection(Section):
    """What ``orthocal compare`` does; its methods have their usual settings, but for the one of ``[method]``."""

    methods: Names = Field(default=list(METHODS), min_length=1)
    folds: int = 5
    fold_draws: int | None = None
    loo: bool = False
    groups: str | None = None


class ProblemFile(Section):
    """The whole file."""

    data: DataSection
    simulator: SimulatorSection
    runs: RunsSection = RunsSection()
    parameters: dict[str, dict[str, Any]] = Field(min_length=1)
    constraint: str | None = None
    domain: DomainSection | None = None
    noise: NoiseSection = NoiseSection()
    loss: LossSection = LossSection()
    method: MethodSection = MethodSection()
    sampling: SamplingSection = SamplingSection()
    output: OutputSection = OutputSection()
    compare: CompareSection = CompareSection()


def compared_methods(config: ProblemFile) -> list[str]:
    """Names of the methods that the file has compared; without x and without a list, those that need none."""
    if config.data.x is None and "methods" not in config.compare.model_fields_set:
        return list(OUTPUT_METHODS)
    return config.compare.methods


def read_problem_file(path: str | Path) -> ProblemFile:
    """Read and check a problem file."""
    return read_sections(path, ProblemFile)


def input_files(config: ProblemFile, path: Path) -> list[Path]:
    """The files that a problem is read from, the problem file first."""
    simulator, domain = config.simulator, config.domain
    code = [one.rpartition(":")[0] for one in (simulator.function, simulator.gradient) if one and ":" in one]
    fmu = None if simulator.fmu is None else simulator.fmu.file
    tables = [simulator.runs, config.runs.points_file, None if domain is None else domain.file]
    named = [config.data.file, *code, fmu, *tables]
    return [path, *(path.parent / one for one in named if one)]


def build_problem(config: ProblemFile, folder: Path) -> Problem:
    """The problem that a file describes; its paths are relative to ``folder``."""
    table = read_table(folder / config.data.file, config.data)
    if config.data.experiment is not None and config.data.label is not None:
        table = rows_where(table, config.data.experiment, config.data.label)
    x = None if config.data.x is None else inputs_of(table, config.data.x, config.data.categorical or [])
    y = columns_of(table, config.data.y)
    errors = None if config.data.y_err is None else columns_of(table, config.data.y_err)
    # what is cheap to check comes before an emulator is fitted
    priors = priors_of(config.parameters)
    return Problem(
        x,
        y,
        _simulator(config, folder, names_of(priors), x, _settings(config, table)),
        priors,
        domain=domain_of(config.domain, folder, config.data.categorical or []),
        noise_cov=noise_of(config.noise, config.data.y_err is not None, folder),
        y_err=None if errors is None else errors.to_numpy(),
        loss_weight=config.loss.weight,
        starts=config.sampling.starts,
        emulator_error=config.simulator.error,
        transform=config.data.transform,
        x_err=_input_errors(config.data.x_err, table),
        constraint=config.constraint,
        groups=None if config.data.groups is None else labels_of(table, config.data.groups),
        categorical=config.data.categorical,
        units=config.data.units,
    )


def build_simulator(config: ProblemFile, folder: Path) -> Simulator | Emulator | UMBridge:
    """The simulator alone."""
    table = read_table(folder / config.data.file, config.data)
    if config.data.experiment is not None and config.data.label is not None:
        table = rows_where(table, config.data.experiment, config.data.label)
    x = None if config.data.x is None else inputs_of(table, config.data.x, config.data.categorical or [])
    return _simulator(config, folder, names_of(priors_of(config.parameters)), x, _settings(config, table))


def held_out_groups(config: ProblemFile, folder: Path, name: str | None) -> Any:
    """The groups to hold out: those of the problem or an input by name, or another column of the data."""
    if name is None or name == config.data.groups or name in (config.data.x or []):
        return name
    return labels_of(read_table(folder / config.data.file, config.data), name)


def build_method(config: MethodSection, loss: LossSection | None = None) -> Method:
    """The method that a file describes."""
    method = method_by_name(config.name)
    closest = _loss(loss or LossSection())
    if closest != "squared" and not isinstance(method, Joint):
        raise ConfigError(
            f"method {config.name!r} has the squared loss: [loss] kind goes with the joint projection, gp"
        )
    if isinstance(method, Projected):
        bias = _with_settings(method.bias, config)
        return Projected(bias, config.projection, config.feedback, KERNELS[config.kernel]())
    kernel = isinstance(method, NoBias | KO | OGP | SGaSP)
    _refuse_projected_only(config, {"projection", "feedback"} if kernel else {"projection", "feedback", "kernel"})
    if isinstance(method, Joint):
        return Joint(_with_settings(method.bias, config), closest)
    changed: Method = _with_settings(method, config)
    return replace(changed, kernel=KERNELS[config.kernel]()) if kernel else changed  # type: ignore[type-var]


def _refuse_projected_only(config: MethodSection, names: set[str]) -> None:
    projected_only = config.model_fields_set & names
    if projected_only:
        raise ConfigError(
            f"method {config.name!r} has no {', '.join(sorted(projected_only))}: these go with pgp, pbart and so on"
        )


def _loss(config: LossSection) -> Chosen:
    if config.k is not None and config.kind != "huber":
        raise ConfigError('[loss] k goes with kind = "huber"')
    if config.kind == "huber":
        return Huber() if config.k is None else Huber(config.k)
    return config.kind


def _with_settings(part: Any, config: MethodSection) -> Any:
    """A bias prior or a method with the file's further settings."""
    settings: dict[str, Any] = config.model_extra or {}
    # of outputs without inputs
    if isinstance(part, GP) and ("noise_sds" in settings or isinstance(settings.get("sd"), list | dict)):
        part = Independent()
    known = [one.name for one in fields(part)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        has = f"its settings are {', '.join(known)}" if known else "it has no settings"
        raise ConfigError(f"method {config.name!r} has no {', '.join(unknown)}: {has}")
    try:
        return replace(part, **settings)
    except TypeError as error:
        raise ConfigError(f"[method]: a setting of {config.name!r} has the wrong type: {error}") from None


def build_methods(names: list[str], config: MethodSection, loss: LossSection | None = None) -> dict[str, Method]:
    """Methods to compare, by name; that of ``[method]`` has the settings it has there."""
    return {name: build_method(config, loss) if name == config.name else method_by_name(name) for name in names}


def problem_runs(config: ProblemFile, folder: Path, names: list[str] | None = None) -> RunTable:
    """The table of runs that a file names; its parameters are those with these ``names``, or the priors'."""
    simulator, data = config.simulator, config.data
    if simulator.runs is None:
        raise ConfigError("[simulator] has no runs: there is nothing to learn an emulator from")
    parameters = names_of(priors_of(config.parameters)) if names is None else names
    return load_runs(simulator.runs, folder, config.runs, parameters, data.x, data.y, simulator.dialect)


def _settings(config: ProblemFile, table: Table) -> dict[str, Any]:
    """What the simulator's function is given beside x and theta: constants of the file, and of the data."""
    found: dict[str, Any] = dict(config.simulator.settings or {})
    for name in config.data.settings or []:
        values = pd.unique(columns_of(table, [name])[name])
        if len(values) != 1:
            raise ConfigError(
                f"data.settings: {name!r} has {len(values)} values, {values[0]:g} and {values[1]:g} for instance: a "
                "setting is the same in all rows of an experiment; give it as an input, in x"
            )
        found[name] = float(values[0])
    return found


def _simulator(
    file: ProblemFile, folder: Path, names: list[str], x: pd.DataFrame | None, settings: dict[str, Any]
) -> Simulator | Emulator | UMBridge:
    config = file.simulator
    given = config.model_fields_set
    words = [] if x is None else [str(name) for name in x if x[name].dtype == object]
    if words and (config.umbridge is not None or config.fmu is not None):
        raise ConfigError(
            f"data.x has labels, {', '.join(words)}: umbridge and fmu take numbers; give a function, which has them as "
            "numbers, or leave the column out"
        )
    if sum(one is not None for one in (config.function, config.runs, config.umbridge, config.fmu)) != 1:
        raise ConfigError(
            "[simulator] takes either a function to call, or runs to learn an emulator from, or umbridge, or an fmu"
        )
    if settings and config.function is None:
        raise ConfigError("settings are given to a function: with runs, or a server, leave them out")
    if file.runs.model_fields_set and config.runs is None:
        raise ConfigError("[runs] says how a table of runs is written: it goes with simulator.runs")
    if config.umbridge is not None:
        others = sorted(given - {"umbridge"})
        if others:
            raise ConfigError(f"[simulator] with umbridge has no {', '.join(others)}: its settings are in umbridge")
        return config.umbridge.simulator(folder, x)
    if config.runs is not None:
        called = sorted(given & {"gradient", "jobs", "batched", "timeout"})
        if called:
            raise ConfigError(f"[simulator] with runs has no {', '.join(called)}: an emulator brings its own gradient")
        return emulate(problem_runs(file, folder, names), config.emulator)
    unused = sorted(given & {"emulator", "error", *DIALECT_KEYS})
    if unused:
        raise ConfigError(f"[simulator] without runs has no {', '.join(unused)}: these go with runs")
    function: Any
    if config.fmu is not None:
        if config.batched:
            raise ConfigError("[simulator]: batched goes with a function")
        function = config.fmu.simulator(folder, names, x)
    else:
        assert config.function is not None
        function = FileFunction(config.function, folder).loaded()
    gradient: Any = FileFunction(config.gradient, folder).loaded() if ":" in config.gradient else config.gradient
    if settings:
        function = partial(function, **settings)
        gradient = partial(gradient, **settings) if callable(gradient) else gradient
    called_as = {"jobs": config.jobs, "batched": config.batched, "timeout": config.timeout}
    return Simulator(function, gradient, **called_as)  # type: ignore[arg-type]


def _input_errors(x_err: float | list[float] | list[str] | None, table: Table) -> Any:
    """Numbers as they are, names as columns of the data."""
    if isinstance(x_err, list) and all(isinstance(one, str) for one in x_err):
        return columns_of(table, [str(one) for one in x_err]).to_numpy()
    return x_err
