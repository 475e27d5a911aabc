"""The site without Sphinx: every page has its place, and what the build adds to the pages is right."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# an installed package has no pages
absent = "the pages are not beside the tests"
benchmark_pages = pytest.importorskip("benchmark_pages", reason=absent)
check_site = pytest.importorskip("check_site", reason=absent)
command_pages = pytest.importorskip("command_pages", reason=absent)
house_docstrings = pytest.importorskip("house_docstrings", reason=absent)
repository_pages = pytest.importorskip("repository_pages", reason=absent)

#: pages as the site names them: path below docs/ without ending
SOURCES = {
    path.relative_to(DOCS).with_suffix("").as_posix()
    for ending in ("md", "ipynb")
    for path in DOCS.rglob(f"*.{ending}")
    if path.relative_to(DOCS).parts[0] != "generated" and ".ipynb_checkpoints" not in path.parts
}
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.DOTALL | re.MULTILINE)


def listed(page):
    """The pages that the tables of contents of a page name."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8") if (DOCS / f"{page}.md").exists() else ""
    if page.endswith("/README"):
        text += repository_pages.IN_FOLDER
    folder = Path(page).parent
    for tree in TOCTREE.findall(text):
        lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
        for line in lines:
            if ":glob:" in tree:
                files = [path for path in (DOCS / folder).glob(line) if path.suffix in (".md", ".ipynb")]
                found = [path.relative_to(DOCS).with_suffix("").as_posix() for path in files]
                yield from (name for name in found if name != page)
            else:
                yield (folder / line).as_posix()


def test_every_page_has_its_place_in_the_contents():
    seen, waiting = set(), ["index"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += listed(page)
    lost = sorted(SOURCES - seen)
    assert not lost, f"in no table of contents of docs/, add them to one: {lost}"
    gone = sorted(name for name in seen - SOURCES if not name.startswith("generated/"))
    assert not gone, f"named in a table of contents, and not there: {gone}"


def test_links_to_the_root_lead_to_the_sites_own_pages():
    moved = repository_pages.moved
    assert moved("[a](../SECURITY.md#x)", "docs") == "[a](security.md#x)"
    assert moved("[a](../../CONTRIBUTING.md)", "docs/decisions", "docs/decisions") == "[a](../contributing.md)"
    assert moved("[a](docs/noise.md#b) ![p](docs/images/a.png)", ".") == "[a](noise.md#b) ![p](docs/images/a.png)"
    assert moved("[code](../tests/exact) [web](https://a.b/c)", "docs") == "code [web](https://a.b/c)"


@pytest.mark.parametrize("page", repository_pages.WHOLE)
def test_a_page_of_the_root_is_a_link_on_a_forge(page):
    assert f"](../{repository_pages.WHOLE[page]})" in (DOCS / f"{page}.md").read_text(encoding="utf-8")


def test_a_formula_of_a_docstring_is_shown_as_written():
    lines = ["The loss, |r|^2.", "", "    b* = b - |x| D", "", "Parameters", "----------", "x", "    A |norm|."]
    made = house_docstrings.prepared(lines)
    assert made[0] == r"The loss, \|r\|^2."
    assert made[2:5] == [".. code-block:: text", "", "    b* = b - |x| D"]
    assert made[-1] == r"    A \|norm\|."
    assert house_docstrings.prepared(["``a | b``", "", "Examples", "--------", ">>> a | b"])[0::4] == [
        "``a | b``",
        ">>> a | b",
    ]


def test_every_command_is_in_the_reference():
    from orthocal.cli import app

    page = command_pages.page()
    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    assert "run" in names
    for name in names:
        assert f"## `orthocal {name.replace('_', '-')}`" in page
    assert "--out" in page
    assert "Calibrate the problem" in page


def test_the_history_of_the_benchmarks_is_whole_and_shown(tmp_path):
    figures = benchmark_pages.read()
    assert [one.date for one in figures] == sorted(one.date for one in figures), "the oldest stand first"
    for one in figures:
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", one.date)
        assert re.fullmatch(r"[0-9a-f]{7,}\+?|unknown", one.commit)
        assert one.figure > 0
        assert (one.ratio is None) == (one.peer is None)
    page = benchmark_pages.page(tmp_path)
    assert all(one.commit in page and one.name in page for one in figures)
    for picture in re.findall(r"\]\((\S+\.svg)\)", page):
        assert (tmp_path / picture).read_text(encoding="utf-8").startswith("<?xml")


def small_site(folder, link):
    (folder / "a.html").write_text(f'<a href="{link}">x</a><h1 id="top">A</h1>', encoding="utf-8")
    (folder / "b.html").write_text('<a href="a.html#top">x</a><img src="p.png"><p id="there">', encoding="utf-8")
    (folder / "p.png").write_bytes(b"")
    return folder


@pytest.mark.parametrize("link", ["b.html", "b.html#there", "#top", "https://elsewhere.org/x", "p.png"])
def test_links_that_lead_somewhere(tmp_path, link):
    assert check_site.broken(small_site(tmp_path, link)) == []


@pytest.mark.parametrize("link", ["c.html", "b.html#gone", "#gone", "q.png", "../b.html"])
def test_links_that_lead_nowhere(tmp_path, link):
    assert check_site.broken(small_site(tmp_path, link)) == [f"a.html: {link}"]


@pytest.mark.parametrize(("words", "pages"), [("missing cells", ["b"]), ("cells", ["a", "b"]), ("nowhere", [])])
def test_what_search_finds(tmp_path, words, pages):
    pytest.importorskip("snowballstemmer")
    index = {"docnames": ["a", "b"], "terms": {"cell": [0, 1], "miss": 1}, "titleterms": {}}
    (tmp_path / "searchindex.js").write_text(f"Search.setIndex({json.dumps(index)})", encoding="utf-8")
    assert check_site.found(tmp_path, words) == pages
