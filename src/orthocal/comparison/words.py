"""A comparison in words: what each method is called and assumes, and what the results say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Any

import pandas as pd

from ..errors import InputError
from ..methods.base import METHODS, ListedMethod, Method, method_by_name

#: a posterior that is so many times as wide as the narrowest is worth a remark
WIDE = 3.0
#: a posterior with a free bias is called wide from here
WIDER = 1.5
#: a smaller share of the best CRPS makes no difference to anyone
SMALL_GAP = 0.01
#: an error for whole groups that is so many times that for rows is worth a remark
MUCH_LARGER = 1.5

#: label -> family of the method; None for one of the user's own
Families = Mapping[str, type[ListedMethod] | None]


def assumption(method: Method) -> str:
    """What a method assumes, in one sentence."""
    if isinstance(method, ListedMethod):
        return method.words()
    return f"A method of your own, {type(method).__name__}: it is described where it was written."


def labelled(methods: Sequence[str | Method] | Mapping[str, str | Method] | str | Method) -> dict[str, Method]:
    """Methods by label; objects are called after the named method they come from and what is changed in it."""
    if isinstance(methods, Mapping):
        chosen = {str(name): method_by_name(method) for name, method in methods.items()}
    else:
        given = [methods] if isinstance(methods, str | Method) else list(methods)
        chosen = {}
        for one in given:
            method = method_by_name(one)
            name = one if isinstance(one, str) else _label(method)
            chosen[_unused_label(name, chosen)] = method
    if not chosen:
        raise InputError('methods is empty: give at least one, for instance ["gp", "none"]')
    return chosen


def _unused_label(name: str, taken: dict[str, Method]) -> str:
    if name not in taken:
        return name
    return next(other for number in count(2) if (other := f"{name} #{number}") not in taken)


def _label(method: Method) -> str:
    own = flat_settings(method.describe())
    kinds = {key: value for key, value in own.items() if key in ("kind", "bias kind", "process kind")}
    for name in METHODS:
        usual = flat_settings(method_by_name(name).describe())
        if all(usual.get(key) == value for key, value in kinds.items()):
            changed = [f"{_short(key)} {_text(value)}" for key, value in own.items() if usual.get(key) != value]
            return f"{name} ({', '.join(changed)})" if changed else name
    prior = f" {own['bias kind']}" if "bias kind" in own else ""
    return f"{own.get('kind', type(method).__name__)}{prior}"


def flat_settings(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as one level, their names joined by spaces."""
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= flat_settings(value, f"{prefix}{name} ") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return flat


def settings_words(method: dict[str, Any]) -> str:
    """All settings of a method in one line."""
    settings = flat_settings(method).items()
    return ", ".join(f"{key} {'not given' if value is None else value}" for key, value in settings)


def _short(key: str) -> str:
    """The last word of a setting's path; that of its family where the word says nothing."""
    *family, word = key.split(" ")
    return family[-1] if word == "kind" and family else word


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def posterior_remarks(summary: pd.DataFrame, families: Families) -> Iterator[str]:
    """Where the posteriors of several methods differ: their widths, a free bias, intervals that do not overlap."""
    sds = dict(summary["sd"].unstack("parameter").items())
    names = summary.index.get_level_values("parameter").unique()
    yield from _widths({name: sds[name] for name in names})
    yield from _free(list(sds.values()), families)
    yield from _disagreements(summary)


def _widths(sds: Mapping[str, pd.Series[float]]) -> Iterator[str]:
    for parameter, sd in sds.items():
        if sd.max() > WIDE * sd.min() > 0:
            yield (
                f"{parameter}: the posterior is widest by {sd.idxmax()}, {sd.max() / sd.min():.3g} times as wide as "
                f"the narrowest, that by {sd.idxmin()}."
            )


def _free(sds: list[pd.Series[float]], families: Families) -> Iterator[str]:
    """What becomes of theta where nothing constrains the bias, beside methods that do."""
    free = [name for name, own in families.items() if own is not None and own.free_bias]
    if len(free) == len(families):
        return
    for name in free:
        if any(sd[name] > WIDER * sd.drop(free).min() for sd in sds):
            yield (
                f"The bias of {name} is free: it takes over what theta does not explain, so the posterior of theta is "
                "wide by construction and does not say where theta is, however well model + bias predicts."
            )
        else:
            yield (
                f"The bias of {name} is free, but here it has found next to none: where it finds one, its posterior of "
                "theta is wide."
            )


