"""Errors and warnings: each says what was given, what was expected and what to do."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb

__all__ = [
    "ConfigError",
    "FileError",
    "IdentifiabilityError",
    "InputError",
    "NonFiniteError",
    "OrthocalError",
    "OrthocalWarning",
    "SimulatorError",
    "WriteError",
]

#: for messages that end a program which has more to do
KEPT = "what had finished is kept: the same command goes on from there"


#: letters of a message
MOST_LETTERS = 4000


class OrthocalError(Exception):
    """Base of every error that orthocal raises on purpose."""

    def __str__(self) -> str:
        # a file may have names of any length, and half characters, which no terminal takes; messages quote them
        text = super().__str__().encode("utf-8", "backslashreplace").decode()
        half = MOST_LETTERS // 2
        return text if len(text) <= MOST_LETTERS else f"{text[:half]} ... {text[-half:]}"


class InputError(OrthocalError, ValueError):
    """What the user gave does not fit: shapes, names, values, settings."""


class ConfigError(InputError):
    """A problem file (TOML) that cannot be used."""


class SimulatorError(OrthocalError, RuntimeError):
    """The simulator raised, or returned something that is not its outcomes."""


class NonFiniteError(SimulatorError):
    """The simulator or its gradient failed for a theta, it raised or gave NaN or infinity, where a value is needed."""


class IdentifiabilityError(OrthocalError, ValueError):
    """The data and the simulator cannot tell the parameters apart."""


class FileError(OrthocalError, ValueError):
    """A file is not a result of orthocal, or is damaged."""


class WriteError(OrthocalError, OSError):
    """A file cannot be written: the disk is full, or the folder may not be written to. Nothing in memory is lost."""


class OrthocalWarning(UserWarning):
    """A run went through, but the user should know something about it."""


def shortened(text: str, most: int = 300) -> str:
    """For messages that quote what a file holds."""
    return text if len(text) <= most else f"{text[:most]}..."


def where_raised(error: BaseException) -> str:
    """The file and the line that an error comes from."""
    place = extract_tb(error.__traceback__)[-1]
    return f"{Path(place.filename).name}, line {place.lineno}"
