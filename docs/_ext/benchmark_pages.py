"""The history of the benchmarks as a page: tables and plots from ``benchmarks/history.json``."""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

from history import Figure, read  # noqa: E402

#: part -> title and what it shows
PARTS = {
    "published": ("The paper's algorithm", "Projected Gaussian process, n = 100, beside the same in plain NumPy."),
    "joint": ("The joint projection", "Effective draws a CPU second, beside the paper's algorithm."),
    "bart": ("BART", "One sweep of 200 trees with predictions at 15 nodes."),
    "bmars": ("BMARS", "One move with its share of coefficients and predictions."),
    "startup": ("Start", "CPU time of a fresh process, beside the revision before names were loaded on demand."),
    "replicates": ("Replicates", "120 rows at 12 points, beside the same row by row."),
    "threads": ("Threads", "One BLAS thread, beside all."),
    "outcomes": ("Outcomes", "Cost against the number of outcomes."),
    "nothing_plugged_in": ("Noise that is not given", "Problem and fit with the default noise, 4 x 250 draws."),
    "large_data": ("Large data", "Gaussian processes with many data, the whole calibration."),
    "large_trees": ("Large data, trees", "Sums of trees with many data."),
}
HEAD = """# History of the benchmarks

Made from `benchmarks/history.json` when this site was built. A ratio says how many times as good as the peer ours was
in the same run; 1 is equal. The newest figures stand first.
"""
#: what is said of a run beside date and commit
WHERE = ["machine", "Python", "NumPy", "load"]
UNKNOWN = "not noted"


def number(value: float | None, digits: int = 3) -> str:
    """Three digits, without an exponent where people count."""
    if value is None:
        return ""
    return f"{value:,.0f}".replace(",", "\u202f") if value >= 1000 else f"{value:.{digits}g}"


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def run_of(one: Figure) -> tuple[str, ...]:
    load = "" if one.load is None else f"{one.load:g}"
    return (one.date, one.commit, one.machine, one.python, one.numpy, load)


def plot(figures: list[Figure], file: Path) -> None:
    """The ratio of every name, older ones paler."""
    names = list(dict.fromkeys(one.name for one in figures))
    runs = list(dict.fromkeys(run_of(one) for one in figures))
    canvas = Canvas(figsize=(7, 0.9 + 0.32 * len(names)), layout="constrained")
    axes = canvas.subplots()
    for age, run in enumerate(reversed(runs)):
        own = [one for one in figures if run_of(one) == run]
        label = f"{run[0]}, {run[1]}"
        places = [names.index(one.name) for one in own]
        axes.plot([one.ratio for one in own], places, "o", color="#0b5cad", alpha=max(1 - 0.35 * age, 0.2), label=label)
    axes.axvline(1, color="0.6", lw=1)
    axes.set(xscale="log", yticks=range(len(names)), yticklabels=names, xlabel="times as good as the peer")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.8), max(high, 2.5))
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize="small")
    # the same figures make the same file
    with mpl.rc_context({"svg.hashsalt": "orthocal", "svg.fonttype": "none"}):
        canvas.savefig(file, format="svg", metadata={"Date": None})


def section(part: str, figures: list[Figure], folder: Path) -> str:
    title, words = PARTS.get(part, (part, ""))
    lines = [f"## {title}", "", words, ""]
    compared = [one for one in figures if one.ratio is not None]
    if compared:
        plot(compared, folder / f"benchmark-{part}.svg")
        best = ", ".join(f"{one.name}: {number(one.ratio)}" for one in compared[-len({o.name for o in compared}) :])
        lines += [f"![Times as good as the peer, by case and run; newest: {best}](benchmark-{part}.svg)", ""]
    for run, group in groupby(reversed(figures), run_of):
        own = list(group)[::-1]
        source = f" From `{own[0].source}` of that commit." if own[0].source else ""
        known = [f"{name} {value}" for name, value in zip(WHERE, run[2:], strict=True) if value not in ("", UNKNOWN)]
        where = "On " + ", ".join(known).removeprefix("machine ") if known else "Machine and versions were not noted"
        lines += [f"### {title}: {run[0]}, {run[1]}", "", f"{where}.{source}", ""]
        rows = [[one.name, f"{number(one.figure)} {one.unit}", one.peer or "", number(one.ratio)] for one in own]
        lines += [table(["", "ours", "peer", "ratio"], rows), ""]
    return "\n".join(lines)


def page(folder: Path) -> str:
    """The page in Markdown; its plots are written into ``folder``."""
    figures = read()
    parts = {one.part for one in figures}
    order = [part for part in PARTS if part in parts] + sorted(parts - set(PARTS))
    return "\n".join([HEAD, *(section(part, [f for f in figures if f.part == part], folder) for part in order)])
