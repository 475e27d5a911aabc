"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import typer

from orthocal.cli import app

TITLE = """# Commands and options

Made from the program itself; `orthocal COMMAND --help` says the same. What a problem file may hold has
[a page of its own](../problem-file.md).
"""


# Typer has brought click along under several names, so its commands and parameters have no type here.
def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands that do something, with the words that call them."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    context = typer.Context(command)
    for name in command.list_commands(context):
        # those of applications are loaded here
        _, part, _ = command.resolve_command(context, [name])
        if not part.hidden:
            yield from commands(part, (*path, name))


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def row(parameter: Any, context: typer.Context) -> str:
    """Name, what it means, and what it is if not given."""
    if parameter.param_type_name == "argument":
        shown = (parameter.metavar or parameter.name).upper()
    else:
        shown = parameter.get_help_record(context)[0]
    default = parameter.get_default(context, call=False)
    # False first: it equals 0, which is a default worth showing
    silent = default is None or default is False or callable(default) or default in ("", (), [])
    said = "required" if parameter.required else ("" if silent else f"`{default}`")
    return f"| `{cell(shown)}` | {cell(getattr(parameter, 'help', None) or '')} | {cell(said)} |"


def section(path: tuple[str, ...], command: Any) -> str:
    context = typer.Context(command, info_name=" ".join(path))
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    words = inspect.cleandoc(command.help or "").replace("\f", "")
    shown = [one for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    table = "\n".join(["| | | default |", "|---|---|---|", *(row(one, context) for one in shown)])
    return f"## `{' '.join(path)}`\n\n{words}\n\n```text\n{usage}\n```\n\n{table if shown else ''}\n"


def page() -> str:
    """All commands in Markdown."""
    found = [*commands(typer.main.get_command(app), ("orthocal",))]
    if len(found) < 2:
        raise RuntimeError("Typer no longer shows its commands as `commands`: change this file")
    return "\n".join([TITLE, *(section(path, command) for path, command in found)])
