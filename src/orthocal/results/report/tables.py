"""The tables of a report: parameters, outputs without inputs, and how large the bias is."""

from __future__ import annotations

from collections.abc import Iterator

from ...pages.tables import Grid, summary_rows
from ..predict.bias_size import size_table
from ..predict.outputs import output_rows
from ..record import Record

_SIZES = (
    "Root mean square over the domain, in the unit of the outcome (of its transform where it has one) and in standard "
    "deviations of the noise, and its mean square as a share of the variance of the real process; in brackets 95 % "
    "intervals. A bias far below one standard deviation of the noise cannot be told from none."
)
_OUTPUTS = (
    "What was observed, ± one standard deviation of its noise; the simulator, its bias in the output's unit and in "
    "standard deviations of the noise, and both together, each ± one standard deviation of the posterior."
)


def parameter_grid(record: Record) -> Grid:
    """One row a parameter."""
    rows = [
        [
            _with_unit(record, row["name"]),
            row["mean"],
            row["sd"],
            f"{row['lower']} to {row['upper']}",
            row["ess"],
            row["rhat"],
        ]
        for row in summary_rows(record.summary())
    ]
    header = ["parameter", "mean", "sd", "95 % interval", "effective draws", "R-hat"]
    return Grid("Parameters", "The posterior of each parameter.", header, rows, 1)


def output_grid(record: Record) -> Grid:
    """One row an output without inputs."""
    rows = [
        [_with_unit(record, row["name"]), *(row[part] for part in ("observed", "model", "bias", "noise_sds", "total"))]
        for row in output_rows(record)
    ]
    header = ["output", "observed", "simulator", "bias", "bias, noise sds", "simulator + bias"]
    return Grid("Outputs", _OUTPUTS, header, rows, 1)


def size_grid(rows: list[list[str]]) -> Grid:
    """One row an outcome."""
    return Grid("Size of the bias", _SIZES, ["outcome", "size", "noise sds", "share"], rows, 1)


def _with_unit(record: Record, name: str) -> str:
    return f"{name} [{record.units[name]}]" if name in record.units else name


def size_rows(record: Record) -> Iterator[list[str]]:
    """How large the bias is, where the record knows it."""
    if record.without_inputs or not record.has("bias", "bias_square"):
        return
    units = dict(zip(record.scale_names, map(record.units.get, record.outcome_names), strict=True))
    for name, row in size_table(record, 0.95).iterrows():
        unit = units[str(name)] if str(name) in record.outcome_names else None
        shown = str(name) if unit is None else f"{name} [{unit}]"
        yield [
            shown,
            *(
                f"{row[part]:.3g} ({row[f'{part}_lower']:.3g} to {row[f'{part}_upper']:.3g})"
                for part in ("rms", "noise_sds", "share")
            ),
        ]
