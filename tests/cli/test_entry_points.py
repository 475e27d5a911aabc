"""Commands of other distributions: loaded when they are called, and one sentence where that cannot be."""

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

from orthocal.cli import app, entry_points

FOREIGN = """
import typer

calibrated = typer.Typer(help="Several commands.")


@calibrated.command()
def first() -> None:
    "The first one."
    typer.echo("first was called")


@calibrated.command()
def second() -> None:
    "The second one."


def alone(count: int) -> None:
    "One command."
    typer.echo(f"alone was called with {count}")


number = 3
"""


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Install entry points, name -> value, beside which there are none; ``foreign_commands`` is a module of theirs."""
    (tmp_path / "foreign_commands.py").write_text(FOREIGN)
    (tmp_path / "raising_commands.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(tmp_path)

    def install(**points):
        found = [EntryPoint(name, value, entry_points.GROUP) for name, value in points.items()]
        monkeypatch.setattr(entry_points, "entry_points", lambda group: found)

    yield install
    for name in ("foreign_commands", "raising_commands"):
        sys.modules.pop(name, None)


def test_a_function_and_a_group_become_commands(installed):
    installed(alone="foreign_commands:alone", group="foreign_commands:calibrated")
    assert "alone was called with 4" in CliRunner().invoke(app, ["alone", "4"]).output
    assert "first was called" in CliRunner().invoke(app, ["group", "first"]).output
    shown = CliRunner().invoke(app, ["group", "--help"], env={"COLUMNS": "120"})
    assert "The second one." in shown.output


def test_help_loads_no_command(installed):
    installed(alone="foreign_commands:alone", broken="raising_commands:one")
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"})
    assert shown.exit_code == 0
    assert all(name in shown.output for name in ("Applications", "alone", "broken", "pip install orthocal-galaxy"))
    assert "foreign_commands" not in sys.modules


@pytest.mark.parametrize(("name", "distribution"), entry_points.APPLICATIONS.items())
def test_what_is_not_installed_is_named(name, distribution, installed, program):
    installed()
    done = program(name, "--help")
    assert done.code == 2
    assert done.err == f"error: `orthocal {name}` is an application of its own: pip install {distribution}\n"


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("raising_commands:one", "RuntimeError: not today"),
        ("foreign_commands:nothing", "AttributeError"),
        ("no_such_module:one", "ModuleNotFoundError"),
        ("not an entry point", "AttributeError"),
        ("foreign_commands:number", "TypeError|AttributeError"),
    ],
)
def test_a_broken_command_is_one_sentence(value, why, installed, program):
    installed(broken=value)
    done = program("broken", "--help")
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert done.err.startswith(f"error: the command 'broken' of {value} cannot be loaded (")
    assert any(one in done.err for one in why.split("|"))


def test_no_distribution_replaces_a_command_of_our_own(installed):
    installed(run="raising_commands:one")
    assert "Calibrate the problem" in CliRunner().invoke(app, ["run", "--help"]).output
    assert CliRunner().invoke(app, ["--help"], env={"COLUMNS": "120"}).output.count("│ run ") == 1


def test_a_shell_completes_names_without_loading_them(installed):
    installed(broken="raising_commands:one")
    context = typer.Context(typer.main.get_command(app))
    assert [one.value for one in context.command.shell_complete(context, "bro")] == ["broken"]


def test_the_command_line_loads_no_application():
    script = "import sys, orthocal.cli.commands; print([name for name in sys.modules if name.startswith('orthocal_')])"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "[]"
