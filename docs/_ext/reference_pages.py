"""Pages that are written before a build: every public name, every command, and the history of the benchmarks."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

import benchmark_pages
import command_pages
import orthocal as oc
from orthocal.lazy_names import stub_imports

GENERATED = Path(__file__).parents[1] / "generated"
#: where public names live -> title and words of their page; what is not listed comes last, by its own name
GROUPS = {
    "problem": ("Problems", "What is known: field data, simulator, priors, domain and noise."),
    "calibration": ("Calibration", "From a problem and a method to a posterior."),
    "results": ("Results", "What is learnt: draws, predictions, checks, figures and pages."),
    "comparison": ("Comparison", "Fits side by side: methods, outcomes, simulators, experiments."),
    "experiments": ("Several experiments", "Problems that share parameters."),
    "runs": ("Runs", "A slow simulator leaves a table of runs."),
    "emulators": ("Emulation", "A table of runs becomes a simulator."),
    "refinement": ("Where to run next", "More runs where they help most."),
    "execution": ("Simulators outside of Python", "Programs, FMUs and servers as simulators."),
    "errors": ("Errors", "What is raised, and what is warned of."),
}
#: the families beside `import orthocal as oc`, with the words of their pages
FAMILIES = {
    "methods": "Ways to calibrate, `oc.methods`: the objects behind the names that `oc.calibrate` takes.",
    "bias": "Priors on the bias, `oc.bias`.",
    "kernels": "Ways to draw theta in the paper's algorithm, `oc.kernels`.",
    "emulators": "Ways to learn a simulator from its runs, `oc.emulators`.",
    "losses": "What “closest” means, `oc.losses`.",
    "examples": "Problems with known answers, `oc.examples`.",
    "testing": "Checks that third parties run on parts of their own, `orthocal.testing`.",
    "errors": "All errors and warnings, `oc.errors`.",
}


def members(family: str) -> list[str]:
    """The public names of a family that `orthocal` itself does not have."""
    module = import_module(f"orthocal.{family}")
    listed = getattr(module, "__all__", None)
    if listed is None:
        own = {name: value for name, value in vars(module).items() if not name.startswith("_")}
        listed = [
            name
            for name, value in own.items()
            if (inspect.isclass(value) or hasattr(value, "__doc__"))
            and str(getattr(value, "__module__", "")).startswith(module.__name__)
        ]
    return [name for name in listed if name not in oc.__all__]


def page(title: str, words: str, names: list[str]) -> str:
    """A page of the reference in reStructuredText: a table, and a page for every name."""
    words = words.replace("`", "``")
    lines = [title, "=" * len(title), "", words, "", ".. autosummary::", "   :toctree: names", "   :nosignatures:", ""]
    return "\n".join([*lines, *(f"   {name}" for name in names), ""])


def pages() -> dict[str, str]:
    """File -> text of all pages of the reference that are made from the package."""
    made: dict[str, list[str]] = {key: [] for key in GROUPS}
    for node in stub_imports(oc.__file__):
        if node.module is not None:
            made.setdefault(node.module.split(".")[0], []).extend(f"orthocal.{one.name}" for one in node.names)
    texts = {}
    for key, names in made.items():
        title, words = GROUPS.get(key, (key.capitalize(), ""))
        texts[f"api-{key}.rst"] = page(title, words, names)
    for family, words in FAMILIES.items():
        names = [f"orthocal.{family}.{name}" for name in members(family)]
        texts[f"family-{family}.rst"] = page(f"orthocal.{family}", words, names)
    texts["command-line.md"] = command_pages.page()
    texts["benchmark-history.md"] = benchmark_pages.page(GENERATED)
    return texts


def write(app: Sphinx, config: object) -> None:
    GENERATED.mkdir(exist_ok=True)
    for name, text in pages().items():
        file = GENERATED / name
        # an untouched file is not read again
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            file.write_text(text, encoding="utf-8")
    _forget_names_that_are_gone()


def _forget_names_that_are_gone() -> None:
    """Pages of single names that autosummary made for an older package."""
    listed = "\n".join(file.read_text(encoding="utf-8") for file in GENERATED.glob("*.rst"))
    public = set(re.findall(r"^   (orthocal\.[\w.]+)$", listed, re.MULTILINE))
    for file in (GENERATED / "names").glob("*.rst"):
        if file.stem not in public:
            file.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    # before Sphinx looks for pages, in which autosummary then finds its names
    app.connect("config-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
