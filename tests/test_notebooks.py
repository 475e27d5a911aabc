"""What notebooks show: short, every text escaped, no arrays, nothing searched for it; and bars without widgets."""

import re
import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.comparison.experiments import ExperimentComparison
from orthocal.comparison.outcomes import OutcomeComparison
from orthocal.comparison.simulators import SimulatorComparison
from orthocal.findings import Finding, Findings
from orthocal.progress import NotebookBar, progress_bar, progress_shown

BAD = "<script>alert('1')</script>"
IMAGE = 'x" onerror="alert(1)'
RUN = {"draws": 30, "chains": 2, "seed": 1, "warmup": 20, "progress": False}


class Tags(HTMLParser):
    """All tags of a page, and whether each is closed."""

    def __init__(self, page):
        super().__init__()
        self.seen, self.open, self.attributes = set(), [], set()
        self.feed(page)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def safe(page, *texts):
    """The page is short, has only these tags, and says the texts."""
    tags = Tags(page)
    assert tags.seen <= {"div", "strong", "em", "br", "table", "thead", "tr", "th", "td", "details", "summary"}
    assert tags.attributes <= {"style"}
    assert "<script" not in page
    assert len(page) < 20_000
    # a colour of text or paper would be lost on a dark page, or on a light one
    assert not re.search(r"(?<!-)color:|background", page)
    for text in texts:
        assert text in page, text
    return page


def hostile(n=12, noise_cov=0.01, name=BAD):
    x = np.linspace(0, 1, n)[:, None]
    y = 2 * x[:, 0] + 0.1 * np.random.default_rng(0).standard_normal(n)
    return oc.Problem(
        x,
        y,
        lambda x, t: t[0] * x[:, 0] + 0 * t[1],
        {name: stats.norm(0, 5), IMAGE: stats.norm(0, 1)},
        oc.Box(0, 1, nodes=8),
        noise_cov=noise_cov,
        outcome_names=f"{BAD} o",
        input_names=f"{BAD} i",
        starts=2,
    )


@pytest.fixture(scope="module")
def posterior():
    return oc.calibrate(hostile(), "none", **RUN)


def test_a_problem_is_shown_without_its_search():
    problem = hostile(noise_cov="estimate")
    page = safe(problem._repr_html_(), "&lt;script&gt;", "12 rows", "-9.8", "9.8", "estimate")
    assert not problem.searched
    assert problem.simulator.calls == 0
    assert "0.0909" not in page


def test_missing_cells_and_constraints_are_said():
    x = np.linspace(0, 1, 9)
    y = np.where(np.arange(9) == 3, np.nan, x)
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"a": stats.norm(0, 1)}, noise_cov=0.1, constraint="a > 0")
    safe(problem._repr_html_(), "1 of 9 cells missing", "a &gt; 0")


def test_a_posterior_is_shown_with_its_summary(posterior, tmp_path):
    page = safe(posterior._repr_html_(), "&lt;script&gt;", "2 x 30", "R-hat", "12 rows")
    assert f"{posterior.summary()['mean'].iloc[0]:.1f}" in page
    assert oc.load(posterior.save(tmp_path / "fit.nc"))._repr_html_() == page


def test_findings_are_shown_with_their_marks():
    found = Findings([Finding("problem", BAD, BAD, BAD), Finding("fine", "a", "b"), Finding("note", "c", "d", "e")])
    page = safe(found._repr_html_(), "1 problem, 1 note, 1 fine", "&lt;script&gt;")
    assert page.index("problem") < page.index("note ·") < page.index("<details>")
    safe(Findings([])._repr_html_())


def test_a_table_of_runs_is_shown_by_its_ranges():
    theta = np.random.default_rng(0).random((40, 2))
    runs = oc.RunTable(theta, theta @ np.ones((2, 1000)), np.linspace(0, 1, 1000), [BAD, "b"])
    page = safe(runs._repr_html_(), "40, 0 failed", "&lt;script&gt;", f"{theta[:, 1].max():.4g}")
    assert len(page) < 3000


