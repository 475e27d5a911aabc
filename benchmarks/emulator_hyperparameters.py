"""What a Gaussian-process emulator of few runs expects of its errors: the likeliest hyperparameters beside drawn ones.

    python benchmarks/emulator_hyperparameters.py [--designs 8]

prints for each case the rms error of the leading components at theta that the runs do not have, in units of their
spread, and the rms of errors in units of the sd that is expected, design by design: 1 is right, 2 is half of what it
should be. ``drawn`` is what draws of an emulator have, as a mixture of 24.
"""

from __future__ import annotations

import argparse

import numpy as np
from scipy import stats

import orthocal as oc
from emulator_coverage import FRIEDMAN_PRIORS, friedman

#: components that are looked at, theta that no run has, and draws of the hyperparameters
COMPONENTS, PLACES, DRAWN = 4, 100, 24
POINTS = np.random.default_rng(18).random((80, 2))
LINE = np.linspace(0, 1, 12)[:, None]
TWO = {"a": stats.uniform(0, 1), "b": stats.uniform(0, 1)}


def smooth(x, theta):
    """Two parameters, one of them an angle."""
    column = x[:, 0]
    return np.sin(3 * theta[0] * column + 2 * theta[1]) + theta[1] * column**2


def wavy(x, theta):
    """Two parameters, one of which goes through more than a wave."""
    column = x[:, 0]
    return np.sin(9 * theta[0] + 2 * column) * np.cos(5 * theta[1]) + theta[1] * column


CASES = {
    "two parameters, 10 runs": (smooth, TWO, LINE, 10),
    "two wavy parameters, 20 runs": (wavy, TWO, LINE, 20),
    "Friedman's five, 20 runs": (friedman, FRIEDMAN_PRIORS, POINTS, 20),
    "Friedman's five, 30 runs": (friedman, FRIEDMAN_PRIORS, POINTS, 30),
}


def missed(case: str, design: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Squared errors and expected variances, (places, components) each."""
    simulate, priors, x, count = CASES[case]
    plan = oc.design(priors, count, seed=100 + design)
    output = np.stack([simulate(x, one) for one in plan.to_numpy()])
    emulator = oc.emulate(oc.RunTable(plan, output, x), "gp", progress=False)
    rng = np.random.default_rng(design)
    theta = rng.uniform(0.15, 0.85, (PLACES, len(priors)))
    inputs, (fitted,), (scale,), (basis,) = (
        emulator.unit.apply(theta),
        emulator.fitted,
        emulator.scores,
        emulator.functions(x),
    )
    # the functions of x are orthonormal
    true = scale.apply((np.stack([simulate(x, one) for one in theta]) - basis.mean) @ basis.functions.T)
    others = [fitted.redrawn(rng) for _ in range(DRAWN)]
    means = np.stack([one.predict(inputs) for one in others])
    var = np.mean([one.variance(inputs) for one in others], axis=0) + means.var(axis=0)
    found = {"likeliest": (fitted.predict(inputs), fitted.variance(inputs)), "drawn": (means.mean(axis=0), var)}
    return {name: (((true - mean) ** 2)[:, :COMPONENTS], v[:, :COMPONENTS]) for name, (mean, v) in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--designs", type=int, default=8)
    designs = range(parser.parse_args().designs)
    for case in CASES:
        each = [missed(case, design) for design in designs]
        for name in ("likeliest", "drawn"):
            squares, variances = (np.stack([one[name][k] for one in each]) for k in (0, 1))
            in_sds = np.sqrt(np.mean(squares / variances, axis=(1, 2)))
            error, expected = np.sqrt(squares.mean()), np.sqrt(variances.mean())
            by_design = " ".join(f"{value:.2f}" for value in in_sds)
            print(f"{case:30} {name:10} rms error {error:.3f}, expected {expected:.3f}; in sds, by design: {by_design}")


if __name__ == "__main__":
    main()
