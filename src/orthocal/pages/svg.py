"""A figure as an SVG element of a page: small, in the page's colours and fonts, with tooltips.

Matplotlib writes an element for every point and six digits for every coordinate. Here points of one kind become one
path, coordinates get the digits that a screen can show, and colours become the variables of ``pages/style.py``.
"""

from __future__ import annotations

import base64
import io
import re
import weakref
from collections.abc import Iterator, Sequence
from itertools import pairwise
from xml.etree import ElementTree

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from PIL import Image

from .style import COLOURS, STYLE

#: with more points there are no tooltips of each
MOST_TIPS = 150
#: points of one path: those of one path do not darken each other
PATH_POINTS = 100
#: colours of an image
MOST_COLOURS = 128
#: what matplotlib leaves out of a style
BLACK = "#000000"
_VARIABLES = {shade.light: f"var(--{shade.name})" for shade in COLOURS}
_POINT = re.compile(r"(-?[\d.]+(?:e-?\d+)?)\s+(-?[\d.]+(?:e-?\d+)?)")
_NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_TIPS: weakref.WeakKeyDictionary[Artist, Sequence[str]] = weakref.WeakKeyDictionary()


def with_tips(artist: Artist, tips: Sequence[str]) -> None:
    """Give each point of a scatter its tooltip on pages."""
    if len(tips) <= MOST_TIPS:
        _TIPS[artist] = tips


