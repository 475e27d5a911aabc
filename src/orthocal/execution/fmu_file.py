"""An FMU file: what it holds, its variables by name, and its contents, extracted once."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from threading import RLock
from typing import Any, NamedTuple

from ..errors import InputError

#: names of variables that a message lists
MOST_LISTED = 20
#: fmpy changes the folder of the process while it loads a library, and few FMUs may be used by two threads
LOCK = RLock()
KINDS = {"co-simulation": "CoSimulation", "model-exchange": "ModelExchange"}


class Need(NamedTuple):
    """What a variable must be, and what is said of one that is not."""

    met: Callable[[Any], bool]
    otherwise: str


class FMUFile:
    """What is known of an FMU before it is simulated.

    Parameters
    ----------
    path
        The file.
    folder
        Where another process has extracted it; looked for, and else done again.
    """

    def __init__(self, path: Path, folder: str | None = None) -> None:
        self.path = path
        self._description: Any = None
        self._folder = folder

    def __reduce__(self) -> tuple[type[FMUFile], tuple[Path, str]]:
        return FMUFile, (self.path, self.folder)

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def description(self) -> Any:
        """The model description of fmpy."""
        if self._description is None:
            fmpy = _fmpy()
            if not self.path.is_file():
                raise InputError(f"there is no FMU {self.path}")
            try:
                # its own mistakes are not the user's: what is needed of it is checked by name
                description = fmpy.read_model_description(str(self.path), validate=False)
                platforms = fmpy.supported_platforms(str(self.path))
            except Exception as error:  # whatever a damaged archive makes the readers raise
                raise InputError(f"{self.name} is no FMU that can be read: {error}") from None
            if fmpy.platform not in platforms:
                raise InputError(
                    f"{self.name} has no binaries for this platform, {fmpy.platform}: it has "
                    f"{' and '.join(platforms) or 'none at all'}; export it for {fmpy.platform}"
                )
            self._description = description
        return self._description

    @property
    def folder(self) -> str:
        """Where it is extracted: a temporary folder that goes with the process that made it."""
        with LOCK:
            if self._folder is None or not os.path.isfile(os.path.join(self._folder, "modelDescription.xml")):
                self._folder = _extracted(self.path)
            return self._folder

    def kind(self, wanted: str) -> str:
        """fmpy's word for how it is simulated."""
        there = [word for word, kind in KINDS.items() if _has(self.description, kind)]
        chosen = wanted if wanted != "auto" else next(iter(there), "")
        if chosen not in there:
            raise InputError(f"kind={wanted!r}: {self.name} is an FMU for {' and '.join(there) or 'neither kind'}")
        return KINDS[chosen]

    def check(self, names: Sequence[str], what: str, *needs: Need) -> None:
        """Whether there are these variables, and whether they suit."""
        variables = {str(one.name): one for one in self.description.modelVariables}
        for name in names:
            if name not in variables:
                suiting = [one for one, variable in variables.items() if all(need.met(variable) for need in needs)]
                near = get_close_matches(name, suiting, MOST_LISTED) if len(suiting) > MOST_LISTED else []
                listed = ", ".join((near or suiting)[:MOST_LISTED]) or "none of this kind"
                others = " and others" if len(suiting) > MOST_LISTED else ""
                raise InputError(f"{what}: {self.name} has no variable {name!r}; it has {listed}{others}")
            for need in needs:
                if not need.met(variables[name]):
                    raise InputError(f"{what}: the variable {name!r} of {self.name} {need.otherwise}")


def _is_real(variable: Any) -> bool:
    return variable.type in ("Real", "Float32", "Float64") and not variable.shape


def _is_number(variable: Any) -> bool:
    return variable.type not in ("String", "Binary", "Clock") and not variable.shape


def _can_be_set(variable: Any) -> bool:
    from fmpy.simulation import settable_in_initialization_mode, settable_in_instantiated

    return bool(settable_in_instantiated(variable) or settable_in_initialization_mode(variable)) or (
        # FMI 1 says it by a start value
        variable.start is not None and variable.initial is None and variable.causality in ("parameter", "internal")
    )


REAL = Need(_is_real, "is no real number")
NUMBER = Need(_is_number, "is no number")
SETTABLE = Need(_can_be_set, "is calculated by the model, and cannot be set")


def _fmpy() -> Any:
    try:
        import fmpy
    except ImportError:
        raise InputError("an FMU needs fmpy: install orthocal[fmpy]") from None
    return fmpy


def _has(description: Any, kind: str) -> bool:
    return getattr(description, kind[0].lower() + kind[1:]) is not None


_folders: dict[tuple[str, int, int], tuple[int, str]] = {}


def _extracted(path: Path) -> str:
    """A folder with the contents of an FMU, the same one for all that use it in this process."""
    found = path.stat()
    key = (str(path), found.st_mtime_ns, found.st_size)
    owner, folder = _folders.get(key, (0, ""))
    if owner == os.getpid() and os.path.isdir(folder):
        return folder
    folder = tempfile.mkdtemp(prefix="orthocal-fmu-")
    try:
        with zipfile.ZipFile(path) as archive:
            # names that would leave the folder are brought back into it by zipfile
            archive.extractall(folder)
    except Exception as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise InputError(f"{path.name} cannot be extracted: {error}") from None
    _folders[key] = os.getpid(), folder
    atexit.register(_remove, os.getpid(), folder)
    return folder


def _remove(owner: int, folder: str) -> None:
    # a copy of the process must leave it to the original
    if owner == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)
