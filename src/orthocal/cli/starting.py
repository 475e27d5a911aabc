"""The command ``orthocal init``: from a table of field data and a simulator to files that run."""

from __future__ import annotations

import keyword
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from ..config.toml_writer import Draft, Ranges, function_lines, problem_text
from ..errors import ConfigError, OrthocalError
from .documents import Json, Quiet, give, say
from .outputs import listed

if TYPE_CHECKING:
    from ..config.guesses import Guess
    from ..config.toml_writer import Draft, Ranges
    from ..files.tables import TextTable


# Simulators that run and model nothing, for a person to put a model in their place; and an example that is one.


class Spans(NamedTuple):
    """What the data look like: smallest value and width of every input and outcome."""

    x: Ranges
    y: Ranges


def function_text(name: str, parameters: Ranges, spans: Spans) -> str:
    """A Python file with a function of the given name."""
    arguments = "x, theta" if spans.x else "theta"
    taken = [f"x has one row a point and the columns {', '.join(spans.x)};"] if spans.x else []
    gives = "one number a point" if len(spans.y) == 1 else "one row a point and one column an outcome"
    body = [
        f"    {_name(one, j, 'theta')} = theta[{j}]  # from {low:g} to {high:g}"
        for j, (one, (low, high)) in enumerate(parameters.items())
    ]
    body += [f"    {_name(one, j, 'x')} = x[:, {j}]" for j, one in enumerate(spans.x)]
    return "\n".join(
        [
            '"""The simulator. The formula below runs and models nothing: put your model in its place."""',
            "",
            "import numpy as np",
            "",
            "",
            f"def {name}({arguments}):",
            f'    """{" ".join([*taken, f"theta holds {_listed(parameters)}."])}',
            "",
            f"    Returns {gives if spans.x else 'one number an output'}: {', '.join(spans.y)}.",
            '    """',
            *body,
            *_formula(parameters, spans, "{}" if len(spans.y) == 1 else "np.column_stack([{}])"),
            "",
        ]
    )


def program_text(parameters: Ranges, spans: Spans) -> str:
    """The same as a program: python3 simulator.py INPUT X OUTPUT, three CSV files.

    It needs the standard library alone: the python3 that is called may be another one than this.
    """
    body = [f"    {_name(one, j, 'theta')} = float(theta[{one!r}])" for j, one in enumerate(parameters)]
    body += [f"    {_name(one, j, 'x')} = float(point[{one!r}])" for j, one in enumerate(spans.x)]
    return "\n".join(
        [
            '"""The simulator as a program: python3 simulator.py INPUT X OUTPUT.',
            "",
            "The formula below runs and models nothing: put your model in its place.",
            '"""',
            "",
            "import csv",
            "import sys",
            "",
            "",
            "def simulate(theta, point):",
            *body,
            *_formula(parameters, spans, "[{}]"),
            "",
            "",
            "given, places, output = sys.argv[1:]",
            "with open(given, newline='') as file:",
            "    theta = next(csv.DictReader(file))",
            "with open(places, newline='') as file:",
            "    points = list(csv.DictReader(file))",
            "with open(output, 'w', newline='') as file:",
            f"    csv.writer(file).writerows([{list(spans.y)!r}, *(simulate(theta, point) for point in points)])",
            "",
        ]
    )


