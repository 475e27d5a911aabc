"""Walk a built site: links and pictures inside of it must lead somewhere, and search must find what is there.

python docs/_ext/check_site.py site
"""

from __future__ import annotations

import json
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: what a user would type
SEARCHED = "missing cells"


class Page(HTMLParser):
    """Anchors and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value is None:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            elif name in ("href", "src"):
                self.links.add(value)


def broken(site: Path) -> list[str]:
    """Page and link of all that lead nowhere."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    if not pages:
        raise SystemExit(f"{site} has no page: build it by `make docs`")
    found = []
    for path, page in pages.items():
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            target = target / "index.html" if target.is_dir() else target
            there = pages.get(target)
            lost = there is not None and parts.fragment and unquote(parts.fragment) not in there.anchors
            if not target.is_file() or lost:
                found.append(f"{path.relative_to(site)}: {link}")
    return found


def found(site: Path, words: str) -> list[str]:
    """The pages that the site's own search finds for all of the words together."""
    from snowballstemmer import stemmer  # Sphinx brings it

    text = (site / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    pages = set(range(len(index["docnames"])))
    for word in words.lower().split():
        stem = stemmer("english").stemWord(word)
        here = (index[where].get(stem, []) for where in ("terms", "titleterms"))
        pages &= {page for one in here for page in (one if isinstance(one, list) else [one])}
    return [index["docnames"][page] for page in sorted(pages)]


def main(site: Path) -> int:
    lost = broken(site.resolve())
    print(*lost, sep="\n", end="\n" if lost else "")
    pages = found(site, SEARCHED)
    print(f"{len(lost)} broken links inside of the site; search finds {SEARCHED!r} on {len(pages)} pages")
    return int(bool(lost) or not pages)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
