"""Figures of the benchmarks over time: ``record`` notes one, ``python benchmarks/run.py --record`` keeps them.

They stand in ``benchmarks/history.json``, oldest first, and on the site's page of benchmarks.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_name("history.json")


@dataclass(frozen=True)
class Figure:
    """What was measured, where and when.

    Attributes
    ----------
    part, name
        The part of the benchmarks, and what it measures.
    figure, unit
        Ours.
    peer, ratio
        Beside what in the same run, and how many times as good ours is; None where there is no peer.
    load
        Processes that wanted a core in the minute before; more than there are cores makes CPU times longer.
    source
        The page that a figure was taken from, where it is older than this file.
    """

    date: str
    commit: str
    machine: str
    python: str
    numpy: str
    part: str
    name: str
    figure: float
    unit: str
    peer: str | None = None
    ratio: float | None = None
    load: float | None = None
    source: str | None = None


_NOTED: list[tuple[str, float, str, str | None, float | None]] = []


def record(name: str, figure: float, unit: str, peer: str | None = None, ratio: float | None = None) -> None:
    """Note a figure of the part that is running; ``ratio`` is how many times as good as the peer's it is."""
    _NOTED.append((name, float(figure), unit, peer, None if ratio is None else float(ratio)))


def taken(part: str) -> list[Figure]:
    """All that was noted since the last call, as figures of ``part`` on this machine."""
    where = (datetime.now(UTC).date().isoformat(), commit(), machine(), platform.python_version(), np.__version__)
    load = round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None
    figures = [
        Figure(*where, part, name, rounded(value), unit, peer, rounded(ratio), load)
        for name, value, unit, peer, ratio in _NOTED
    ]
    _NOTED.clear()
    return figures


def rounded(value: float | None) -> float | None:
    """To four digits: the rest is noise."""
    return None if value is None else float(f"{value:.4g}")


def commit() -> str:
    """The last commit that changed the package, with a + if its files have changed since."""
    try:
        last = _git("log", "-1", "--format=%h", "--abbrev=7", "--", "src")
        return last + ("+" if _git("status", "--porcelain", "--", "src") else "")
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"


def _git(*words: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def machine() -> str:
    """Processor and number of cores."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        model = platform.processor() or "processor unknown"
    return f"{platform.machine()}, {model}, {os.cpu_count()} cores"


def read(file: Path = FILE) -> list[Figure]:
    return [Figure(**one) for one in json.loads(file.read_text(encoding="utf-8"))]


def append(figures: list[Figure], file: Path = FILE) -> None:
    """Add figures to the file, one a line so that a change shows what was added."""
    known = read(file) if file.exists() else []
    lines = [json.dumps(asdict(one), ensure_ascii=False) for one in (*known, *figures)]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
