"""The tables and the figure of a study, from rows whose figures are known."""

import csv
import xml.etree.ElementTree

import numpy as np
import pytest
from scipy.stats import binom

import fake_studies
from orthocal_studies.figure import coverage_interval, study_figure
from orthocal_studies.pages import write_pages
from orthocal_studies.replicate import ParameterRow, Row, Task, failed_row
from orthocal_studies.results import Results, Settings
from orthocal_studies.tables import cells, figures, markdown_table

STUDY = fake_studies.CHEAP
#: mean, sd, covered, ESS, CPU seconds of four replications
KNOWN = [
    (3.50, 0.030, True, 1000.0, 0.5),
    (3.60, 0.040, True, 2000.0, 0.5),
    (3.70, 0.050, False, 3000.0, 1.0),
    (3.60, 0.045, True, 2000.0, 2.0),
]


def rows(key="cheap"):
    for r, (mean, sd, covered, ess, cpu) in enumerate(KNOWN, start=1):
        theta = ParameterRow(mean=mean, sd=sd, low=0.0, high=0.0, covered=covered, ess=ess, rhat=1.0 + r / 1000)
        yield Row(
            column=key,
            replication=r,
            parameters={"theta": theta},
            cpu_seconds=cpu,
            wall_seconds=cpu,
            error=None,
            traceback=None,
        )


@pytest.fixture
def folder(tmp_path):
    settings = Settings(seed=1, draws=400, replications=4, methods=("cheap", "other"))
    with Results(tmp_path) as results:
        results.set_settings(STUDY.name, settings)
        for row in rows():
            results.add(STUDY.name, Task("", "cheap", row["replication"], 1, 400), row, "this machine", 40.0)
        task = Task("", "other", 1, 1, 400)
        results.add(STUDY.name, task, failed_row(task, "no"), "this machine", 1.0)
        write_pages(STUDY, results, settings, tmp_path)
    return tmp_path


def test_figures_by_hand():
    (row,) = figures(STUDY, list(rows())).to_dict("records")
    assert row["mean"] == pytest.approx(3.6)
    assert (row["mean_low"], row["mean_high"]) == (3.5, 3.7)
    assert (row["sd_low"], row["sd_high"]) == (0.03, 0.05)
    # three of four
    assert row["coverage"] == 0.75
    assert row["ess"] == 2000
    assert row["cpu_seconds"] == 0.75
    # 2000, 4000, 3000, 1000 a second
    assert row["ess_per_second"] == 2500
    assert row["rhat"] == 1.004
    assert (row["paper_sd_low"], row["paper_sd_high"], row["paper_coverage_low"]) == (0.09, 0.11, 0.97)


def test_the_page(folder):
    page = (folder / "cheap.md").read_text()
    line = next(line for line in page.splitlines() if line.startswith("| cheap"))
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "cheap",
        "4",
        "3.600 (3.500–3.700)",
        "3.47–3.66",
        "0.030–0.050",
        "0.09–0.11",
        "0.75",
        "0.97",
        "2000",
        "2500",
        "0.75",
        "3.78 s",
    ]
    failed = next(line for line in page.splitlines() if line.startswith("| <other>"))
    assert "0 (1 failed)" in failed
    assert "theta* = 3.56528" in page
    assert "Wall time 2 min 41 s in all; this machine." in page


def test_the_csv(folder):
    with (folder / "cheap.csv").open() as file:
        cheap, other = csv.DictReader(file)
    assert float(cheap["coverage"]) == 0.75
    assert cheap["paper_runtime"] == "3.78 s"
    assert (other["replications"], other["failed"], other["coverage"]) == ("0", "1", "")


def test_the_html_runs_nothing_and_trusts_no_name(folder):
    page = (folder / "cheap.html").read_text()
    assert "&lt;other&gt;" in page
    assert "<other>" not in page
    assert "<script" not in page
    assert "0.030–0.050" in page
    assert page.count('role="img"') == 2
    assert "coverage of the 95 % interval of theta: cheap 0.75" in page


def test_the_figure(folder):
    assert xml.etree.ElementTree.parse(folder / "cheap.svg").getroot().tag.endswith("svg")
    assert (folder / "cheap.png").read_bytes().startswith(b"\x89PNG")


def test_the_figure_shows_a_range_of_no_width():
    """One replication, or the paper's 0.001–0.001: a line without ends would be invisible."""
    left, right = study_figure(figures(STUDY, list(rows())[:1])).axes
    ours, papers = left.lines
    assert list(ours.get_xdata()) == [0.03, 0.03]
    assert list(papers.get_xdata()) == [0.09, 0.11]
    assert ours.get_marker() == "o"
    # the 95 % line, our interval, our share, the paper's
    assert [float(line.get_xdata()[-1]) for line in right.lines] == [0.95, 1.0, 1.0, 0.97]


def test_coverage_interval():
    """Clopper–Pearson limits: P(X >= 95 | low) = P(X <= 95 | high) = 0.025 for 95 of 100; none missed: 0.025^(1/n)."""
    low, high = coverage_interval(0.95, 100)
    assert binom.sf(94, 100, low) == pytest.approx(0.025)
    assert binom.cdf(95, 100, high) == pytest.approx(0.025)
    assert coverage_interval(1.0, 4) == (pytest.approx(0.025**0.25), 1.0)
    assert coverage_interval(0.0, 4)[0] == 0.0


def test_aligned_tables():
    text = markdown_table(("a", "bb"), [("ccc", "1")])
    assert text.splitlines() == ["| a   | bb |", "| --- | -: |", "| ccc |  1 |"]
    assert len({len(line) for line in text.splitlines()}) == 1


def test_constant_draws_have_a_row():
    """A posterior of width zero is a strange result, not a crash of the table."""
    still = list(rows())
    for row in still:
        row["parameters"]["theta"]["sd"] = 0.0
    table = figures(STUDY, still)
    assert np.all(table["sd_high"] == 0)
    assert cells(table, "theta")[0][4] == "0.0000–0.0000"
