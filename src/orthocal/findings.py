"""What a user should know before trusting a result: findings, in plain words."""

from __future__ import annotations

from typing import Literal, NamedTuple

Level = Literal["fine", "note", "problem"]


class Finding(NamedTuple):
    """One finding: how bad, about what, what was found, and what to do."""

    level: Level
    topic: str
    message: str
    advice: str = ""

    def __str__(self) -> str:
        mark = {"fine": "[fine]   ", "note": "[note]   ", "problem": "[problem]"}[self.level]
        return f"{mark} {self.topic}: {self.message}" + (f" -> {self.advice}" if self.advice else "")


class Findings(list[Finding]):
    """The findings, worst first; printing them gives one line each.

    They are true if there is no problem among them: ``assert posterior.check()`` fails where there is one.
    """

    def __init__(self, found: list[Finding]) -> None:
        super().__init__(sorted(found, key=lambda finding: ("problem", "note", "fine").index(finding.level)))

    def __str__(self) -> str:
        return "\n".join(str(finding) for finding in self)

    __repr__ = __str__

    def __bool__(self) -> bool:
        return self.ok

    @property
    def ok(self) -> bool:
        """Whether there is no problem among them."""
        return not self.problems

    @property
    def problems(self) -> list[Finding]:
        return [finding for finding in self if finding.level == "problem"]
