"""The figures of the examples' study: coverage and width by problem and method, estimates beside published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd

from orthocal.applications import Grid, with_error

from .base import MEASURED, Study
from .figure import coverage_interval
from .replicate import Row
from .tables import NONE


def example_figures(study: Study, rows: Sequence[Row]) -> pd.DataFrame:
    """One row a parameter and method that has a replication.

    ``mean``, ``scatter``, ``sd``, ``coverage``, ``cpu_seconds`` are of the simulated data sets: mean and standard
    deviation of the posterior means, mean posterior sd, share of 95 % intervals that hold theta*, median.
    ``with_problems`` is the number of data sets where ``check()`` found one, ``problems`` which, and how often.
    ``measured_...`` are of the measured field data.
    """
    found = []
    for j, parameter in enumerate(study.model.parameters):
        for column in study.columns:
            own = [row for row in rows if row["column"] == column.key]
            if own:
                star = study.theta_star(column)
                head = {"example": study.model.name, "parameter": parameter, "method": column.key}
                found.append(
                    {**head, "theta_star": star[j] if star else np.nan, **_simulated(own, parameter)}
                    | _measured(own, parameter)
                )
    return pd.DataFrame(found)


def _simulated(rows: list[Row], parameter: str) -> dict[str, object]:
    rows = [row for row in rows if row["replication"] != MEASURED]
    good = [row for row in rows if row["error"] is None]
    own = [row["parameters"][parameter] for row in good]
    mean, sd = (np.array([one[name] for one in own]) for name in ("mean", "sd"))
    problems = [row.get("problems") or [] for row in good]
    topics = Counter(topic for row in problems for topic in set(row))
    return {
        "replications": len(good),
        "failed": len(rows) - len(good),
        "error": next((row["error"] for row in rows if row["error"] is not None), ""),
        "mean": mean.mean() if own else np.nan,
        "scatter": mean.std(ddof=1) if len(own) > 1 else np.nan,
        "sd": sd.mean() if own else np.nan,
        "coverage": np.mean([bool(one["covered"]) for one in own]) if own else np.nan,
        "cpu_seconds": np.median([row["cpu_seconds"] for row in good]) if own else np.nan,
        "with_problems": sum(map(bool, problems)),
        "problems": ", ".join(f"{topic} {count}" for topic, count in topics.most_common()),
    }


def _measured(rows: list[Row], parameter: str) -> dict[str, object]:
    row = next((row for row in rows if row["replication"] == MEASURED), None)
    if row is None or row["error"] is not None:
        return {
            "measured_mean": np.nan,
            "measured_sd": np.nan,
            "measured_cpu_seconds": np.nan,
            "measured_problems": "",
            "measured_error": "" if row is None else row["error"],
        }
    own = row["parameters"][parameter]
    return {
        "measured_mean": own["mean"],
        "measured_sd": own["sd"],
        "measured_cpu_seconds": row["cpu_seconds"],
        "measured_problems": ", ".join(dict.fromkeys(row.get("problems") or [])),
        "measured_error": "",
    }


def too_low(row: pd.Series) -> bool:
    """Whether so low a coverage is not chance: 0.95 is above its exact 95 % interval."""
    return bool(row["replications"]) and coverage_interval(row["coverage"], row["replications"])[1] < 0.95


def coverage_grid(table: pd.DataFrame) -> Grid:
    """The overview: for each problem and method the parameter that is covered least."""
    methods = list(dict.fromkeys(table["method"]))
    rows = []
    known = table[table["theta_star"].notna()]
    for example, part in known.groupby("example", sort=False):
        cells = {str(method): _overview(own) for method, own in part.groupby("method", sort=False)}
        rows.append([str(example), *(cells.get(str(method), NONE) for method in methods)])
    caption = (
        "Share of 95 % intervals that hold theta*, of the parameter with the smallest one, and mean posterior sd over "
        "scatter of the posterior means (1 is right, less is too sure). ↓: too low to be chance."
    )
    return Grid("Coverage, and width over scatter", caption, ["problem", *methods], rows, 1)


def _overview(own: pd.DataFrame) -> str:
    own = own[own["replications"] > 0]
    if own.empty:
        return "failed"
    worst = own.sort_values("coverage").iloc[0]
    ratio = worst["sd"] / worst["scatter"]
    # of one data set there is no scatter
    width = NONE if np.isnan(ratio) else f"{ratio:.{0 if ratio > 9.5 else 1}f}"
    return f"{worst['coverage']:.2f}{' ↓' if too_low(worst) else ''} · {width}"


SIMULATED = ["parameter", "theta*", "method", "mean", "scatter", "mean sd", "coverage", "CPU s", "problems in", "which"]


def simulated_grid(study: Study, table: pd.DataFrame) -> Grid:
    """One problem: a row a parameter and method, where there is a truth."""
    rows = [_simulated_cells(row) for _, row in table.iterrows() if pd.notna(row["theta_star"])]
    return Grid(study.title, "", SIMULATED, rows, 3)


def _simulated_cells(row: pd.Series) -> list[str]:
    head = (str(row["parameter"]), f"{row['theta_star']:.6g}", str(row["method"]))
    if not row["replications"]:
        return [*head, *(NONE,) * 6, f"failed: {row['error']}"]
    places = max(0, 1 - int(np.floor(np.log10(row["sd"])))) if row["sd"] > 0 else 4
    problems = f"{row['with_problems']} of {row['replications']}"
    failed = f"; {row['failed']} failed: {row['error']}" if row["failed"] else ""
    return [
        *head,
        *(f"{row[name]:.{places}f}" for name in ("mean", "scatter", "sd")),
        f"{row['coverage']:.2f}{' ↓' if too_low(row) else ''}",
        f"{row['cpu_seconds']:.2f}",
        problems,
        (str(row["problems"]) or NONE) + failed,
    ]


def measured_grid(studies: Sequence[Study], table: pd.DataFrame) -> Grid:
    """Measured field data: what each method says, and what others said."""
    methods = list(dict.fromkeys(table["method"]))
    rows = []
    for study in studies:
        part = table[table["example"] == study.model.name]
        if study.model.file is None or part.empty:
            continue
        for parameter, own in part.groupby("parameter", sort=False):
            cells = {row["method"]: _measured_cell(row) for _, row in own.iterrows()}
            others = _others(study, str(parameter))
            rows.append([study.model.name, str(parameter), others, *(cells.get(method, NONE) for method in methods)])
    caption = "Posterior mean ± sd. !: check() finds a problem, which the next table names."
    return Grid("Measured field data", caption, ["problem", "parameter", "others", *methods], rows, 3)


def _measured_cell(row: pd.Series) -> str:
    if pd.isna(row["measured_mean"]):
        return f"failed: {row['measured_error']}" if row["measured_error"] else NONE
    said = _estimate(row["measured_mean"], row["measured_sd"])
    return f"{said} !" if row["measured_problems"] else said


def _estimate(value: float, sd: float) -> str:
    """0.642 ± 0.022, and (7.485 ± 0.053)e8 where the number is long."""
    if abs(value) < 1e6:
        return with_error(value, sd, 2)
    power = int(np.floor(np.log10(abs(value))))
    return f"({with_error(value / 10.0**power, sd / 10.0**power, 2)})e{power}"


def found_grid(table: pd.DataFrame) -> Grid:
    """Measured field data: what ``check()`` calls a problem."""
    methods = list(dict.fromkeys(table["method"]))
    rows = []
    for example, part in table[table["measured_problems"] != ""].groupby("example", sort=False):
        cells = dict(zip(part["method"], part["measured_problems"], strict=True))
        rows.append([str(example), *(cells.get(method, NONE) for method in methods)])
    return Grid("Problems that check() finds there", "", ["problem", *methods], rows, 1)


def _others(study: Study, parameter: str) -> str:
    """theta*, where it is known, and what was published."""
    texts = []
    if study.model.theta_star:
        star = study.model.theta_star[list(study.model.parameters).index(parameter)]
        texts.append(f"{star:.6g} (theta*)")
    for one in study.model.published:
        if parameter in one.values:
            value, sd = one.values[parameter]
            texts.append(f"{f'{value:.4g}' if sd is None else _estimate(value, sd)} ({one.source})")
    return "; ".join(texts) or NONE
