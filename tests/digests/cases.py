"""What the library computes, as digests: every method, prior, kernel, projection, emulator, a campaign and a study.

Only public names are used, so that the same cases run on any tree that has them. Everything has a fixed seed and is
as small as it can be and still warm up, adapt and predict: a digest shows that numbers changed, not that they are
right.

    python tests/digests/cases.py            compare with recorded.json, name what differs
    python tests/digests/cases.py --write    record the digests of this tree
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

import orthocal as oc

RECORDED = Path(__file__).with_name("recorded.json")
PRIORS = {
    "gp": oc.bias.GP(),
    "gp-fixed": oc.bias.GP(nu=2.5, sd=1.0, lengthscale=0.5),
    "bart": oc.bias.BART(trees=20),
    "softbart": oc.bias.SoftBART(trees=5),
    "bmars": oc.bias.BMARS(),
    "bnn": oc.bias.BNN(),
}
KERNELS = {
    "laplace": oc.kernels.Laplace(),
    "adaptive": oc.kernels.AdaptiveMetropolis(),
    "slice": oc.kernels.Slice(),
    "hmc": oc.kernels.HMC(),
}
LOSSES = {
    "absolute": oc.methods.Joint(loss="absolute"),
    "huber": oc.methods.Joint(loss=oc.losses.Huber(2.0)),
    "own": oc.methods.Joint(loss=lambda residual, weights: weights @ np.sum(np.abs(residual) ** 1.5, axis=1)),
    "sampled hyperparameters": oc.methods.Joint(oc.bias.GP()),
}
RIVALS = {
    "ko": oc.methods.KO(),
    "ko-given": oc.methods.KO(1.5, 1.0, 0.5),
    "ogp": oc.methods.OGP(),
    "sgasp": oc.methods.SGaSP(),
    "pcal": oc.methods.PCAL(),
    "none": oc.methods.NoBias(),
}
EMULATORS = {
    "gp": oc.emulators.GP(),
    "bart": oc.emulators.BART(trees=20, draws=30, burn=30),
    "bmars": oc.emulators.BMARS(),
    "forest": oc.emulators.Forest(trees=5),
    "mlp": oc.emulators.MLP(layers=(5,)),
}


def fingerprint() -> dict[str, str]:
    """What rounding depends on: the digests of another fingerprint are not comparable."""
    import llvmlite.binding as llvm
    from threadpoolctl import threadpool_info

    libraries = ("numpy", "scipy", "numba", "scikit-learn", "xarray", "pandas")
    blas = sorted({str(one.get("architecture")) for one in threadpool_info() if one.get("user_api") == "blas"})
    return {
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()} {llvm.get_host_cpu_name()} {' '.join(blas)}",
        **{name: _version(name) for name in libraries},
    }


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "absent"


def one_outcome(**changes: Any) -> oc.Problem:
    rng = np.random.default_rng(1)
    x = rng.random(30)
    y = 4 * x + x * np.sin(5 * x) + 0.2 * rng.standard_normal(30)
    settings = {"domain": oc.Box(0, 1), "noise_cov": 0.04, **changes}
    # not "auto": JAX would take the gradient where another test has imported it
    simulator = oc.Simulator(lambda x, t: t[0] * x + 0.1 * t[1] ** 2, "difference")
    return oc.Problem(x, y, simulator, _priors(), **settings)


def two_outcomes(missing: bool = False, **changes: Any) -> oc.Problem:
    rng = np.random.default_rng(2)
    x = rng.random((25, 2))
    truth = np.column_stack([3 * x[:, 0] + np.sin(6 * x[:, 1]), 2 * x[:, 1] + x[:, 0] ** 2])
    cov = np.array([[0.04, 0.012], [0.012, 0.04]])
    y = truth + rng.standard_normal((25, 2)) @ np.linalg.cholesky(cov).T
    if missing:
        y[rng.random(25) < 0.2, 0] = np.nan
        y[3] = np.nan
    settings = {"domain": oc.Box(0, 1), "noise_cov": cov, **changes}
    return oc.Problem(x, y, oc.Simulator(_two, "difference"), _priors(), **settings)


def _two(x: Any, theta: Any) -> Any:
    return np.column_stack([theta[0] * x[:, 0] + theta[1], theta[1] * x[:, 1] + 0.1 * theta[0] ** 2])


def _priors() -> dict[str, Any]:
    return {"a": stats.norm(0, 10), "b": stats.uniform(0.1, 4)}


PROBLEMS: dict[str, Callable[[], oc.Problem]] = {
    "one": one_outcome,
    "one-estimated": lambda: one_outcome(noise_cov="estimate"),
    "one-sampled": lambda: one_outcome(noise_cov="sample"),
    "two": two_outcomes,
    "two-identity": lambda: two_outcomes(loss_weight="identity"),
    "two-missing": lambda: two_outcomes(missing=True),
    "two-missing-sampled": lambda: two_outcomes(missing=True, noise_cov="sample"),
    "two-errors": lambda: two_outcomes(y_err=np.linspace(0.1, 0.3, 50).reshape(25, 2), noise_cov="estimate"),
    "points": lambda: one_outcome(domain=oc.Points(np.linspace(0, 1, 12)[:, None], np.full(12, 1 / 12))),
}


def calibrations() -> Iterator[tuple[str, Callable[[], str]]]:
    """(name, digest) of every method, prior, kernel and projection on the problems that suit it."""

    def case(problem: str, name: str, method: Any) -> tuple[str, Callable[[], str]]:
        return f"{problem} {name}", lambda: posterior_digest(PROBLEMS[problem](), method)

    projected = oc.methods.Projected
    for name, prior in PRIORS.items():
        for problem in ("one", "one-sampled", "two-missing", "two-missing-sampled"):
            yield case(problem, f"projected {name}", projected(prior))
        yield case("one", f"finite {name}", projected(prior, projection="finite"))
        yield case("two-missing", f"finite {name}", projected(prior, projection="finite"))
        yield case("two", f"cut {name}", projected(prior, feedback=False))
    for name, prior in PRIORS.items():
        for problem in ("one", "two-missing", "two-missing-sampled"):
            yield case(problem, f"joint {name}", oc.methods.Joint(prior))
    for name, method in LOSSES.items():
        yield case("one", f"joint {name}", method)
        yield case("two", f"joint {name}", method)
    for name, kernel in KERNELS.items():
        for problem in ("one", "two-missing", "one-sampled"):
            yield case(problem, f"kernel {name}", projected(oc.bias.GP(), kernel=kernel))
    for name, method in RIVALS.items():
        for problem in ("one", "two", "two-missing"):
            yield case(problem, name, method)
    for problem in ("one-estimated", "two-identity", "two-errors", "points"):
        yield case(problem, "pgp", "pgp")
        yield case(problem, "ogp", "ogp")


#: groups that were parts of ``posterior``, and those that are drawn from what is recorded
MOVED, UNRECORDED = ("model", "bias", "projection"), ("prior", "log_prior", "posterior_predictive", "observed_data")


def posterior_digest(problem: oc.Problem, method: Any) -> str:
    posterior = oc.calibrate(problem, method, draws=20, warmup=55, chains=2, seed=3, progress=False)
    parts: dict[str, Any] = {"summary": posterior.summary()[["mean", "sd"]].to_numpy()}
    for group, node in posterior.data.children.items():
        for name, values in node.to_dataset().data_vars.items():
            if group not in UNRECORDED:
                parts[f"{'posterior' if group in MOVED else group}/{name}"] = values.values
    # as they were stored when the digests were recorded
    quantiles = parts.pop("constant_data/prior_quantiles")
    parts |= {f"prior/{name}": quantiles[None, :, j] for j, name in enumerate(problem.parameters.names)}
    parts["observed_data/y"] = problem.data.native_y
    d = problem.data.x.shape[1]
    x_new = np.random.default_rng(4).random((5, d))
    predicted = posterior.predict(x_new, draws=10, warn=False)
    for name in ("model", "bias", "mean", "observation"):
        parts[f"predict/{name}"] = predicted[name].values
    return digest(parts)


def runs(ragged: bool = False) -> oc.RunTable:
    theta = stats.qmc.Sobol(2, rng=np.random.default_rng(5)).random(32) * [2.0, 3.0] + [1.0, 0.5]
    x = np.linspace(0, 1, 8)
    if ragged:
        places = [x[: 5 + s % 4] + 0.01 * s for s in range(32)]
        output = [_curve(place, one) for place, one in zip(places, theta, strict=True)]
        return oc.RunTable(theta, output, places, ["a", "b"])
    return oc.RunTable(theta, np.stack([_curve(x, t) for t in theta]), x, ["a", "b"])


def _curve(x: Any, theta: Any) -> Any:
    return np.stack([theta[0] * x + np.sin(theta[1] * x), 0.1 * theta[1] * x**2], axis=-1)


def emulators() -> Iterator[tuple[str, Callable[[], str]]]:
    for name, emulator in EMULATORS.items():
        for ragged in (False, True):
            layout = "ragged" if ragged else "common"
            yield f"emulator {name} {layout}", lambda e=emulator, r=ragged: emulator_digest(runs(r), e)
        yield f"emulator {name} stacked", lambda e=emulator: emulator_digest(runs(), e, layout="stacked")
    yield "held-out", held_out
    yield "next runs", more_runs
    yield "calibration with an emulator", with_emulator


def emulator_digest(table: oc.RunTable, emulator: Any, **settings: Any) -> str:
    fitted = oc.emulate(table, emulator, progress=False, **settings)
    x, parts = np.linspace(0, 1, 8), {}
    for k, theta in enumerate(np.array([[1.7, 1.1], [2.4, 2.9]])):
        parts[f"mean {k}"], parts[f"gradient {k}"] = fitted(x, theta), fitted.gradient(x, theta)
        if fitted.has_variance:
            parts[f"variance {k}"] = fitted.variance(x, theta)
    return digest(parts)


def held_out() -> str:
    table = oc.compare_emulators(runs(), ["gp", "forest"], progress=False).table
    return digest({"errors": table.drop(columns=[c for c in table if "second" in c or c.endswith("_ms")]).to_csv()})


def emulated_problem() -> oc.Problem:
    rng = np.random.default_rng(6)
    x = np.linspace(0, 1, 8)
    y = _curve(x, np.array([2.0, 1.5])) + 0.05 * rng.standard_normal((8, 2))
    emulator = oc.emulate(runs(), "gp", progress=False)
    priors = {"a": stats.uniform(1, 2), "b": stats.uniform(0.5, 3)}
    return oc.Problem(x, y, emulator, priors, domain=oc.Box(0, 1), noise_cov=0.0025, emulator_error=True)


def more_runs() -> str:
    posterior = oc.calibrate(emulated_problem(), "pgp", draws=20, warmup=30, chains=2, seed=3, progress=False)
    return digest({"runs": np.asarray(oc.next_runs(posterior, runs(), 4, seed=1, progress=False))})


def with_emulator() -> str:
    return posterior_digest(emulated_problem(), "pgp")


def comparisons() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "compare", compared
    yield "compare outcomes", compared_outcomes


def compared() -> str:
    result = oc.compare(one_outcome(), ["pgp", "none"], folds=2, draws=20, warmup=55, seed=1, progress=False)
    means = {label: posterior.summary()[["mean", "sd"]].to_csv() for label, posterior in result.posteriors.items()}
    scores = {f"held out {label}": np.stack(result.held_out[label].with_bias) for label in means}
    return digest({**means, **scores})


def compared_outcomes() -> str:
    result = oc.compare_outcomes(two_outcomes(), "pgp", draws=20, warmup=55, seed=1, progress=False)
    return digest({"table": result.summary()[["mean", "sd", "width"]].to_csv()})


def campaigns() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "design", lambda: digest({"design": np.asarray(oc.design(_priors(), 16, seed=1))})
    yield "campaign", campaign


def campaign() -> str:
    design = oc.design({"a": stats.uniform(1, 2), "b": stats.uniform(0.5, 3)}, 8, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "runs.db"
        table = oc.campaign(_curve, design, np.linspace(0, 1, 5), store=store, jobs=2, progress=False)
        table.save(Path(folder) / "runs.nc")
        loaded = oc.RunTable.load(Path(folder) / "runs.nc")
        return digest({"theta": loaded.theta, "output": loaded.output, "x": loaded.x})


def studies() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "study table1", study


def study() -> str:
    """The rows of a study through its command line, without the times."""
    from typer.testing import CliRunner

    from orthocal.cli import app

    with tempfile.TemporaryDirectory() as folder:
        options = ["--replications", "2", "--draws", "40", "--methods", "pgp32,pcal,none", "--out", folder]
        result = CliRunner().invoke(app, ["study", "table1", *options])
        if result.exit_code:
            raise RuntimeError(result.output)
        (file,) = Path(folder).glob("*.csv")
        lines = file.read_text().splitlines()
        names = lines[0].split(",")
        keep = [k for k, name in enumerate(names) if "second" not in name and name != "machine"]
        return digest({"rows": "\n".join(",".join(line.split(",")[k] for k in keep) for line in lines)})


def galaxies() -> Iterator[tuple[str, Callable[[], str]]]:
    yield "galaxy", galaxy


def galaxy() -> str:
    from orthocal_galaxy import OrbitSettings, mock_galaxy

    few = OrbitSettings(energies=6, momenta=3, latitudes=2, samples=200, velocities=31)
    mock = mock_galaxy(few, nbin=20)
    return digest({"model": mock.model(mock.model.x, (8.6, 2.9, 0.22))})


def digest(parts: dict[str, Any]) -> str:
    """SHA-256 of arrays and texts, by name."""
    sha = hashlib.sha256()
    for name in sorted(parts):
        value = parts[name]
        sha.update(name.encode())
        if isinstance(value, str):
            sha.update(value.encode())
        else:
            array = np.ascontiguousarray(value)
            sha.update(f"{array.dtype.str} {array.shape}".encode())
            # NaN has many forms
            sha.update(np.where(np.isnan(array), np.nan, array).tobytes())
    return sha.hexdigest()[:16]


def all_cases() -> dict[str, Callable[[], str]]:
    families = (calibrations, emulators, comparisons, campaigns, studies, galaxies)
    return {name: case for family in families for name, case in family()}


def quietly(case: Callable[[], str]) -> str:
    """A digest, without the warnings that so short chains give."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return case()


def main() -> int:
    found = {name: quietly(case) for name, case in all_cases().items()}
    if "--write" in sys.argv:
        RECORDED.write_text(json.dumps({"fingerprint": fingerprint(), "digests": found}, indent=1) + "\n")
        print(f"{len(found)} digests recorded")
        return 0
    recorded = json.loads(RECORDED.read_text())
    if recorded["fingerprint"] != fingerprint():
        print(f"recorded with {recorded['fingerprint']}, this is {fingerprint()}")
    different = [name for name, value in found.items() if value != recorded["digests"].get(name)]
    print(*different, f"{len(different)} of {len(found)} differ", sep="\n")
    return bool(different)


if __name__ == "__main__":
    raise SystemExit(main())