def inline_svg(figure: Figure, prefix: str, seen: str = "") -> Markup:
    """The figure as an SVG element; ids get a prefix, since several figures share a page; ``seen`` is said of it."""
    tips, named = _marked(figure)
    stream = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(stream, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    for artist, own in named.items():
        artist.set_gid(own)
    root = ElementTree.fromstring(stream.getvalue())
    _plain_names(root)
    for unused in ("metadata", "defs"):
        for one in [child for child in root if child.tag == unused and not child.findall(".//*[@id]")]:
            root.remove(one)
    markers = {str(one.get("id")): str(one.get("d")) for one in root.iter("path") if one.get("id")}
    for group in list(root.iter("g")):
        group[:] = [one for one in group if _declared_alone(one) != {"fill": "none"}]
        each = tips.get(str(group.get("id")))
        if each is not None:
            _told(group, each, markers)
        _joined(group, markers)
    for element in root.iter():
        _restyled(element)
        if element.tag == "image":
            element.set("href", _smaller(element.get("href", "")))
    _used_ids(root, prefix)
    _described(root, seen)
    # matplotlib's texts are those of an XML file: whatever a name holds is escaped
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _marked(figure: Figure) -> tuple[dict[str, Sequence[str]], dict[Artist, str | None]]:
    """Ids for what has a tooltip, and the ids that were there: id -> its texts, one, or one a point."""
    tips: dict[str, Sequence[str]] = {}
    before: dict[Artist, str | None] = {}
    for artist in (one for axis in figure.axes for one in (*axis.lines, *axis.collections, *axis.patches)):
        label = str(artist.get_label()).replace(r"\$", "$")
        own = _TIPS.get(artist, [label] if label and not label.startswith("_") else None)
        if own is not None:
            before[artist] = artist.get_gid()
            artist.set_gid(f"tip-{len(tips)}")
            tips[f"tip-{len(tips)}"] = own
    return tips, before


def _plain_names(root: ElementTree.Element) -> None:
    """Names without their space, as HTML has them."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in [name for name in element.attrib if "}" in name]:
            element.set(name.rpartition("}")[2], element.attrib.pop(name))
        element.text = (element.text or "").strip() or None if element.tag not in ("text", "tspan") else element.text
        element.tail = (element.tail or "").strip() or None


def _told(group: ElementTree.Element, tips: Sequence[str], markers: dict[str, str]) -> None:
    """The tooltip of a group, or those of its points."""
    uses = [(parent, use) for parent in group.iter("g") for use in parent.findall("use")]
    if len(tips) == 1 or len(uses) != len(tips):
        _titled(group, tips[0] if len(tips) == 1 else "")
        return
    for (parent, use), tip in zip(uses, tips, strict=True):
        radius = _radius(markers.get(_target(use), ""))
        circle = ElementTree.Element("circle", {"cx": use.get("x", "0"), "cy": use.get("y", "0"), "r": f"{radius}"})
        _titled(circle, tip)
        parent.set("style", use.get("style", ""))
        parent[list(parent).index(use)] = circle


def _titled(element: ElementTree.Element, words: str) -> None:
    if words:
        title = ElementTree.Element("title")
        title.text = words
        element.insert(0, title)


def _target(use: ElementTree.Element) -> str:
    return str(use.get("href", "")).lstrip("#")


def _radius(marker: str) -> float | None:
    """Of a circle, as matplotlib writes it: it begins at (0, r) and has eight curves."""
    found = re.match(r"M 0 (\d[\d.]*)", marker)
    return float(found[1]) if found and marker.count("C") == 8 else None


def _joined(group: ElementTree.Element, markers: dict[str, str]) -> None:
    """Points of the same kind become paths of dots, and lines of the same kind one path."""
    children: list[ElementTree.Element] = []
    for alike in _runs(list(group)):
        radius = _radius(markers.get(_target(alike[0]), "")) if alike[0].tag == "use" else None
        if len(alike) > 1 and radius is not None:
            children += _dots(alike, radius)
        elif len(alike) > 1 and alike[0].tag == "path":
            alike[0].set("d", "".join(str(one.get("d")) for one in alike))
            children.append(alike[0])
        else:
            children += alike
    group[:] = children


def _runs(elements: list[ElementTree.Element]) -> Iterator[list[ElementTree.Element]]:
    """Neighbours that differ in their place alone."""
    run: list[ElementTree.Element] = []
    for one in elements:
        if run and _kind(one) == _kind(run[0]):
            run.append(one)
            continue
        if run:
            yield run
        run = [one]
    if run:
        yield run


def _kind(element: ElementTree.Element) -> tuple[object, ...]:
    place = {"use": ("x", "y"), "path": ("d",)}.get(element.tag)
    # whatever has children or an id is like nothing else
    if place is None or len(element) or element.get("id"):
        return (id(element),)
    return (element.tag, *sorted((name, value) for name, value in element.attrib.items() if name not in place))


def _dots(uses: list[ElementTree.Element], radius: float) -> Iterator[ElementTree.Element]:
    """Lines without length and with round ends."""
    style = dict(_declared(uses[0].get("style", "")))
    width = 2 * radius + float(style.get("stroke-width", 1.0)) * ("stroke" in style)
    opacity = style.get("opacity", style.get("fill-opacity", "1"))
    drawn = f"fill: none; stroke: {style.get('fill', BLACK)}; stroke-width: {width:.1f}; stroke-linecap: round"
    for start in range(0, len(uses), PATH_POINTS):
        # from left to right the steps are short
        each = sorted((float(use.get("x", 0)), float(use.get("y", 0))) for use in uses[start : start + PATH_POINTS])
        path = "h0".join(short_steps([each[:1], *([one] for one in each[1:])])) + "h0"
        yield ElementTree.Element("path", {"d": path, "style": f"{drawn}; stroke-opacity: {opacity}"})


def _declared(style: str) -> Iterator[tuple[str, str]]:
    for part in style.split(";"):
        name, _, value = part.partition(":")
        if value:
            yield name.strip(), value.strip()


def _declared_alone(element: ElementTree.Element) -> dict[str, str]:
    return dict(_declared(element.get("style", "")))


def _restyled(element: ElementTree.Element) -> None:
    """The page's colours and font, and no more digits than are seen."""
    declared = dict(_declared(element.get("style", "")))
    if declared:
        for name in ("fill", "stroke"):
            if name in declared:
                declared[name] = _VARIABLES.get(declared[name].lower(), declared[name])
        # the page has its own font
        declared.pop("font-family", None)
        element.set("style", ";".join(f"{name}:{value}" for name, value in declared.items()))
    if "d" in element.attrib and not element.attrib["d"].startswith("m"):
        element.set("d", _shortened(element.attrib["d"]))
    if "transform" in element.attrib:
        element.set("transform", _NUMBER.sub(lambda found: _short(found[0], 2), element.attrib["transform"]))
    for name in ("x", "y", "cx", "cy", "r", "width", "height"):
        if _NUMBER.fullmatch(element.get(name, "")) and element.tag != "svg":
            element.set(name, _short(element.attrib[name], 2))
    if re.match(r"rotate\(-?0 ", element.get("transform", "")):
        del element.attrib["transform"]


def _shortened(path: str) -> str:
    """A path with the digits that are seen; one of straight lines by its steps."""
    if re.fullmatch(r"[ML\d\s.e+-]*z?\s*", path):
        lines = [[(float(x), float(y)) for x, y in _POINT.findall(line)] for line in path.split("M")[1:]]
        return "".join(short_steps(lines)) + ("z" if path.rstrip().endswith("z") else "")
    whole = _NUMBER.sub(lambda found: _short(found[0], 2), path)
    return re.sub(r"\s*([MLCQZz])\s*", r"\1", whole).replace("\n", " ").strip()


def short_steps(lines: list[list[tuple[float, float]]]) -> Iterator[str]:
    """Lines by relative steps, in tenths of a point, each from where the last one ended; errors do not add up."""
    last = (0, 0)
    for points in lines:
        at = [(round(10 * x), round(10 * y)) for x, y in points]
        first = f"m{_pair(at[0][0] - last[0], at[0][1] - last[1])}"
        steps: list[tuple[int, int]] = []
        for before, after in pairwise(at):
            step = (after[0] - before[0], after[1] - before[1])
            if steps and steps[-1][0] * step[1] == steps[-1][1] * step[0] and _onwards(steps[-1], step):
                steps[-1] = (steps[-1][0] + step[0], steps[-1][1] + step[1])
            elif step != (0, 0) or len(at) == 2:
                steps.append(step)
        last = at[-1]
        yield first + ("l" if steps else "") + "".join(_joined_numbers([_pair(*step) for step in steps]))


def _onwards(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Whether two steps along one line have the same direction."""
    return one[0] * other[0] + one[1] * other[1] >= 0


def _pair(x: int, y: int) -> str:
    second = _tenths(y)
    return _tenths(x) + ("" if second.startswith("-") else " ") + second


def _tenths(value: int) -> str:
    whole = f"{value / 10:g}"
    return whole.replace("0.", ".", 1) if abs(value) < 10 and value else whole


def _joined_numbers(pairs: list[str]) -> Iterator[str]:
    for i, one in enumerate(pairs):
        yield one if i == 0 or one.startswith("-") else f" {one}"


def _short(number: str, digits: int) -> str:
    return f"{float(number):.{digits}f}".rstrip("0").rstrip(".") or "0"


def _smaller(address: str) -> str:
    """An image with few colours: maps and clouds of points need no more."""
    kind, _, data = address.partition(",")
    image = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA")
    stream = io.BytesIO()
    image.quantize(MOST_COLOURS, method=Image.Quantize.FASTOCTREE).save(stream, "PNG", optimize=True)
    packed = base64.b64encode(stream.getvalue()).decode("ascii")
    return f"{kind},{packed}" if len(packed) < len(data) else address


def _used_ids(root: ElementTree.Element, prefix: str) -> None:
    """Only ids that something refers to stay, and are unique on the page."""
    written = ElementTree.tostring(root, encoding="unicode")
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', written))
    names = {one or other for one, other in used}
    for element in root.iter():
        own = element.attrib.pop("id", None)
        if own in names:
            element.set("id", f"{prefix}-{own}")
        for name, value in element.attrib.items():
            if name == "href" and value.startswith("#"):
                element.set(name, f"#{prefix}-{value[1:]}")
            elif "url(#" in value:
                element.set(name, value.replace("url(#", f"url(#{prefix}-"))


def _described(root: ElementTree.Element, seen: str) -> None:
    """The size by its shape alone, and what is seen."""
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.set("xmlns", "http://www.w3.org/2000/svg")
    root.set("role", "img")
    root.set("aria-label", seen)
