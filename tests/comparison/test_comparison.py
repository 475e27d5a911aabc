"""Several methods on one problem: folds, scores, failures, the page and the command."""

import re
import sys
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.cli import main
from orthocal.cli.demo import PROBLEM, SIMULATOR
from orthocal.comparison.figures import closer_drawing
from orthocal.comparison.words import labelled
from orthocal.errors import InputError
from orthocal.examples import MODEL1, TWO_OUTCOMES

ODD = "<script>alert('1')</script>\"&$"
SHORT = {"draws": 60, "warmup": 25, "chains": 2, "progress": False, "seed": 1}


@dataclass
class Recorder:
    """A method without bias that remembers the problems it was given."""

    seen: list = field(default_factory=list)

    def run(self, problem, plan):
        self.seen.append(problem)
        return oc.methods.NoBias().run(problem, plan)

    def describe(self):
        return {"kind": "recorder"}


class ForOneOutcome(Recorder):
    def run(self, problem, plan):
        raise InputError(f"y has {problem.data.q} outcomes, and this method is for one")


class FailsInFolds(Recorder):
    def run(self, problem, plan):
        if self.seen:
            raise InputError("too few rows for this method")
        return super().run(problem, plan)


@pytest.fixture(scope="module")
def strong():
    """A line for a curved process: the bias matters."""
    x, y = MODEL1.simulate(np.random.default_rng(1), 60)
    return oc.compare(MODEL1.problem(x, y), ["pgp", "none", "ko"], folds=3, loo=True, **{**SHORT, "draws": 200})


@pytest.fixture(scope="module")
def right():
    """A simulator that is right, with errors of two sizes that are known."""
    rng = np.random.default_rng(2)
    x = rng.random((300, 1))
    sd = np.where(np.arange(300) % 2, 0.05, 1.0)
    y = 3 * x[:, 0] + sd * rng.standard_normal(300)
    problem = oc.Problem(x, y, MODEL1.simulator, MODEL1.parameters, oc.Box(0, 1), y_err=sd)
    return oc.compare(problem, "none", folds=2, **{**SHORT, "draws": 250})


def test_where_the_simulator_is_right_the_scores_are_those_of_the_noise(right):
    cells = right.held_out["none"].with_bias
    for part, sd in ((slice(1, None, 2), 0.05), (slice(0, None, 2), 1.0)):
        # every point is predicted with its own noise; with a typical one coverage would be 1 and 0.3
        assert abs(cells.covered[part].mean() - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 150)
        assert np.sqrt(np.mean(cells.error[part] ** 2)) == pytest.approx(sd, rel=0.25)
        assert cells.crps[part].mean() == pytest.approx(sd / np.sqrt(np.pi), rel=0.25)
    assert right.summary().loc[("theta", "none"), "mean"] == pytest.approx(3.0, abs=0.05)


def test_where_the_bias_is_strong_no_bias_predicts_worse(strong):
    scores = strong.scores().xs("y", level="outcome")
    assert scores.loc["none", "crps"] > 1.5 * scores.loc["pgp", "crps"]
    assert scores.loc["none", "rmse"] > 1.5 * scores.loc["pgp", "rmse"]
    assert scores.loc["none", "coverage"] < 0.8 < scores.loc["pgp", "coverage"]
    # the simulator alone is no better with a projected bias beside it
    assert scores.loc["pgp", "model_rmse"] == pytest.approx(scores.loc["none", "rmse"], rel=0.05)
    assert (scores.loc["none"].filter(like="model_").values == scores.loc["none"].values[:6]).all()
    assert scores.loc["none", "crps_gap"] > 4 * scores.loc["none", "gap_se"]
    assert scores["crps_gap"].min() == 0


def test_the_summary_has_a_row_for_each_parameter_and_method(strong):
    table = strong.summary()
    assert list(table.index) == [("theta", "pgp"), ("theta", "none"), ("theta", "ko")]
    pd.testing.assert_series_equal(
        table.loc[("theta", "pgp")], strong.posteriors["pgp"].summary().loc["theta"], check_names=False
    )
    assert table.loc[("theta", "ko"), "sd"] > 5 * table.loc[("theta", "pgp"), "sd"]
    assert any(str(column).startswith("eti50") for column in strong.summary(0.5).columns)


def test_the_tables_cannot_be_changed_from_outside(strong):
    for table in (strong.scores(), strong.summary()):
        table[table.columns] = 0.0
    assert strong.scores()["crps"].min() > 0
    assert strong.summary()["sd"].min() > 0


