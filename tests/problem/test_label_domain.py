"""Domains with categorical inputs: box times labels, their rules, volumes and refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import orthocal as oc
from orthocal.errors import InputError
from orthocal.problem.data.field_data import field_data
from orthocal.problem.domain.labels import MOST_COMBINATIONS, LabelDomain, domain_of

TABLE = pd.DataFrame({"machine": ["B", "A", "B", "A"], "t": [0.0, 1.0, 2.0, 3.0]})


def data(x=TABLE, categorical=None):
    return field_data(x, np.zeros(len(x)), None, None, categorical=categorical)


def test_the_default_is_a_box_times_equal_labels():
    domain = domain_of(None, data())
    assert repr(domain) == "Box(0, 3) x machine (A, B)"
    (nodes, weights), coarse = domain.rules(2)
    assert weights.sum() == pytest.approx(1)
    assert weights[nodes[:, 0] == 1].sum() == pytest.approx(0.5)
    # exact for polynomials of each label
    assert weights @ (nodes[:, 1] ** 3 * (1 + nodes[:, 0])) == pytest.approx(27 / 4 * 1.5)
    assert coarse is not None
    assert len(coarse.nodes) < len(nodes)
    np.testing.assert_array_equal(domain.bounds(2), [[0, 0], [1, 3]])


def test_weights_and_boxes_are_the_users():
    domain = domain_of(oc.Labels(oc.Box(-1, 5, nodes=4), {"machine": {"A": 1, "B": 3}}), data())
    nodes, weights = domain.rules(2)[0]
    assert len(nodes) == 8
    assert weights[nodes[:, 0] == 1].sum() == pytest.approx(0.75)
    assert weights @ nodes[:, 1] == pytest.approx(2)


def test_volumes_are_those_of_each_label():
    shares = domain_of(oc.Labels(oc.Box(0, 4), {"machine": {"A": 1, "B": 3}}), data()).volumes(data().x)
    # B: cells [0, 1] and [1, 4]; A: [0, 2] and [2, 4]
    np.testing.assert_allclose(shares, [0.75 / 4, 0.25 / 2, 0.75 * 3 / 4, 0.25 / 2])


def test_a_label_without_data_is_near_to_all_alike():
    frame = TABLE.assign(machine=pd.Categorical(TABLE["machine"], ["A", "B", "C"]))
    domain = domain_of(oc.Box(0, 4), data(frame))
    shares = domain.volumes(data(frame).x)
    assert shares.sum() == pytest.approx(1)
    own = np.array([0.25, 0.5, 0.75, 0.5]) / 3
    np.testing.assert_allclose(shares, own + np.array([0.5, 1.0, 1.0, 1.5]) / 4 / 3)
    nodes, weights = domain.rules(2)[0]
    assert weights[nodes[:, 0] == 2].sum() == pytest.approx(1 / 3)


def test_labels_alone_are_a_sum():
    only = field_data(TABLE["machine"], np.zeros(4), None, None)
    domain = domain_of(None, only)
    (nodes, weights), coarse = domain.rules(1)
    np.testing.assert_array_equal(nodes, [[0], [1]])
    np.testing.assert_allclose(weights, 0.5)
    assert coarse is None
    np.testing.assert_allclose(domain.volumes(only.x), 0.25)


@pytest.mark.parametrize("numeric", [1, 2, 3])
def test_many_labels_have_fewer_nodes_each(numeric):
    rng = np.random.default_rng(0)
    x = pd.DataFrame(rng.random((200, numeric))).rename(columns=str).assign(site=[f"s{i % 30}" for i in range(200)])
    nodes, weights = domain_of(None, data(x)).rules(numeric + 1)[0]
    assert 1200 <= len(nodes) <= 2000
    assert len(np.unique(nodes[:, -1])) == 30
    assert weights.sum() == pytest.approx(1)


def test_points_may_have_labels():
    points = oc.Points(pd.DataFrame({"m": ["A", "B", "A"], "t": [0.1, 0.2, 2.9]}), [1, 1, 2])
    made = data(TABLE.assign(machine=pd.Categorical(TABLE["machine"], ["B", "A"])))
    domain = domain_of(points, made)
    np.testing.assert_array_equal(domain.rules(2)[0].nodes, [[1, 0.1], [0, 0.2], [1, 2.9]])
    # the nearest row of the same label, even where another label's is nearer
    np.testing.assert_allclose(domain.volumes(made.x), [0.25, 0.25, 0, 0.5])
    numbers = domain_of(oc.Points([[1, 0.1], [0, 0.2], [1, 2.9]], [1, 1, 2]), made)
    np.testing.assert_array_equal(numbers.rules(2)[0].nodes, domain.rules(2)[0].nodes)
    within = domain_of(oc.Points([0.5, 1.5]), made)
    assert isinstance(within, LabelDomain)
    assert len(within.rules(2)[0].nodes) == 4


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        (oc.Box([0, 0], [1, 3]), "has 2 dimensions, but 1 of the inputs are numbers: give the corners for t alone"),
        (oc.Labels(weights={"site": {"A": 1}}), "weights names 'site', which is no categorical input: these are mach"),
        (oc.Labels(weights={"machine": {"A": 1}}), "weights of 'machine' are given for A: give one for each of A, B"),
        (oc.Labels(weights={"machine": {"A": 1, "B": 0}}), "weights of 'machine' must be positive numbers"),
        (oc.Points([[0.5, 1.0]]), "nodes has machine = 0.5, which is none of its labels"),
        (oc.Points([["Z", 1.0]]), "nodes has machine = 'Z' in row 0"),
        (oc.Box(0, 2), "rows of x lie outside the domain"),
    ],
)
def test_what_does_not_fit_the_labels_is_refused(domain, words):
    with pytest.raises(InputError, match=words):
        domain_of(domain, data()).check(data().x[:, :]) if not isinstance(domain, oc.Box) else oc.Problem(
            TABLE, np.zeros(4), lambda x, t: t[0] * x[:, 1], {"a": stats.norm(0, 1)}, domain, noise_cov=1.0
        )


def test_labels_need_categorical_inputs():
    numbers = field_data(np.arange(4.0), np.zeros(4), None, None)
    with pytest.raises(InputError, match="is for categorical inputs, and x has none"):
        domain_of(oc.Labels(oc.Box(0, 3)), numbers)
    with pytest.raises(InputError, match="the nodes have labels, A, B, where x has numbers"):
        domain_of(oc.Points([["A"], ["B"]]), numbers)
    with pytest.raises(InputError, match=r"give oc\.Box"):
        oc.Labels(within=3)
    only = field_data(TABLE["machine"], np.zeros(4), None, None)
    with pytest.raises(InputError, match="x has categorical inputs alone, leave the domain out"):
        domain_of(oc.Box(0, 1), only)


def test_too_many_combinations_are_refused():
    rng = np.random.default_rng(0)
    x = pd.DataFrame({name: [f"{name}{i}" for i in rng.integers(0, 16, 400)] for name in "ab"}).assign(
        t=rng.random(400)
    )
    with pytest.raises(InputError, match=f"more than the {MOST_COMBINATIONS} that a domain can be made of"):
        domain_of(None, data(x))
