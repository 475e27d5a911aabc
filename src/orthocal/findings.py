"""What a user should know before trusting a result: findings, in plain words."""

from __future__ import annotations

from html import escape
from typing import Literal, NamedTuple

from .advice import in_files

Level = Literal["fine", "note", "problem"]
#: colours of their marks in notebooks, worst first
MARKS: dict[Level, str] = {"problem": "#d1495b", "note": "#d19a2b", "fine": "#3a9d5d"}


class Finding(NamedTuple):
    """One finding: how bad, about what, what was found, and what to do."""

    level: Level
    topic: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        mark = {"fine": "[fine]   ", "note": "[note]   ", "problem": "[problem]"}[self.level]
        return f"{mark} {self.topic}: {self.message}" + (f" -> {self.advice}" if self.advice else "")

    def in_files(self) -> Finding:
        """In words of problem files and commands."""
        return self._replace(message=in_files(self.message), advice=in_files(self.advice))

    def as_html(self) -> str:
        """With a mark of its level at the side, in a colour for light and dark pages."""
        todo = f"<br><em>{escape(self.advice)}</em>" if self.advice else ""
        return (
            f'<div style="border-left:.3em solid {MARKS[self.level]};padding:.1em .6em;margin:.3em 0">{self.level} · '
            f"<strong>{escape(self.topic)}</strong>: {escape(self.message)}{todo}</div>"
        )


class Findings(list[Finding]):
    """The findings, worst first; printing them gives one line each.

    They are true if there is no problem among them: ``assert posterior.check()`` fails where there is one.
    """

    def __init__(self, found: list[Finding]) -> None:
        super().__init__(sorted(found, key=lambda finding: ("problem", "note", "fine").index(finding.level)))

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """For a notebook: problems and notes first, what is fine folded away; all texts are escaped."""
        counts = {level: sum(one.level == level for one in self) for level in MARKS}
        words = ", ".join(f"{n} {level}{'s' if n != 1 and level != 'fine' else ''}" for level, n in counts.items())
        said = [one.as_html() for one in self if one.level != "fine"]
        fine = [one.as_html() for one in self if one.level == "fine"]
        folded = ["<details><summary>what is fine</summary>", *fine, "</details>"] if fine else []
        return "\n".join([f"<div><strong>Findings: {words}</strong>", *said, *folded, "</div>"])

    def in_files(self) -> Findings:
        """In words of problem files and commands."""
        return Findings([one.in_files() for one in self])

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """Whether there is no problem among them."""
        return not self.problems

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self if finding.level == "problem"]
