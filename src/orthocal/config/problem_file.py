"""A calibration as a TOML file: data from CSV, the simulator from a Python file, everything else in words.

See ``docs/problem-file.md`` for every key.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
from pydantic import ConfigDict, Field
from scipy import stats

from ..comparison.comparison import METHODS
from ..emulators import Emulator
from ..emulators.choice import emulate
from ..errors import ConfigError
from ..kernels import HMC, AdaptiveMetropolis, Kernel, Laplace, Slice
from ..methods import Method, Projected, method_by_name
from ..problem.domain import Box, Domain, Points
from ..problem.noise_estimate import LowRankNoise
from ..problem.parameters import Distribution
from ..problem.problem import STARTS, Problem
from ..problem.simulator import Simulator
from ..runs.table import RunTable
from ..sections import Names, Section, read_sections

KERNELS: dict[str, Callable[[], Kernel]] = {
    "laplace": Laplace,
    "adaptive": AdaptiveMetropolis,
    "slice": Slice,
    "hmc": HMC,
}


Numbers = float | list[float]


class DataSection(Section):
    file: str
    x: Names
    y: Names
    y_err: Names | None = None


class SimulatorSection(Section):
    """A function to call, or runs to emulate."""

    function: str | None = None
    gradient: str = "auto"
    runs: str | None = None
    emulator: str = "auto"
    error: bool = False


class DomainSection(Section):
    lower: Numbers | None = None
    upper: Numbers | None = None
    nodes: int | None = None
    file: str | None = None
    x: Names | None = None
    weight: str | None = None


class NoiseSection(Section):
    cov: float | list[float] | list[list[float]] | Literal["estimate", "sample"] = "estimate"
    rank: int | None = None


class LossSection(Section):
    weight: Literal["noise-precision", "identity"] | list[list[float]] = "noise-precision"


class MethodSection(Section):
    """The method; other keys are the settings of its bias prior, ``nu`` of a Gaussian process for instance."""

    model_config = ConfigDict(extra="allow")

    name: str = "pgp"
    projection: Literal["functional", "finite"] = "functional"
    feedback: bool = True
    kernel: Literal["laplace", "adaptive", "slice", "hmc"] = "laplace"


class SamplingSection(Section):
    draws: int = 1000
    warmup: int = 200
    chains: int = 4
    seed: int | None = None
    starts: int = STARTS


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


class ProblemFile(Section):
    """The whole file."""

    data: DataSection
    simulator: SimulatorSection
    parameters: dict[str, dict[str, Any]] = Field(min_length=1)
    domain: DomainSection | None = None
    noise: NoiseSection = NoiseSection()
    loss: LossSection = LossSection()
    method: MethodSection = MethodSection()
    sampling: SamplingSection = SamplingSection()
    output: OutputSection = OutputSection()
    compare: CompareSection = CompareSection()


def read_problem_file(path: str | Path) -> ProblemFile:
    """Read and check a problem file."""
    return read_sections(path, ProblemFile)


def build_problem(config: ProblemFile, folder: Path) -> Problem:
    """The problem that a file describes; its paths are relative to ``folder``."""
    table, file = _read_table(folder / config.data.file), Path(config.data.file).name
    x, y = _columns(table, config.data.x, file), _columns(table, config.data.y, file)
    errors = None if config.data.y_err is None else _columns(table, config.data.y_err, file)
    # what is cheap to check comes before an emulator is fitted
    priors = {name: _prior(name, settings) for name, settings in config.parameters.items()}
    return Problem(
        x,
        y,
        _simulator(config.simulator, folder),
        priors,
        domain=_domain(config.domain, folder),
        noise_cov=_noise(config),
        y_err=None if errors is None else errors.to_numpy(),
        loss_weight=config.loss.weight,
        starts=config.sampling.starts,
        emulator_error=config.simulator.error,
    )


def build_method(config: MethodSection) -> Method:
    """The method that a file describes."""
    method = method_by_name(config.name)
    if isinstance(method, Projected):
        bias = _with_settings(method.bias, config)
        return Projected(bias, config.projection, config.feedback, KERNELS[config.kernel]())
    projected_only = config.model_fields_set & {"projection", "feedback", "kernel"}
    if projected_only:
        raise ConfigError(f"method {config.name!r} has no {', '.join(sorted(projected_only))}: it projects nothing")
    changed: Method = _with_settings(method, config)
    return changed


def _with_settings(part: Any, config: MethodSection) -> Any:
    """A bias prior or a method with the file's further settings."""
    settings: dict[str, Any] = config.model_extra or {}
    known = [one.name for one in fields(part)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        has = f"its settings are {', '.join(known)}" if known else "it has no settings"
        raise ConfigError(f"method {config.name!r} has no {', '.join(unknown)}: {has}")
    try:
        return replace(part, **settings)
    except TypeError as error:
        raise ConfigError(f"[method]: a setting of {config.name!r} has the wrong type: {error}") from None


def build_methods(names: list[str], config: MethodSection) -> dict[str, Method]:
    """Methods to compare, by name; that of ``[method]`` has the settings it has there."""
    return {name: build_method(config) if name == config.name else method_by_name(name) for name in names}


def load_function(reference: str, folder: Path) -> Callable[..., Any]:
    """The function of ``file.py:function``, relative to ``folder``."""
    file, colon, name = reference.rpartition(":")
    if not colon or not file or not name:
        raise ConfigError(f'simulator {reference!r}: give it as "file.py:function"')
    path = (folder / file).resolve()
    if not path.is_file():
        raise ConfigError(f"the simulator's file {folder / file} does not exist")
    specification = importlib.util.spec_from_file_location(f"orthocal_user_{path.stem}", path)
    if specification is None or specification.loader is None:
        raise ConfigError(f"the simulator's file {file} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    # the file may import its neighbours, now and when it is called; dataclasses look their module up
    sys.path.insert(0, str(path.parent))
    sys.modules[specification.name] = module
    try:
        specification.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the user's file raises
        raise ConfigError(f"the simulator's file {file} cannot be loaded: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise ConfigError(f"there is no function {name!r} in {file}")
    loaded: Callable[..., Any] = function
    return loaded


def _simulator(config: SimulatorSection, folder: Path) -> Simulator | Emulator:
    given = config.model_fields_set
    if (config.function is None) == (config.runs is None):
        raise ConfigError("[simulator] takes either a function to call, or runs to learn an emulator from")
    if config.runs is not None:
        if "gradient" in given:
            raise ConfigError("[simulator] with runs has no gradient: an emulator brings its own")
        return emulate(RunTable.load(folder / config.runs), config.emulator)
    unused = sorted(given & {"emulator", "error"})
    if unused:
        raise ConfigError(f"[simulator] with a function has no {', '.join(unused)}: these go with runs")
    assert config.function is not None
    function = load_function(config.function, folder)
    if ":" in config.gradient:
        return Simulator(function, load_function(config.gradient, folder))
    return Simulator(function, config.gradient)  # type: ignore[arg-type]


def _prior(name: str, settings: dict[str, Any]) -> Distribution:
    arguments = dict(settings)
    family = arguments.pop("distribution", None)
    found = getattr(stats, str(family), None)
    if not isinstance(found, stats.rv_continuous):
        raise ConfigError(
            f"parameter {name!r}: distribution {family!r} is not a continuous distribution of scipy.stats, "
            'write for instance { distribution = "norm", loc = 0, scale = 10 }'
        )
    shapes = [one.strip() for one in (found.shapes or "").split(",") if one.strip()]
    unknown = set(arguments) - {"loc", "scale", *shapes}
    missing = set(shapes) - set(arguments)
    if unknown or missing:
        problem = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {', '.join(sorted(missing))}"
        raise ConfigError(f"parameter {name!r}: {family} takes {', '.join([*shapes, 'loc', 'scale'])} ({problem})")
    if not all(isinstance(value, int | float) for value in arguments.values()):
        raise ConfigError(f"parameter {name!r}: the values of its prior must be numbers")
    prior: Distribution = found(**arguments)
    return prior


def _noise(config: ProblemFile) -> Any:
    """The noise as the file gives it; errors in columns of the data come by themselves."""
    noise = config.noise
    if config.data.y_err is not None and config.noise != NoiseSection():
        raise ConfigError("data.y_err and [noise] both give the noise: leave one of them out")
    if noise.rank is None:
        return noise.cov
    if noise.cov != "estimate":
        raise ConfigError('noise.rank goes with cov = "estimate"')
    return LowRankNoise(noise.rank)


def _domain(config: DomainSection | None, folder: Path) -> Domain | None:
    if config is None:
        return None
    if config.file is not None:
        if config.x is None or config.lower is not None or config.upper is not None:
            raise ConfigError("[domain] with a file takes the columns x and weight, and no box")
        table = _read_table(folder / config.file)
        weights = None if config.weight is None else _columns(table, [config.weight], config.file).iloc[:, 0]
        return Points(_columns(table, config.x, config.file), weights)
    if config.lower is None or config.upper is None or config.x is not None or config.weight is not None:
        raise ConfigError("[domain] needs lower and upper, or a file with the columns x and weight")
    return Box(config.lower, config.upper, config.nodes)


def _read_table(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, skipinitialspace=True)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a CSV table: {error}") from None


def _columns(table: pd.DataFrame, names: list[str], file: str) -> pd.DataFrame:
    missing = [name for name in names if name not in table.columns]
    if missing:
        there = ", ".join(map(str, table.columns))
        raise ConfigError(f"{file} has no column {', '.join(map(repr, missing))}; there are: {there}")
    chosen = table[names]
    for name in names:
        if not pd.api.types.is_numeric_dtype(chosen[name]):
            raise ConfigError(f"column {name!r} of {file} holds something that is not a number")
    return chosen
