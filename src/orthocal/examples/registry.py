"""The examples by name."""

from __future__ import annotations

from ..errors import InputError
from .base import Example

_LISTED: dict[str, Example] = {}


def listed(example: Example) -> Example:
    """Put an example on the list, at its end."""
    if example.name in _LISTED:
        raise InputError(f"there are two examples {example.name!r}: give one of them another name")
    _LISTED[example.name] = example
    return example


def names() -> tuple[str, ...]:
    """The names of all examples."""
    return tuple(_LISTED)


def get(name: str) -> Example:
    """The example of a name."""
    if name not in _LISTED:
        raise InputError(f"there is no example {name!r}: choose one of {', '.join(_LISTED)}")
    return _LISTED[name]


def all() -> tuple[Example, ...]:
    """All examples."""
    return tuple(_LISTED.values())
