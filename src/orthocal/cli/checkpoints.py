"""What ended a calibration does not end its work: its checkpoint, what is said of it, and ``orthocal resume``."""

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
from .streams import ENDED

if TYPE_CHECKING:
    from ..execution.checkpoints.checkpoint_file import Checkpoint

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
