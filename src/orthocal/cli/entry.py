"""The way in and out of the program: whatever happens is one sentence and an exit code, not a traceback."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer, current_thread, main_thread
from types import FrameType

from ..advice import Advice, in_files
from ..errors import OrthocalError, OrthocalWarning
from .streams import ENDED, lasting_streams

#: what shells expect of a program that Ctrl-C has ended
INTERRUPTED = 130
#: seconds after which an interrupt comes again
AGAIN = 0.01


def main() -> None:
    """Run a command; an error of the user's is one line, not a traceback."""
    with lasting_streams() as output:
        code = _code_of_run()
        output.flush()
        if output.lost is not None:
            _say(f"standard output could not be written ({output.lost}); files that were to be written are complete")
            code = code or 1
    sys.exit(code)


def _code_of_run() -> int:
    with warnings.catch_warnings(), _raised_again(), _interrupts() as interrupts:
        warnings.showwarning = _show_warning
        try:
            # an interrupt while xml.etree loads it would be lost: that one takes it for a part that is missing
            import pyexpat  # noqa: F401

            # loading it takes a while
            from .commands import app
            from .documents import speak_plainly

            speak_plainly()
            app()
        except SystemExit as ended:
            # Typer makes this of an interrupt that no command has answered
            if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
                return _interrupted()
            return _told(ended.code if isinstance(ended.code, int) else int(ended.code is not None))
        except KeyboardInterrupt:
            return _interrupted()
        except OrthocalError as error:
            return _say(_error_words(error))
        except MemoryError:
            return _say("not enough memory: take fewer draws, points or nodes")
        except OSError as error:
            return _say(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
        except BaseException:
            # an import that is interrupted may end as an error of another kind
            if interrupts:
                return _interrupted()
            raise
    return 0


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The interrupts that came inside of this block; each is raised, too."""
    came: list[int] = []
    if current_thread() is not main_thread():
        yield came
        return

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield came
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _raised_again() -> Iterator[None]:
    """An interrupt that comes where nothing can be raised, while an object is collected for instance, comes again."""
    before, waiting = sys.unraisablehook, list[Timer]()

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        error = unraisable.exc_value
        if not isinstance(error, KeyboardInterrupt):
            before(unraisable)
            return
        timer = Timer(AGAIN, os.kill, (os.getpid(), getattr(error, "number", signal.SIGINT)))
        timer.daemon = True
        waiting.append(timer)
        timer.start()

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in waiting:
            timer.cancel()


def _error_words(error: OrthocalError) -> str:
    """What the error says, in words of problem files and commands."""
    text = error.args[0] if error.args else ""
    return str(OrthocalError(text.files) if isinstance(text, Advice) else error)


def _interrupted() -> int:
    return _say(ENDED, INTERRUPTED)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if issubclass(category, OrthocalWarning):
        text = message.args[0] if isinstance(message, Warning) else message
        print(f"note: {in_files(text)}", file=sys.stderr, flush=True)


def _told(code: int) -> int:
    """The exit code; with --json a command that ends without a document gives one that says so."""
    if code:
        from .documents import give_error

        give_error("the command has ended, standard error says why")
    return code


def _say(message: str, code: int = 1) -> int:
    from .documents import give_error

    give_error(message)
    print(f"error: {message}", file=sys.stderr, flush=True)
    return code
