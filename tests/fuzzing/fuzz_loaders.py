"""Every loader of the package on files that were changed at random: errors in words, or the numbers that the file says.

``python tests/fuzzing/fuzz_loaders.py --cases 20000 --seed 1`` prints a table, one row a loader, each in a process of
its own; ``--only store`` runs those whose name has the word. A case is made from (seed, number of the case) alone.
"""

import argparse
import csv
import io
import json
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from fuzz_inputs import changed_bytes, changed_text
from scipy import stats

import orthocal as oc
from orthocal.errors import OrthocalError

#: seconds after which a loader hangs
PATIENCE = 10.0


class Loader(NamedTuple):
    """A loader: what writes a good file, what reads it, and whether what was read is what the file says.

    ``true(content, read, before)`` has the bytes of the changed file, what was read of it, and of the good one.
    """

    name: str
    write: Callable[[Path], Path]
    read: Callable[[Path], Any]
    change: Callable[[bytes, np.random.Generator], bytes]
    true: Callable[[bytes, Any, Any], bool]


class Tally(NamedTuple):
    """What became of the cases; ``wrong`` and ``raised`` are the numbers of cases, with the error."""

    cases: int
    refused: int
    loaded: int
    wrong: list[int]
    raised: list[tuple[int, str]]
    slow: list[int]
    longest: float


def fuzzed(loader: Loader, cases: range, seed: int, folder: Path) -> Tally:
    """Run the cases."""
    path = loader.write(folder)
    good = path.read_bytes()
    before = loader.read(path)
    refused, loaded, longest = 0, 0, 0.0
    wrong: list[int] = []
    raised: list[tuple[int, str]] = []
    slow: list[int] = []
    for case in cases:
        content = loader.change(good, np.random.default_rng([seed, case]))
        path.write_bytes(content)
        started = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read = _in_time(loader.read, path)
            loaded += 1
            if not loader.true(content, read, before):
                wrong.append(case)
        except OrthocalError as error:
            refused += 1
            # a sentence can be printed
            str(error).encode()
            if len(str(error)) > 5000:
                raised.append((case, f"a message of {len(str(error))} letters"))
        except TimeoutError:
            slow.append(case)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            raised.append(
                (case, f"{type(error).__name__}: {str(error)[:80]} ({Path(place.filename).name}:{place.lineno})")
            )
        longest = max(longest, time.perf_counter() - started)
    path.write_bytes(good)
    return Tally(len(cases), refused, loaded, wrong, raised, slow, longest)