def test_loo_and_times(strong):
    table = strong.loo()
    assert list(table.index) == ["pgp", "none", "ko"]
    assert table.loc["pgp", "elpd_loo"] > table.loc["none", "elpd_loo"] + 10
    assert (table["rows"] == 60).all()
    times = strong.times()
    assert (times["seconds"] > 0).all()
    assert (times["simulator_calls"] >= 400).all()
    np.testing.assert_allclose(times["ess_per_second"], times["ess"] / times["seconds"])


def test_what_all_methods_share_is_not_the_work_of_the_first():
    x, y = MODEL1.simulate(np.random.default_rng(3), 20)
    first = oc.compare(MODEL1.problem(x, y), ["none", "none"], folds=0, **SHORT)
    calls = first.times()["simulator_calls"]
    assert list(calls.index) == ["none", "none #2"]
    assert calls.iloc[0] == calls.iloc[1]
    assert first.preparation[1] > 32


def test_the_remarks_say_what_the_figures_say(strong):
    text = " ".join(strong.remarks())
    assert "theta: the posterior is widest by ko" in text
    assert "The bias of ko is free" in text
    assert re.search(r"y: (pgp|ko) has the smallest CRPS for held-out observations", text)
    assert "; worse: none." in text
    assert "the 95 % intervals of none hold only" in text
    assert "LOO of pgp is an approximation" in text


def test_a_free_bias_that_finds_nothing_is_not_called_wide():
    x = np.random.default_rng(15).random((40, 1))
    y = 3 * x[:, 0] + 0.2 * np.random.default_rng(16).standard_normal(40)
    result = oc.compare(MODEL1.problem(x, y), [oc.methods.KO(sd=1e-3, lengthscale=0.5), "none"], folds=0, **SHORT)
    assert any("has found next to none" in one for one in result.remarks())
    assert not any("wide by construction" in one for one in result.remarks())


def test_intervals_that_do_not_overlap_are_named():
    x, y = MODEL1.simulate(np.random.default_rng(17), 40)
    shifted = oc.calibrate(MODEL1.problem(x, y + 2 * x[:, 0]), "none", **SHORT)
    result = oc.compare(MODEL1.problem(x, y), {"a": "none", "b": "none"}, folds=0, **SHORT)
    assert not any("do not overlap" in one for one in result.remarks())
    other = replace(result, posteriors={"a": result.posteriors["a"], "b": shifted})
    assert any("theta: 95 % intervals that do not overlap: a and b." in one for one in other.remarks())


def test_folds_partition_the_rows_and_are_the_same_for_every_method():
    x, y = MODEL1.simulate(np.random.default_rng(4), 23)
    problem = MODEL1.problem(x, y, noise_cov="estimate")
    one, other = Recorder(), Recorder()
    result = oc.compare(problem, {"one": one, "other": other}, folds=4, **SHORT)
    sizes = np.bincount(result.fold_of_row)
    assert len(sizes) == 4
    assert sizes.sum() == 23
    assert np.ptp(sizes) <= 1
    assert one.seen[0] is problem
    assert [a is b for a, b in zip(one.seen, other.seen, strict=True)] == [True] * 5
    for fold, part in enumerate(one.seen[1:]):
        np.testing.assert_array_equal(part.data.x, x[result.fold_of_row != fold])
        np.testing.assert_array_equal(part.data.y[:, 0], y[result.fold_of_row != fold])
        # estimated once, from all data
        np.testing.assert_array_equal(part.noise.cov, problem.noise.cov)
        assert part.noise.source == "estimated"
    np.testing.assert_array_equal(result.held_out["one"].with_bias.error, result.held_out["other"].with_bias.error)


def test_held_out_scores_are_in_the_order_of_the_rows():
    """Rows with an odd number are 100 away from a line that the prior knows: their errors must be theirs."""
    x = np.linspace(0, 1, 20)
    away = 100 * (np.arange(20) % 2)
    problem = oc.Problem(x, 3 * x + away, lambda x, t: t[0] * x, {"t": stats.norm(3, 0.1)}, oc.Box(0, 1), noise_cov=1e4)
    error = oc.compare(problem, "none", folds=3, **SHORT).held_out["none"].with_bias.error[:, 0]
    # the mean of 120 draws with a noise of 100 is known to 9
    np.testing.assert_allclose(error, away, atol=40)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_comparison():
    x, y = MODEL1.simulate(np.random.default_rng(5), 20)
    problem = MODEL1.problem(x, y)
    options = {**SHORT, "draws": 20}
    first, again, other = (oc.compare(problem, ["none"], folds=3, **{**options, "seed": s}) for s in (1, 1, 2))
    pd.testing.assert_frame_equal(first.scores(), again.scores(), check_exact=True)
    pd.testing.assert_frame_equal(first.summary(), again.summary(), check_exact=True)
    assert (first.fold_of_row != other.fold_of_row).any()
    unseeded = oc.compare(problem, ["none"], folds=3, **{**options, "seed": None})
    repeated = oc.compare(problem, ["none"], folds=3, **{**options, "seed": unseeded.seed})
    pd.testing.assert_frame_equal(unseeded.scores(), repeated.scores(), check_exact=True)


