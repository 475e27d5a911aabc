"""Files: written whole or not at all, with checksums that show damage; ``netcdf`` and ``tables`` are their kinds."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import InputError, WriteError


def is_file(path: str | Path) -> bool:
    """Whether there is such a file; ``Path.is_file`` raises for names that no file can have."""
    return os.path.isfile(path)


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """A path to write to, which becomes ``path`` at the end, or nothing if the writing fails."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        problem = "is a folder" if target.is_dir() else "lies in a folder that does not exist"
        raise InputError(f"cannot write {target}: it {problem}")
    try:
        with tempfile.TemporaryDirectory(prefix=".writing-", dir=target.parent) as folder:
            draft = Path(folder) / "draft"
            yield draft
            # some disks say only now that they are full
            with draft.open("rb") as written:
                os.fsync(written.fileno())
            os.replace(draft, target)
    except OSError as error:
        why = error.strerror or str(error)
        raise WriteError(f"cannot write {target}: {why}; make room, or give another folder") from error


def whole_text(path: str | Path, text: str) -> Path:
    """Write a text, whole or not at all."""
    with whole_file(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return Path(path)


def checksum(*parts: object) -> str:
    """Twelve letters that change with what is kept, in the order given; it shows damage, it is no signature."""
    total = hashlib.sha256()
    for part in parts:
        # the kind as well: 1 is not "1", and None no text
        value = part if isinstance(part, bytes) else repr(part).encode()
        total.update(b"%s %d " % (type(part).__name__.encode(), len(value)) + value)
    return total.hexdigest()[:12]
