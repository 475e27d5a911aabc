"""What several commands do with their options."""

from __future__ import annotations

from pathlib import Path

from ..errors import ConfigError


def listed(names: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in names.split(",") if name.strip()]


def made_folder(path: Path) -> Path:
    """The folder for results, made where it does not exist."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"cannot make the folder {path}: {error.strerror}") from None
    return path
