"""Studies of our own: the joint projection beside the paper's algorithm and the rivals, where they agree and not."""

from __future__ import annotations

from functools import partial

import orthocal as oc
from orthocal.examples import FIN, MODEL1, MODEL2_PART, MODEL3, TWO_OUTCOMES, Example, curved, saturation

from .base import Column, Study

#: kept draws of a replication
DRAWS = 1600
_PRIORS = {
    "gp": ("GP", oc.bias.GP),
    "bart": ("BART", oc.bias.BART),
    "softbart": ("soft BART", oc.bias.SoftBART),
    "bmars": ("BMARS", oc.bias.BMARS),
    "bnn": ("BNN", oc.bias.BNN),
}
#: the rule of our default, not the paper's
_NODES = {"domain": oc.Box(0, 1)}


def _columns(identity: bool) -> tuple[Column, ...]:
    options = _NODES | ({"loss_weight": "identity"} if identity else {})
    columns = [
        Column(key, label, partial(_joint, key), extra=key not in ("gp", "bart"), problem_options=options)
        for key, (label, _) in _PRIORS.items()
    ]
    columns += [
        Column(f"p{key}", f"P{label}", partial(_projected, key), problem_options=options)
        for key, (label, _) in _PRIORS.items()
        if key in ("gp", "bart")
    ]
    columns += [
        Column("ogp", "OGP", oc.methods.OGP, problem_options=options),
        Column("pcal", "PCAL", oc.methods.PCAL, problem_options=options),
    ]
    return tuple(columns)


def _joint(key: str) -> oc.methods.Method:
    return oc.methods.Joint(_PRIORS[key][1]())


def _projected(key: str) -> oc.methods.Method:
    return oc.methods.Projected(_PRIORS[key][1]())


def _study(name: str, model: Example) -> Study:
    return Study(name, model.title, model, _columns(identity=model.q > 1), draws=DRAWS)


JOINT_STUDIES = {
    study.name: study
    for study in (
        _study("joint-model1", MODEL1),
        _study("joint-model2", MODEL2_PART),
        _study("joint-model3", MODEL3),
        _study("joint-outcomes", TWO_OUTCOMES),
        _study("joint-curved-minus5", curved(-0.5)),
        _study("joint-curved0", curved(0.0)),
        _study("joint-curved3", curved(0.3)),
        _study("joint-curved5", curved(0.5)),
        _study("joint-fin", FIN),
        _study("joint-uneven1", saturation(1, 2)),
        _study("joint-uneven2", saturation(0.5, 0.5)),
    )
}