def test_folds_have_fewer_draws():
    x, y = MODEL1.simulate(np.random.default_rng(6), 12)
    drawn = []

    class Counter(Recorder):
        def run(self, problem, plan):
            drawn.append(plan.draws)
            return super().run(problem, plan)

    for options in ({}, {"fold_draws": 7}):
        oc.compare(MODEL1.problem(x, y), Counter(), folds=2, **{**SHORT, "draws": 300}, **options)
    assert drawn == [300, 250, 250, 300, 7, 7]


@pytest.fixture(scope="module")
def holes():
    """Two outcomes with missing cells and odd names, and a method that is for one outcome."""
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(7), 40)
    y[:10, 1] = y[5] = np.nan
    problem = oc.Problem(
        x,
        y,
        TWO_OUTCOMES.simulator,
        {ODD: stats.norm(0, 10)},
        oc.Box(0, 1),
        noise_cov="sample",
        outcome_names=(ODD + "v", "$b_0$"),
    )
    methods = {ODD + "m": oc.methods.Projected(oc.bias.GP(1.5, 1.0, 0.5)), "single": ForOneOutcome()}
    return oc.compare(problem, methods, folds=2, loo=True, **SHORT), y


def test_a_method_that_fails_is_listed_and_the_others_go_on(holes):
    result, _ = holes
    assert list(result.posteriors) == [ODD + "m"]
    assert list(result.failures) == ["single"]
    assert "this method is for one" in result.failures["single"]
    assert "single failed: y has 2 outcomes" in str(result)


def test_missing_cells_have_no_score(holes):
    result, y = holes
    for scores in result.held_out[ODD + "m"]:
        for values in scores:
            np.testing.assert_array_equal(np.isnan(values), np.isnan(y))
    table = result.scores()
    assert list(table.index) == [(ODD + "m", ODD + "v"), (ODD + "m", "$b_0$")]
    assert table.notna().all(axis=None)
    # the row without any observation has no likelihood
    assert result.loo()["rows"].tolist() == [39]


def test_a_method_that_fails_in_a_fold_keeps_its_posterior():
    x, y = MODEL1.simulate(np.random.default_rng(8), 20)
    result = oc.compare(MODEL1.problem(x, y), {"half": FailsInFolds(), "none": "none"}, folds=2, **SHORT)
    assert list(result.posteriors) == ["half", "none"]
    assert list(result.held_out) == ["none"]
    assert result.failures == {"half": "without fold 1 of 2: too few rows for this method"}
    assert list(result.scores().index) == [("none", "y")]


def test_if_no_method_works_it_says_why():
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(9), 20)
    methods = {"one": ForOneOutcome(), "other": ForOneOutcome()}
    with pytest.raises(InputError, match=r"no method can do this problem: one: y has 2 .*; other: y has 2 "):
        oc.compare(TWO_OUTCOMES.problem(x, y), methods, **SHORT)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"methods": ["pgp", "magic"]}, "no method 'magic'"),
        ({"methods": []}, "methods is empty"),
        ({"methods": [oc.methods.KO]}, "give a name"),
        ({"folds": 1}, "from 2 to the number of rows, 12, or 0"),
        ({"folds": 13}, "folds=13"),
        ({"folds": 2.5}, "folds=2.5"),
        ({"draws": 1}, "draws=1"),
        ({"draws": "many"}, "draws='many'"),
        ({"fold_draws": 0}, "fold_draws=0"),
        ({"chains": 0}, "chains=0"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_mistakes_are_named_before_any_work(changes, message):
    x, y = MODEL1.simulate(np.random.default_rng(10), 12)
    problem = MODEL1.problem(x, y)
    with pytest.raises(InputError, match=re.escape(message)):
        oc.compare(problem, **{"methods": ["none"], **SHORT, **changes})
    assert problem.simulator.calls == 0


def test_a_fold_that_takes_an_outcome_away_is_named():
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(11), 10)
    y[1:, 1] = np.nan
    with pytest.raises(InputError, match=r"without fold \d of 2: outcome 'y2' has no observation"):
        oc.compare(TWO_OUTCOMES.problem(x, y), ["none"], folds=2, **SHORT)
    with pytest.raises(InputError, match=r"give an oc\.Problem"):
        oc.compare("problem.toml")