def _formula(parameters: Ranges, spans: Spans, outcomes: str) -> list[str]:
    """Polynomials along the inputs, each parameter with a power of its own, over the range of the data.

    ``outcomes`` has a place, {}, for the outcomes with commas between them.
    """
    along = [f"({_name(one, j, 'x')} - {low!r}) / {width!r}" for j, (one, (low, width)) in enumerate(spans.x.items())]
    scaled = [
        f"({_name(one, j, 'theta')} - {low!r}) / {high - low!r}"
        for j, (one, (low, high)) in enumerate(parameters.items())
    ]
    columns = [f"{low!r} + {width!r} * shape" for low, width in spans.y.values()]
    if not spans.x:
        # numbers of their own, so that outputs tell the parameters apart
        shape = [f"np.sin({k + 1} + sum((j + 1) * one for j, one in enumerate(scaled)))" for k in range(len(spans.y))]
        each = [f"{low!r} + {width!r} * {one}" for (low, width), one in zip(spans.y.values(), shape, strict=True)]
        return [f"    scaled = [{', '.join(scaled)}]", f"    return np.array([{', '.join(each)}])"]
    return [
        f"    along = 2 * ({' + '.join(along)}) / {len(along)} - 1",
        f"    scaled = [{', '.join(scaled)}]",
        "    shape = 0.5 + 4 * sum((one - 0.5) * along**power for power, one in enumerate(scaled))",
        f"    return {outcomes.format(', '.join(columns))}",
    ]


def _name(name: str, number: int, kind: str) -> str:
    """A name of the data as one of Python's, where it can be."""
    taken = ("x", "theta", "point", "np", "along", "scaled")
    fine = name.isidentifier() and not keyword.iskeyword(name) and name not in taken
    return name if fine else f"{kind}_{number}"


def _listed(names: Ranges) -> str:
    return ", ".join(names)


EXAMPLE_SIMULATOR = '''"""The simulator of the example: a cup cools in proportion to its excess over the room."""

import numpy as np


def simulate(x, theta):
    """x has one row a point and the column minutes; theta holds rate (a minute) and room (degrees)."""
    minutes = x[:, 0]
    rate, room = theta
    return room + (88.0 - room) * np.exp(-rate * minutes)
'''


def example_files() -> dict[str, str]:
    """A project that runs: a cup of coffee, whose steam the simulator does not know."""
    import numpy as np

    minutes = np.linspace(0.0, 60.0, 41)
    rate = np.exp(-0.033 * minutes - 0.25 * (1 - np.exp(-minutes / 6)))
    measured = 21.0 + 67.0 * rate + 0.4 * np.random.default_rng(1).standard_normal(len(minutes))
    rows = [f"{time:g},{value:.2f}" for time, value in zip(minutes, measured, strict=True)]
    draft = Draft(
        data="field.csv",
        x=["minutes"],
        y=["celsius"],
        parameters={"rate": (0.01, 0.1), "room": (15.0, 30.0)},
        simulator=function_lines("simulator.py:simulate", outputs=False),
        domain=([0.0], [60.0]),
    )
    return {
        "problem.toml": problem_text(draft),
        "field.csv": "\n".join(["minutes,celsius", *rows]) + "\n",
        "simulator.py": EXAMPLE_SIMULATOR,
        "new.csv": "minutes\n2.5\n20\n45\n",
    }


Answer = TypeVar("Answer")

#: runs of a campaign that stands in a new file, for each parameter
RUNS_EACH = 16
KINDS = ("function", "program", "runs", "umbridge")


@dataclass
class InitAnswers:
    """What was said by options, or is asked for."""

    data: Path | None = None
    x: list[str] | None = None
    y: list[str] | None = None
    kind: str | None = None
    simulator: str = ""
    model: str = "forward"
    parameters: Ranges | None = None


