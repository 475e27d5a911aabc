"""A comparison as text for a terminal, as one self-contained HTML page, and as CSV tables."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from ..files import whole_file
from ..findings import Finding
from ..pages.page import Picture, picture, rendered
from ..pages.tables import Grid, Table, counted, grid_text, shown_html, summary_rows, with_error
from . import figures
from .figures import compared_outputs
from .tables import Compared, group_grid, group_scores
from .words import WIDE, assumptions, remarks, settings_words

_OUTPUT_LEFT_OUT = "Each output was predicted from the others, by a fit that had not seen it"
#: names of all tables that there may be
TABLES = ("parameters", "scores", "times", "loo", "groups")
_SCORES = {"rmse": "RMSE", "crps": "CRPS", "coverage": "coverage"}


def write_page(comparison: Compared, path: str | Path, title: str) -> Path:
    """Write the page, whole or not at all."""
    page = render(comparison, title)
    with whole_file(path) as draft:
        draft.write_text(page, encoding="utf-8")
    return Path(path)


def write_tables(comparison: Compared, folder: Path) -> list[Path]:
    """Write the tables as CSV files, in full precision."""
    tables = {"parameters": comparison.summary(), "scores": comparison.scores(), "times": comparison.times()}
    if comparison.with_loo:
        tables["loo"] = comparison.loo()
    if comparison.groups is not None:
        tables["groups"] = group_scores(comparison)
    paths = []
    for name, table in tables.items():
        if len(table):
            paths.append(folder / f"compare-{name}.csv")
            with whole_file(paths[-1]) as draft:
                table.to_csv(draft)
    return paths


def as_text(comparison: Compared) -> str:
    """The tables and remarks for a terminal."""
    parts = [grid_text(grid) for grid in grids(comparison)]
    parts += ["\n".join(f"- {remark}" for remark in list(remarks(comparison)))]
    parts += [f"{name} failed: {why}" for name, why in comparison.failures.items()]
    return "\n\n".join(part for part in parts if part)


def as_html(comparison: Compared) -> str:
    """The same for a notebook."""
    tables = [Table(grid.header, grid.rows) for grid in grids(comparison)]
    failed = [f"{name} failed: {why}" for name, why in comparison.failures.items()]
    return shown_html("Comparison of methods", None, tables, [*remarks(comparison), *failed])


def render(comparison: Compared, title: str) -> str:
    """The page as HTML."""
    parameters, *others = grids(comparison)
    return rendered(
        "compare.html",
        __package__,
        title=title,
        remarks=list(remarks(comparison)),
        assumptions=assumptions(comparison),
        failures=comparison.failures,
        parameters=parameters,
        tables=others,
        posteriors=list(_posterior_pictures(comparison)),
        scores=_score_picture(comparison),
        findings=list(_findings(comparison)),
        settings=list(_settings(comparison)),
        version=version("orthocal"),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def grids(comparison: Compared) -> Iterator[Grid]:
    """The tables of a comparison as texts: parameters, scores, leave-one-out, times."""
    yield _parameters(comparison)
    if comparison.held_out:
        yield _scores(comparison)
        if comparison.groups is not None:
            yield group_grid(comparison)
    if comparison.with_loo:
        yield _loo(comparison)
    yield _times(comparison)


def _parameters(comparison: Compared) -> Grid:
    texts = {method: summary_rows(posterior.summary()) for method, posterior in comparison.posteriors.items()}
    rows = [
        [parameter, method, row["mean"], row["sd"], f"{row['lower']} to {row['upper']}", row["ess"], row["rhat"]]
        for j, parameter in enumerate(comparison.parameter_names)
        for method in comparison.posteriors
        for row in [texts[method][j]]
    ]
    header = ["parameter", "method", "mean", "sd", "95 % interval", "effective draws", "R-hat"]
    return Grid("Parameters", "The posterior of each parameter by every method.", header, rows, 2)


def _scores(comparison: Compared) -> Grid:
    table = comparison.scores()
    several = len(comparison.scored_names) > 1
    rows = []
    for outcome in comparison.scored_names:
        for method in comparison.held_out:
            row = {str(name): float(value) for name, value in table.loc[[(method, outcome)]].iloc[0].items()}
            cells = [
                with_error(row[prefix + name], row[f"{prefix}{name}_se"], 1 if name == "coverage" else 2)
                for prefix in ("", "model_")
                for name in _SCORES
            ]
            gap = "best" if row["crps_gap"] == 0 else with_error(row["crps_gap"], row["gap_se"], 1)
            rows.append([*([outcome] if several else []), method, *cells[:3], gap, *cells[3:]])
    header = [*_SCORES.values(), "CRPS above best", *(f"model: {title}" for title in _SCORES.values())]
    whole = comparison.scored_names == comparison.outcome_names
    unit = "both in the outcome's unit" if whole else "both in standard deviations of the output's noise"
    caption = (
        f"{_held_words(comparison)} RMSE is the error of the predictive mean, CRPS that of the whole predictive "
        f"distribution, {unit}: smaller is better. Coverage is the share of 95 % intervals that hold the observation: "
        "it should be 0.95. The last three columns are those of the model alone, without its bias. ± is one standard "
        "error; that of the CRPS above the best is from the differences cell by cell."
    )
    return Grid(
        "Held-out observations", caption, [*(["outcome"] if several else []), "method", *header], rows, 1 + several
    )


def _held_words(comparison: Compared) -> str:
    if comparison.scored_names != comparison.outcome_names:
        return f"{_OUTPUT_LEFT_OUT}."
    if comparison.groups is None:
        return "Each row of the data was predicted by a fit that had not seen it."
    name = comparison.groups.name
    return f"Each row of the data was predicted by a fit that had not seen any row of its group ({name})."


def _loo(comparison: Compared) -> Grid:
    rows = []
    for name, row in comparison.loo().iterrows():
        doubt = "no" if row["high_k"] else "yes"
        figures = [f"{row['elpd_loo']:.1f} ± {row['se']:.1f}", f"{row['p_loo']:.1f}"]
        rows.append([str(name), *figures, f"{row['high_k']:.0f} of {row['rows']:.0f}", doubt])
    caption = (
        "Expected log predictive density of a row that is left out, estimated from the fit to all data by importance "
        "sampling: larger is better. Where a row has a Pareto k above 0.7, the estimate is not to be trusted."
    )
    header = ["method", "elpd", "effective parameters", "rows with k > 0.7", "to be trusted"]
    return Grid("Leave-one-out", caption, header, rows, 1)


def _times(comparison: Compared) -> Grid:
    seconds, calls = comparison.preparation
    rows = [
        [
            str(name),
            f"{row['seconds']:.2f}",
            f"{row['cpu_seconds']:.2f}",
            f"{row['simulator_calls']:.0f}",
            f"{row['ess']:.0f}",
            _three_digits(row["ess_per_second"]),
        ]
        for name, row in comparison.times().iterrows()
    ]
    caption = (
        "Of the fit to all data; effective draws are those of the worst parameter. Before it, the methods share the "
        f"search for the best fit: {seconds:.2g} s and {calls} simulator calls. The first use of trees or splines in a "
        "process includes the time to load or compile them."
    )
    header = ["method", "seconds", "CPU seconds", "simulator calls", "effective draws", "these a second"]
    return Grid("Work", caption, header, rows, 1)


def _three_digits(value: float) -> str:
    """Large ones without an exponent: they are compared down a column."""
    return f"{float(f'{value:.3g}'):.0f}" if value >= 100 else f"{value:.3g}"


def _posterior_pictures(comparison: Compared) -> Iterator[Picture]:
    caption = "One colour a method: density, mean and 95 % interval."
    yield picture("Posteriors", caption, figures.compared_drawing(comparison.posteriors))
    closer = figures.closer_drawing(comparison.posteriors, WIDE)
    if closer is not None:
        caption = (
            f"The same, closer: posteriors more than {WIDE:g} times as wide as the narrowest run out of the panel."
        )
        yield picture("Posteriors, closer", caption, closer)
    if next(iter(comparison.posteriors.values())).record.without_inputs:
        caption = (
            "What the simulator misses of each output by every method, in noise standard deviations: mean and 95 %."
        )
        yield picture("Bias of the outputs", caption, compared_outputs(comparison.posteriors))


def _score_picture(comparison: Compared) -> Picture | None:
    if not comparison.held_out:
        return None
    caption = "Dots with two standard errors. Left is better for RMSE and CRPS; coverage should be at the dashed line."
    return picture("Scores", caption, figures.scores_drawing(comparison.scores()))


def _findings(comparison: Compared) -> Iterator[tuple[str, Finding]]:
    """Problems and notes with the methods they were found for, problems first; what all share is said once."""
    methods: dict[Finding, list[str]] = {}
    for name, posterior in comparison.posteriors.items():
        for finding in posterior.check():
            if finding.level != "fine":
                methods.setdefault(finding, []).append(name)
    for finding in sorted(methods, key=lambda one: one.level != "problem"):
        names = methods[finding]
        yield "all" if len(names) == len(comparison.posteriors) > 1 else ", ".join(names), finding


def _settings(comparison: Compared) -> Iterator[tuple[str, str]]:
    first = next(iter(comparison.posteriors.values()))
    sizes, data = first.record.data["posterior"].sizes, first.record.data["constant_data"].sizes
    rows = ", ".join(counted(*one) for one in ((data["point"], "row"), (data["input"], "input"), (first.q, "outcome")))
    yield "data", f"{first.q} outputs without inputs" if first.record.without_inputs else rows
    if comparison.fold_of_row is not None:
        groups = comparison.groups
        how = "at random" if groups is None else f"of whole groups ({groups.count}, by {groups.name})"
        yield "folds", f"{comparison.fold_of_row.max() + 1}, {how}, the same for every method"
    yield "chains, draws, warm-up", f"{sizes['chain']} x {sizes['draw']}, {first.record.warmup}"
    yield "seed", str(comparison.seed)
    for name, posterior in comparison.posteriors.items():
        yield f"method {name}", settings_words(posterior.record.method)
