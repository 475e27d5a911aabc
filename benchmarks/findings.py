"""False alarms and power of every finding of ``check()``: a table, for ``docs/checks.md``.

    python benchmarks/findings.py [--silent 200] [--speaking 50] [--only NAME] [--log findings.jsonl]

Every fit is a line of the log, so that the table can be made while fits go on, and a run that was stopped goes on.
"""

from __future__ import annotations

import os

os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))

import argparse
import json
import re
import warnings
import zlib
from pathlib import Path
from time import process_time

import numpy as np

import orthocal as oc
from finding_cases import SILENT, SPEAKING, Maker

#: finding -> its words, as a regular expression for "topic: message"
WORDS = {
    "draws on a bound": r"^projection: .* lie on a bound",
    "draws without a clear minimum": r"^projection: .* no clear minimum",
    "draws nearer to another minimum": r"^projection: .* at another minimum",
    "weights of the prior": r"^prior of theta: importance weights",
    "prior and data in conflict": r"^prior of theta: .*contradict each other",
    "prior and data in conflict, 5 sds": r"^prior of theta: .*contradict each other",
    "parameters nearly collinear": r"^parameters: (?!the simulator does not answer)",
    "directions left to the prior": r"^parameters: the simulator does not answer",
    "quadrature": r"^quadrature:",
    "best fit on a bound": r"^best fit: it lies on a bound",
    "best fit misses the data": r"^best fit: the simulator misses",
    "held by the prior": r"^best fit: without the priors",
    "minima that fit alike": r"^best fit: \d+ minima fit equally well",
    "another minimum close behind": r"^best fit: another minimum is",
    "mixing": r"^mixing:",
    "theta step": r"^theta step:",
    "information": r"^information:",
    "draws at a bound of the prior": r"^bounds:",
    "constraint: best fit on its edge": r"^constraint:",
    "impossible theta": r"^impossible theta:",
    "calls that failed": r"^simulator: .* failed",
    "curvature, sds too short": r"^curvature: .*(too short|clear minimum)",
    "curvature, sds too long": r"^curvature: .*too long",
    "noise nearly singular": r"^noise: its correlation matrix",
    "outliers": r"^outliers:",
    "replicates beside the curve": r"^replicates: replicates of",
    "replicates uneven": r"^replicates: the scatter",
    "few degrees of freedom": r"^noise: .* degrees of freedom only",
    "residuals too large": r"^noise: the residuals of .* times as large",
    "residuals with a pattern": r"^noise: the residuals of .*(neighbouring|they go with)",
    "scatter too small": r"^noise: the scatter of",
    "correlated errors": r"^correlated errors: what",
    "correlated errors: between series": r"^correlated errors: series",
    "outputs: few replicates": r"^noise: it was estimated from as few",
    "outputs that are missed": r"^bias: the simulator at its best misses",
    "errors in x: curvature": r"^errors in x: .*curvature",
    "errors in x: dilution": r"^errors in x: .*is off by about",
    "impossible predictions": r"^predictions:",
    "simulator no function of x": r"^simulator: its values",
    "gradient": r"^gradient:",
    "theta outside of the runs": r"^emulator: .*draws of theta have no runs",
    "x outside of the runs": r"^emulator: its runs have no points x",
    "emulator's own error": r"^emulator: its own standard deviation",
    "emulator's part of the variance": r"^emulator: its uncertainty",
    "domain without data": r"^domain: .*no data nearby",
    "label without data": r"^domain: .*no data nearby: .*machine",
    "bias prior: smallest sd": r"^bias prior: .*smallest",
    "bias prior: longest length-scale": r"^bias prior: .*longest",
    "bias prior: shortest length-scale": r"^bias prior: .*shortest",
    "bias prior: largest sd": r"^bias prior: .*largest",
    "bias prior: jitter": r"^bias prior: a jitter",
    "bias prior: sampled hyperparameters": r"^bias prior: its sampled",
    "bias prior: network": r"^bias prior: the chains",
}
_ESTIMATED = ("estimated noise", "replicates")
#: families of problems without fault in which a finding can speak at all; the others in every one
FAMILIES = {
    "theta step": ("pgp",),
    "curvature, sds too short": ("pgp",),
    "curvature, sds too long": ("pgp",),
    "outliers": _ESTIMATED,
    "noise nearly singular": _ESTIMATED,
    "few degrees of freedom": _ESTIMATED,
    "replicates beside the curve": ("replicates",),
    "replicates uneven": ("replicates",),
    "outputs: few replicates": ("outputs",),
    "outputs that are missed": ("outputs",),
    "errors in x: curvature": ("errors in x",),
    "errors in x: dilution": ("errors in x",),
    "theta outside of the runs": ("emulator",),
    "x outside of the runs": ("emulator",),
    "emulator's own error": ("emulator",),
    "emulator's part of the variance": ("emulator",),
    "correlated errors: between series": ("series",),
    "label without data": ("labels",),
}
#: where nothing is wrong, as many as mixing needs to be silent; elsewhere fewer
SILENT_DRAWS, SPEAKING_DRAWS = (
    {"draws": 250, "chains": 4, "warmup": 200},
    {"draws": 100, "chains": 2, "warmup": 100},
)


