"""Where the data are: holes in a domain, points far out, and what is said about them."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

import orthocal as oc
from orthocal.problem.data.labels import LabelColumns
from orthocal.results.checks.domain_findings import domain_findings
from orthocal.results.figures.figures import fit_drawing
from orthocal.results.predict.data_coverage import Coverage, DomainCoverage


def record(x, domain=None, names=None, labels=None):
    """What the coverage looks at, without a calibration."""
    x = np.asarray(x, dtype=float).reshape(len(x), -1)
    d = x.shape[1]
    domain = oc.Box(x.min(axis=0), x.max(axis=0)) if domain is None else domain
    nodes, weights = domain.rules(d)[0]
    stored = {"domain": np.stack(domain.bounds(d)), "nodes": nodes, "node_weights": weights}
    named = names or tuple(f"x{j + 1}" for j in range(d))
    return SimpleNamespace(
        x=x, constant=stored.get, input_names=named, without_inputs=False, labels=labels or LabelColumns()
    )


def empty(x, domain=None):
    return DomainCoverage(record(x, domain)).empty()


def found(x, domain=None):
    return list(domain_findings(record(x, domain), SimpleNamespace(domain_given=True, domain="")))


def test_a_census_to_1950_with_a_domain_to_2000_is_a_problem():
    (finding,) = found(np.arange(1790, 1951, 10), oc.Box(1790, 2000))
    assert finding.level == "problem"
    assert "24% of it has no data nearby: x1 from 1950 to 2000 (24%)" in finding.message
    assert "give the domain that the data cover" in finding.advice


@pytest.mark.parametrize(
    ("x", "domain", "share"),
    [
        (np.delete(np.linspace(0, 1, 101), np.arange(41, 56)), None, 0.16),
        (np.r_[np.linspace(0, 0.2, 15), np.linspace(0.8, 1, 15)], None, 0.6),
        ([0.0, 1.0, 2.0], oc.Box(0, 5), 0.6),
        (np.linspace(3, 4, 30), oc.Box(0, 10), 0.9),
        (1e9 * np.linspace(3, 4, 30), oc.Box(0, 1e10), 0.9),
    ],
)
def test_holes_count_whole(x, domain, share):
    assert empty(x, domain) == pytest.approx(share, abs=0.01)


def test_holes_in_several_inputs():
    rng = np.random.default_rng(1)
    x = rng.random((60, 5))
    # one input goes on by half: a third of the domain
    assert empty(x, oc.Box(0, [1, 1, 1.5, 1, 1])) == pytest.approx(1 / 3, abs=0.03)
    triangle = rng.random((400, 2))
    assert 0.2 < empty(triangle[triangle.sum(axis=1) < 1][:150], oc.Box(0, 1)) < 0.5
    # two inputs that go together fill a line, not a box
    assert empty(np.column_stack([x[:, 0], x[:, 0] + 0.02 * x[:, 1]])) > 0.1


def quiet_designs():
    rng = np.random.default_rng(2)
    yield "bayarri", np.repeat(0.11 + 0.322 * np.arange(10), 3), oc.Box(0, 3.01)
    yield "at the data", rng.beta(1, 5, 40), "points"
    yield "one point", np.array([0.3]), oc.Box(0, 1)
    yield "without the end", np.linspace(0, 1, 10, endpoint=False), oc.Box(0, 1)
    yield "small gaps", np.concatenate([c + 0.12 * rng.random(12) for c in np.arange(0, 1, 0.16)]), None
    yield "replicates with jitter", np.repeat(np.linspace(0, 1, 12), 10) + 0.003 * rng.random(120), None
    for d in (1, 2, 3, 5):
        yield f"two levels {d}", np.array(list(product([0, 1], repeat=d))), None
        yield f"sobol {d}", qmc.Sobol(d, rng=rng).random(32), oc.Box(0, 1)
        yield f"replicates {d}", np.repeat(rng.random((12, d)), 10, axis=0), None
    for d in (2, 3):
        yield f"grid {d}", np.array(list(product(np.linspace(0, 1, 5), repeat=d))), None


@pytest.mark.parametrize(
    ("name", "x", "domain"), list(quiet_designs()), ids=lambda one: one if type(one) is str else ""
)
def test_ordinary_designs_are_quiet(name, x, domain):
    domain = oc.Points(x) if domain == "points" else domain
    assert empty(x, domain) < 0.1


def test_random_designs_are_mostly_quiet():
    """Rates below .5 and 3 % (docs/limits.md): more than 5 of 120 and 12 of 120 have chances below 1e-3."""
    rng = np.random.default_rng(3)
    sizes = [(d, n) for d in (1, 2, 5) for n in (10, 17, 40, 150)] * 10
    assert sum(empty(rng.random((n, d))) >= 0.1 for d, n in sizes) <= 5
    assert sum(empty(rng.random((n, d)), oc.Box(0, 1)) >= 0.1 for d, n in sizes) <= 12


def test_a_constant_input_is_named():
    x = np.column_stack([np.linspace(0, 1, 20), np.full(20, 300.0)])
    (finding,) = found(x, oc.Box([0, 290], [1, 310]))
    assert finding.level == "note"
    assert "x2 was measured at one value only, 300" in finding.message


def test_far_points():
    data = Coverage(np.linspace(0, 1, 11)[:, None], np.ones(1))
    points = np.array([[-0.3], [-0.1], [0.05], [1.0], [1.15], [1.3], [1e6]])
    assert data.far(points).tolist() == [True, False, False, False, False, True, True]
    rng = np.random.default_rng(4)
    square = Coverage(rng.random((100, 2)), np.ones(2))
    assert square.far(np.array([[0.5, 0.5], [0.5, 3.0], [-2.0, 0.5]])).tolist() == [False, True, True]
    constant = Coverage(np.column_stack([rng.random(20), np.full(20, 5.0)]), np.array([1.0, 2.0]))
    assert constant.far(np.array([[0.5, 5.0], [0.5, 5.1], [0.5, 7.0]])).tolist() == [False, False, True]


@pytest.fixture(scope="module")
def beyond():
    x = np.linspace(0, 1, 20)
    y = 2 * x + 0.1 * np.sin(6 * x) + 0.02 * np.random.default_rng(5).standard_normal(20)
    method = oc.methods.Joint(oc.bias.GP(1.5, 0.1, 0.25))
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"t": stats.norm(0, 10)}, oc.Box(0, 1.5), noise_cov=4e-4)
    return oc.calibrate(problem, method, draws=30, chains=1, warmup=5, seed=1, progress=False)


def test_the_distance_is_in_length_scales(beyond):
    with pytest.warns(oc.OrthocalWarning, match=r"1 of 3 points of x_new lie far from the data, up to 0\.5 times"):
        found = beyond.predict([0.0, 1.05, 1.5])
    np.testing.assert_allclose(found["distance"], [0, 0.2, 2.0])
    assert found["far"].values.tolist() == [False, False, True]
    assert found["distance"].attrs["units"] == "length-scales of the bias"
    assert (beyond.predict()["distance"] == 0).all()
    # nothing is said where it was not asked for, nor at points among the data
    beyond.predict([1.5], warn=False)
    beyond.predict([0.512, 0.9])


def test_without_a_gaussian_process_it_is_in_shares_of_the_datas_width():
    x = np.column_stack([np.linspace(0, 10, 20), np.linspace(0, 1, 20) ** 2])
    problem = oc.Problem(x, x[:, 0], lambda x, t: t[0] * x[:, 0], {"t": stats.norm(0, 10)}, noise_cov=1.0)
    posterior = oc.calibrate(problem, "none", draws=10, chains=1, warmup=5, seed=1, progress=False)
    found = posterior.predict([[10.0, 1.0], [13.0, 1.0], [10.0, 1.6]], warn=False)
    np.testing.assert_allclose(found["distance"], [0, 1, 2])
    assert found["distance"].attrs["units"] == "times 0.3 of the data's width"


def test_a_saved_result_still_says_it(beyond, tmp_path):
    loaded = oc.load(beyond.save(tmp_path / "fit.nc"))
    for posterior in (beyond, loaded):
        (finding,) = [one for one in posterior.check() if one.topic == "domain"]
        assert finding.level == "problem"
        assert "33% of it has no data nearby: x from 1 to 1.5 (33%)" in finding.message
    page = loaded.report(tmp_path / "fit.html").read_text(encoding="utf-8")
    assert "Grey: no data nearby" in page
    spans = [patch for axis in fit_drawing(loaded.record).figure().axes for patch in axis.patches]
    assert len(spans) == 2
    assert spans[0].get_x() == pytest.approx(1.0)
