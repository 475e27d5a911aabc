"""The report: self-contained, safe, complete; figures for one and several inputs."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import stats

import orthocal as oc
from orthocal.examples import MODEL1, MODEL3
from orthocal.results.figures import figures as plots
from orthocal.results.report import report

ODD = "<script>alert('1')</script>\"&$"
GP = oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5))
PICTURES = ("Data and fit", "Bias", "Residuals", "Predictive check", "Posterior", "Pairs", "Traces", "Ranks")
PARTS = ("Parameters", "Findings", *PICTURES, "Settings")


class Page(HTMLParser):
    """Tags, attributes and visible text of a page."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.attributes, self.text, self.ids = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def odd_posterior():
    x, y = MODEL1.simulate(np.random.default_rng(3), n=30)

    def simulate(x, theta):
        return theta[0] * x[:, 0] + theta[1]

    parameters = {ODD: stats.norm(0, 10), "$b_0$": stats.uniform(-5, 10)}
    problem = oc.Problem(
        x, y, simulate, parameters, oc.Box(0, 1), noise_cov=0.04, outcome_names=ODD + "y", input_names=ODD + "x"
    )
    posterior = oc.calibrate(problem, GP, draws=60, warmup=25, seed=1)
    posterior.data.attrs["title"] = f"{ODD}.toml"
    return posterior


@pytest.fixture(scope="module")
def odd_page(odd_posterior, tmp_path_factory):
    path = odd_posterior.report(tmp_path_factory.mktemp("report") / "fit.html")
    return path, path.read_text(encoding="utf-8")


def test_the_report_has_all_its_parts(odd_page):
    text = " ".join(Page(odd_page[1]).text)
    for part in PARTS:
        assert part in text
    for fact in ("seed", "minimum 1", "functional", "numpy", "orthogonal to the simulator's gradients"):
        assert fact in text


def test_odd_names_appear_as_text_and_nothing_runs(odd_page):
    page = Page(odd_page[1])
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    text = "".join(page.text)
    for name in (ODD, ODD + "y", f"{ODD}.toml"):
        assert name in text


def test_the_report_needs_no_network(odd_page):
    html = odd_page[1]
    page = Page(html)
    links = [value for name, value in page.attributes if name in ("src", "href", "xlink:href") and value]
    assert all(value.startswith(("#", "data:image/png")) for value in links)
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html


def test_ids_are_unique_and_every_reference_has_its_target(odd_page):
    page = Page(odd_page[1])
    assert len(page.ids) == len(set(page.ids))
    references = re.findall(r'(?:href="#|url\(#)([^")]+)', odd_page[1])
    assert references
    assert set(references) <= set(page.ids)


def test_a_report_from_a_file_is_the_same(odd_posterior, odd_page, tmp_path):
    loaded = oc.load(odd_posterior.save(tmp_path / "fit.nc"))
    assert loaded.report(tmp_path / "again.html").read_text(encoding="utf-8") == odd_page[1]


def test_a_failed_report_leaves_nothing_behind(odd_posterior, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "rank_panels", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        odd_posterior.report(tmp_path / "fit.html")
    assert list(tmp_path.iterdir()) == []


def test_problems_are_announced_at_the_top(odd_page):
    """60 draws are too few: the page says so before anything else."""
    text = "".join(Page(odd_page[1]).text)
    assert "found." in text[: text.index("Parameters")]


@pytest.mark.slow
def test_figures_for_several_inputs_and_outcomes(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.random((40, 5))
    y = np.column_stack([MODEL3.truth(x), 2 * MODEL3.truth(x)]) + 0.2 * rng.standard_normal((40, 2))

    def simulate(x, theta):
        return np.column_stack([MODEL3.simulator(x, theta), 2 * MODEL3.simulator(x, theta)])

    problem = oc.Problem(x, y, simulate, MODEL3.parameters, oc.Box(0, 1), noise_cov=[0.04, 0.04])
    posterior = oc.calibrate(problem, GP, draws=40, warmup=25, seed=1)
    assert posterior.curves is None
    assert len(plots.fit_drawing(posterior.record).figure().axes) == 4
    assert len([axis for axis in plots.bias_drawing(posterior.record).figure().axes if axis.get_visible()]) == 10
    html = posterior.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "in units of the noise (W is the inverse of its covariance)" in html


def test_plotting_leaves_the_users_matplotlib_alone(model1_posterior):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plots.posterior_figure(model1_posterior.record)
    plots.fit_drawing(model1_posterior.record).figure()
    assert dict(mpl.rcParams) == before


def test_the_fit_figure_shows_the_data_and_the_band(model1_posterior):
    assert model1_posterior.curves is not None
    axis = plots.fit_drawing(model1_posterior.record).figure().axes[1]
    offsets = axis.collections[0].get_offsets()
    np.testing.assert_allclose(offsets[:, 1], model1_posterior.data["observed_data"]["y"].values)
    curves = model1_posterior.curves
    inside = np.interp(offsets[:, 0], curves["x"].values, curves["observation"].values[2, :, 0])
    # 97.5 % quantile of the observations: all but a few of 100 points lie below
    assert 90 <= np.sum(offsets[:, 1] < inside) <= 100


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_shows_the_page_without_errors(odd_page, tmp_path):
    options = "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-sync --no-first-run"
    command = ["chromium", *options.split(), f"--user-data-dir={tmp_path}", "--enable-logging=stderr", "--dump-dom"]
    run = subprocess.run([*command, odd_page[0].as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "CONSOLE" not in run.stderr
    assert run.stdout.count("<figure") == len(PICTURES)
    assert "<script" not in run.stdout
