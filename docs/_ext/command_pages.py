"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import typer

from orthocal.cli import app

TITLE = """# The command line

Made from the program itself; `orthocal COMMAND --help` says the same. What a problem file may hold has
[a page of its own](../problem-file.md).
"""


def commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """All commands that do something, with the words that call them."""
    if isinstance(command, click.Group):
        for name, part in command.commands.items():
            yield from commands(part, (*path, name))
    else:
        yield path, command


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def row(parameter: click.Parameter, context: click.Context) -> str:
    """Name, what it means, and what it is if not given."""
    names = parameter.opts + parameter.secondary_opts
    if parameter.param_type_name == "argument":
        shown = f"`{parameter.make_metavar(context)}`"
    else:
        value = "" if getattr(parameter, "is_flag", False) else f" {parameter.type.name.upper()}"
        shown = ", ".join(f"`{name}{value}`" for name in names)
    default = parameter.get_default(context, call=False)
    absent = default is None or default is False or callable(default) or str(default) in ("()", "[]", "")
    said = "required" if parameter.required else ("" if absent else f"`{default}`")
    return f"| {cell(shown)} | {cell(getattr(parameter, 'help', '') or '')} | {cell(said)} |"


def section(path: tuple[str, ...], command: click.Command) -> str:
    context = click.Context(command, info_name=" ".join(path))
    usage = " ".join([*path, *command.collect_usage_pieces(context)])
    words = inspect.cleandoc(command.help or "").replace("\f", "")
    rows = [row(one, context) for one in command.params if one.name != "help" and not getattr(one, "hidden", False)]
    table = "\n".join(["| | | default |", "|---|---|---|", *rows])
    return f"## `{' '.join(path)}`\n\n{words}\n\n```text\n{usage}\n```\n\n{table if rows else ''}\n"


def page() -> str:
    found = commands(typer.main.get_command(app), ("orthocal",))
    return "\n".join([TITLE, *(section(path, command) for path, command in found)])
