"""Whether what was executed before still holds: a digest of the package and of the files that notebooks read."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
BUILD = DOCS.parent / "build" / "docs"
#: the digest of the last build that was whole
STAMP = BUILD / "executed-with"


@cache
def digest() -> str:
    """SHA-256 of the sources of all packages, and of data beside notebooks and gallery scripts."""
    beside = [path for folder in ("tutorials", "gallery") for path in (DOCS / folder).rglob("*")]
    data = [path for path in beside if path.is_file() and path.suffix not in (".ipynb", ".md", ".rst")]
    scripts = {path for path in data if path.name.startswith("plot_")}  # sphinx-gallery compares those itself
    packages = [path for folder in ("src", "apps") for path in (DOCS.parent / folder).rglob("*.*")]
    sources = [*(path for path in packages if path.suffix in (".py", ".html")), *(set(data) - scripts)]
    whole = hashlib.sha256()
    for path in sorted(sources):
        whole.update(path.relative_to(DOCS.parent).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return whole.hexdigest()


def changed() -> bool:
    """Whether the last whole build had other sources."""
    return not STAMP.exists() or STAMP.read_text(encoding="utf-8") != digest()


def note(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        BUILD.mkdir(parents=True, exist_ok=True)
        STAMP.write_text(digest(), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", note)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