def test_labels_are_readable_and_distinct():
    GP, methods = oc.bias.GP, oc.methods
    given = [
        "pgp",
        methods.Projected(GP()),
        methods.Projected(GP(nu=2.5), "finite"),
        methods.Projected(oc.bias.BART(trees=20), kernel=oc.kernels.Slice()),
        methods.KO(nu=0.5),
        methods.NoBias(),
        Recorder(),
    ]
    names = list(labelled(given))
    assert names[:3] == ["pgp", "pgp #2", "pgp (nu 2.5, projection finite)"]
    assert names[3].startswith("pbart (trees 20, kernel slice")
    assert names[4:] == ["ko (nu 0.5)", "none", "recorder"]
    assert list(labelled({"mine": "ko"})) == ["mine"]
    assert list(labelled(methods.OGP())) == ["ogp"]


def test_every_named_method_has_an_assumption_of_its_own():
    from orthocal.comparison.words import assumption

    names = ("pgp", "pbart", "psoftbart", "pbmars", "pbnn", "ko", "ogp", "sgasp", "pcal", "none")
    sentences = [assumption(oc.methods.method_by_name(name)) for name in names]
    assert len(set(sentences)) == len(names)
    assert not [one for one in sentences if "your own" in one or "has the prior" in one]
    assert all(one.endswith(".") for one in sentences)
    assert "at the data points" in assumption(oc.methods.Projected(projection="finite"))
    assert "A method of your own, Recorder" in assumption(Recorder())


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


def test_the_page_is_safe_and_self_contained(holes, tmp_path):
    html = holes[0].report(tmp_path / "compare.html", title=f"{ODD}.toml").read_text(encoding="utf-8")
    page = Page(html)
    text = "".join(page.text)
    for name in (ODD, ODD + "v", ODD + "m", "$b_0$", f"{ODD}.toml"):
        assert name in text
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    links = [value for name, value in page.attributes if name in ("src", "href", "xlink:href") and value]
    assert all(value.startswith(("#", "data:image/png")) for value in links)
    assert not re.search(r"url\((?!#)", html)
    assert "default-src 'none'" in html
    assert len(page.ids) == len(set(page.ids))
    assert set(re.findall(r'(?:href="#|url\(#)([^")]+)', html)) <= set(page.ids)
    assert "Not every method can do this problem." in text


def test_the_page_has_all_its_parts(strong, tmp_path):
    html = strong.report(tmp_path / "compare.html").read_text(encoding="utf-8")
    text = " ".join("".join(Page(html).text).split())
    for part in (
        "In words",
        "What each method assumes",
        "Parameters",
        "Held-out observations",
        "Leave-one-out",
        "Work",
    ):
        assert part in text
    assert "nothing constrains" in text
    assert "The same, closer" in text
    # 200 draws of 2 chains are too few for some, and the page says whose
    problems = [(name, one) for name, posterior in strong.posteriors.items() for one in posterior.check().problems]
    assert problems
    for _, finding in problems:
        assert finding.message in text
    assert "failed" not in text


def test_without_folds_there_are_no_scores(tmp_path):
    x, y = MODEL1.simulate(np.random.default_rng(12), 15)
    result = oc.compare(MODEL1.problem(x, y), ["none"], folds=0, **SHORT)
    assert result.fold_of_row is None
    assert result.scores().empty
    assert result.remarks() == []
    assert "Held-out" not in str(result) + result.report(tmp_path / "compare.html").read_text()
    with pytest.raises(InputError, match="compare with folds=5"):
        result.score_figure()


def test_figures(strong, holes):
    axis = strong.figure().axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["pgp", "none", "ko"]
    closer = closer_drawing(strong.posteriors, 3.0).figure().axes[0]
    assert np.ptp(closer.get_xlim()) < 0.5 * np.ptp(axis.get_xlim())
    same = {"a": strong.posteriors["pgp"], "b": strong.posteriors["pgp"]}
    assert closer_drawing(same, 3.0) is None
    assert len(strong.score_figure().axes) == 3
    assert len(holes[0].score_figure().axes) == 6


