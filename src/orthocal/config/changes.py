"""Settings of a file that a command line changes: ``sampling.draws=200``, a dotted key and a value of TOML."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from ..errors import ConfigError, shortened

#: a value without quotes, which shells take away, that TOML would not know for a text
_WORD = re.compile(r"[\w.:/\\ +-]+")


def with_changes(content: Mapping[str, Any], changes: Iterable[str]) -> dict[str, Any]:
    """What a file says, with each ``key=value`` put over it, in their order."""
    changed = deepcopy(dict(content))
    for change in changes:
        _put(changed, _parsed(change), change)
    return changed


def method_change(content: Mapping[str, Any], name: str) -> str:
    """The change to another method, with its own defaults: the settings of [method] are those of the method there."""
    section = content.get("method", {})
    same = isinstance(section, Mapping) and section.get("name", "gp") == name
    return f"method.name={json.dumps(name)}" if same else f"method={{name={json.dumps(name)}}}"


def _parsed(change: str) -> dict[str, Any]:
    key, equals, value = (part.strip() for part in change.partition("="))
    if not equals or not key or not value:
        raise ConfigError(f"--set {change}: give it as key=value, for instance sampling.draws=200")
    try:
        return tomllib.loads(f"{key} = {value}")
    except ValueError as error:
        why = error
    if _WORD.fullmatch(value):
        try:
            return tomllib.loads(f"{key} = {json.dumps(value)}")
        except ValueError as error:
            why = error
    raise ConfigError(f"--set {shortened(change)}: the key or the value is not valid TOML: {why}")


def _put(content: dict[str, Any], change: Mapping[str, Any], given: str, place: str = "") -> None:
    """Dotted keys lead into tables; a table that is given whole replaces the one that is there."""
    ((name, value),) = change.items()
    inside = f"{place}{name}"
    if not isinstance(value, Mapping) or _whole(given, inside):
        content[name] = value
        return
    below = content.setdefault(name, {})
    if not isinstance(below, dict):
        raise ConfigError(f"--set {given}: {inside} is {shortened(repr(below))} in the file, and no table of keys")
    _put(below, value, given, f"{inside}.")


def _whole(change: str, place: str) -> bool:
    """Whether the value belongs to this key, and not to one below it."""
    parts: Any = tomllib.loads(f"{change.partition('=')[0].strip()} = 0")
    names = []
    while isinstance(parts, dict):
        ((name, parts),) = parts.items()
        names.append(name)
    return ".".join(names) == place