def fitted(maker: Maker, name: str, number: int) -> dict:
    """What a fit has found: "level topic: message", but for what is fine."""
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    case, started = maker(rng), process_time()
    usual = SILENT_DRAWS if name.startswith("silent") else SPEAKING_DRAWS
    try:
        posterior = oc.calibrate(case.problem, case.method, seed=number, progress=False, **{**usual, **case.options})
        found = [f"{one.level}|{one.topic}: {one.message}" for one in posterior.check() if one.level != "fine"]
    except oc.OrthocalError as error:
        found = [f"error|{error}"]
    return {"name": name, "number": number, "found": found, "seconds": round(process_time() - started, 2)}


def counted(entries: list[dict], words: str) -> tuple[int, int, int]:
    """Notes, problems and fits."""
    notes = problems = 0
    for entry in entries:
        levels = {one.split("|")[0] for one in entry["found"] if re.search(words, one.split("|", 1)[1], re.DOTALL)}
        problems += "problem" in levels
        notes += "note" in levels and "problem" not in levels
    return notes, problems, len(entries)


def table(log: list[dict]) -> str:
    """One row a finding: how often it spoke where nothing was wrong, and where something was."""
    lines = ["| finding | silent: fits | notes | problems | must speak: fits | spoke | as a problem |"]
    lines.append("|---|---|---|---|---|---|---|")
    for name, words in WORDS.items():
        families = {f"silent {one}" for one in FAMILIES.get(name, SILENT)}
        notes, problems, fits = counted([entry for entry in log if entry["name"] in families], words)
        more, worse, spoken = counted([entry for entry in log if entry["name"] == f"speaking {name}"], words)
        last = f"{spoken} | {more + worse} | {worse}" if spoken else "| |"
        lines.append(f"| {name} | {fits} | {notes} | {problems} | {last} |")
    return "\n".join(lines)


def by_family(log: list[dict]) -> str:
    """What spoke where nothing was wrong, family by family."""
    lines = []
    for name in SILENT:
        entries = [entry for entry in log if entry["name"] == f"silent {name}"]
        found = [(one, counted(entries, words)) for one, words in WORDS.items()]
        said = ", ".join(f"{one} {notes}+{problems}" for one, (notes, problems, _) in found if notes + problems)
        errors = sum(one.startswith("error|") for entry in entries for one in entry["found"])
        clean = sum(not any(one.startswith("problem|") for one in entry["found"]) for entry in entries)
        lines.append(f"{name} ({len(entries)} fits, {clean} without a problem, {errors} errors): {said}")
    return "\n".join(lines)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--silent", type=int, default=200)
    arguments.add_argument("--speaking", type=int, default=50)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--log", type=Path, default=Path("findings.jsonl"))
    given = arguments.parse_args()
    log = [json.loads(line) for line in given.log.read_text().splitlines()] if given.log.exists() else []
    done = {(entry["name"], entry["number"]) for entry in log}
    asked = [(f"silent {name}", maker, given.silent) for name, maker in SILENT.items()]
    asked += [(f"speaking {name}", maker, given.speaking) for name, maker in SPEAKING.items()]
    warnings.simplefilter("ignore")
    # number by number, so that what is there at any time is the same of every finding
    turns = [(number, *one) for number in range(max(given.silent, given.speaking)) for one in asked]
    with given.log.open("a") as file:
        for number, name, maker, count in turns:
            if number < count and given.only in name and (name, number) not in done:
                log.append(fitted(maker, name, number))
                file.write(json.dumps(log[-1]) + "\n")
                file.flush()
    print(f"{table(log)}\n\n{by_family(log)}")


if __name__ == "__main__":
    main()
