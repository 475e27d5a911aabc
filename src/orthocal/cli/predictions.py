"""The command ``orthocal predict``: a table of new inputs, with predictions beside them."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConfigError, FileError
from .documents import Json, Prints, Quiet, document_asked, give, prints_left_out, quietly, say
from .fits import Experiment, Fit, Problem, experiment_of, made_from
from .outputs import refuse_inputs

if TYPE_CHECKING:
    import pandas as pd

    from ..arrays import Array
    from ..files.tables import Dialect, TextTable
    from ..results.posterior import Posterior


def predict(
    fit: Fit,
    new: Annotated[
        Path | None, typer.Argument(help="A CSV table with the inputs. Without it: predictions at the data.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The table to write; - prints it. Default: NEW-predictions.csv.")
    ] = None,
    problem: Problem = None,
    experiment: Experiment = None,
    interval: Annotated[float, typer.Option(help="Share of the draws that the intervals hold.")] = 0.95,
    draws: Annotated[int | None, typer.Option(help="Draws a chain to use, evenly thinned. Default: all.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of what is drawn anew: bias between points, and noise.")] = None,
    separator: Annotated[str | None, typer.Option(help="Between the cells of NEW. Default: that of the data.")] = None,
    decimal: Annotated[str | None, typer.Option(help="Before a fraction there. Default: that of the data.")] = None,
    prefix: Annotated[str, typer.Option(help="What the names of the new columns begin with.")] = "",
    prints: Prints = False,
    as_json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Predict the outcomes at new inputs: simulator, bias, their sum, and intervals.

    The columns of the table stay, and the predictions are put beside them: model, bias and mean with _lower and
    _upper, observation_lower and _upper for a new measurement, distance to the nearest data, and far. With several
    outcomes their names begin with the outcome's.
    """
    from ..results.predicted_table import data_table, predicted_table

    target = out or _default_name(fit, new)
    if str(target) != "-":
        refuse_inputs(target, [one for one in (fit, new, problem) if one is not None])
    with quietly(), prints_left_out(prints):
        text: TextTable | None = None
        if new is None:
            from ..results.files.loading import load

            posterior = experiment_of(load(fit), experiment, fit)
            table = data_table(posterior, predicted_table(posterior, None, interval, draws, seed))
            rows = _frame_rows(table)
        else:
            made = made_from(fit, problem, experiment)
            posterior, data = made.posterior, made.config.data
            text = _table(new, separator or data.separator, decimal or data.decimal)
            table = predicted_table(posterior, _inputs(posterior, text), interval, draws, seed).add_prefix(prefix)
            rows = _joined(text, table)
    dialect = None if text is None else text.dialect
    if str(target) != "-":
        _save(target, rows, dialect)
        say(f"Predictions: {target} ({len(table)} rows)")
    elif not document_asked():
        _write(sys.stdout, rows, dialect)
    give({"file": None if str(target) == "-" else target, "interval": interval, "rows": _records(text, table)})


def _default_name(fit: Path, new: Path | None) -> Path:
    return fit.with_name(f"{fit.stem}-predictions.csv") if new is None else new.with_name(f"{new.stem}-predictions.csv")


def _table(path: Path, separator: str, decimal: str) -> TextTable:
    from ..files.tables import Dialect, is_parquet, read_text_table

    if is_parquet(path):
        raise ConfigError(f"{path} is a Parquet table: predict reads and writes CSV")
    table = read_text_table(path, Dialect("\t" if separator == "\\t" else separator, decimal))
    if not len(table):
        raise ConfigError(f"{path} has no rows below its header: give the inputs of one point a row")
    return table


def _inputs(posterior: Posterior, table: TextTable) -> Array:
    """The inputs of the fit in a table, as numbers (m, d); what is to be said of them is said."""
    import numpy as np
    import pandas as pd

    from ..errors import InputError
    from ..files.tables import require_columns
    from ..problem.data.field_data import new_inputs

    record = posterior.record
    if record.without_inputs:
        raise ConfigError("the outputs of this fit have no x: leave the table out, orthocal predict fit.nc")
    require_columns(table, record.input_names)
    columns: dict[str, Any] = {}
    for j, name in enumerate(record.input_names):
        columns[name] = table.numbers(name) if record.labels.of(j) is None else table.labels(name)
        absent = np.flatnonzero(pd.isna(columns[name]) | np.isin(columns[name], [np.inf, -np.inf]))
        if absent.size:
            where = table.row_words(int(absent[0]))
            raise FileError(f"column {name!r} of {table.file}, {where}: a value is missing or infinite; give a number")
    try:
        x = new_inputs(pd.DataFrame(columns), record.input_names, record.labels)
    except InputError as error:
        raise ConfigError(str(error).replace("x_new", table.file)) from None
    for words in posterior.remarks_at(x):
        named = words.replace("x_new", Path(table.file).name).replace("the variables", "the columns")
        typer.echo(f"note: {named}", err=True)
    return x


def _joined(text: TextTable, table: pd.DataFrame) -> list[list[str]]:
    """The cells of a table as they are, with the predictions beside them, the header first."""
    taken = [name for name in table.columns if name in text.names]
    if taken:
        raise ConfigError(
            f"{text.file} has a column {taken[0]!r} already: give the predictions names of their own, --prefix "
            "predicted_ for instance"
        )
    header, *added = _frame_rows(table, text.dialect.decimal)
    return [[*text.names, *header], *([*own, *more] for own, more in zip(text.rows, added, strict=True))]


def _frame_rows(table: pd.DataFrame, decimal: str = ".") -> list[list[str]]:
    def cell(value: object) -> str:
        if isinstance(value, float):
            return "" if value != value else f"{value:.10g}".replace(".", decimal)
        return str(value)

    return [list(map(str, table.columns)), *([cell(one) for one in row] for row in table.astype(object).to_numpy())]


def _write(stream: Any, rows: list[list[str]], dialect: Dialect | None) -> None:
    csv.writer(stream, delimiter="," if dialect is None else dialect.separator, lineterminator="\n").writerows(rows)


def _save(path: Path, rows: list[list[str]], dialect: Dialect | None) -> None:
    from ..files import whole_file

    with whole_file(path) as draft, draft.open("w", encoding="utf-8", newline="") as stream:
        _write(stream, rows, dialect)


def _records(text: TextTable | None, table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows for programs: what the table had, numbers where a cell is one, and the predictions."""
    from ..files.tables import number_of

    predicted = [{str(name): one for name, one in row.items()} for row in table.to_dict("records")]
    if text is None:
        return predicted

    def value(cell: str) -> object:
        number = number_of(cell, text.dialect.decimal)
        return cell if number is None else int(number) if cell.isdecimal() else number

    own = [dict(zip(text.names, map(value, row), strict=True)) for row in text.rows]
    return [{**before, **after} for before, after in zip(own, predicted, strict=True)]
