"""The built-in example: Model 1 of the paper, also written out as files to start from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ..examples import MODEL1
from ..files import whole_file
from ..problem.problem import Problem

SIMULATOR = '''"""The simulator of the example: a straight line through the origin."""


def simulate(x, theta):
    """x has one row a point and one column an input, theta one number a parameter."""
    return theta[0] * x[:, 0]
'''

PROBLEM = """# A calibration as a file: run it with `orthocal run problem.toml`.
[data]
file = "field.csv"
x = "x"
y = "y"

[simulator]
function = "simulator.py:simulate"

[parameters]
theta = { distribution = "norm", loc = 0, scale = 10 }

[domain]
lower = 0
upper = 1

[sampling]
seed = 1
"""


def demo_problem(seed: int) -> Problem:
    """100 noisy observations of y_R(x) = 4x + x sin 5x, and the simulator f = theta x, which cannot bend."""
    x, y = MODEL1.simulate(np.random.default_rng(seed))
    # without its gradient and the paper's nodes, as in the file: both give the same draws
    model = replace(MODEL1, gradient=None, nodes=None)
    return model.problem(x, y, noise_cov="unknown", input_names="x", outcome_names="y")


def write_demo_files(problem: Problem, folder: Path) -> None:
    """The same example as a problem file with its data and simulator."""
    rows = [
        "x,y",
        *(f"{x!r},{y!r}" for x, y in zip(problem.data.x[:, 0].tolist(), problem.data.y[:, 0].tolist(), strict=True)),
    ]
    files = {"problem.toml": PROBLEM, "simulator.py": SIMULATOR, "field.csv": "\n".join(rows) + "\n"}
    for name, content in files.items():
        with whole_file(folder / name) as draft:
            draft.write_text(content, encoding="utf-8")
