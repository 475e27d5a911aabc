"""A calibration of the command line: made, written in every form, and shown."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError, FileError
from .documents import fit_document, give, say
from .streams import ENDED

if TYPE_CHECKING:
    import pandas as pd

    from ..config.problem_file import SamplingSection
    from ..execution.checkpoints.checkpoint_file import Checkpoint
    from ..experiments import Experiments
    from ..methods import Method
    from ..problem.problem import Problem
    from ..results.posterior import Posterior
    from .outputs import OutputFolder


#: rows of predictions at the data that are written without being asked for
MOST_ROWS = 20_000
#: what is written, and the words for it
KINDS = {
    "result": ("{}.nc", "Result"),
    "report": ("{}.html", "Report"),
    "parameters": ("{}-parameters.csv", "Parameters"),
    "predictions": ("{}-predictions.csv", "Predictions at the data"),
}


def result_names(name: str) -> list[str]:
    """The files of a fit of this name."""
    return [pattern.format(name) for pattern, _ in KINDS.values()]


def calibrated(
    problem: Problem | Experiments, method: Method, sampling: SamplingSection, where: Checkpoint | None
) -> Posterior:
    """The posterior of a problem with the settings of its file, kept in a checkpoint on the way."""
    from ..calibration import calibrate

    return calibrate(
        problem,
        method,
        draws=sampling.draws,
        chains=sampling.chains,
        seed=sampling.seed,
        warmup=sampling.warmup,
        checkpoint=where,
        keep_mb=sampling.keep_mb,
        emulator_draws=sampling.emulator_draws,
    )


def write_fit(posterior: Posterior, outputs: OutputFolder, name: str) -> dict[str, Path | str]:
    """Result, report and tables of a fit, and where they are: what is on disk outlasts a terminal that has gone."""
    from ..progress import announced, progress_shown

    result, page, parameters, predictions = result_names(name)

    def report(folder: Path) -> Path:
        with progress_shown(True), announced("drawing the figures of the report, some seconds"):
            return posterior.report(folder / page)

    files = {
        "result": outputs.written(lambda folder: posterior.save(folder / result)),
        "report": outputs.written(report),
        "parameters": outputs.written(lambda folder: _written(_parameters(posterior), folder / parameters)),
    }
    table = _predictions(posterior)
    if table is None:
        typer.echo(f"note: no {predictions}: more than {MOST_ROWS} rows; orthocal predict {result} writes it", err=True)
        return files
    return {**files, "predictions": outputs.written(lambda folder: _written(table, folder / predictions))}


def show_fit(posterior: Posterior, files: dict[str, Path | str]) -> None:
    """The summary, the findings, and where the files are."""
    from ..pages.tables import summary_text

    found = posterior.check()
    say("\n" + summary_text(posterior.summary()) + "\n")
    say(f"{found}\n")
    say("\n".join(f"{KINDS[kind][1]}: {file}" for kind, file in files.items()))
    give(fit_document(posterior, found, files))


def _parameters(posterior: Posterior) -> pd.DataFrame:
    """One row a parameter, with the names of columns that predictions have."""
    table = posterior.summary()
    lower, upper = (column for column in table.columns if str(column).startswith("eti"))
    return table.rename(columns={lower: "lower", upper: "upper"}).rename_axis("parameter").reset_index()


def _predictions(posterior: Posterior) -> pd.DataFrame | None:
    """Predictions at the data, of several experiments one below the other; None where that would be too long."""
    import pandas as pd

    from ..results.joint_posterior import JointPosterior
    from ..results.predicted_table import data_table, predicted_table

    several = isinstance(posterior, JointPosterior)
    parts = posterior.experiments if isinstance(posterior, JointPosterior) else {"": posterior}
    if sum(len(one.record.x) for one in parts.values()) > MOST_ROWS:
        return None
    tables = {name: data_table(one, predicted_table(one)) for name, one in parts.items()}
    if not several:
        return tables[""]
    return pd.concat(tables, names=["experiment"]).reset_index("experiment")


def _written(table: pd.DataFrame, path: Path) -> Path:
    from ..files import whole_file

    with whole_file(path) as draft:
        table.to_csv(draft, index=False, float_format="%.10g")
    return path


# What ended a calibration does not end its work: its checkpoint, what is said of it, and ``orthocal resume``.

#: seconds of work before a checkpoint is made
AFTER = 60.0

Restart = Annotated[bool, typer.Option("--restart", help="Begin again, also where a checkpoint is there.")]
Kept = Annotated[
    bool, typer.Option("--checkpoint/--no-checkpoint", help="Keep the run in a file after a minute, to go on from.")
]


class TerminatedError(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, with another exit code."""

    number = signal.SIGTERM


def checkpoint_at(path: Path, kept: bool, restart: bool, command: str, **options: Any) -> Checkpoint | None:
    """Where a command keeps its work, beside its results; it can be given again with these options."""
    from ..execution.checkpoints.checkpoint_file import Checkpoint

    if restart:
        path.unlink(missing_ok=True)
    elif kept and path.is_file():
        _refuse_other_settings(path, list(options.get("settings") or []))
    files = {name: str(value.resolve()) for name, value in options.items() if isinstance(value, Path)}
    return Checkpoint(path, AFTER, json.dumps({"command": command, **options, **files})) if kept else None


def _refuse_other_settings(path: Path, settings: list[str]) -> None:
    """A checkpoint goes on with the settings that it was begun with, and with no others."""
    from ..execution.checkpoints.checkpoint_file import origin_of

    try:
        begun = origin_of(path).get("settings") or []
    except FileError:
        # whoever opens it for the work says what is wrong with it
        return
    if begun != settings:
        there, here = (", ".join(one) or "those of the file" for one in (begun, settings))
        raise ConfigError(
            f"{path} was begun with other settings, {there}, and this command has {here}: orthocal resume {path} goes "
            "on with the first, --restart begins again"
        )


@contextmanager
def ended_in_words() -> Iterator[None]:
    """Ctrl-C and SIGTERM are one sentence that says what is kept, and the exit codes that shells expect."""
    with _terminations():
        try:
            yield
        except KeyboardInterrupt as stop:
            typer.echo(f"error: {stop if stop.args else ENDED}", err=True)
            number = signal.SIGTERM if isinstance(stop, TerminatedError) else signal.SIGINT
            raise typer.Exit(128 + number) from None


@contextmanager
def _terminations() -> Iterator[None]:
    """SIGTERM raises inside of this block."""
    if current_thread() is not main_thread():
        yield
        return
    own = os.getpid()

    def answer(number: int, frame: FrameType | None) -> None:
        # a process that was forked has this answer too, and nothing to say
        if os.getpid() != own:
            os._exit(128 + number)
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, answer)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def began(checkpoint: Path) -> tuple[str, dict[str, Any]]:
    """The command that a checkpoint began with, and its options."""
    from ..execution.checkpoints.checkpoint_file import origin_of

    options = origin_of(checkpoint)
    command = options.pop("command")
    options.update({name: Path(options[name]) for name in ("problem_file", "out") if options[name] is not None})
    if not options["problem_file"].is_file():
        raise FileError(
            f"{checkpoint} belongs to {options['problem_file']}, which is not there: put it back, or run the problem "
            f"file where it is now with --out {checkpoint.parent}"
        )
    return command, options
