"""Sections of a TOML file: tables whose keys are known, with what does not fit in our words."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, ValidationInfo, field_validator

from .errors import ConfigError, shortened

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


#: mistakes of a file that are named at a time
MOST_SAID = 8


class Section(BaseModel):
    """A table of the file; keys that are not known are refused by name."""

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        known = cls.model_fields.get(info.field_name or "")
        if known is not None and not _may_be_true(str(known.annotation)) and any(_truths(value)):
            raise ValueError("true and false are no numbers")
        return value


Kind = TypeVar("Kind", bound=Section)
#: one name, or a list of them
Names = Annotated[list[str], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]


def read_sections(path: str | Path, kind: type[Kind]) -> Kind:
    """Read and check a whole file."""
    return checked_sections(kind, read_toml(path), path)


def read_toml(path: str | Path) -> dict[str, Any]:
    """What a file says, unchecked."""
    try:
        content = tomllib.loads(Path(path).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: its brackets are nested too deeply") from None
    except ValueError as error:  # of the parser, of UTF-8, and of integers with thousands of digits
        raise ConfigError(f"{path} is not valid TOML: {shortened(str(error))}") from None
    for place, value in _values(content):
        said = _unusable(value)
        if said:
            raise ConfigError(f"{path}: {shortened(place)}: {said}")
    return content


def _values(content: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, object]]:
    """Every key and every value, with the place where it stands."""
    for name, value in content.items():
        inside = place + name.encode("unicode_escape").decode()
        yield inside, name
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, list):
                yield from _values({"": one}, inside)
            elif isinstance(one, dict):
                yield from _values(one, f"{inside}.")
            else:
                yield inside, one


def _unusable(value: object) -> str | None:
    """What no setting can be, in words."""
    if isinstance(value, str) and "\0" in value:
        return "its text holds a NUL, which neither names nor files can have"
    # TOML's own limit
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return "an integer of more than 64 bits; write it as a float, with a point"
    return None


def checked_sections(kind: type[Kind], content: Mapping[str, Any], source: str | Path) -> Kind:
    """The settings, or an error that names what does not fit, and where it was said."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        wrong = sorted({shortened(_in_words(one, kind)) for one in error.errors()})
        more = f"; and {len(wrong) - MOST_SAID} more" if len(wrong) > MOST_SAID else ""
        raise ConfigError(f"{source}: " + "; ".join(wrong[:MOST_SAID]) + more) from None


def _may_be_true(annotation: str) -> bool:
    """Whether a setting can hold a truth: as a type of its own, or in a section, which checks its own settings."""
    return any(word in annotation for word in ("bool", "Any", "Section"))


def _truths(value: object) -> Iterator[bool]:
    """For every part of a value whether it is true or false."""
    if isinstance(value, list | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _truths(one)
    yield isinstance(value, bool)


def _in_words(error: ErrorDetails, kind: type[Section]) -> str:
    """One pydantic error in our words; ``kind`` is the whole file."""
    # which of several types was tried is no part of the place
    place = ".".join(str(part) for part in error["loc"] if not str(part).startswith(("list", "literal", "float")))
    if error["type"] == "extra_forbidden":
        known = _known_keys(kind, error["loc"])
        return f"unknown key {place!r}" + (f", there are {', '.join(known)}" if known else "")
    if error["type"] == "missing":
        return f"missing key {place!r}"
    if error["type"] == "value_error":
        return f"{place}: {error['ctx']['error']}"
    return f"{place}: {error['msg'][0].lower()}{error['msg'][1:]}"


def _known_keys(kind: type[Section], place: tuple[int | str, ...]) -> list[str]:
    """The keys of the table that a key stands in; none where that is no section."""
    for part in place[:-1]:
        field = kind.model_fields.get(str(part))
        kinds = () if field is None else (field.annotation, *get_args(field.annotation))
        below = [one for one in kinds if isinstance(one, type) and issubclass(one, Section)]
        if not below:
            return []
        kind = below[0]
    return list(kind.model_fields)
