"""Pages of the repository's root in the site, and links that work both on a forge and here.

A page of ``WHOLE`` is one line on a forge, a link to the file in the root; in the site it is that file. Links out of
``docs/`` to such files become links to their pages, and a README lists the pages of its folder.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
#: page of the site -> file of the root
WHOLE = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}
PAGES = {file: f"docs/{page}.md" for page, file in WHOLE.items()} | {"README.md": "docs/index.md"}
#: [words](path#anchor), but neither an address nor a picture
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?![a-z]+:)([^)#\s]+)(#[^)\s]*)?\)")
IN_FOLDER = "\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def moved(text: str, folder: str, to: str = "docs") -> str:
    """Markdown written in ``folder`` of the repository, as it reads in the folder ``to``."""

    def link(found: re.Match[str]) -> str:
        words, path, anchor = found[1], found[2], found[3] or ""
        target = posixpath.normpath(posixpath.join(folder, path))
        page = PAGES.get(target, target)
        if page.startswith("docs/"):
            return f"[{words}]({posixpath.relpath(page, to)}{anchor})"
        return words  # a file of the repository that the site does not have

    return LINK.sub(link, text)


def read(app: Sphinx, docname: str, content: list[str]) -> None:
    if docname in WHOLE:
        file = ROOT / WHOLE[docname]
        app.env.note_dependency(str(file), docname=docname)
        content[0] = moved(file.read_text(encoding="utf-8"), ".")
    elif app.env.doc2path(docname).suffix == ".md":
        folder = posixpath.normpath(posixpath.join("docs", posixpath.dirname(docname)))
        content[0] = moved(content[0], folder, folder)
    if docname.endswith("/README"):
        content[0] += IN_FOLDER


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
