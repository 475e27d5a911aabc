"""Held-out errors and times of all emulators: the Friedman function, the borehole function, and runs of a galaxy model.

    python benchmarks/emulators.py [RUNS.npz]

The last part needs a file with ``theta`` (s, p), ``output`` (s, m, q) and ``x`` (m, d).
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.stats import uniform

import orthocal as oc


def friedman(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Friedman (1991): the first of the five inputs taken as x, the others as theta."""
    sine = np.sin(np.pi * x[:, 0] * theta[0])
    return 10 * sine + 20 * (theta[1] - 0.5) ** 2 + 10 * theta[2] + 5 * theta[3]


#: inputs of the borehole function (Morris, Mitchell, Ylvisaker 1993) and their ranges
BOREHOLE = {
    "r_w": (0.05, 0.15),
    "r": (100.0, 50000.0),
    "T_u": (63070.0, 115600.0),
    "H_u": (990.0, 1110.0),
    "T_l": (63.1, 116.0),
    "H_l": (700.0, 820.0),
    "L": (1120.0, 1680.0),
    "K_w": (9855.0, 12045.0),
}


def borehole(x: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Flow of water through a borehole: the radius of the hole is x, the seven other inputs are theta."""
    r_w, (r, t_u, h_u, t_l, h_l, length, k_w) = x[:, 0], theta
    log_ratio = np.log(r / r_w)
    return 2 * np.pi * t_u * (h_u - h_l) / (log_ratio * (1 + 2 * length * t_u / (log_ratio * r_w**2 * k_w) + t_u / t_l))


def table_of(function, x: np.ndarray, ranges: dict[str, tuple[float, float]], s: int) -> oc.RunTable:
    priors = {name: uniform(low, high - low) for name, (low, high) in ranges.items()}
    theta = oc.design(priors, s)
    return oc.RunTable(theta, [function(x, one) for one in theta.to_numpy()], x)


def main() -> None:
    line = np.linspace(0, 1, 20)[:, None]
    radius = np.linspace(*BOREHOLE["r_w"], 10)[:, None]
    unit = dict.fromkeys("abcd", (0.0, 1.0))
    tables = {
        "Friedman, 200 runs at 20 points": table_of(friedman, line, unit, 200),
        "Borehole, 200 runs at 10 points": table_of(
            borehole, radius, {name: ends for name, ends in BOREHOLE.items() if name != "r_w"}, 200
        ),
    }
    for path in sys.argv[1:]:
        data = np.load(path)
        names = [str(name) for name in data["output_names"]] if "output_names" in data else None
        tables[f"{path}, {len(data['theta'])} runs"] = oc.RunTable(
            data["theta"], data["output"], data["x"], outcome_names=names
        )
    for title, runs in tables.items():
        print(f"\n{title}\n{oc.compare_emulators(runs)}", flush=True)


if __name__ == "__main__":
    main()
