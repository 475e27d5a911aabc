"""The examples by name."""

from __future__ import annotations

from ..errors import InputError
from .base import Example

_LISTED: dict[str, Example] = {}


def listed(example: Example) -> Example:
    """Put an example on the list, at its end; it is returned.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.listed(oc.examples.MODEL1)
    Traceback (most recent call last):
        ...
    orthocal.errors.InputError: there are two examples 'model-1': give one of them another name
    """
    if example.name in _LISTED:
        raise InputError(f"there are two examples {example.name!r}: give one of them another name")
    _LISTED[example.name] = example
    return example


def names() -> tuple[str, ...]:
    """The names of all examples.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.names()[:3]
    ('model-1', 'model-2', 'model-3')
    """
    return tuple(_LISTED)


def get(name: str) -> Example:
    """The example of a name.

    Examples
    --------
    >>> import orthocal as oc
    >>> oc.examples.get("tuo-wu").theta_star
    (-0.17892537,)
    """
    if name not in _LISTED:
        raise InputError(f"there is no example {name!r}: choose one of {', '.join(_LISTED)}")
    return _LISTED[name]


def all() -> tuple[Example, ...]:
    """All examples.

    Examples
    --------
    >>> import orthocal as oc
    >>> [example.name for example in oc.examples.all() if "real" in example.tags]
    ['ball-drop', 'chaboche', 'us-population', 'common-cold']
    """
    return tuple(_LISTED.values())
