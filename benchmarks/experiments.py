"""Several experiments: what they cost as their number grows, and how often intervals hold what they should.

python benchmarks/experiments.py                    seconds of 1 to 20 experiments of 500 points
python benchmarks/experiments.py coverage gp 100    95 % intervals over 100 data sets of five experiments, each with
                                                    another sign or phase of what the simulators miss
python benchmarks/experiments.py coverage gp 40 100    the 40 data sets that follow these
python benchmarks/experiments.py coverage gp 100 0 unknown    the same with noise that is not given
python benchmarks/experiments.py pooled gp 100      the same with a pooled offset: mu and tau
python benchmarks/experiments.py fixed gp 100       with the same biases in all data sets
python benchmarks/experiments.py prior gp 100       with biases that are drawn from a Gaussian process
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import sys
import time
from functools import partial

import numpy as np
from scipy import stats
from scipy.optimize import least_squares

import orthocal as oc

#: name -> number of data, of inputs, noise sd, and what the simulator misses, with a sign and a phase
RIGS = {
    "A": (10, 1, 0.05, lambda x, sign, phase: 0.10 * np.sin(5 * x[:, 0] + phase)),
    "B": (30, 1, 0.10, lambda x, sign, phase: 0.15 * sign * x[:, 0] ** 2),
    "C": (100, 2, 0.10, lambda x, sign, phase: 0.20 * np.cos(3 * x[:, 0] + phase) * x[:, 1]),
    "D": (300, 1, 0.05, lambda x, sign, phase: 0.15 * sign * np.exp(-3 * x[:, 0])),
    "E": (1000, 1, 0.20, lambda x, sign, phase: 0.10 * np.sin(7 * x[:, 0] + 1 + phase)),
}
#: of biases that are drawn: sd, length-scale and the number of cosines that a Matern 3/2 process is made of
PRIOR_SD, PRIOR_LENGTH, COSINES = 0.1, 0.4, 500
#: rate and height are shared
RATE, HEIGHT = 1.5, 2.0
PRIORS = {"rate": stats.norm(1.5, 1.0), "height": stats.norm(2.0, 1.0), "offset": stats.norm(0.0, 1.0)}


def simulated(x, theta):
    """A saturating curve with an offset; a second input stretches it."""
    rate, height, offset = theta
    stretch = 1.0 if x.shape[1] == 1 else 0.5 + x[:, 1]
    return height * (1 - np.exp(-rate * x[:, 0] * stretch)) + offset


def drawn_offsets(rng):
    return dict(zip(RIGS, rng.normal(0.5, 0.4, len(RIGS)), strict=True))


def from_the_prior(rng, d):
    """A draw of a Matern 3/2 process, as a sum of random cosines."""
    # its spectral density is that of a t with 3 degrees of freedom
    frequency = rng.standard_normal((COSINES, d)) / PRIOR_LENGTH / np.sqrt(rng.chisquare(3, (COSINES, 1)) / 3)
    phase = rng.uniform(0, 2 * np.pi, COSINES)
    return lambda x: PRIOR_SD * np.sqrt(2 / COSINES) * np.cos(x @ frequency.T + phase).sum(axis=1)


def drawn_biases(rng, kind):
    """name -> what the simulator misses, a function of x."""
    if kind == "prior":
        return {name: from_the_prior(rng, d) for name, (_, d, _, _) in RIGS.items()}
    found = {}
    for name, (_, _, _, missed) in RIGS.items():
        sign, phase = (1.0, 0.0) if kind == "fixed" else (rng.choice([-1.0, 1.0]), rng.uniform(0, 2 * np.pi))
        found[name] = partial(missed, sign=sign, phase=phase)
    return found


def problems(rng, offsets, biases, noise):
    made = {}
    for name, (n, d, sd, _) in RIGS.items():
        x = rng.uniform(0, 1, (n, d))
        y = simulated(x, (RATE, HEIGHT, offsets[name])) + biases[name](x) + sd * rng.standard_normal(n)
        cov = sd**2 if noise == "given" else noise
        made[name] = oc.Problem(x, y, simulated, PRIORS, oc.Box([0.0] * d, [1.0] * d), noise_cov=cov, starts=4)
    return made


def truth(offsets, biases):
    """theta*: where the sum of the losses in units of the noise is least, by quadrature and another minimiser."""
    parts = []
    points, weights = np.polynomial.legendre.leggauss(40)
    points, weights = (points + 1) / 2, weights / 2
    for k, (name, (_, d, sd, _)) in enumerate(RIGS.items()):
        grid = np.stack([one.ravel() for one in np.meshgrid(*[points] * d, indexing="ij")], axis=1)
        weight = np.prod(np.meshgrid(*[weights] * d, indexing="ij"), axis=0).ravel()
        real = simulated(grid, (RATE, HEIGHT, offsets[name])) + biases[name](grid)
        parts.append((k, grid, np.sqrt(weight) / sd, real))

    def left(theta):
        return np.concatenate(
            [scale * (real - simulated(grid, (*theta[:2], theta[2 + k]))) for k, grid, scale, real in parts]
        )

    return least_squares(left, [RATE, HEIGHT, *offsets.values()], xtol=1e-14, ftol=1e-14, gtol=1e-14).x


def coverage(kind, method, sets, first, noise):
    """How many 95 % intervals hold theta*, for every parameter."""
    held, spreads, widths, worth, began, pooled = [], [], [], [], time.process_time(), kind == "pooled"
    for number in range(first, first + sets):
        rng = np.random.default_rng([19, number])
        offsets, biases = drawn_offsets(rng), drawn_biases(rng, kind)
        made = problems(rng, offsets, biases, noise)
        # theta* is the same whatever is known of the noise: unknown noise has rough units, which may be far off
        counts = {name: float(one.noise.cov[0, 0]) / RIGS[name][2] ** 2 for name, one in made.items()}
        experiments = oc.Experiments(made, {"offset": oc.Pooled()} if pooled else ["offset"], counts)
        posterior = oc.calibrate(experiments, method, draws=500, chains=2, seed=number, progress=False)
        theta = posterior.theta.reshape(-1, posterior.theta.shape[2])
        target = truth(offsets, biases)
        if pooled:
            # the law of the offsets, moved by what the bias does to each of them
            moved = np.mean(target[2:] - np.array(list(offsets.values())))
            target = np.append(target, [0.5 + moved, 0.4])
        lower, upper = np.quantile(theta, [0.025, 0.975], axis=0)
        held.append((lower < target) & (target < upper))
        spreads.append((theta.mean(axis=0) - target) / theta.std(axis=0))
        widths.append(theta.std(axis=0))
        mixing = posterior.summary()
        worth.append((mixing[["ess_bulk", "ess_tail"]].min().min(), mixing["r_hat"].max()))
        if len(held) % 10 == 0:
            shares = " ".join(f"{one:.2f}" for one in np.mean(held, axis=0))
            print(f"{len(held):4} sets, {time.process_time() - began:5.0f} CPU s: {shares}", flush=True)
    away, rms = np.mean(spreads, axis=0), np.sqrt(np.mean(np.square(spreads), axis=0))
    table = zip(posterior.parameter_names, np.mean(held, axis=0), away, rms, np.mean(widths, axis=0), strict=True)
    for name, share, mean, square, sd in table:
        print(f"{name:12} covered {share:.3f}   off in sds: mean {mean:5.2f}, rms {square:.2f}   mean sd {sd:.4f}")
    sizes, apart = np.transpose(worth)
    print(f"least ESS of 1000: median {np.median(sizes):.0f}, least {sizes.min():.0f}; R-hat <= {apart.max():.3f}")


def cost(counts=(1, 2, 5, 10, 20)):
    """CPU seconds of all, for so many experiments of 500 points."""
    print("experiments   CPU s   CPU s an experiment   parameters")
    for count in counts:
        rng, made = np.random.default_rng(1), {}
        for k in range(count):
            x = rng.uniform(0, 1, (500, 1))
            y = simulated(x, (RATE, HEIGHT, 0.1 * k)) + 0.1 * np.sin(5 * x[:, 0]) + 0.1 * rng.standard_normal(500)
            made[f"rig {k}"] = oc.Problem(x, y, simulated, PRIORS, oc.Box(0, 1), noise_cov=0.01)
        began = time.process_time()
        posterior = oc.calibrate(oc.Experiments(made, ["offset"]), "gp", seed=1, progress=False)
        posterior.check()
        seconds = time.process_time() - began
        print(f"{count:11} {seconds:7.1f} {seconds / count:21.1f} {len(posterior.parameter_names):12}", flush=True)


def main():
    kind, *rest = sys.argv[1:] or ["cost"]
    if kind == "cost":
        cost(tuple(int(one) for one in rest) or (1, 2, 5, 10, 20))
    else:
        method, sets, first, noise = (*rest, *("gp", "100", "0", "given")[len(rest) :])
        coverage(kind, method, int(sets), int(first), noise)


if __name__ == "__main__":
    main()