def _disagreements(table: pd.DataFrame) -> Iterator[str]:
    lower, upper = (name for name in table.columns if str(name).startswith("eti"))
    for parameter in table.index.get_level_values("parameter").unique():
        rows = table.loc[parameter]
        apart = [
            f"{one} and {other}"
            for one, other in combinations(rows.index, 2)
            if rows[upper][one] < rows[lower][other] or rows[upper][other] < rows[lower][one]
        ]
        if apart:
            yield (
                f"{parameter}: 95 % intervals that do not overlap: {'; '.join(apart)}. Such two cannot both be right, "
                "or they do not mean the same parameter."
            )


def missed_remarks(missed: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Which folds have no scores."""
    for name, folds in missed.items():
        reasons = "; ".join(f"without {fold}: {why}" for fold, why in folds.items())
        yield f"{name} has no scores for some rows, and its scores are those of the others only: {reasons}."


def groups_remark(name: str) -> str:
    """Where the problem has groups and rows were held out."""
    return (
        f"The rows belong to groups ({name}), and rows of one group were both held out and learnt from: these scores "
        f"are not those of a new group. Give groups={name!r} to leave out whole groups."
    )


def group_remarks(kind: str, row_rmse: Mapping[tuple[str, str], float], table: pd.DataFrame) -> Iterator[str]:
    """Where rows are easy to predict and whole groups are not; ``table`` are the scores of groups."""
    for outcome in table.index.get_level_values("outcome").unique():
        larger = [
            f"{name} {rows:.3g} and {float(table['rmse'][name, outcome]):.3g}"
            for (name, own), rows in row_rmse.items()
            if own == outcome and float(table["rmse"][name, outcome]) > MUCH_LARGER * rows
        ]
        if larger:
            yield (
                f"{outcome}: held out row by row and by {kind}, the RMSE is {'; '.join(larger)}. Rows of one {kind} "
                f"tell much about each other, so errors row by row are too small for a new {kind}: there the second "
                f"number is the honest one. The first is that of further rows of a {kind} that was measured."
            )


def score_remarks(table: pd.DataFrame, outcomes: tuple[str, ...]) -> Iterator[str]:
    """Which methods predict held-out observations best, and whose intervals hold too few of them."""
    for outcome in outcomes:
        rows = table.xs(outcome, level="outcome")
        if len(rows) > 1:
            best = rows["crps"].idxmin()
            least = SMALL_GAP * float(rows["crps"].min())
            worse = [str(name) for name, row in rows.iterrows() if row["crps_gap"] > max(2 * row["gap_se"], least)]
            close = [str(name) for name in rows.index if name != best and name not in worse]
            yield (
                f"{outcome}: {best} has the smallest CRPS for held-out observations"
                + (f"; as good within twice the standard error or 1 %: {_listed(close)}" if close else "")
                + (f"; worse: {_listed(worse)}" if worse else "")
                + "."
            )
        for name, row in rows.iterrows():
            if row["coverage"] + 3 * row["coverage_se"] < 0.95:
                share = f"{100 * row['coverage']:.0f} % of the held-out observations"
                yield f"{outcome}: the 95 % intervals of {name} hold only {share}."
    yield (
        "These scores judge model + bias, not theta: a method whose bias is free may predict well and yet say nothing "
        "about the parameters."
    )


def loo_remarks(table: pd.DataFrame, families: Families) -> Iterator[str]:
    """Where leave-one-out is not to be trusted."""
    doubtful = table[table["high_k"] > 0]
    for name, row in doubtful.iterrows():
        yield (
            f"LOO of {name} is not to be trusted: for {row['high_k']:.0f} of {row['rows']:.0f} rows the importance "
            "weights have a Pareto k above 0.7, because a flexible bias leans on single observations; use the folds."
        )
    projected = [name for name, own in families.items() if own is not None and not own.joint_density]
    if projected:
        yield (
            f"LOO of {_listed(projected)} is an approximation in any case: projected draws do not come from one joint "
            "distribution of theta and the bias, which importance weights assume."
        )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
