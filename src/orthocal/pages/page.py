"""Our HTML pages: each is a template of its package, built on ``pages/templates/page.html``."""

from __future__ import annotations

import re
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from .pictures import slug
from .style import COLOURS

_CONTENTS = "<!-- contents -->"
_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


def rendered(template: str, package: str, **values: Any) -> str:
    """A page as HTML. Names and texts are escaped by the template, never trusted."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return _with_contents(environment.get_template(template).render(colours=COLOURS, **values))


def _with_contents(page: str) -> str:
    """The page with a table of contents made of its headings: the two cannot differ.

    A user's text cannot be taken for a heading, since it is escaped by now.
    """
    found: dict[str, str] = {}

    def numbered(heading: re.Match[str]) -> str:
        title = heading[1].strip()
        name = own = f"to-{slug(Markup(title).unescape())}"
        while own in found:
            own = f"{name}-{len(found)}"
        found[own] = title
        return f'<h2 id="{own}">{title}</h2>'

    page = _HEADING.sub(numbered, page)
    links = "\n".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in found.items())
    return page.replace(_CONTENTS, f"<ul>\n{links}\n</ul>", 1)
