"""Put the fragments of ``changes/`` into ``CHANGELOG.md`` as the section of a release.

make changelog VERSION=0.3.0
"""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("added", "changed", "fixed", "removed")
NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
#: what the new section stands under: the title and the words that point here
HEAD = re.compile(r"## Unreleased.*?\n(?=## )", re.DOTALL)


def fragments(root: Path = ROOT) -> list[Path]:
    """All of ``changes/`` but how to write one."""
    return sorted(path for path in (root / "changes").iterdir() if path.name != "README.md")


def fault(path: Path) -> str | None:
    """What is wrong with a fragment; None for nothing."""
    if not NAME.fullmatch(path.name):
        return f"{path.name}: name it like few-words.KIND.md, KIND one of {', '.join(KINDS)}"
    text = path.read_text(encoding="utf-8")
    if len(text.splitlines()) != 1 or not text.endswith("\n"):
        return f"{path.name}: one line, with a line break at its end"
    if text.startswith(("-", "*", "#", " ")) or not text.rstrip("\n").endswith("."):
        return f"{path.name}: a sentence that ends with a full stop, without bullet or title"
    return None


def section(version: str, date: str, paths: list[Path]) -> str:
    """The release's part of the changelog."""
    lines = [f"## {version} ({date})", ""]
    for kind in KINDS:
        own = [path.read_text(encoding="utf-8").strip() for path in paths if path.name.endswith(f".{kind}.md")]
        lines += [f"### {kind.capitalize()}", "", *(f"- {line}" for line in own), ""] if own else []
    return "\n".join(lines) + "\n"


def assemble(version: str, date: str, root: Path = ROOT) -> None:
    """Write the section below the head of the changelog, and remove the fragments."""
    paths = fragments(root)
    if faults := [said for path in paths if (said := fault(path))]:
        raise SystemExit("\n".join(faults))
    file = root / "CHANGELOG.md"
    text = file.read_text(encoding="utf-8")
    head = HEAD.search(text)
    if head is None or not paths:
        raise SystemExit("CHANGELOG.md has no section Unreleased" if paths else "changes/ has no fragments")
    file.write_text(text[: head.end()] + section(version, date, paths) + text[head.end() :], encoding="utf-8")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not re.fullmatch(r"\d+\.\d+\.\d+", sys.argv[1]):
        sys.exit("give the version: make changelog VERSION=0.3.0")
    assemble(sys.argv[1], datetime.now(UTC).date().isoformat())
