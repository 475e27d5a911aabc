"""Categorical inputs from the data to the report: predictions, files, findings and figures speak of labels."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from helpers import short
from orthocal.errors import InputError
from orthocal.results.figures.figures import bias_drawing, fit_drawing


def simulator(x, theta):
    return theta[0] * x[:, 0]


def table(labels=("drill", "lathe", "mill"), n=45):
    rng = np.random.default_rng(1)
    x = pd.DataFrame({"load": rng.uniform(0, 10, n), "machine": pd.Categorical(rng.choice(labels[:3], n), labels)})
    level = x["machine"].astype(str).map({"drill": 0.0, "lathe": 1.5, "mill": -1.0})
    return x, 2 * x["load"] + level + np.sin(x["load"]) + 0.3 * rng.standard_normal(n)


@pytest.fixture(scope="module")
def posterior():
    x, y = table(("drill", "lathe", "mill", "press"))
    priors = {"stiffness": stats.norm(0, 10)}
    return short(oc.Problem(x, y, simulator, priors, domain=oc.Box(0, 10, nodes=20), noise_cov=0.09), "gp", draws=100)


def test_a_file_predicts_at_labels_as_the_posterior_does(posterior, tmp_path):
    new = pd.DataFrame({"machine": ["lathe", "mill", "press"], "load": [5.0, 5.0, 5.0]})
    predicted = posterior.predict(new, seed=1, warn=False)
    posterior.save(tmp_path / "fit.nc")
    loaded = oc.load(tmp_path / "fit.nc", simulator=simulator)
    again = loaded.predict([[5.0, "lathe"], [5.0, "mill"], [5.0, "press"]], seed=1, warn=False)
    np.testing.assert_array_equal(again["mean"], predicted["mean"])
    mean = predicted["bias"].mean(("chain", "draw")).values[:, 0]
    sd = predicted["bias"].std(("chain", "draw")).values[:, 0]
    # the levels are 2.5 apart, known to about 0.2 each; of the press only what all have in common is known
    assert mean[0] - mean[1] == pytest.approx(2.5, abs=1.0)
    assert sd[2] > 2 * sd[0]
    assert predicted["far"].values.tolist() == [False, False, True]
    with pytest.raises(InputError, match="x_new has machine = 'saw' in row 0, which is none of its labels: give one"):
        loaded.predict([[5.0, "saw"]])


def test_findings_name_labels_without_data(posterior):
    (finding,) = (one for one in posterior.check() if one.topic == "domain")
    assert "25% of it has no data nearby: machine press (25%)" in finding.message
    # no box of the numbers would help
    assert finding.advice == "measure there too, or leave labels without data out of the categories"


def test_the_report_has_a_panel_for_each_label(posterior, tmp_path):
    page = posterior.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "for each label" in page
    for figure in (fit_drawing(posterior.record).figure(), bias_drawing(posterior.record).figure()):
        titles = [axis.get_title() for axis in figure.axes if axis.get_visible()]
        assert titles == ["machine drill", "machine lathe", "machine mill", "machine press (no data)"]
    assert posterior.curves.sizes["point"] == 4 * 61


def test_without_curves_the_bias_is_shown_above_its_labels():
    x, y = table()
    made = oc.Problem(x["machine"], y - 2 * x["load"], lambda x, t: t[0] + 0 * x, {"a": stats.norm(0, 10)})
    found = short(made, "gp", draws=20)
    assert found.curves is None
    (axis,) = bias_drawing(found.record).figure().axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["drill", "lathe", "mill"]
    assert fit_drawing(found.record).figure().axes


def test_a_hole_in_the_data_of_one_label_is_found():
    x, y = table(n=120)
    kept = (x["machine"] != "mill") | (x["load"] < 5)
    made = oc.Problem(
        x[kept], y[kept], simulator, {"a": stats.norm(0, 10)}, domain=oc.Box(0, 10, nodes=20), noise_cov=0.09
    )
    (finding,) = (one for one in short(made, "none", draws=20).check() if one.topic == "domain")
    assert "with machine mill" in finding.message
    assert "drill" not in finding.message


def test_experiments_may_have_labels():
    x, y = table()
    priors = {"stiffness": stats.norm(0, 10)}
    one = oc.Problem(x, y, simulator, priors, noise_cov=0.09, domain=oc.Box(0, 10, nodes=15))
    other = oc.Problem(x[["load"]], y, simulator, priors, noise_cov=0.09, domain=oc.Box(0, 10, nodes=15))
    found = short(oc.Experiments({"rig": one, "bench": other}), "gp", draws=50)
    assert found.summary().loc["stiffness", "mean"] == pytest.approx(2, abs=0.3)


def test_what_numbers_alone_can_do_is_refused():
    x, y = table()
    made = oc.Problem(x, y, simulator, {"a": stats.norm(0, 10)}, noise_cov=0.09)
    with pytest.raises(InputError, match="is for numbers alone; take"):
        short(made, oc.methods.Joint(bias=oc.bias.GP(form="large")))
    with pytest.raises(InputError, match="CorrelatedNoise goes along numbers, and machine holds labels"):
        oc.Problem(
            x, y, simulator, {"a": stats.norm(0, 10)}, noise_cov=oc.CorrelatedNoise(column="machine", length=1.0)
        )
