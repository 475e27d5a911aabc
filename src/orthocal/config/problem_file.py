"""A calibration as a TOML file: data from CSV or Parquet, the simulator from a Python file, everything else in words.

See ``docs/problem-file.md`` for every key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from ..bias import GP, Independent
from ..comparison.comparison import METHODS, OUTPUT_METHODS
from ..emulators import Emulator
from ..emulators.choice import emulate
from ..errors import ConfigError
from ..kernels import HMC, AdaptiveMetropolis, Kernel, Laplace, Slice
from ..losses import Chosen, Huber
from ..methods import KO, OGP, Joint, Method, NoBias, Projected, SGaSP, method_by_name
from ..methods.base import MOST_KEPT
from ..problem.domain import Box, Domain, Points
from ..problem.noise_kinds import Along, GroupNoise, LowRankNoise, VaryingNoise
from ..problem.problem import STARTS, Problem
from ..problem.simulator import Simulator
from ..runs.table import RunTable
from ..sections import Names, Section, read_sections
from .priors import names_of, priors_of
from .tables import DIALECT_KEYS, Table, TableSection, columns_of, labels_of, read_table
from .user_code import FileFunction

KERNELS: dict[str, Callable[[], Kernel]] = {
    "laplace": Laplace,
    "adaptive": AdaptiveMetropolis,
    "slice": Slice,
    "hmc": HMC,
}


Numbers = float | list[float]


class DataSection(TableSection):
    file: str
    x: Names | None = None
    y: Names
    y_err: Names | None = None
    transform: str | list[str] | dict[str, str] | None = None
    x_err: float | list[float] | Names | None = None
    groups: str | None = None


class SimulatorSection(TableSection):
    """A function to call, or runs to emulate."""

    function: str | None = None
    gradient: str = "auto"
    jobs: int = 1
    runs: str | None = None
    emulator: str = "auto"
    error: bool = False


class DomainSection(TableSection):
    lower: Numbers | None = None
    upper: Numbers | None = None
    nodes: int | None = None
    file: str | None = None
    x: Names | None = None
    weight: str | None = None


class NoiseSection(Section):
    """The noise; ``rank``, ``groups`` and ``varying`` are kinds of an estimate, ``sample`` goes with ``groups``."""

    cov: float | list[float] | list[list[float]] | Literal["estimate", "by-group", "sample"] = "estimate"
    rank: int | None = None
    groups: str | None = None
    sample: bool = False
    varying: Along | None = None


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
    named = [config.data.file, *code, simulator.runs, None if domain is None else domain.file]
    return [path, *(path.parent / one for one in named if one)]


def build_problem(config: ProblemFile, folder: Path) -> Problem:
    """The problem that a file describes; its paths are relative to ``folder``."""
    table = read_table(folder / config.data.file, config.data)
    x = None if config.data.x is None else columns_of(table, config.data.x)
    y = columns_of(table, config.data.y)
    errors = None if config.data.y_err is None else columns_of(table, config.data.y_err)
    # what is cheap to check comes before an emulator is fitted
    priors = priors_of(config.parameters)
    return Problem(
        x,
        y,
        _simulator(config.simulator, folder, names_of(priors)),
        priors,
        domain=_domain(config.domain, folder),
        noise_cov=_noise(config),
        y_err=None if errors is None else errors.to_numpy(),
        loss_weight=config.loss.weight,
        starts=config.sampling.starts,
        emulator_error=config.simulator.error,
        transform=config.data.transform,
        x_err=_input_errors(config.data.x_err, table),
        constraint=config.constraint,
        groups=None if config.data.groups is None else labels_of(table, config.data.groups),
    )


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


def _simulator(config: SimulatorSection, folder: Path, names: list[str]) -> Simulator | Emulator:
    given = config.model_fields_set
    if (config.function is None) == (config.runs is None):
        raise ConfigError("[simulator] takes either a function to call, or runs to learn an emulator from")
    if config.runs is not None:
        called = sorted(given & {"gradient", "jobs"})
        if called:
            raise ConfigError(f"[simulator] with runs has no {', '.join(called)}: an emulator brings its own gradient")
        runs = RunTable.load(folder / config.runs, separator=config.separator, decimal=config.decimal)
        return emulate(runs.ordered(names), config.emulator)
    unused = sorted(given & {"emulator", "error", *DIALECT_KEYS})
    if unused:
        raise ConfigError(f"[simulator] with a function has no {', '.join(unused)}: these go with runs")
    assert config.function is not None
    function = FileFunction(config.function, folder).loaded()
    gradient = FileFunction(config.gradient, folder).loaded() if ":" in config.gradient else config.gradient
    return Simulator(function, gradient, jobs=config.jobs)  # type: ignore[arg-type]


def _noise(config: ProblemFile) -> Any:
    """The noise as the file gives it; errors in columns of the data come by themselves."""
    noise = config.noise
    if config.data.y_err is not None and config.noise != NoiseSection():
        raise ConfigError("data.y_err and [noise] both give the noise: leave one of them out")
    kinds: dict[str, Callable[[Any], Any]] = {
        "rank": LowRankNoise,
        "groups": partial(GroupNoise, sample=noise.sample),
        "varying": VaryingNoise,
    }
    asked = [name for name in kinds if getattr(noise, name) is not None]
    if noise.sample and asked != ["groups"]:
        raise ConfigError('noise.sample goes with noise.groups; for one covariance of all rows give cov = "sample"')
    if not asked:
        return noise.cov
    if len(asked) > 1:
        raise ConfigError(f"[noise] has {' and '.join(asked)}: give one of them")
    if noise.cov != "estimate":
        raise ConfigError(f'noise.{asked[0]} goes with cov = "estimate"')
    return kinds[asked[0]](getattr(noise, asked[0]))


def _input_errors(x_err: float | list[float] | list[str] | None, table: Table) -> Any:
    """Numbers as they are, names as columns of the data."""
    if isinstance(x_err, list) and all(isinstance(one, str) for one in x_err):
        return columns_of(table, [str(one) for one in x_err]).to_numpy()
    return x_err


def _domain(config: DomainSection | None, folder: Path) -> Domain | None:
    if config is None:
        return None
    if config.file is not None:
        if config.x is None or config.lower is not None or config.upper is not None:
            raise ConfigError("[domain] with a file takes the columns x and weight, and no box")
        table = read_table(folder / config.file, config)
        weights = None if config.weight is None else columns_of(table, [config.weight]).iloc[:, 0]
        return Points(columns_of(table, config.x), weights)
    if config.lower is None or config.upper is None or config.x is not None or config.weight is not None:
        raise ConfigError("[domain] needs lower and upper, or a file with the columns x and weight")
    return Box(config.lower, config.upper, config.nodes)
