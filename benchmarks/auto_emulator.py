"""The race of emulate("auto") beside the whole comparison: do they choose the same, and what does the race save.

    python benchmarks/auto_emulator.py [--default]

Fourteen tables of runs; all emulators are fitted to all parts, and the race is then run on the same fits, so that both
see the same errors. Trees and networks have settings that take a tenth of the time, unless ``--default`` is given.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import orthocal as oc
from emulators import BOREHOLE, borehole, friedman, table_of
from orthocal.emulators.base import EMULATORS
from orthocal.emulators.race import Raced, _decided, raced, split

X = np.linspace(0, 1, 15)[:, None]
UNIT = dict.fromkeys("ab", (0.0, 1.0))
QUICK = {
    "gp": oc.emulators.GP(),
    "bart": oc.emulators.BART(trees=50, draws=100, burn=200, thin=1),
    "bmars": oc.emulators.BMARS(draws=200, burn=200),
    "forest": oc.emulators.Forest(trees=50),
    "mlp": oc.emulators.MLP(layers=(32,), iterations=300),
}


def steps(x, theta):
    """A simulator with regimes: constant between thresholds."""
    return np.floor(3 * theta[0] + x[:, 0]) + np.floor(4 * theta[1])


def kink(x, theta):
    return np.abs(x[:, 0] - theta[0]) + np.maximum(theta[1] - 0.4, 0.0)


def wave(x, theta):
    return np.sin(9 * x[:, 0] + 2 * theta[0]) + theta[1] * x[:, 0]


def decay(x, theta):
    return np.exp(-3 * theta[0] * x[:, 0]) * np.cos(12 * theta[1] * x[:, 0])


def linear(x, theta):
    return x[:, 0] * (theta @ np.arange(1, len(theta) + 1)) + theta[0]


def noisy(function: Callable[..., np.ndarray], sd: float, replicates: int = 1) -> Callable[[int], oc.RunTable]:
    def made(s: int) -> oc.RunTable:
        runs = table_of(function, X, UNIT, s)
        rng = np.random.default_rng(s)
        theta = np.repeat(runs.theta, replicates, axis=0)
        output = np.repeat(np.asarray(runs.output), replicates, axis=0)
        return oc.RunTable(theta, output + sd * rng.standard_normal(output.shape), X)

    return made


def tables() -> dict[str, oc.RunTable]:
    four, eight = dict.fromkeys("abcd", (0.0, 1.0)), dict.fromkeys("abcdefgh", (0.0, 1.0))
    hole = {name: ends for name, ends in BOREHOLE.items() if name != "r_w"}
    radius = np.linspace(*BOREHOLE["r_w"], 10)[:, None]
    return {
        "Friedman, 30": table_of(friedman, X, four, 30),
        "Friedman, 60": table_of(friedman, X, four, 60),
        "Friedman, 120": table_of(friedman, X, four, 120),
        "borehole, 40": table_of(borehole, radius, hole, 40),
        "borehole, 100": table_of(borehole, radius, hole, 100),
        "steps, 60": table_of(steps, X, UNIT, 60),
        "steps, 150": table_of(steps, X, UNIT, 150),
        "kink, 50": table_of(kink, X, UNIT, 50),
        "wave, 25": table_of(wave, X, UNIT, 25),
        "damped wave, 80": table_of(decay, X, UNIT, 80),
        "linear in 8, 60": table_of(linear, X, eight, 60),
        "noisy wave, 60": noisy(wave, 0.3)(60),
        "noisy wave, 40 x 3": noisy(wave, 0.3, 3)(40),
        "steps and noise, 100": noisy(steps, 0.3)(100),
    }


def race_of(whole: Raced) -> Raced:
    """What the race would have made of the same fits."""
    found = whole._replace(parts={label: [] for label in whole.parts}, dropped={})
    for part in range(len(next(iter(whole.parts.values())))):
        for label, parts in whole.parts.items():
            if label not in found.dropped:
                found.parts[label].append(parts[part])
        if _decided(found):
            break
    return found


def error(found: Raced, label: str, spread: np.ndarray) -> float:
    squares = [
        np.mean(((one.prediction - one.truth) / spread) ** 2, axis=0) * len(one.truth) for one in found.parts[label]
    ]
    return float(np.sqrt(np.mean(sum(squares) / sum(len(one.truth) for one in found.parts[label]))))


def main() -> None:
    emulators = {name: name for name in EMULATORS} if "--default" in sys.argv else QUICK
    alike, fits, seconds = 0, [0, 0], [0.0, 0.0]
    for title, runs in tables().items():
        whole = raced(runs, emulators, split(runs, None, 0), False, 1)
        found = race_of(whole)
        errors = {label: error(whole, label, whole.spread) for label in whole.parts}
        best = min(errors, key=lambda label: errors[label])
        left = [label for label in found.parts if label not in found.dropped]
        chosen = min(left, key=lambda label: error(found, label, found.spread))
        alike += chosen == best
        for k, one in enumerate((found, whole)):
            fits[k] += sum(map(len, one.parts.values()))
            seconds[k] += sum(part.fit_seconds for parts in one.parts.values() for part in parts)
        share = sum(map(len, found.parts.values())) / sum(map(len, whole.parts.values()))
        worse = errors[chosen] / errors[best]
        words = ", ".join(f"{label} {value:.2g}" for label, value in sorted(errors.items(), key=lambda pair: pair[1]))
        print(
            f"{title:22s} whole {best:6s} race {chosen:6s} ({worse:.2f} of its error), {share:.0%} of the fits: {words}"
        )
        sys.stdout.flush()
    print(
        f"the same choice for {alike} of {len(tables())} tables, {fits[0] / fits[1]:.0%} of the fits, "
        f"{seconds[0] / seconds[1]:.0%} of their seconds"
    )


if __name__ == "__main__":
    main()
