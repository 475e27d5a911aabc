"""A result file with what it was made from: the problem file that it names, and the simulator of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..errors import ConfigError
from .documents import recorded_changes

if TYPE_CHECKING:
    from ..config.problem_file import ProblemFile
    from ..results.posterior import Posterior

Fit = Annotated[Path, typer.Argument(help="A result file, fit.nc.", show_default=False)]
Problem = Annotated[
    Path | None, typer.Option("--problem", help="Its problem file. Default: the one that it was made from.")
]
Experiment = Annotated[str | None, typer.Option("--experiment", help="Of several experiments: the name of one.")]

#: how far the simulator may be from that of the fit, in noise sds: another machine rounds otherwise
ROUNDING = 1e-3


class SavedFit(NamedTuple):
    """A posterior with its simulator, and the file that it was made from; of several experiments, those of one."""

    posterior: Posterior
    config: ProblemFile
    folder: Path


def is_fit(path: Path) -> bool:
    """Whether a file is a result, and no problem file."""
    return path.suffix.lower() != ".toml"


def experiment_of(posterior: Posterior, name: str | None, fit: Path) -> Posterior:
    """The posterior of one experiment, where there are several."""
    from ..results.joint_posterior import JointPosterior

    if isinstance(posterior, JointPosterior):
        names = ", ".join(posterior.experiments)
        if name is None:
            raise ConfigError(f"{fit} has the experiments {names}: say which by --experiment")
        if name not in posterior.experiments:
            raise ConfigError(f"{fit} has no experiment {name!r}: there are {names}")
        return posterior[name]
    if name is not None:
        raise ConfigError(f"{fit} has one experiment: leave --experiment out")
    return posterior


def made_from(fit: Path, problem: Path | None, experiment: str | None, simulator: bool = True) -> SavedFit:
    """A fit with its problem file, and with the simulator of that, unless it is not wanted."""
    from ..config.problem_file import build_simulator
    from ..results.files.loading import load, with_simulator

    whole = load(fit)
    own = experiment_of(whole, experiment, fit)
    path = problem or _problem_path(whole, fit)
    config = _config(whole, own, path, experiment, fit)
    if not simulator:
        return SavedFit(own, config, path.parent)
    built = build_simulator(_with_its_emulator(config, own), path.parent)
    found = with_simulator(own.data, own.record, built)
    _require_same(found, path)
    return SavedFit(found, config, path.parent)


def _problem_path(posterior: Posterior, fit: Path) -> Path:
    attributes = posterior.record.data.attrs
    named = [str(attributes[one]) for one in ("problem_path", "problem_file") if attributes.get(one)]
    if not named:
        raise ConfigError(
            f"cannot find the simulator of {fit}: a Python program made it, and no problem file; give one with the "
            "same parameters and simulator by --problem"
        )
    places = list(dict.fromkeys(fit.parent / one for one in named))
    found = next((one for one in places if one.is_file()), None)
    if found is None:
        raise ConfigError(
            f"cannot find the simulator of {fit}: it was made from {named[-1]}, and there is no "
            f"{' nor '.join(map(str, places))}; give that file by --problem"
        )
    return found


def _config(whole: Posterior, own: Posterior, path: Path, experiment: str | None, fit: Path) -> ProblemFile:
    """The problem file with the settings that the run was given; of several experiments, that of one."""
    from ..config.experiments_file import each_problem, read_any_file
    from ..config.priors import names_of, priors_of
    from ..config.problem_file import ProblemFile

    config = read_any_file(path, recorded_changes(whole))
    if isinstance(config, ProblemFile) == (experiment is not None):
        raise ConfigError(f"{path} and {fit} are not about the same experiments: give the file that it was made from")
    if not isinstance(config, ProblemFile):
        parts = each_problem(config, path)
        if experiment not in parts:
            raise ConfigError(f"{path} has no experiment {experiment!r}: there are {', '.join(parts)}")
        config = parts[experiment]
    names = tuple(names_of(priors_of(config.parameters)))
    for what, here, there in (
        ("parameters", names, own.parameter_names),
        ("outcomes", tuple(config.data.y), own.outcome_names),
        ("inputs", tuple(config.data.x or own.input_names), own.input_names),
    ):
        if here != there:
            raise ConfigError(
                f"{path} has the {what} {', '.join(here)}, and {fit} has {', '.join(there)}: give the problem file "
                "that it was made from"
            )
    return config


def _with_its_emulator(config: ProblemFile, posterior: Posterior) -> ProblemFile:
    """With the emulator that was chosen in the run, where there was a choice: it need not be made again."""
    errors = posterior.record.run_facts.held_out_errors
    if config.simulator.runs is None or config.simulator.emulator != "auto" or not errors:
        return config
    chosen = config.simulator.model_copy(update={"emulator": next(iter(errors))})
    return config.model_copy(update={"simulator": chosen})


def _require_same(posterior: Posterior, path: Path) -> None:
    """The simulator of the first kept draw at the data is known: another one would predict something else."""
    import numpy as np

    record = posterior.record
    if record.emulator_draws or record.without_inputs:
        # the emulator's draws are compared by the prediction itself
        return
    first = record.stored_draws[:1]
    away = posterior.model_at(record.x, record.theta[0, first[0]]) - record.at_data("model", first)[0, 0]
    largest = np.abs(away @ record.constant("whitener").T).max(initial=0.0)
    if not largest < ROUNDING:
        raise ConfigError(
            f"the simulator of {path} is not the one of the fit any more: at the data it gives values that differ by "
            f"up to {largest:.2g} standard deviations of the noise; run the problem again"
        )


def fit_of(path: Path, changes: list[str] | None = None) -> Path:
    """A result file: itself, or the one that a problem file's run has written."""
    if is_fit(path):
        return path
    from ..config.experiments_file import read_any_file

    config = read_any_file(path, changes or [])
    fit = path.parent / config.output.folder / f"{config.output.name}.nc"
    if not fit.is_file():
        raise ConfigError(f"there is no {fit} yet: orthocal run {path} writes it; or give the result file itself")
    return fit


def provenance(problem_file: Path, folder: Path, changes: list[str]) -> dict[str, str]:
    """What a result says of the command that made it, so that others find the simulator; no path of this machine."""
    import os

    return {
        "problem_file": problem_file.name,
        "problem_path": os.path.relpath(problem_file.resolve(), folder.resolve()),
        **({"changed_settings": json.dumps(changes)} if changes else {}),
    }
