"""AR(1) errors, rho = .8, n = 200: coverage where they are said and where they are taken for independent, and check().

    python benchmarks/correlated_noise.py [DATA_SETS]

Model 1 (f = t x, y_R = 4 x + x sin 5x on [0, 1], even x, noise sd .2) with `gp`; theta* from the integral. The last
lines have independent errors: what check() says of them is a false alarm.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy import stats

import orthocal as oc

N, RHO, SD = 200, 0.8, 0.2
X = (np.arange(N) + 0.5) / N
LENGTH = 1 / N / -np.log(RHO)
NODES = np.linspace(0, 1, 20_001)


def real(x: np.ndarray) -> np.ndarray:
    return 4 * x + x * np.sin(5 * x)


THETA = float(np.trapezoid(real(NODES) * NODES, NODES) / np.trapezoid(NODES**2, NODES))
CASES = {
    "AR(1), said": (RHO, oc.CorrelatedNoise("x", length=LENGTH, sd=SD)),
    "AR(1), taken for independent, known variance": (RHO, SD**2),
    "AR(1), taken for independent, estimated": (RHO, "estimate"),
    "independent, known variance": (0.0, SD**2),
    "independent, estimated": (0.0, "estimate"),
}


def errors(rho: float, seed: int) -> np.ndarray:
    normal = np.random.default_rng(seed).standard_normal(N)
    found = normal.copy()
    for i in range(1, N):
        found[i] = rho * found[i - 1] + np.sqrt(1 - rho**2) * normal[i]
    return SD * found


def main(sets: int) -> None:
    print("| errors | coverage of 95 % | scatter of means | mean sd | said to be correlated | factor of the sd |")
    print("|---|---|---|---|---|---|")
    for name, (rho, noise) in CASES.items():
        covered, means, sds, found, factors = [], [], [], 0, []
        for seed in range(sets):
            problem = oc.Problem(
                X,
                real(X) + errors(rho, seed),
                lambda x, t: t * x,
                {"t": stats.norm(0, 10)},
                oc.Box(0, 1),
                noise_cov=noise,
                input_names="x",
            )
            posterior = oc.calibrate(problem, "gp", draws=500, chains=2, seed=1, progress=False)
            theta = posterior.theta.ravel()
            lower, upper = np.quantile(theta, (0.025, 0.975))
            covered.append(lower < THETA < upper)
            means.append(theta.mean())
            sds.append(theta.std())
            said = [one for one in posterior.check() if one.topic == "correlated errors" and one.level != "fine"]
            found += bool(said)
            factors += [float(one.message.rsplit(" ", 1)[1]) for one in said if one.level == "problem"]
        factor = f"{np.median(factors):.1f}" if factors else ""
        figures = f"{np.mean(covered):.2f} | {np.std(means):.4f} | {np.mean(sds):.4f} | {found} of {sets}"
        print(f"| {name} | {figures} | {factor} |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
