"""Our HTML pages: each is a template, built on ``templates/page.html``."""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined


def rendered(template: str, package: str = "orthocal", **values: Any) -> str:
    """A page as HTML. Names and texts are escaped by the template, never trusted."""
    environment = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
