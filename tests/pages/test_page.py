"""The frame of every page: contents made of its headings."""

import re

from orthocal.pages.page import _with_contents
from orthocal.pages.tables import counted


def test_contents_are_the_headings():
    page = "<nav><!-- contents --></nav><h2>Data &amp; fit</h2><h2>Bias</h2>\n<h2>Bias</h2>"
    found = _with_contents(page)
    links = re.findall(r'<a href="#([^"]+)">([^<]+)</a>', found)
    assert [title for _, title in links] == ["Data &amp; fit", "Bias", "Bias"]
    assert [name for name, _ in links] == re.findall(r'<h2 id="([^"]+)">', found)
    assert len({name for name, _ in links}) == 3


def test_texts_are_no_headings():
    """What a user wrote is escaped before: it cannot make a heading, nor take the place of the contents."""
    page = "<nav><!-- contents --></nav><h2>A</h2><p>&lt;h2&gt;B&lt;/h2&gt; &lt;!-- contents --&gt;</p>"
    found = _with_contents(page)
    assert found.count("<li>") == 1
    assert "&lt;!-- contents --&gt;" in found


def test_one_row_and_two_rows():
    assert [counted(n, "row") for n in (0, 1, 2)] == ["0 rows", "1 row", "2 rows"]
