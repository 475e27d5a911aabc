"""Several experiments as one TOML file: what they share at the top, what each has for itself in a table of its own.

Each experiment is the problem of the whole file with its own sections put over the common ones; with
``experiment = "rig"`` in [data], the labels of that column are the experiments.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from ..errors import ConfigError, shortened
from ..experiments import Experiments, Pooled
from ..problem.problem import Problem
from ..sections import Names, Section, checked_sections, read_toml
from .priors import priors_of
from .problem_file import (
    CompareSection,
    DataSection,
    LossSection,
    MethodSection,
    OutputSection,
    ProblemFile,
    SamplingSection,
    build_problem,
    input_files,
)
from .tables import labels_of, read_table

# Settings of a file that a command line changes: ``sampling.draws=200``, a dotted key and a value of TOML.

#: a value without quotes, which shells take away, that TOML would not know for a text
_WORD = re.compile(r"[\w.:/\\ +-]+")


def with_changes(content: Mapping[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """What a file says, with each ``key=value`` put over it, in their order."""
    changed = deepcopy(dict(content))
    for change in changes:
        _put(changed, _parsed(change), change)
    return changed


def method_change(content: Mapping[str, Any], name: str) -> str:
    """The change to another method, with its own defaults: the settings of [method] are those of the method there."""
    section = content.get("method", {})
    same = isinstance(section, Mapping) and section.get("name", "gp") == name
    return f"method.name={json.dumps(name)}" if same else f"method={{name={json.dumps(name)}}}"


def _parsed(change: str) -> dict[str, Any]:
    key, equals, value = (part.strip() for part in change.partition("="))
    if not equals or not key or not value:
        raise ConfigError(f"--set {change}: give it as key=value, for instance sampling.draws=200")
    try:
        return tomllib.loads(f"{key} = {value}")
    except ValueError as error:
        why = error
    if _WORD.fullmatch(value):
        try:
            return tomllib.loads(f"{key} = {json.dumps(value)}")
        except ValueError as error:
            why = error
    raise ConfigError(f"--set {shortened(change)}: the key or the value is not valid TOML: {why}")


def _put(content: dict[str, Any], change: Mapping[str, Any], given: str, place: str = "") -> None:
    """Dotted keys lead into tables; a table that is given whole replaces the one that is there."""
    ((name, value),) = change.items()
    inside = f"{place}{name}"
    if not isinstance(value, Mapping) or _whole(given, inside):
        content[name] = value
        return
    below = content.setdefault(name, {})
    if not isinstance(below, dict):
        raise ConfigError(f"--set {given}: {inside} is {shortened(repr(below))} in the file, and no table of keys")
    _put(below, value, given, f"{inside}.")


def _whole(change: str, place: str) -> bool:
    """Whether the value belongs to this key, and not to one below it."""
    parts: Any = tomllib.loads(f"{change.partition('=')[0].strip()} = 0")
    names = []
    while isinstance(parts, dict):
        ((name, parts),) = parts.items()
        names.append(name)
    return ".".join(names) == place


#: sections of which an experiment may have its own
OWN = ("data", "simulator", "domain", "noise", "loss", "constraint", "parameters")


class PrivateSection(Section):
    """A private parameter: its values are each for themselves, or draws of one normal law."""

    pooled: bool = False
    mean: dict[str, Any] | None = None
    sd: dict[str, Any] | None = None


class ExperimentsFile(Section):
    """The whole file; [data] and other sections hold for all experiments that do not have their own."""

    experiments: dict[str, dict[str, Any]] = Field(default={})
    private: Names | dict[str, PrivateSection] = Field(default=[])
    weights: Literal["data"] | dict[str, float] | None = None
    parameters: dict[str, dict[str, Any]] = Field(min_length=1)
    data: dict[str, Any] = Field(default={})
    simulator: dict[str, Any] = Field(default={})
    domain: dict[str, Any] | None = None
    noise: dict[str, Any] = Field(default={})
    constraint: str | None = None
    loss: LossSection = LossSection()
    method: MethodSection = MethodSection()
    sampling: SamplingSection = SamplingSection()
    output: OutputSection = OutputSection()
    compare: CompareSection = CompareSection()


def is_of_experiments(content: Mapping[str, Any]) -> bool:
    """Whether a file is one of several experiments."""
    data = content.get("data")
    return "experiments" in content or (isinstance(data, Mapping) and "experiment" in data)


def read_any_file(path: str | Path, changes: Iterable[str] = ()) -> ProblemFile | ExperimentsFile:
    """Read and check a problem file, of one problem or of several experiments, with ``changes``, each ``key=value``."""
    content = with_changes(read_toml(path), changes)
    if is_of_experiments(content):
        return checked_sections(ExperimentsFile, content, path)
    return checked_sections(ProblemFile, content, path)


def each_problem(config: ExperimentsFile, path: Path) -> dict[str, ProblemFile]:
    """Name of an experiment -> its file, as if it stood alone."""
    labels = _labels(config, path)
    names = list(labels or config.experiments)
    if not names:
        raise ConfigError(f"{path}: no experiments: give tables [experiments.NAME], or experiment in [data], a column")
    unknown = sorted(set(config.experiments) - set(names))
    if unknown:
        raise ConfigError(
            f"{path}: experiments.{unknown[0]}: the column {config.data['experiment']!r} has no such label, there are "
            f"{', '.join(names)}"
        )
    return {name: _problem_file(config, name, path) for name in names}


def _labels(config: ExperimentsFile, path: Path) -> list[str] | None:
    """The experiments that a column of the common data names, in the order in which they appear there."""
    column = config.data.get("experiment")
    if column is None:
        return None
    section = checked_sections(DataSection, config.data, f"{path}: [data]")
    return [str(one) for one in dict.fromkeys(labels_of(read_table(path.parent / section.file, section), column))]


def _problem_file(config: ExperimentsFile, name: str, path: Path) -> ProblemFile:
    own = config.experiments.get(name, {})
    place = f"{path}: [experiments.{name}]"
    unknown = sorted(set(own) - set(OWN))
    if unknown:
        raise ConfigError(f"{place} has no {', '.join(unknown)}: an experiment has {', '.join(OWN)}")
    whole = config.model_dump(exclude_unset=True, exclude={"experiments", "private", "weights"})
    for section, given in own.items():
        common = whole.get(section)
        over = isinstance(common, dict) and isinstance(given, dict)
        whole[section] = {**(common or {}), **given} if over else given
    whole["parameters"] = _parameters(config, own.get("parameters"), place)
    data = whole.get("data", {})
    # of another kind it is refused below
    if isinstance(data, dict) and "experiment" in data:
        if "file" in own.get("data", {}):
            # a table of its own
            del whole["data"]["experiment"]
        else:
            whole["data"]["label"] = name
    return checked_sections(ProblemFile, whole, place)


def _parameters(config: ExperimentsFile, own: object, place: str) -> dict[str, dict[str, Any]]:
    """Those of an experiment: all, those that it names, or some with priors of their own."""
    if own is None:
        return config.parameters
    if isinstance(own, Mapping):
        return dict(own)
    if not isinstance(own, list) or not all(isinstance(one, str) for one in own):
        raise ConfigError(f"{place}: parameters: give a list of names from [parameters], or a table of priors")
    absent = [one for one in own if one not in config.parameters]
    if absent:
        raise ConfigError(
            f"{place}: parameters: {', '.join(absent)} is not in [parameters], which has {', '.join(config.parameters)}"
        )
    return {one: config.parameters[one] for one in own}


def build_any(config: ProblemFile | ExperimentsFile, path: Path) -> Problem | Experiments:
    """The problem or the experiments that a file describes; its paths are relative to the file's folder."""
    if isinstance(config, ProblemFile):
        return build_problem(config, path.parent)
    problems = {name: build_problem(one, path.parent) for name, one in each_problem(config, path).items()}
    return Experiments(problems, _private(config), config.weights)


def _private(config: ExperimentsFile) -> list[str] | dict[str, Pooled | None]:
    if isinstance(config.private, list):
        return config.private
    found: dict[str, Pooled | None] = {}
    for name, one in config.private.items():
        if not one.pooled and (one.mean or one.sd):
            raise ConfigError(f"private.{name}: mean and sd go with pooled = true")
        given = {key: value for key, value in (("mean", one.mean), ("sd", one.sd)) if value is not None}
        priors = priors_of(given)
        found[name] = Pooled(**priors) if one.pooled else None  # type: ignore[arg-type]
    return found


def files_of(config: ProblemFile | ExperimentsFile, path: Path) -> list[Path]:
    """The files that are read, the problem file first."""
    if isinstance(config, ProblemFile):
        return input_files(config, path)
    return list(dict.fromkeys(file for one in each_problem(config, path).values() for file in input_files(one, path)))
