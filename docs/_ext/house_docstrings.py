"""Docstrings of the house as reStructuredText: an indented formula is shown as it is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

#: the line under the title of a section: from there on indentation means something else
UNDERLINE = re.compile(r"-{3,}\s*$")
#: what is between double backticks stays as it is
LITERAL = re.compile(r"(``.*?``)")


def escaped(line: str) -> str:
    """|r| in a sentence is a norm, not a substitution."""
    parts = LITERAL.split(line)
    return "".join(part if i % 2 else part.replace("|", "\\|") for i, part in enumerate(parts))


def prepared(lines: list[str]) -> list[str]:
    """The lines, with a directive before every indented paragraph ahead of the first section."""
    underlined = [i for i, line in enumerate(lines) if i and UNDERLINE.match(line) and lines[i - 1].strip()]
    first = min(underlined, default=len(lines))
    examples = next((i for i in underlined if lines[i - 1].strip() == "Examples"), len(lines))
    made: list[str] = []
    for i, line in enumerate(lines):
        formula = i < first and line.startswith(" ")
        begins = formula and (i == 0 or not lines[i - 1].strip())
        before = next((text for text in reversed(made) if text.strip()), "")
        # a list's or a directive's own text, and a second paragraph of a formula, stay
        if begins and not before.startswith((" ", "-", "*", "..")) and not before.endswith("::"):
            made += [".. code-block:: text", ""]
        made.append(line if formula or i > examples or line.lstrip().startswith(">>>") else escaped(line))
    return made


def process(app: Sphinx, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    if what == "data" and type(obj).__doc__ == getattr(obj, "__doc__", None):
        lines[:] = [f"One of type ``{type(obj).__name__}``."]  # its docstring is that of its class
    lines[:] = prepared(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    # before napoleon, after which the titles of sections are no longer underlined
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
