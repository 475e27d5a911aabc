"""The functions of the package that a command enters, a line each, in the order of first entry.

    python tests/walk.py run problem.toml

CONTRIBUTING.md's walk from field data to the report is made of such lines; ``test_house.py`` compares the two. Class
bodies are left out.
"""

from __future__ import annotations

import inspect
import sys
import threading
from pathlib import Path
from types import FrameType

import orthocal
from orthocal.cli import main

PACKAGE = f"{Path(orthocal.__file__).parent.as_posix()}/"


def entered() -> list[str]:
    """``module: function`` of all that the command line in ``sys.argv`` enters."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        written = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and written and code.co_filename.startswith(PACKAGE):
            found.setdefault(f"{code.co_filename.removeprefix(PACKAGE)}: {code.co_qualname}")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        main()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found)


if __name__ == "__main__":
    steps = entered()
    print("entered:", *steps, sep="\n")
