"""Problem and campaign files as texts with comments, for a person to read and to change."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from ..files.tables import PLAIN, Dialect

Ranges = dict[str, tuple[float, float]]

#: where comments of keys begin
_COLUMN = 46


@dataclass(frozen=True)
class Draft:
    """What a problem file is to say; ``simulator`` are the lines of its section."""

    data: str
    x: list[str]
    y: list[str]
    parameters: Ranges
    simulator: list[str]
    dialect: Dialect = PLAIN
    y_err: list[str] = field(default_factory=list)
    domain: tuple[list[float], list[float]] | None = None
    seed: int = 1


def problem_text(draft: Draft) -> str:
    """A whole problem file."""
    lines = [
        "# A calibration: `orthocal check` says what it will cost, and `orthocal run` makes it.",
        "# Paths are relative to this file. Lines with # are comments; docs/problem-file.md has every key.",
        "",
        "[data]",
        _said(f"file = {_text(draft.data)}", "one row an observation, names in the first line"),
        *_dialect(draft.dialect),
        *([_said(f"x = {_texts(draft.x)}", "the inputs")] if draft.x else ["# without x: outputs without inputs"]),
        _said(f"y = {_texts(draft.y)}", "the outcomes; an empty cell is a missing one"),
        _said(f"y_err = {_texts(draft.y_err)}", "standard deviations of the outcomes")
        if draft.y_err
        else _said('# y_err = ["..."]', "columns of standard deviations, where there are any"),
        _said('# transform = "log"', "of outcomes that are positive and vary over decades"),
        "",
        "[simulator]",
        *draft.simulator,
        "",
        *parameter_lines(draft.parameters),
        "",
        *_domain(draft),
        "",
        *([] if draft.y_err else [*_NOISE, ""]),
        "[method]",
        _said('name = "gp"', "the prior on the bias; see docs/problem-file.md for others"),
        "",
        "[sampling]",
        _said("draws = 1000", "kept draws of each chain"),
        "chains = 4",
        _said(f"seed = {draft.seed}", "the same seed gives the same draws"),
        "",
    ]
    return "\n".join(lines)


def campaign_text(draft: Draft, program: list[str], runs: int) -> str:
    """A campaign file: the runs of a program over the ranges of the parameters."""
    lines = [
        "# Runs of the simulator for problem.toml: `orthocal simulate campaign.toml --export runs.csv` makes them,",
        "# and goes on where it was ended. Paths are relative to this file; docs/campaigns.md has every key.",
        "",
        "[program]",
        *program,
        "",
        *parameter_lines(draft.parameters),
        "",
        "[design]",
        _said(f"n = {runs}", "runs, spread over the ranges; a larger number adds runs"),
        _said('# more = "next-runs.csv"', "what `orthocal next-runs` has chosen"),
        "",
        "[x]",
        _said(f"file = {_text(draft.data)}", "the points of every run: those of the data"),
        *_dialect(draft.dialect),
        f"columns = {_texts(draft.x)}",
        "",
        "[run]",
        _said("# jobs = 4", "runs at a time; without it as many as there are cores"),
        _said("# timeout = 3600", "seconds after which a run is ended"),
        "",
        "[outcomes]",
        f"names = {_texts(draft.y)}",
        "",
    ]
    return "\n".join(lines)


def parameter_lines(parameters: Ranges) -> list[str]:
    """[parameters], uniform between bounds."""
    return [
        "[parameters]",
        "# Priors are distributions of scipy.stats. Between bounds: uniform, loc = lower, scale = upper - lower.",
        '# With a mean and a standard deviation: { distribution = "norm", loc = 9.8, scale = 0.1 }',
        *(
            _said(
                f'{_key(name)} = {{ distribution = "uniform", loc = {low!r}, scale = {round(high - low, 12)!r} }}',
                f"from {low:g} to {high:g}",
            )
            for name, (low, high) in parameters.items()
        ),
    ]


def function_lines(reference: str, outputs: bool) -> list[str]:
    """[simulator] of a function."""
    called = "function(theta)" if outputs else "function(x, theta)"
    return [
        _said(f"function = {_text(reference)}", f"called as {called}"),
        _said('# gradient = "simulator.py:gradient"', "where you have it; otherwise by JAX or differences"),
        _said("# jobs = 4", "processes that call it, where it is slow"),
    ]


def run_lines(file: str, dialect: Dialect) -> list[str]:
    """[simulator] of a table of runs."""
    return [
        _said(f"runs = {_text(file)}", "an emulator is learnt from them"),
        *_dialect(dialect),
        _said('emulator = "auto"', "the best of gp, bart, bmars, forest and mlp at held-out runs"),
    ]


def server_lines(url: str, model: str) -> list[str]:
    """[simulator] of a UM-Bridge server."""
    return [
        _said(f"umbridge = {{ url = {_text(url)}, model = {_text(model)} }}", "its outputs are those at the data's x"),
        '# A model that takes x: x_block = 1 or x_config = "x" in the braces; docs/servers.md has every key.',
    ]


def program_lines(command: str, files: list[str]) -> list[str]:
    """[program] of a campaign."""
    return [
        f"command = {_text(command)}",
        "# {input}: the parameters as a CSV file; {x}: the points; {output}: where to write; {name}: a parameter",
        _said('# input_template = "case.inp.template"', "a text with {name} in it, which becomes {input}"),
        _said('output = "output.csv"', 'one row a point; "stdout" for what it prints'),
        *([_said(f"files = {_texts(files)}", "what it needs in the folder of a run")] if files else []),
    ]


_NOISE = [
    "# [noise]",
    f"{'# cov = 0.04':<{_COLUMN}}# the variance, where it is known; without it, it is unknown, and integrated over",
]


def _domain(draft: Draft) -> list[str]:
    if draft.domain is None:
        return ["# [domain]", "# without it the simulator is judged over the box around the data"]
    lower, upper = draft.domain
    return [
        "[domain]",
        _said(f"lower = {lower}", "where the simulator is judged: the box around the data, say"),
        f"upper = {upper}",
    ]


def _dialect(dialect: Dialect) -> list[str]:
    if dialect == PLAIN:
        return []
    found = [f"separator = {_text(dialect.separator)}"]
    return found if dialect.decimal == "." else [*found, f"decimal = {_text(dialect.decimal)}"]


def _said(line: str, comment: str) -> str:
    return f"{line:<{_COLUMN - 1}} # {comment}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def _texts(values: list[str]) -> str:
    return f"[{', '.join(map(_text, values))}]"
