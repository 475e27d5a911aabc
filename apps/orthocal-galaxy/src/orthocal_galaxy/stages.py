"""The stages of a fit in a folder: what is there is kept, and never mixed with what other settings made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orthocal.applications import whole_file
from orthocal.errors import FileError, InputError

SETTINGS = "settings.json"


def fingerprint(*parts: object) -> str:
    """Twelve letters that change with the contents of arrays and texts."""
    total = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            total.update(repr(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        else:
            total.update(json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()[:12]


class Stages:
    """What a folder holds, with the settings that each file was made with.

    A stage is one file, written whole or not at all. Its settings are noted before it is made, so that whatever ends
    the program, the next one knows what a file belongs to.

    Parameters
    ----------
    folder
        Made where it does not exist.
    redo
        Make stages anew whose settings differ; otherwise they are refused.
    """

    def __init__(self, folder: str | Path, redo: bool = False) -> None:
        self.folder = Path(folder)
        self._redo = redo
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot make the folder {self.folder}: {error.strerror}") from None
        self._known = self._read()

    def there(self, name: str, settings: Mapping[str, object]) -> bool:
        """Whether the file ``name`` is there, made with these settings; an error where it was made with others."""
        path, wanted = self.folder / name, json.loads(json.dumps(dict(settings)))
        before = self._known.get(name)
        if path.exists() and before != wanted:
            if not self._redo:
                raise InputError(
                    f"{path} was made with other settings ({_differences(before, wanted)}): give another --out, or "
                    "--redo to make anew what differs"
                )
            # SQLite keeps what is not yet in a file beside it
            for one in (path, *path.parent.glob(f"{path.name}-*")):
                one.unlink()
        if before != wanted:
            self._note(name, wanted)
        path.parent.mkdir(exist_ok=True)
        return path.exists()

    def write_json(self, name: str, value: object) -> None:
        """Write the file of a stage."""
        write_text(self.folder / name, json.dumps(value, indent=1))

    def read_json(self, name: str) -> Any:
        """What ``write_json`` wrote."""
        try:
            return json.loads((self.folder / name).read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            raise FileError(f"{self.folder / name} is damaged: remove it, and the same command makes it anew") from None

    def _read(self) -> dict[str, object]:
        if not (self.folder / SETTINGS).exists():
            return {}
        known = self.read_json(SETTINGS)
        if not isinstance(known, dict):
            raise FileError(f"{self.folder / SETTINGS} is damaged: give another --out")
        return known

    def _note(self, name: str, settings: dict[str, object]) -> None:
        self._known[name] = settings
        self.write_json(SETTINGS, self._known)


def write_text(path: Path, text: str) -> Path:
    """Write a text file, whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return path


def _differences(before: object, now: dict[str, object]) -> str:
    if not isinstance(before, dict):
        return "nothing is known of them"
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    said = (f"{_short(name)} {_short(before.get(name))}, now {_short(now.get(name))}" for name in names)
    return shortened("; ".join(said))


def shortened(text: str, most: int = 300) -> str:
    """For messages that quote what a file holds."""
    return text if len(text) <= most else f"{text[:most]}..."


def _short(value: object) -> str:
    text = "not given" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