def _in_time(read, path):
    def stop(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return read(path)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# --- what a file says, read without the package

_DECIMAL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOTHING = {"", "nan", "na", "n/a", "null", "none", "<na>", "#n/a", "#na", "-nan", "#n/a n/a"}
_NOTHING |= {"1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}


def said(text: str) -> float:
    """The number that a cell says; infinity where it says none, which nothing equals that a loader may return."""
    text = text.strip()
    if text.lower() in _NOTHING:
        return np.nan
    return float(text) if _DECIMAL.fullmatch(text) or text.lower().lstrip("+-") in ("inf", "infinity") else np.inf


def said_columns(content: bytes, separator: str = ",", comments: bool = False) -> dict[str, list[float]] | None:
    """Name -> numbers of a table; None where a row does not fit the header."""
    lines = io.StringIO(content.decode("utf-8-sig"), newline="").readlines()
    while comments and lines and lines[0].startswith("#"):
        lines.pop(0)
    rows = [
        row
        for row in csv.reader(lines, delimiter=separator, skipinitialspace=True)
        if any(map(str.strip, row)) or len(row) > 1
    ]
    names = [name.strip() for name in rows[0]]
    if any(len(row) != len(names) for row in rows):
        return None
    return {name: [said(row[j]) for row in rows[1:]] for j, name in enumerate(names)}


def columns_are_said(content: bytes, read: dict[str, Any], before: Any, separator: str = ",") -> bool:
    """Whether every column that was read is what the text says."""
    found = said_columns(content, separator, comments=True)
    return found is not None and all(
        name in found and np.array_equal(np.asarray(values, dtype=float), found[name], equal_nan=True)
        for name, values in read.items()
    )


def settings_are_said(content: bytes, read: dict[str, Any], before: Any) -> bool:
    """Whether every setting of a TOML file became what it says."""

    def same(given: Any, got: Any) -> bool:
        if isinstance(given, dict):
            return isinstance(got, dict) and all(name in got and same(one, got[name]) for name, one in given.items())
        if isinstance(given, list):
            return len(given) == len(got) and all(map(same, given, got))
        if isinstance(got, list | tuple) and len(got) == 1 and not isinstance(given, list):
            return same(given, got[0])
        if isinstance(given, bool) or isinstance(got, bool):
            return given is got
        if isinstance(got, int | float):
            return float(given) == got or (np.isnan(float(given)) and np.isnan(got))
        return isinstance(got, str | list) or given == got

    return same(tomllib.loads(content.decode("utf-8-sig")), read)


def unchanged(content: bytes, read: Any, before: Any) -> bool:
    """What has checksums is refused, or it is what was written."""
    return _plain(read) == _plain(before)


def anything(content: bytes, read: Any, before: Any) -> bool:
    """Of files that no checksum protects, and whose numbers are bytes: any change is a number as well."""
    return True


def _plain(value: Any) -> Any:
    """To compare, NaN with NaN as well."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tobytes())
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return repr(value)


# --- the loaders

PROBLEM = """constraint = "a < 5"

[data]
file = "field.csv"
x = ["x"]
y = ["y"]
groups = "g"

[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "norm", loc = 0.5, scale = 2 }
"b, c" = { distribution = "multivariate_normal", mean = [0, 1], cov = [[1, 0.3], [0.3, 2]] }

[domain]
lower = 0
upper = [1.0]
nodes = 20

[noise]
cov = 0.04

[method]
name = "gp"
nu = 1.5

[sampling]
draws = 100
chains = 2
seed = 3

[compare]
methods = ["gp", "none"]
folds = 2
"""
CAMPAIGN = """[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "uniform", loc = 0, scale = 2 }
b = { distribution = "norm", loc = 0, scale = 1.5 }

[design]
kind = "sobol"
n = 8
seed = 1
bounds = { b = [-2.0, 2] }

[x]
file = "field.csv"
columns = ["x"]

[run]
store = "runs.db"
timeout = 5.5
retries = 2

[units]
a = "m/s"
"""
GALAXY = """title = "NGC 1"
kinematics = "k.fits"
distance = 16.5
inclination = 88
theta0 = [8.0, 3.5, 0.2]
psf = 0.6
methods = ["gp", "ogp"]
draws = 100
seed = 4

[priors]
ml = [2.0, 5]
f_dm = [0.0, 0.4]
"""
EXPERIMENTS = """weights = { one = 1, "the other" = 2.5 }

[private.b]
pooled = true
mean = { distribution = "norm", loc = 0, scale = 5 }
sd = { distribution = "halfnorm", scale = 2 }

[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "norm", loc = 0.5, scale = 2 }
b = { distribution = "norm", loc = 0, scale = 1.5 }

[data]
x = "x"
y = "y"

[domain]
lower = 0
upper = 1
nodes = 20

[experiments.one]
data = { file = "field.csv" }
noise = { cov = 0.04 }

[experiments."the other"]
data = { file = "field.csv" }
noise = { cov = 0.09 }
parameters = ["a", "b"]
"""
LABELLED = """private = ["b"]

[simulator]
function = "simulator.py:simulate"

[parameters]
a = { distribution = "norm", loc = 0.5, scale = 2 }
b = { distribution = "norm", loc = 0, scale = 1.5 }

[data]
file = "field.csv"
x = "x"
y = "y"
experiment = "label"

[domain]
lower = 0
upper = 1
nodes = 20

[noise]
cov = 0.04

[experiments.b]
noise = { cov = 0.09 }
"""
SIMULATOR = "def simulate(x, theta):\n    return theta[0] * x[:, 0] + theta[-1]\n"


def _field(folder: Path) -> Path:
    rng = np.random.default_rng(7)
    rows = [f"{x!r},{y!r},{i % 3},{'ab'[i % 2]}" for i, (x, y) in enumerate(rng.random((12, 2)).tolist())]
    (folder / "field.csv").write_text("x, y ,g,label\n" + "\n".join(rows) + "\n")
    return folder / "field.csv"


def _parquet_field(folder: Path) -> Path:
    import pyarrow
    from pyarrow import parquet

    rng = np.random.default_rng(7)
    columns = {"x": rng.random(40), "y": [None, *rng.random(39)], "g": np.arange(40) % 3, "label": ["a", "b"] * 20}
    parquet.write_table(pyarrow.table(columns), folder / "field.parquet", write_page_checksum=True)
    return folder / "field.parquet"


def _read_parquet(path: Path) -> Any:
    from orthocal.config.tables import TableSection, columns_of, labels_of, read_table

    table = read_table(path, TableSection())
    return {**columns_of(table, ["x", "y"]), "g": labels_of(table, "g"), "label": labels_of(table, "label")}


def _toml(text: str, name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        _field(folder)
        (folder / "simulator.py").write_text(SIMULATOR)
        (folder / name).write_text(text)
        return folder / name

    return write


def _read_problem(path: Path) -> Any:
    from orthocal.config.problem_file import build_method, build_problem, read_problem_file

    config = read_problem_file(path)
    build_problem(config, path.parent)
    build_method(config.method, config.loss)
    return config.model_dump()


def _read_experiments(path: Path) -> Any:
    from orthocal.config.experiments_file import build_any, read_any_file

    config = read_any_file(path)
    build_any(config, path)
    return config.model_dump()


def _read_campaign(path: Path) -> Any:
    from orthocal.config.campaign_file import build_campaign, read_campaign_file

    config = read_campaign_file(path)
    build_campaign(config, path.parent)
    return config.model_dump()


def _read_galaxy(path: Path) -> Any:
    from orthocal_galaxy.galaxy_config import settings_from

    return settings_from(path, {}).model_dump()


def _read_field(path: Path) -> Any:
    from orthocal.config.tables import TableSection, columns_of, labels_of, read_table

    table = read_table(path, TableSection())
    labels_of(table, "label")
    read = columns_of(table, ["x", "y"])
    return {name: read[name].to_numpy() for name in read}


def _runs(own: bool = True) -> oc.RunTable:
    rng = np.random.default_rng(8)
    theta, x = rng.normal(size=(5, 2)), rng.random((3, 1))
    output = rng.normal(size=(5, 3, 2))
    output[1, 2, 0] = np.nan
    return oc.RunTable(theta, output, x, ["a", "b"], ["t"], ["u", "v"], {"a": "m/s"})


def _table(runs: oc.RunTable) -> dict[str, Any]:
    names = (runs.parameter_names, runs.input_names, runs.outcome_names)
    return {"theta": runs.theta, "x": runs.x, "output": runs.output, "names": names, "units": runs.units}


def _foreign_runs(folder: Path) -> Path:
    _runs().to_frame().to_csv(folder / "theirs.csv", index=False)
    return folder / "theirs.csv"


def _read_foreign_runs(path: Path) -> Any:
    return _set_of_rows(oc.RunTable.load(path, ["a", "b"], ["t"], ["u", "v"]).to_frame())


def _set_of_rows(rows: pd.DataFrame) -> dict[str, Any]:
    """Columns of the rows with an outcome, sorted: those of a run are together once they are read.

    A row that a run lacks is read as one without outcomes.
    """
    rows = rows[rows[["u", "v"]].notna().any(axis=1)]
    return {name: np.sort(rows[name].to_numpy(dtype=float)) for name in ("a", "b", "t", "u", "v")}


def _foreign_is_said(content: bytes, read: dict[str, Any], before: Any) -> bool:
    found = said_columns(content, comments=True)
    if found is None:
        return False
    said = _set_of_rows(pd.DataFrame(found))
    return all(np.array_equal(said[name], read[name], equal_nan=True) for name in read)


def _wide_runs(folder: Path) -> Path:
    """One row a run, the points in the header."""
    runs, places = _runs(), [(j, k) for k in range(2) for j in range(3)]
    x = np.ravel(runs.x).tolist()
    header = ["id", "a", "b", *(f"{'uv'[k]}[t={x[j]!r}]" for j, k in places)]
    rows = [
        [str(i), *map(repr, theta), *("" if np.isnan(output[j, k]) else repr(float(output[j, k])) for j, k in places)]
        for i, (theta, output) in enumerate(zip(runs.theta.tolist(), runs.output, strict=True))
    ]
    (folder / "wide.csv").write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    return folder / "wide.csv"


def _read_wide_runs(path: Path) -> Any:
    return _table(oc.RunTable.load(path, ["a", "b"], ["t"], ["u", "v"]))


_ANY_DECIMAL = re.compile(_DECIMAL.pattern)


def _wide_is_said(content: bytes, read: dict[str, Any], before: Any) -> bool:
    """The parameters as their columns say; numbers of the output and points that are in the table and its header."""
    found = said_columns(content, comments=True)
    if found is None:
        return False
    theta, output = read["theta"], np.asarray(read["output"])
    if any(not np.array_equal(np.sort(theta[:, j]), np.sort(found[name])) for j, name in enumerate("ab")):
        return False
    there = Counter(value for name, column in found.items() if name not in ("a", "b") for value in column)
    header = {float(one.group()) for name in found for one in _ANY_DECIMAL.finditer(name)}
    return not Counter(output[np.isfinite(output)].tolist()) - there and set(np.ravel(read["x"]).tolist()) <= header


def _parquet_runs(folder: Path) -> Path:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.Table.from_pandas(_runs().to_frame(), preserve_index=False)
    parquet.write_table(table, folder / "runs.parquet", write_page_checksum=True)
    return folder / "runs.parquet"


def _posterior(folder: Path) -> Path:
    from scipy import stats

    rng = np.random.default_rng(9)
    x = np.linspace(0, 1, 8)
    problem = oc.Problem(
        x, x + 0.1 * rng.normal(size=8), lambda x, t: t[0] * x[:, 0], {"a": stats.norm(0, 1)}, noise_cov=0.01
    )
    oc.calibrate(problem, "none", draws=8, chains=1, warmup=4, seed=1, progress=False).save(folder / "fit.nc")
    return folder / "fit.nc"


def _read_posterior(path: Path) -> Any:
    tree = oc.load(path).data
    values = {
        (node.path, str(name)): np.asarray(one.values) for node in tree.subtree for name, one in node.variables.items()
    }
    return {str(key): value for key, value in values.items() if value.dtype.kind != "O"} | {"attrs": dict(tree.attrs)}


def _store(folder: Path) -> Path:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(10)

    def simulate(x, theta):
        if theta[0] > 1.5:
            raise ValueError("no")
        return np.column_stack([theta[0] * x[:, 0], theta[1] + x[:, 0]])

    from concurrent.futures import ThreadPoolExecutor

    design, x = rng.normal(size=(12, 2)), np.linspace(0, 1, 5)[:, None]
    design[3, 0] = 2.0
    with ThreadPoolExecutor(1) as executor:
        oc.campaign(simulate, design, x, store=folder / "runs.db", executor=executor, retries=0, progress=False)
    return folder / "runs.db"


def _old_store(folder: Path) -> Path:
    """As version 1 wrote it: without checksums."""
    path = _store(folder)
    with sqlite3.connect(path) as store:
        for column in ("campaign DROP COLUMN runs", "campaign DROP COLUMN checksum", "runs DROP COLUMN checksum"):
            store.execute(f"ALTER TABLE {column}")
        store.execute("PRAGMA user_version = 1")
    store.close()
    return path


def _read_store(path: Path) -> Any:
    from orthocal.runs.store import RunStore

    with RunStore(path) as store:
        return _table(store.table()), store.status()[:3]


def _study(folder: Path) -> Path:
    from orthocal_studies.replicate import Row, Task
    from orthocal_studies.results import Results, Settings

    with Results(folder) as results:
        results.set_settings("one", Settings(1, 40, 8, ("gp", "none")))
        for i in range(16):
            task = Task("module:one", ("gp", "none")[i % 2], i // 2 + 1, 1, 40)
            row = Row(
                column=task.column,
                replication=task.replication,
                parameters={"theta": {"mean": i / 7, "sd": 0.1 + i, "lower": -1.0, "upper": 2.0}},
                cpu_seconds=1.5,
                wall_seconds=2.5,
                error="failed" if i == 5 else None,
                traceback=None,
            )
            results.add("one", task, row, "a machine", 0.5)
    return folder / "results.db"


def _read_study(path: Path) -> Any:
    from orthocal_studies.results import Results

    with Results(path.parent) as results:
        return results.settings("one"), results.rows("one"), results.work("one")


def _short_run(path: Path) -> oc.Posterior:
    x = np.linspace(0, 1, 8)
    problem = oc.Problem(x, 2 * x + 0.1 * np.cos(20 * x), _line, {"a": stats.norm(1, 2)}, noise_cov=0.01, starts=2)
    method = oc.methods.NoBias(kernel=oc.kernels.AdaptiveMetropolis())
    return oc.calibrate(problem, method, draws=8, warmup=30, chains=2, seed=5, progress=False, checkpoint=path)


def _line(x: Any, theta: Any) -> Any:
    return theta[0] * x


def _checkpoint(folder: Path) -> Path:
    from orthocal.execution.checkpoints.checkpoint_file import CheckpointFile

    def offered(self: Any, loop: Any, iteration: int, state: Any, draws: Any) -> None:
        if iteration == 33:
            self._write(loop, iteration, state, draws)
            raise KeyboardInterrupt

    plain, CheckpointFile.offered = CheckpointFile.offered, offered  # type: ignore[method-assign]
    try:
        _short_run(folder / "fit.ckpt")
    except KeyboardInterrupt:
        return folder / "fit.ckpt"
    finally:
        CheckpointFile.offered = plain  # type: ignore[method-assign]
    raise AssertionError("it was not ended")


def _read_checkpoint(path: Path) -> Any:
    """What the run becomes that goes on from there: a run that is over removes its checkpoint."""
    for one in path.parent.glob("copy.ckpt*"):
        one.unlink()
    copied = path.with_name("copy.ckpt")
    copied.write_bytes(path.read_bytes())
    return _short_run(copied).theta


def _npz(folder: Path) -> Path:
    rng = np.random.default_rng(11)
    n, s = 6, 5
    np.savez(
        folder / "runs.npz",
        theta=rng.random((s, 3)),
        output=rng.random((s, n, 4)),
        x=rng.random((n, 2)),
        y=rng.random((n, 4)),
        y_err=rng.random((n, 4)) + 0.1,
        theta_names=["ml", "log10_mbh", "f_dm"],
    )
    return folder / "runs.npz"


def _read_npz(path: Path) -> Any:
    from orthocal_galaxy.fit.data import table_data

    data = table_data(path, ranges={"log10_mbh": (6.0, 10.0), "ml": (1.0, 8.0), "f_dm": (0.0, 0.5)})
    return _table(data.runs), data.kinematics.values, data.kinematics.errors


MOMENTS = ("v", "sigma", "h3", "h4")


def _ecsv(folder: Path) -> Path:
    names = ["vbin_id", *(f"{d}{name}" for name in MOMENTS for d in ("", "d"))]
    rng = np.random.default_rng(12)
    lines = ["# %ECSV 1.0", "# ---", "# datatype:", *(f"# - {{name: {name}, datatype: float64}}" for name in names)]
    rows = [" ".join([str(i + 1), *map(repr, (rng.random(8) + 0.5).tolist())]) for i in range(4)]
    (folder / "aperture.dat").write_text("#counter\n -1.0 -1.0\n 2.0 2.0\n 0.0\n 2 2\n")
    (folder / "bins.dat").write_text("#counter\n 4\n 1 2 3 4\n")
    (folder / "gh.ecsv").write_text("\n".join([*lines, " ".join(names), *rows]) + "\n")
    return folder / "gh.ecsv"


def _read_ecsv(path: Path) -> Any:
    from orthocal_galaxy.dynamite import read_dynamite

    read = read_dynamite(path)
    return {name: read.values[:, j] for j, name in enumerate(MOMENTS)}


def _ecsv_is_said(content: bytes, read: dict[str, Any], before: Any) -> bool:
    lines = [line for line in content.decode().splitlines() if not line.startswith("#") and line.strip()]
    comma = b"delimiter: ," in content
    rows = list(csv.reader(lines, delimiter="," if comma else " ", skipinitialspace=True))
    order = np.argsort([float(row[rows[0].index("vbin_id")]) for row in rows[1:]], kind="stable")
    for name in MOMENTS:
        cells = [rows[1:][i][rows[0].index(name)] for i in order]
        # a flagged cell is missing
        if any(np.isfinite(got) and got != said(cell) for got, cell in zip(read[name], cells, strict=False)):
            return False
    return True


def _models(folder: Path) -> Path:
    names = ["ml", "m-bh", "chi2", "all_done", "directory"]
    lines = ["# %ECSV 1.0", "# ---", "# datatype:", *(f"# - {{name: {name}, datatype: float64}}" for name in names)]
    rows = [f"{1.5 + i} {8 + i / 3!r} {i * 1.25} True models/{i}/" for i in range(4)]
    (folder / "all_models.ecsv").write_text("\n".join([*lines, " ".join(names), *rows]) + "\n")
    return folder / "all_models.ecsv"


def _read_models(path: Path) -> Any:
    from orthocal_galaxy.dynamite import read_dynamite_models

    theta = read_dynamite_models(path, ["ml", "m-bh"]).theta
    return {name: theta[name].to_numpy() for name in theta}


def _models_are_said(content: bytes, read: dict[str, Any], before: Any) -> bool:
    lines = [line for line in content.decode().splitlines() if not line.startswith("#") and line.strip()]
    rows = list(csv.reader(lines, delimiter="," if b"delimiter: ," in content else " ", skipinitialspace=True))
    return all(
        np.array_equal([said(row[rows[0].index(name)]) for row in rows[1:]], values, equal_nan=True)
        for name, values in read.items()
    )


def _fits(folder: Path) -> Path:
    from astropy.io import fits

    n = 25
    x, y = (axis.ravel() for axis in np.meshgrid(*2 * [0.8 * (np.arange(5) - 2)], indexing="ij"))
    names = ("VPXF", "SPXF", "H3PXF", "H4PXF", "EVPXF", "ESPXF", "EH3PXF", "EH4PXF", "FLUX", "BINSIZE")
    values = [
        1700 + 50 * x,
        120 - x**2,
        -x / 100,
        0.02 + 0 * x,
        *(np.full(n, e) for e in (2.0, 3.0, 0.01, 0.02, 1.0, 1.0)),
    ]
    columns = dict(zip(("XS", "YS", *names), (x, y, *values), strict=True))
    table = fits.BinTableHDU.from_columns([fits.Column(name, "D", array=value) for name, value in columns.items()])
    fits.HDUList([fits.PrimaryHDU(), table]).writeto(folder / "k.fits", checksum=True, overwrite=True)
    return folder / "k.fits"


def _read_fits(path: Path) -> Any:
    from orthocal_galaxy.readers import read_atlas3d

    read = read_atlas3d(path)
    return read.x, read.y, read.values, read.errors, read.flux, read.pixels


def _light(folder: Path) -> Path:
    (folder / "light.csv").write_text("surface_brightness,sd,axis_ratio\n1000.5,1.25,0.6\n200.25,5.5,0.7\n")
    return folder / "light.csv"


def _read_light(path: Path) -> Any:
    from orthocal_galaxy.fit.prepare import _given_light
    from orthocal_galaxy.galaxy_config import GalaxyFile

    found = _given_light(GalaxyFile(light=str(path)))
    assert found is not None
    return {"surface_brightness": found.surface_brightness, "sd": found.sd, "axis_ratio": found.axis_ratio}


def _output(name: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        values = np.random.default_rng(13).random((3, 2))
        if name.endswith(".npy"):
            np.save(folder / name, values)
        else:
            mark = "," if name.endswith(".csv") else " "
            header = ["u,v"] if mark == "," else []
            (folder / name).write_text(
                "\n".join([*header, *(mark.join(map(repr, row)) for row in values.tolist())]) + "\n"
            )
        (folder / "stderr.txt").write_text("")
        return folder / name

    return write


def _read_output(path: Path) -> Any:
    from orthocal.execution.program import _read

    values = _read(path, ["u", "v"] if path.suffix == ".csv" else None, ["x"], 3, path.parent)
    return {"u": values[:, 0], "v": values[:, 1]} if path.suffix == ".csv" else values


def _stages(folder: Path) -> Path:
    from orthocal_galaxy.stages import Stages

    Stages(folder).there("runs.db", {"runs": 5, "seed": 1.5, "name": "a"})
    return folder / "settings.json"


def _read_stages(path: Path) -> Any:
    from orthocal_galaxy.stages import Stages

    (path.parent / "runs.db").write_text("")
    Stages(path.parent).there("runs.db", {"runs": 5, "seed": 1.5, "name": "a"})
    return json.loads(path.read_text(encoding="utf-8"))["runs.db"] == {"runs": 5, "seed": 1.5, "name": "a"}


LOADERS = (
    Loader("TOML problem", _toml(PROBLEM, "problem.toml"), _read_problem, changed_text, settings_are_said),
    Loader("TOML campaign", _toml(CAMPAIGN, "campaign.toml"), _read_campaign, changed_text, settings_are_said),
    Loader("TOML experiments", _toml(EXPERIMENTS, "all.toml"), _read_experiments, changed_text, settings_are_said),
    Loader("TOML labelled data", _toml(LABELLED, "all.toml"), _read_experiments, changed_text, settings_are_said),
    Loader("TOML galaxy", _toml(GALAXY, "galaxy.toml"), _read_galaxy, changed_text, settings_are_said),
    Loader("CSV field data", _field, _read_field, changed_text, columns_are_said),
    Loader("Parquet field data", _parquet_field, _read_parquet, changed_bytes, anything),
    Loader("CSV runs, theirs", _foreign_runs, _read_foreign_runs, changed_text, _foreign_is_said),
    Loader("CSV runs, wide", _wide_runs, _read_wide_runs, changed_text, _wide_is_said),
    Loader("Parquet runs", _parquet_runs, _read_foreign_runs, changed_bytes, anything),
    Loader(
        "CSV runs, saved",
        lambda folder: _runs().save(folder / "runs.csv"),
        lambda path: _table(oc.RunTable.load(path)),
        changed_text,
        unchanged,
    ),
    Loader("CSV program output", _output("output.csv"), _read_output, changed_text, columns_are_said),
    Loader("CSV light", _light, _read_light, changed_text, columns_are_said),
    Loader("text program output", _output("output.txt"), _read_output, changed_text, anything),
    Loader("npy program output", _output("output.npy"), _read_output, changed_bytes, anything),
    Loader("netCDF posterior", _posterior, _read_posterior, changed_bytes, unchanged),
    Loader(
        "netCDF runs",
        lambda folder: _runs().save(folder / "runs.nc"),
        lambda path: _table(oc.RunTable.load(path)),
        changed_bytes,
        unchanged,
    ),
    Loader("store of runs", _store, _read_store, changed_bytes, unchanged),
    Loader("store of version 1", _old_store, _read_store, changed_bytes, anything),
    Loader("store of a study", _study, _read_study, changed_bytes, unchanged),
    Loader("checkpoint", _checkpoint, _read_checkpoint, changed_bytes, unchanged),
    Loader("npz runs", _npz, _read_npz, changed_bytes, unchanged),
    Loader("ECSV kinematics", _ecsv, _read_ecsv, changed_text, _ecsv_is_said),
    Loader("ECSV models", _models, _read_models, changed_text, _models_are_said),
    Loader("FITS kinematics", _fits, _read_fits, changed_bytes, unchanged),
    Loader("JSON of stages", _stages, _read_stages, changed_text, anything),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--here", action="store_true", help="in this process, as JSON")
    given = parser.parse_args()
    cases = range(given.first, given.first + given.cases)
    chosen = [one for one in LOADERS if given.only in one.name]
    if given.here:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(fuzzed(chosen[0], cases, given.seed, Path(folder)), default=str))
        return
    words = ("cases", "refused", "loaded", "wrong", "raised", "> 10 s", "longest")
    print(" ".join([f"{'loader':22}", *(f"{word:>8}" for word in words)]))
    for one in chosen:
        command = [sys.executable, __file__, *sys.argv[1:], "--here", "--only", one.name]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{one.name:22} the process died with {done.returncode}: {done.stderr[-500:]}")
            continue
        tally = Tally(*json.loads(done.stdout.splitlines()[-1]))
        counts = (tally.cases, tally.refused, tally.loaded, *map(len, (tally.wrong, tally.raised, tally.slow)))
        print(" ".join([f"{one.name:22}", *(f"{count:8}" for count in counts), f"{tally.longest:7.2f}s"]), flush=True)
        named = [*tally.raised[:8], *(("wrong", case) for case in tally.wrong[:5]), *(("slow", c) for c in tally.slow)]
        for line in named:
            print("   ", *line, flush=True)


if __name__ == "__main__":
    main()
