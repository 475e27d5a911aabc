"""``llms.txt``: what the site has, one line a page, in the order of its contents, with each page's first words."""

from __future__ import annotations

from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

HEAD = """# orthocal

> Bayesian calibration of computer models whose bias is unknown, made identifiable by orthogonality: from field data and
> a simulator, or a table of its runs, to the posterior of the simulator's parameters and of its bias. A Python library
> (`import orthocal as oc`) and a command line (`orthocal`).

Start: `problem = oc.Problem(x, y, simulator, {"name": prior}, oc.Box(0, 1))`, `posterior = oc.calibrate(problem)`,
`posterior.summary()`, `posterior.check()`, `posterior.predict(x_new)`, `posterior.report("fit.html")`. Without Python:
`orthocal run problem.toml`. Every public name has a page, `generated/names/orthocal.NAME.html`.
"""
#: letters of a page's first words
LONGEST = 160
#: folders whose pages are too many for a short list; the page above them is in it
LEFT_OUT = ("generated/names/", "decisions/")


def first_words(doctree: nodes.document) -> str:
    """The first sentence of a page, or as much as fits."""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section | nodes.document):
            text = " ".join(paragraph.astext().split())
            sentence = text.split(". ")[0].rstrip(".:")
            return sentence if len(sentence) <= LONGEST else sentence[:LONGEST].rsplit(" ", 1)[0] + " ..."
    return ""


def captioned(env: BuildEnvironment) -> list[tuple[str, list[str]]]:
    """Caption and pages of every table of contents of the first page."""
    root = env.config.root_doc
    found = env.tocs[root].findall(lambda node: node.tagname == "toctree")
    return [(tree.get("caption") or "", [name for _, name in tree["entries"]]) for tree in found]


def below(env: BuildEnvironment, docname: str) -> list[str]:
    """A page and all pages under it, without those of single names."""
    return [docname, *(page for part in env.toctree_includes.get(docname, []) for page in below(env, part))]


def text(env: BuildEnvironment) -> str:
    lines = [HEAD]
    for caption, names in captioned(env):
        lines += ["", f"## {caption}", ""]
        for name in dict.fromkeys(page for top in names for page in below(env, top)):
            if name.startswith(LEFT_OUT) and not name.endswith("/README"):
                continue
            title, words = env.titles[name].astext(), first_words(env.get_doctree(name))
            lines.append(f"- [{title}]({name}.html)" + (f": {words}" if words else ""))
    return "\n".join(lines) + "\n"


def write(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        (Path(app.outdir) / "llms.txt").write_text(text(app.env), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
