"""Simulators that run and model nothing, for a person to put a model in their place; and an example that is one."""

from __future__ import annotations

import keyword
from typing import NamedTuple

from ..config.written import Draft, Ranges, function_lines, problem_text


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
            *_formula(parameters, spans),
            "",
        ]
    )


def program_text(parameters: Ranges, spans: Spans) -> str:
    """The same as a program: python3 simulator.py INPUT X OUTPUT, three CSV files."""
    body = [f"    {_name(one, j, 'theta')} = float(theta[{one!r}])" for j, one in enumerate(parameters)]
    body += [
        f"    {_name(one, j, 'x')} = np.array([float(row[{one!r}]) for row in points])" for j, one in enumerate(spans.x)
    ]
    formula = _formula(parameters, spans)
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
            "import numpy as np",
            "",
            "",
            "def simulate(theta, points):",
            *body,
            *formula,
            "",
            "",
            "given, places, output = sys.argv[1:]",
            "with open(given, newline='') as file:",
            "    theta = next(csv.DictReader(file))",
            "with open(places, newline='') as file:",
            "    points = list(csv.DictReader(file))",
            f"np.savetxt(output, simulate(theta, points), delimiter=',', header={','.join(spans.y)!r}, comments='')",
            "",
        ]
    )


def _formula(parameters: Ranges, spans: Spans) -> list[str]:
    """Polynomials along the inputs, each parameter with a power of its own, over the range of the data."""
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
    one = columns[0] if len(columns) == 1 else f"np.column_stack([{', '.join(columns)}])"
    return [
        f"    along = 2 * ({' + '.join(along)}) / {len(along)} - 1",
        f"    scaled = [{', '.join(scaled)}]",
        "    shape = 0.5 + 4 * sum((one - 0.5) * along**power for power, one in enumerate(scaled))",
        f"    return {one}",
    ]


def _name(name: str, number: int, kind: str) -> str:
    """A name of the data as one of Python's, where it can be."""
    fine = name.isidentifier() and not keyword.iskeyword(name) and name not in ("x", "theta", "np", "along", "scaled")
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