def init(
    folder: Annotated[Path, typer.Argument(help="Where to write; made where it does not exist.")] = Path("."),
    data: Annotated[Path | None, typer.Option("--data", help="CSV table of the field data.")] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", help="The simulator: FILE.py:name; a stand-in is written if it is not there."),
    ] = None,
    program: Annotated[
        str | None, typer.Option("--program", help='Or: a command, "mysim {input} {x} {output}"; "" for a stand-in.')
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="Or: a table of its runs.")] = None,
    umbridge: Annotated[str | None, typer.Option("--umbridge", help="Or: the address of a UM-Bridge server.")] = None,
    model: Annotated[str, typer.Option("--model", help="The name of the server's model.")] = "forward",
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=LOW:HIGH", help="A parameter and its range; once for each."),
    ] = None,
    x: Annotated[str | None, typer.Option("--x", help="Columns of the inputs, with commas. Default: guessed.")] = None,
    y: Annotated[str | None, typer.Option("--y", help="Columns of the outcomes. Default: guessed.")] = None,
    example: Annotated[bool, typer.Option("--example", help="Write an example that runs.")] = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a problem file to start from, with comments, and a simulator that runs where there is none.

    On a terminal it asks for what is not given. Without any data it writes an example. Nothing that is there is
    overwritten.
    """
    simulators = {"function": function, "program": program, "runs": runs, "umbridge": umbridge}
    given = {kind: str(value) for kind, value in simulators.items() if value is not None}
    if len(given) > 1:
        raise ConfigError(f"--{' and --'.join(given)}: give one simulator")
    kind = next(iter(given), None)
    asked = InitAnswers(
        data, None if x is None else listed(x), None if y is None else listed(y), kind, given.get(kind or "", ""), model
    )
    asked.parameters = dict(map(_range, parameter)) if parameter else None
    said_nothing = data is None and kind is None and not parameter
    if example and not said_nothing:
        raise ConfigError("--example takes no data and no simulator: leave it out, or them")
    if said_nothing and (example or not _interactive() or not _ask_data(asked)):
        files, after = _example()
    else:
        files, after = _project(asked, folder)
    _write(folder, files)
    if "new.csv" in files:
        say("An example: a cup of coffee cools, faster at first than the simulator knows.")
    names = [str(folder / name) for name in files]
    commands = [one.replace("FOLDER/", "" if folder == Path(".") else f"{folder}/") for one in after]
    say(f"Written: {', '.join(names)}\nNext:    " + "\n         ".join(commands))
    give({"files": names, "next": commands})


def _interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _example() -> tuple[dict[str, str], list[str]]:

    return example_files(), ["orthocal run FOLDER/problem.toml", "orthocal predict FOLDER/fit.nc FOLDER/new.csv"]


def _project(asked: InitAnswers, folder: Path) -> tuple[dict[str, str], list[str]]:
    """The files of a project and the commands that come next."""
    from ..config.guesses import guessed_columns, run_columns, table_of
    from ..config.toml_writer import Draft

    if asked.data is None:
        _need(_ask_data, asked, "--data field.csv, the CSV table of the field data")
    assert asked.data is not None
    table = table_of(asked.data)
    if asked.kind is None:
        kinds = "--function, --program, --runs or --umbridge, for instance --function model.py:f"
        _need(_ask_simulator, asked, f"the simulator: {kinds}")
    columns = run_columns(Path(asked.simulator)) if asked.kind == "runs" else None
    guess = guessed_columns(table, columns, asked.x, asked.y)
    if asked.x is None or asked.y is None:
        say(f"Guessed from the header of {asked.data}: {guess.words()}")
        if _interactive():
            guess = _ask_columns(guess, table, columns)
    draft = Draft(
        data=_relative(asked.data, folder),
        x=guess.x,
        y=guess.y,
        parameters=_parameters(asked, guess),
        simulator=[],
        dialect=table.dialect,
        y_err=guess.y_err,
    )
    return _files(asked, draft, _spans(table, guess), folder)


def _files(asked: InitAnswers, draft: Draft, spans: Spans, folder: Path) -> tuple[dict[str, str], list[str]]:
    """Problem file, campaign file and stand-in, as the kind of the simulator needs them."""
    from ..config import toml_writer
    from ..config.guesses import guessed_dialect
    from ..files.tables import PLAIN
    from ..runs.files import knows_its_names

    files: dict[str, str] = {}
    after = ["orthocal check FOLDER/problem.toml", "orthocal run FOLDER/problem.toml"]
    if asked.kind == "function":
        file, _, name = _reference(asked.simulator).rpartition(":")
        if Path(file).exists() or (folder / file).exists():
            place = _relative(Path(file), folder) if Path(file).exists() else file
        else:
            place = Path(file).name
            files[place] = function_text(name, draft.parameters, spans)
            say(f"There is no {file}: the new {place} is a stand-in, which runs and models nothing.")
        lines = toml_writer.function_lines(f"{place}:{name}", not draft.x)
    elif asked.kind == "umbridge":
        lines = toml_writer.server_lines(asked.simulator, asked.model)
    elif asked.kind == "runs":
        runs = Path(asked.simulator)
        dialect = PLAIN if knows_its_names(runs) else guessed_dialect(runs)
        lines = toml_writer.run_lines(_relative(runs, folder), dialect)
    else:
        if not draft.x:
            raise ConfigError("a program is run at the points x of the data, which have no inputs: give --function")
        needs = [] if asked.simulator else ["simulator.py"]
        if not asked.simulator:
            files["simulator.py"] = program_text(draft.parameters, spans)
            say("No command: simulator.py is a stand-in, which runs and models nothing.")
        command = asked.simulator or "python3 simulator.py {input} {x} {output}"
        number = RUNS_EACH * len(draft.parameters)
        files["campaign.toml"] = toml_writer.campaign_text(draft, toml_writer.program_lines(command, needs), number)
        lines = toml_writer.run_lines("runs.csv", PLAIN)
        after = ["orthocal simulate FOLDER/campaign.toml --export FOLDER/runs.csv", *after]
    problem = toml_writer.problem_text(replace(draft, simulator=lines))
    _check(problem, asked, folder)
    return {"problem.toml": problem, **files}, after


def _check(problem: str, asked: InitAnswers, folder: Path) -> None:
    """What was written can be read, and the runs have what it says: now, and not after the files are there."""
    import tomllib

    from ..config.problem_file import ProblemFile, problem_runs
    from ..sections import checked_sections

    config = checked_sections(ProblemFile, tomllib.loads(problem), "problem.toml")
    if asked.kind == "runs":
        for note in problem_runs(config, folder).notes:
            say(note)


def _parameters(asked: InitAnswers, guess: Guess) -> Ranges:
    """Those that were given, those of the runs, or those that are asked for."""
    if asked.kind == "runs":
        from ..config.guesses import guessed_runs

        own = None if asked.parameters is None else list(asked.parameters)
        found = guessed_runs(Path(asked.simulator), guess.x, guess.y, own).parameters
        if asked.parameters is None:
            words = ", ".join(f"{name} from {low:g} to {high:g}" for name, (low, high) in found.items())
            say(f"Parameters, with the range of their runs: {words}")
        if asked.parameters is None and _interactive():
            found = _prompted(
                "Parameters", lambda names: {one: found[one] for one in _among(names, found)}, ", ".join(found)
            )
        return {**found, **(asked.parameters or {})}
    if asked.parameters is None:
        _need(_ask_parameters, asked, "the parameters: --parameter name=lower:upper, once for each")
    assert asked.parameters is not None
    return asked.parameters


def _among(answer: str, known: Iterable[str]) -> list[str]:
    names = listed(answer)
    unknown = [name for name in names if name not in set(known)]
    if unknown or not names:
        raise ConfigError(f"{answer!r}: give some of {', '.join(known)}, with commas")
    return names


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """``name=lower:upper``."""
    name, _, ends = (part.strip() for part in text.partition("="))
    try:
        low, high = (float(one) for one in ends.replace(",", ":").split(":"))
    except ValueError:
        raise ConfigError(f"parameter {text!r}: give it as name=lower:upper, for instance drag=0:1") from None
    if not name or "," in name or not low < high or not abs(high - low) < float("inf"):
        raise ConfigError(f"parameter {text!r}: give a name without commas, and a lower bound below the upper one")
    return name, (low, high)


def _reference(text: str) -> str:
    """``FILE.py:name``."""
    file, _, name = text.rpartition(":")
    if not file.endswith(".py") or not name.isidentifier():
        raise ConfigError(f"the function {text!r}: give it as FILE.py:name")
    return text


def _spans(table: TextTable, guess: Guess) -> Spans:
    """What a stand-in must know of the data to give values like theirs."""
    import numpy as np

    def span(name: str) -> tuple[float, float]:
        try:
            values = table.numbers(name)
        except OrthocalError:
            # labels are the numbers 0, 1, ... of a function
            return 0.0, float(max(1, len(set(table.cells(name))) - 1))
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        # a person reads it: 49.12, not 49.120000000000005
        return low, float(f"{high - low:.6g}") if high > low else abs(low) or 1.0

    return Spans({name: span(name) for name in guess.x}, {name: span(name) for name in guess.y})


def _relative(path: Path, folder: Path) -> str:
    return Path(os.path.relpath(path.resolve(), folder.resolve())).as_posix()


def _write(folder: Path, files: dict[str, str]) -> None:
    """All of them, or none: what is there stays."""
    from .outputs import made_folder

    there = [name for name in files if (folder / name).exists() or (folder / name).is_symlink()]
    if there:
        raise ConfigError(
            f"{folder / there[0]} is there already, and init overwrites nothing: give another folder, orthocal init "
            "new-folder"
        )
    made_folder(folder)
    for name, text in files.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)


def _need(ask: Callable[[InitAnswers], Any], asked: InitAnswers, words: str) -> None:
    """Ask on a terminal; elsewhere it is to be given."""
    if not _interactive():
        raise ConfigError(f"give {words}; or nothing at all, for an example")
    ask(asked)


def _prompted(question: str, read: Callable[[str], Answer], default: str | None = None) -> Answer:
    """An answer that can be used: what is wrong with one is said, and the question comes again."""
    while True:
        try:
            return read(typer.prompt(question, default=default, show_default=bool(default)).strip())
        except OrthocalError as error:
            typer.echo(f"  {error}")


def _ask_data(asked: InitAnswers) -> bool:
    """Whether there are data."""
    from ..config.guesses import table_of

    def read(answer: str) -> Path | None:
        if answer:
            table_of(Path(answer))
        return Path(answer) if answer else None

    asked.data = _prompted("CSV table of the field data (Enter for an example)", read, "")
    return asked.data is not None


def _ask_simulator(asked: InitAnswers) -> None:
    def read(answer: str) -> str:
        names = [kind for kind in KINDS if answer and kind.startswith(answer.casefold())]
        if len(names) != 1:
            raise ConfigError(f"{answer!r}: answer {', '.join(KINDS)}")
        return names[0]

    def table(answer: str) -> str:
        from ..config.guesses import run_columns

        run_columns(Path(answer))
        return answer

    asked.kind = _prompted(f"The simulator is a {', '.join(KINDS)}", read, "function")
    if asked.kind == "function":
        asked.simulator = _prompted("FILE.py:name; what does not exist is written", _reference, "simulator.py:simulate")
    elif asked.kind == "program":
        asked.simulator = _prompted("Its command, with {input}, {x} and {output} (Enter for a stand-in)", str, "")
    elif asked.kind == "runs":
        asked.simulator = _prompted("Table of its runs", table)
    else:
        asked.simulator = _prompted("Address of the server", str, "http://localhost:4242")
        asked.model = _prompted("Name of the model", str, "forward")


def _ask_columns(guess: Guess, table: TextTable, runs: list[str] | None) -> Guess:
    from ..config.guesses import guessed_columns

    y = _prompted("Outcomes", lambda answer: guessed_columns(table, runs, None, listed(answer)).y, ", ".join(guess.y))
    rest = guessed_columns(table, runs, None, y)
    return _prompted(
        "Inputs (- for none)",
        lambda answer: guessed_columns(table, runs, [] if answer == "-" else listed(answer), y),
        ", ".join(rest.x) or "-",
    )


def _ask_parameters(asked: InitAnswers) -> None:
    def read(answer: str) -> Ranges:
        return dict(map(_range, listed(answer)))

    asked.parameters = _prompted("Parameters, name=lower:upper with commas", read)
