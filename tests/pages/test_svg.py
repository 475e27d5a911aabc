"""Figures as SVG elements of a page: what is drawn is what matplotlib drew, smaller and in the page's colours."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

from orthocal.pages.page import entries, picture
from orthocal.pages.panels import Drawing, Panel, ShownFigure, columns_of
from orthocal.pages.style import COLOURS, DATA, MODEL, TOTAL
from orthocal.pages.svg import inline_svg, short_steps, with_tips

HOSTILE = "<script>alert(1)</script>\"'&"


def elements(root, tag):
    return [one for one in root.iter() if one.tag.endswith(f"}}{tag}")]


def walked(path):
    """The points of a path of relative steps, line by line, from its text alone."""
    lines, at = [], np.zeros(2)
    for command, numbers in re.findall(r"([mlh])([^mlhz]*)", path):
        values = [float(one) for one in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", numbers)]
        if command == "h":
            assert values == [0]
            continue
        for step in np.reshape(values, (-1, 2)):
            at = at + step
            if command == "m":
                lines.append([at])
            else:
                lines[-1].append(at)
    return [np.array(line) for line in lines]


def test_steps_lead_where_the_points_are():
    """Errors of rounding do not add up, over 3000 steps; points that say nothing are left out."""
    rng = np.random.default_rng(1)
    lines = [np.cumsum(rng.normal(0, 3, (1000, 2)), axis=0) + 50 for _ in range(3)]
    found = walked("".join(short_steps([line.tolist() for line in lines])))
    assert len(found) == 3
    for line, back in zip(lines, found, strict=True):
        np.testing.assert_allclose(back[0], line[0], atol=0.0501)
        np.testing.assert_allclose(back[-1], line[-1], atol=0.0501)
        # every point lies on what is left of the line
        start, step = back[:-1], np.diff(back, axis=0)
        along = np.einsum("nsk,sk->ns", line[:, None] - start, step) / (step**2).sum(axis=1)
        nearest = start + np.clip(along, 0, 1)[:, :, None] * step
        assert np.sqrt(((line[:, None] - nearest) ** 2).sum(axis=2)).min(axis=1).max() < 0.08
    straight = "".join(short_steps([[(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (3.0, 1.0)]]))
    assert straight == "m0 0l3 3 0-2"


def figure_of(points=400, alpha=0.5):
    figure = Figure((4, 3))
    axis = figure.subplots()
    x = np.linspace(0, 1, points)
    axis.scatter(x, np.sin(9 * x), s=16, color=DATA, alpha=alpha, linewidths=0, label="field data")
    axis.plot(x, x, color=MODEL, label=HOSTILE)
    axis.fill_between(x, x - 0.1, x + 0.1, color=TOTAL, alpha=0.3, lw=0, label="band")
    axis.set(xlabel=HOSTILE, title="points")
    return figure, axis


def test_points_become_dots_at_their_places():
    figure, axis = figure_of()
    root = ElementTree.fromstring(inline_svg(figure, "a"))
    (paths,) = [
        list(group.iter())
        for group in root.iter()
        if group.find("{*}title") is not None and group.find("{*}title").text == "field data"
    ]
    dots = [one for one in paths if one.tag.endswith("path") and "h0" in one.get("d", "")]
    assert all("stroke-width:4.0" in one.get("style") and "stroke-opacity:0.5" in one.get("style") for one in dots)
    found = np.concatenate([np.concatenate(walked(one.get("d"))) for one in dots])
    x = np.linspace(0, 1, 400)
    pixels = axis.transData.transform(np.column_stack([x, np.sin(9 * x)])) * 72 / figure.dpi
    expected = np.column_stack([pixels[:, 0], 3 * 72 - pixels[:, 1]])
    np.testing.assert_allclose(found[np.argsort(found[:, 0])], expected, atol=0.11)


def test_few_points_have_tooltips():
    figure, axis = figure_of(20)
    with_tips(axis.collections[0], [f"number {i} {HOSTILE}" for i in range(20)])
    root = ElementTree.fromstring(inline_svg(figure, "a"))
    circles = list(elements(root, "circle"))
    assert [one.find("{*}title").text for one in circles] == [f"number {i} {HOSTILE}" for i in range(20)]
    assert {one.get("r") for one in circles} == {"2"}
    many, axis = figure_of(500)
    with_tips(axis.collections[0], ["a"] * 500)
    assert "<circle" not in inline_svg(many, "a")


def test_colours_are_those_of_the_page():
    figure, _ = figure_of()
    svg = inline_svg(figure, "a")
    for shade in COLOURS[:3]:
        assert shade.light not in svg
    assert {"var(--data)", "var(--model)", "var(--total)"} <= set(re.findall(r"var\(--\w+\)", svg))
    light, dark = {one.light for one in COLOURS}, {one.dark for one in COLOURS}
    assert len(light) == len(dark) == len({one.name for one in COLOURS}) == len(COLOURS)
    assert not light & dark


def test_texts_are_texts_and_escaped():
    figure, _ = figure_of()
    svg = inline_svg(figure, "a", f"seen {HOSTILE}")
    assert "<script" not in svg
    root = ElementTree.fromstring(svg)
    assert HOSTILE in [one.text for one in elements(root, "text")]
    assert HOSTILE in [one.text for one in elements(root, "title")]
    assert root.get("aria-label") == f"seen {HOSTILE}"
    assert "DejaVu" not in svg


def test_the_figure_is_as_it_was():
    figure, axis = figure_of()
    axis.lines[0].set_gid("mine")
    first = inline_svg(figure, "a")
    assert axis.lines[0].get_gid() == "mine"
    assert axis.collections[0].get_gid() is None
    assert inline_svg(figure, "a") == first


def test_ids_that_are_used_stay_and_differ_between_figures():
    one, other = (inline_svg(figure_of()[0], prefix) for prefix in ("a", "b"))
    ids = [re.findall(r'\bid="([^"]+)"', svg) for svg in (one, other)]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])
    for svg, own in zip((one, other), ids, strict=True):
        assert {a or b for a, b in re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', svg)} == set(own)


def test_images_are_made_smaller():
    figure = Figure((4, 4))
    axis = figure.subplots()
    values = np.add.outer(np.arange(200), np.arange(200)).astype(float)
    axis.pcolormesh(values, rasterized=True)
    svg = inline_svg(figure, "a")
    assert "data:image/png;base64," in svg
    assert len(svg) < 60_000


def panel(value, label="line"):
    def draw(axis):
        axis.plot([0, 1], [0, value], color=DATA, label=label)

    return Panel(draw, f"a line to {value}")


def test_panels_of_a_block_share_their_axis_apart_and_together():
    drawing = Drawing(((panel(1), panel(5)), (panel(2),)), 2, share=True)
    figure = drawing.figure()
    assert isinstance(figure, ShownFigure)
    limits = [axis.get_ylim() for axis in figure.axes]
    assert limits[0] == limits[1] != limits[2]
    apart = [[one.figure.axes[0].get_ylim() for one in block] for block in drawing.apart()]
    np.testing.assert_allclose([one for block in apart for one in block], limits)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_picture_has_one_name_for_what_is_drawn_twice():
    shown = picture("Two lines", "A caption.", Drawing(((panel(1), panel(5)),), 2))
    assert [entry.label for entry in shown.key] == ["line"]
    assert "var(--data)" in shown.key[0].swatch
    assert [len(block) for block in shown.blocks] == [2]
    assert 'aria-label="a line to 5"' in shown.svg
    assert picture("t", "c", Drawing(((panel(1),),), legend=False)).key == ()


@pytest.mark.parametrize(
    ("draw", "part"),
    [
        (lambda axis: axis.plot([0, 1], "--", color=MODEL, label="a"), "stroke-dasharray:5 3"),
        (lambda axis: axis.scatter([0], [1], color=MODEL, label="a"), "<circle"),
        (lambda axis: axis.fill_between([0, 1], 1, color=MODEL, alpha=0.3, label="a"), "fill-opacity:0.3"),
        (lambda axis: axis.errorbar([0], [1], yerr=[1], fmt="o", color=MODEL, label="a"), "<circle"),
        (lambda axis: axis.barh([0], [1], color=MODEL, label="a"), "<rect"),
        (lambda axis: axis.plot([0], [1], "|", color=MODEL, label="a"), "M12 1V11"),
    ],
)
def test_every_kind_of_artist_has_its_swatch(draw, part):
    axis = Figure().subplots()
    draw(axis)
    handles, labels = axis.get_legend_handles_labels()
    (entry,) = entries(dict(zip(labels, handles, strict=True)))
    assert part in entry.swatch
    assert "var(--model)" in entry.swatch


def test_four_panels_are_a_square():
    assert [columns_of(count) for count in range(1, 8)] == [1, 2, 3, 2, 3, 3, 3]
