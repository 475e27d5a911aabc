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
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FileError
from .streams import ENDED

if TYPE_CHECKING:
    from ..execution.checkpoint_file import Checkpoint

#: seconds of work before a checkpoint is made
AFTER = 60.0

Restart = Annotated[bool, typer.Option("--restart", help="Begin again, also where a checkpoint is there.")]
Kept = Annotated[
    bool, typer.Option("--checkpoint/--no-checkpoint", help="Keep the run in a file after a minute, to go on from.")
]


class TerminatedError(KeyboardInterrupt):
    """SIGTERM: as Ctrl-C, with another exit code."""


def run_checkpoint(
    folder: Path, name: str, problem_file: Path, out: Path | None, kept: bool, restart: bool
) -> Checkpoint | None:
    """Where ``orthocal run`` keeps its work, beside its results."""
    from ..execution.checkpoint_file import Checkpoint

    path = folder / f"{name}.ckpt"
    if restart:
        path.unlink(missing_ok=True)
    origin = {"problem file": str(problem_file.resolve()), "out": None if out is None else str(out.resolve())}
    return Checkpoint(path, AFTER, json.dumps(origin)) if kept else None


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


def began(checkpoint: Path) -> tuple[Path, Path | None]:
    """The problem file and the ``--out`` that a checkpoint began with."""
    from ..execution.checkpoint_file import origin_of

    origin = origin_of(checkpoint)
    problem_file, out = Path(origin["problem file"]), origin["out"]
    if not problem_file.is_file():
        raise FileError(
            f"{checkpoint} belongs to {problem_file}, which is not there: put it back, or run the problem file where "
            f"it is now with --out {checkpoint.parent}"
        )
    return problem_file, None if out is None else Path(out)