def test_a_subset_is_the_same_problem_with_fewer_rows():
    x, y = TWO_OUTCOMES.simulate(np.random.default_rng(13), 30)
    y[3, 1] = np.nan
    errors = 0.1 + np.random.default_rng(14).random((30, 2))
    weight = np.array([[2.0, 0.5], [0.5, 1.0]])
    problem = oc.Problem(
        x, y, TWO_OUTCOMES.simulator, TWO_OUTCOMES.parameters, y_err=errors, loss_weight=weight, input_names="radius"
    )
    rows = np.array([3, 0, 17, 21, 8])
    part = problem.subset(rows)
    np.testing.assert_array_equal(part.data.x, x[rows])
    np.testing.assert_array_equal(part.data.y, y[rows])
    np.testing.assert_array_equal(part.noise.by_point, problem.noise.by_point[rows])
    np.testing.assert_array_equal(part.noise.observed, ~np.isnan(y[rows]))
    np.testing.assert_array_equal(part.weight, weight)
    assert part.data.input_names == ("radius",)
    # the box around all data, not around these
    assert part.domain is problem.domain
    assert part.simulator is problem.simulator
    mask = np.isin(np.arange(30), rows)
    np.testing.assert_array_equal(problem.subset(mask).data.x, x[mask])
    assert problem.data.n == 30


def test_a_subset_calls_the_simulator_with_vectors_where_the_problem_does():
    shapes = set()

    def simulate(x, theta):
        shapes.add(x.ndim)
        return theta[0] * x

    x = np.linspace(0, 1, 20)
    problem = oc.Problem(x, 2 * x, simulate, {"t": stats.norm(0, 5)}, oc.Box(0, 1), noise_cov=0.1)
    oc.compare(problem, ["none"], folds=2, **SHORT)
    assert shapes == {1}


FIELD = "x,y\n" + "\n".join(f"{i / 29},{3 * i / 29 + 0.1 * (-1) ** i}" for i in range(30)) + "\n"


@pytest.fixture
def orthocal(monkeypatch, capfd, tmp_path):
    """Run the program in this process, in a folder with a problem file."""
    (tmp_path / "field.csv").write_text(FIELD)
    (tmp_path / "simulator.py").write_text(SIMULATOR)

    def run(extra, *arguments):
        (tmp_path / "problem.toml").write_text(PROBLEM + "draws = 40\nwarmup = 25\nchains = 2\n" + extra)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["orthocal", "compare", "problem.toml", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capfd.readouterr()

    return run


def test_the_command_compares_what_the_file_says(orthocal, tmp_path):
    settings = '[method]\nnu = 2.5\n[compare]\nmethods = ["gp", "none"]\nfolds = 2\nloo = true\nfold_draws = 20\n'
    code, out, err = orthocal(settings, "--out", "new")
    assert code == 0, err
    assert "Held-out observations" in out
    assert "Leave-one-out" in out
    names = {path.name for path in (tmp_path / "new").iterdir()}
    tables = {f"compare-{name}.csv" for name in ("parameters", "scores", "loo", "times")}
    assert names == {"compare.html", *tables}
    page = (tmp_path / "new" / "compare.html").read_text()
    assert "Comparison of methods for problem.toml" in page
    # the method of [method] has the settings it has there
    assert "bias nu 2.5" in page
    scores = pd.read_csv(tmp_path / "new" / "compare-scores.csv")
    assert scores["method"].tolist() == ["gp", "none"]
    assert scores["crps"].gt(0).all()


def test_methods_on_the_command_line_overrule_the_file(orthocal, tmp_path):
    code, _, err = orthocal('[compare]\nmethods = "pgp"\nfolds = 0\n', "--methods", "none, pcal")
    assert code == 0, err
    assert pd.read_csv(tmp_path / "compare-parameters.csv")["method"].tolist() == ["none", "pcal"]
    assert not (tmp_path / "compare-scores.csv").exists()


@pytest.mark.parametrize(
    ("extra", "arguments", "message"),
    [
        ('[compare]\nmethods = ["magic"]\n', (), "there is no method 'magic'"),
        ("[compare]\nmethods = []\n", (), "compare.methods"),
        ("[compare]\nfold = 5\n", (), "unknown key 'compare.fold'"),
        ("[compare]\nfolds = 1\n", (), "folds=1"),
        ("", ("--methods", ","), "methods is empty"),
        (
            '[method]\nname = "ko"\nlengthscale = [1, 2, 3]\n',
            ("--methods", "ko"),
            "no method can do this problem: ko: ",
        ),
    ],
)
def test_mistakes_are_one_line(orthocal, tmp_path, extra, arguments, message):
    code, out, err = orthocal(extra, *arguments)
    assert code == 1
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert "Traceback" not in out + err
    assert not list(tmp_path.glob("compare*"))
