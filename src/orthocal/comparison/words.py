"""A comparison in words: what each method is called and assumes, and what the results say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import Any

import pandas as pd

from ..errors import InputError
from ..methods.base import METHODS, ListedMethod, Method, method_by_name
from .tables import Compared, group_remarks

#: a posterior that is so many times as wide as the narrowest is worth a remark
WIDE = 3.0
#: a posterior with a free bias is called wide from here
WIDER = 1.5
#: a smaller share of the best CRPS makes no difference to anyone
SMALL_GAP = 0.01


def assumptions(compared: Compared) -> dict[str, str]:
    """Label -> what the method assumes, in one sentence."""
    return {name: assumption(method) for name, method in compared.methods.items()}


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
            chosen[_distinct(name, chosen)] = method
    if not chosen:
        raise InputError('methods is empty: give at least one, for instance ["gp", "none"]')
    return chosen


def _distinct(name: str, taken: dict[str, Method]) -> str:
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
    return ", ".join(f"{key} {'chosen by the program' if value is None else value}" for key, value in settings)


def _short(key: str) -> str:
    """The last word of a setting's path; that of its family where the word says nothing."""
    *family, word = key.split(" ")
    return family[-1] if word == "kind" and family else word


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def remarks(comparison: Compared) -> Iterator[str]:
    """What the results say, in plain sentences."""
    if len(comparison.posteriors) > 1:
        yield from _widths(comparison)
        yield from _free(comparison)
        yield from _disagreements(comparison)
    if comparison.held_out:
        yield from group_remarks(comparison)
        yield from _predictions(comparison)
    if comparison.with_loo:
        yield from _loo(comparison)


def _widths(comparison: Compared) -> Iterator[str]:
    for parameter, sd in _sds(comparison):
        if sd.max() > WIDE * sd.min() > 0:
            yield (
                f"{parameter}: the posterior is widest by {sd.idxmax()}, {sd.max() / sd.min():.3g} times as wide as "
                f"the narrowest, that by {sd.idxmin()}."
            )


def _free(comparison: Compared) -> Iterator[str]:
    """What becomes of theta where nothing constrains the bias, beside methods that do."""
    free = [name for name in comparison.posteriors if (own := comparison.family(name)) and own.free_bias]
    if len(free) == len(comparison.posteriors):
        return
    for name in free:
        if any(sd[name] > WIDER * sd.drop(free).min() for _, sd in _sds(comparison)):
            yield (
                f"The bias of {name} is free: it takes over what theta does not explain, so the posterior of theta is "
                "wide by construction and does not say where theta is, however well model + bias predicts."
            )
        else:
            yield (
                f"The bias of {name} is free, but here it has found next to none: where it finds one, its posterior of "
                "theta is wide."
            )


def _sds(comparison: Compared) -> Iterator[tuple[str, pd.Series[float]]]:
    """Each parameter with its posterior sd by method."""
    table = comparison.summary()["sd"].unstack("parameter")
    for parameter in comparison.parameter_names:
        yield parameter, table[parameter]


def _disagreements(comparison: Compared) -> Iterator[str]:
    table = comparison.summary()
    lower, upper = (name for name in table.columns if str(name).startswith("eti"))
    for parameter in comparison.parameter_names:
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


def _predictions(comparison: Compared) -> Iterator[str]:
    table = comparison.scores()
    for outcome in comparison.scored_names:
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


def _loo(comparison: Compared) -> Iterator[str]:
    table = comparison.loo()
    doubtful = table[table["high_k"] > 0]
    for name, row in doubtful.iterrows():
        yield (
            f"LOO of {name} is not to be trusted: for {row['high_k']:.0f} of {row['rows']:.0f} rows the importance "
            "weights have a Pareto k above 0.7, because a flexible bias leans on single observations; use the folds."
        )
    projected = [name for name in table.index if (own := comparison.family(str(name))) and not own.joint_density]
    if projected:
        yield (
            f"LOO of {_listed(projected)} is an approximation in any case: projected draws do not come from one joint "
            "distribution of theta and the bias, which importance weights assume."
        )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
