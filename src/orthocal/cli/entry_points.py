"""Commands of other distributions: the entry points of the group ``orthocal.commands``.

Help reads their names and the summaries of their distributions; a command is loaded when it is called.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..errors import OrthocalError, shortened

GROUP, PANEL = "orthocal.commands", "Applications"
#: our own, and what has to be installed for them
APPLICATIONS = {"study": "orthocal-studies", "galaxy": "orthocal-galaxy"}


class Commands(TyperGroup):
    """The commands of orthocal, and after them those of other distributions, which cannot replace them."""

    # the context of its base has no public name

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        own = super().list_commands(ctx)
        return [*own, *(name for name in _others() if name not in own)]

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        own = super().get_command(ctx, cmd_name)
        if own is not None or cmd_name not in _others():
            return own
        return TyperCommand(cmd_name, help=_summary(cmd_name), rich_help_panel=PANEL)

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None or name in self.commands else _loaded(name), rest


def _others() -> dict[str, EntryPoint | None]:
    """The commands of other distributions by name; None where one of ours is not installed."""
    found = {point.name: point for point in entry_points(group=GROUP)}
    return {**dict.fromkeys(APPLICATIONS), **dict(sorted(found.items()))}


def _summary(name: str) -> str:
    point = _others()[name]
    if point is None:
        return f"Not installed: pip install {APPLICATIONS[name]}"
    described = {} if point.dist is None else point.dist.metadata.json
    return str(described.get("summary", ""))


def _loaded(name: str) -> Any:
    """The command itself: the entry point names a function with Typer's annotations, or a group, ``typer.Typer``."""
    point = _others()[name]
    if point is None:
        typer.echo(f"error: `orthocal {name}` is an application of its own: pip install {APPLICATIONS[name]}", err=True)
        raise typer.Exit(2)
    try:
        found = point.load()
        holder = typer.Typer()
        if isinstance(found, typer.Typer):
            holder.add_typer(found, name=name)
        else:
            holder.command(name)(found)
        return typer.main.get_group(holder).commands[name]
    except Exception as error:  # whatever the code of others raises
        source = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        said = shortened(f"{type(error).__name__}: {error}")
        raise OrthocalError(
            f"the command {name!r} of {source} cannot be loaded ({said}): install a version of it that fits this "
            "orthocal, or remove it"
        ) from None
