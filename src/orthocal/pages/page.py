"""Our HTML pages: each is a template of its package, built on ``pages/templates/page.html``."""

from __future__ import annotations

from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def rendered(template: str, package: str, **values: Any) -> str:
    """A page as HTML. Names and texts are escaped by the template, never trusted."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader(__package__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(**values)
