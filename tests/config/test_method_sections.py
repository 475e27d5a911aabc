"""[method] and [loss] of a problem file become methods."""

from dataclasses import replace

import pytest

import orthocal as oc
from orthocal.config.problem_file import LossSection, MethodSection, build_method


def built(method, loss=None):
    return build_method(MethodSection(**method), LossSection(**(loss or {})))


def test_the_default_is_the_joint_projection_with_a_gaussian_process():
    assert built({}) == oc.methods.Joint(oc.bias.GP())


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ({"kind": "squared"}, "squared"),
        ({"kind": "absolute"}, "absolute"),
        ({"kind": "huber"}, oc.losses.Huber()),
        ({"kind": "huber", "k": 2.5}, oc.losses.Huber(2.5)),
    ],
)
def test_losses(loss, expected):
    assert built({"name": "gp", "nu": 2.5}, loss) == oc.methods.Joint(oc.bias.GP(nu=2.5), expected)


def test_further_keys_are_the_priors():
    assert built({"name": "bart", "trees": 20}) == oc.methods.Joint(oc.bias.BART(trees=20))
    assert built({"name": "pgp", "projection": "finite"}) == oc.methods.Projected(oc.bias.GP(), "finite")


@pytest.mark.parametrize("name", ["none", "ko", "ogp", "sgasp"])
def test_the_theta_kernel(name):
    method = built({"name": name, "kernel": "slice"})
    assert method == replace(oc.methods.method_by_name(name), kernel=oc.kernels.Slice())
    assert built({"name": name}) == oc.methods.method_by_name(name)


@pytest.mark.parametrize(
    ("method", "loss", "words"),
    [
        ({"name": "pgp"}, {"kind": "absolute"}, "'pgp' has the squared loss"),
        ({"name": "gp"}, {"kind": "absolute", "k": 2.0}, "k goes with kind"),
        ({"name": "gp"}, {"kind": "huber", "k": -1.0}, "positive number of noise sds"),
        ({"name": "gp", "projection": "finite"}, {}, "these go with pgp"),
        ({"name": "pcal", "kernel": "slice"}, {}, "'pcal' has no kernel"),
        ({"name": "none", "feedback": False}, {}, "'none' has no feedback"),
        ({"name": "gp", "trees": 20}, {}, "has no trees"),
        ({"name": "gp", "hyperparameters": "sample"}, {}, "has no hyperparameters"),
    ],
)
def test_what_does_not_go_together_is_said(method, loss, words):
    with pytest.raises(oc.OrthocalError, match=words):
        built(method, loss)