def test_experiments_and_their_posterior_are_shown():
    each = {"rig <script>": hostile(8), "rig B": hostile(9)}
    made = oc.Experiments(each, private=[IMAGE])
    safe(made._repr_html_(), "2 experiments", "rig B", "&lt;script&gt;", "private")


def test_every_comparison_is_shown(posterior):
    table = pd.DataFrame({BAD: [1.0, 2.0]}, index=[BAD, "b"])
    one, two = (oc.compare(hostile(), ["none"], folds=2, **RUN), {"all together": posterior, BAD: posterior})
    safe(one._repr_html_(), "&lt;script&gt;", "none")
    # and in a terminal no arrays
    assert repr(one) == str(one)
    assert "array(" not in repr(OutcomeComparison(two, {}))
    failures = {BAD: BAD}
    safe(OutcomeComparison(two, failures)._repr_html_(), "&lt;script&gt;")
    losses = {BAD: np.array([1.0, 2.0, 3.0]), "b": np.array([2.0, 3.0, 1.0])}
    theta = {name: np.zeros((3, 1)) for name in losses}
    safe(SimulatorComparison(losses, theta, 1.0, True)._repr_html_(), "&lt;script&gt;")
    compared = SimpleNamespace(disagreements=lambda: table, predictions=table, failures=failures, words=lambda: [BAD])
    safe(ExperimentComparison._repr_html_(compared), "&lt;script&gt;")
    emulators = SimpleNamespace(failures=failures, dropped=failures, held_out=5, table=table)
    safe(oc.EmulatorComparison._repr_html_(emulators), "&lt;script&gt;", "was left out")


def test_long_tables_are_cut():
    names = {f"p{j}": stats.norm(0, 1) for j in range(60)}
    x = np.linspace(0, 1, 70)
    problem = oc.Problem(x, x, lambda x, t: x * t.sum(), names, noise_cov=0.1)
    safe(problem._repr_html_(), "and 40 more rows")


def test_draws_as_a_table(posterior, tmp_path):
    table = posterior.to_frame()
    assert table.columns.tolist() == ["chain", "draw", BAD, IMAGE]
    np.testing.assert_array_equal(table[[BAD, IMAGE]].to_numpy(), posterior.theta.reshape(60, 2))
    assert table.loc[30, ["chain", "draw"]].tolist() == [1, 0]
    read = pd.read_csv(posterior.to_csv(tmp_path / "draws.csv"))
    pd.testing.assert_frame_equal(read, table, rtol=1e-15)


def test_predictions_stand_beside_the_draws(posterior):
    new = np.array([[0.2], [0.7]])
    table = posterior.to_frame(x_new=new, draws=7, seed=3)
    predicted = posterior.predict(new, draws=7, seed=3)
    assert len(table) == 14
    assert table["draw"].unique().tolist() == predicted["draw"].values.tolist()
    np.testing.assert_array_equal(table["observation[1]"], predicted["observation"].values[:, :, 1, 0].ravel())
    np.testing.assert_allclose(table["model[0]"], 0.2 * table[BAD])


class Display:
    """Stands in for a cell's output."""

    def __init__(self):
        self.shown = []
        self.HTML = str

    def display(self, what, display_id=False):
        assert display_id
        self.update(what)
        return self

    def update(self, what):
        self.shown.append(what)


def test_a_notebook_has_bars_without_widgets(monkeypatch):
    output = Display()
    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", output)
    items = range(3)
    assert progress_bar(items, "work") is items
    with progress_shown(True):
        bar = progress_bar(items, BAD)
        assert isinstance(bar, NotebookBar)
        assert list(bar) == [0, 1, 2]
        # shorter than a second
        assert output.shown == []
        slow = NotebookBar(items, desc=BAD, delay=0, leave=False, mininterval=0)
        assert list(slow) == [0, 1, 2]
    assert "&lt;script&gt;" in output.shown[0]
    assert "<script" not in "".join(output.shown)
    assert any('<progress value="2" max="3">' in one for one in output.shown)
    assert output.shown[-1] == ""
    # a terminal's IPython has no kernel
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=SimpleNamespace))
    with progress_shown(True):
        assert not isinstance(progress_bar(items, "work"), NotebookBar)
