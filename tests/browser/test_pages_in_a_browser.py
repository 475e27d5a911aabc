"""Every kind of page in a real browser: it fits any screen, light or dark, and breaks no rule of accessibility."""

from __future__ import annotations

import pytest
from page_kinds import HOSTILE, KINDS

pytestmark = pytest.mark.browser
#: bytes of a page
LARGEST = 600_000
WIDTHS = (390, 768, 1280)
SCHEMES = ("light", "dark")
#: the page of tables alone
WITHOUT_PICTURES = "examples"


@pytest.fixture
def opened(browser, page_of):
    """A page of a kind in a window, and what the browser said about it."""
    pages = []

    def open_page(kind, width=1280, scheme="light"):
        page, said = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme), []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
        page.goto(page_of(kind).as_uri())
        pages.append(page)
        return page, said

    yield open_page
    for page in pages:
        page.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_fits_and_can_be_read(kind, width, scheme, opened, screenshots):
    from axe_playwright_python.sync_playwright import Axe

    page, said = opened(kind, width, scheme)
    page.screenshot(path=screenshots / f"{kind}-{width}-{scheme}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    rules = {"runOnly": ["wcag2a", "wcag2aa", "best-practice"]}
    broken = Axe().run(page, options=rules).response["violations"]
    assert not broken, [(one["id"], [node["html"][:200] for node in one["nodes"]][:3]) for one in broken]
    assert said == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_small_and_has_its_landmarks(kind, opened, page_of):
    assert page_of(kind).stat().st_size < LARGEST
    page, _ = opened(kind)
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert page.locator(landmark).count() == 1, landmark
    titles = page.locator("h2").all_inner_texts()
    assert page.locator("nav a").all_inner_texts() == titles
    assert page.locator("script").count() == 0
    # every link of the contents leads somewhere
    targets = page.eval_on_selector_all("nav a", "links => links.map(a => document.querySelector(a.hash) !== null)")
    assert targets == [True] * len(titles)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_have_descriptions_and_texts(kind, opened):
    """Each says in words what is seen; its labels are texts, in the font of the page."""
    page, _ = opened(kind)
    pictures = page.locator("figure svg[role=img]")
    assert (pictures.count() == 0) == (kind == WITHOUT_PICTURES)
    for described in pictures.evaluate_all("all => all.map(one => one.getAttribute('aria-label'))"):
        assert len(described) > 25, described
    assert page.locator("figure svg text").count() >= 5 * pictures.count()


@pytest.mark.parametrize("kind", KINDS)
def test_a_dark_page_has_other_colours_everywhere(kind, opened):
    """Paper and ink change places, and no colour of a picture is one that only a light page has."""
    found = []
    for scheme in SCHEMES:
        page, _ = opened(kind, 768, scheme)
        # of every shape that is filled or stroked by one of our colours
        script = """all => [...new Set(all.flatMap(one => {
            const style = getComputedStyle(one), written = one.getAttribute('style') || '';
            return ['fill', 'stroke'].filter(name => new RegExp('(^|;)' + name + ':(?!none|url)').test(written))
                .map(name => style[name]);
        }))]"""
        shapes = "figure .panels path, figure .panels circle, figure .panels use, figure .panels g[style]"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        found.append((paper, set(page.locator(shapes).evaluate_all(script))))
    (white, light), (black, dark) = found
    assert white == "rgb(255, 255, 255)"
    assert black != white
    assert not light & dark, f"the same on light and dark pages: {light & dark}"


def test_hostile_names_are_texts(opened):
    page, said = opened("algorithm-1")
    assert page.locator("img").count() == 0
    assert page.locator("h1").inner_text() == HOSTILE
    assert page.title() == HOSTILE
    assert said == []


def test_a_point_says_what_it_is(opened):
    page, _ = opened("one-input")
    tip = page.locator("figure svg circle title").first.text_content()
    assert tip.startswith("time ")
    assert ", height " in tip


def test_panels_stack_on_a_narrow_screen(opened):
    """Side by side where there is room, below each other where there is none, and never smaller than can be read."""
    places = {}
    for width in (390, 1280):
        page, _ = opened("one-input", width)
        places[width] = [one.bounding_box() for one in page.locator("figure").first.locator("svg[role=img]").all()]
    left, right = places[1280]
    assert left["y"] == right["y"]
    assert left["x"] < right["x"]
    above, below = places[390]
    assert above["x"] == below["x"]
    assert above["width"] > 340
    assert below["y"] > above["y"] + above["height"] - 1
