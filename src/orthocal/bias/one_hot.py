"""Categorical inputs for priors that know numbers alone: a column of ones and zeros for each label.

A split of a tree at such a column asks whether the label is this one or another, a hinge of a spline and a unit of a
network become a level of its own. All labels are treated alike: none is a reference, and their order does not matter.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import FileError
from ..problem.data.labels import NO_LABELS, LabelColumns
from .base import SAMPLERS, BiasPrior, BiasSampler, Setting, StoredSampler, scales_noise, trace_of


def prepared(prior: BiasPrior, setting: Setting) -> BiasSampler:
    """The prior's sampler; it sees a column for each label, unless the prior says that it ``knows_labels``."""
    if not setting.labels or getattr(prior, "knows_labels", False):
        return prior.prepare(setting)
    return OneHotSampler(prior.prepare(widened(setting)), setting.labels)


def widened(setting: Setting) -> Setting:
    """The same with a column for each label."""
    labels, numeric = setting.labels, setting.labels.numeric(len(setting.span))
    counts = [len(one.labels) for one in labels.each]
    shares = np.concatenate([np.ones(len(numeric)), *(np.full(count, 1 / count) for count in counts)])
    return setting._replace(
        x=labels.one_hot(setting.x),
        nodes=labels.one_hot(setting.nodes),
        span=np.concatenate([setting.span[numeric], np.ones(sum(counts))]),
        labels=NO_LABELS,
        shares=shares,
        unmerged=None if setting.unmerged is None else widened(setting.unmerged),
    )


class OneHotSampler:
    """A sampler of functions of the wider x, as one of functions of x."""

    def __init__(self, own: BiasSampler, labels: LabelColumns) -> None:
        self.own, self._labels = own, labels

    @property
    def takes_noise_scale(self) -> bool:
        return scales_noise(self.own)

    @property
    def trace(self) -> list[Any]:
        """What a sampler notes of its draws; nothing where it does not."""
        return trace_of(self.own) or []

    def draw(
        self,
        rngs: list[np.random.Generator],
        state: Any,
        residual: Array,
        noise_scale: Array | None = None,
    ) -> tuple[Any, Array]:
        given = {} if noise_scale is None else {"noise_scale": noise_scale}
        return self.own.draw(rngs, state, residual, **given)

    def record(self, state: Any) -> dict[str, Array]:
        return self.own.record(state)

    def predict(self, rng: np.random.Generator, records: dict[str, Array], x_new: Array) -> Array:
        return self.own.predict(rng, records, self._labels.one_hot(x_new))

    def findings(self) -> dict[str, Any]:
        return self.own.findings()

    def settings(self) -> dict[str, Any]:
        return {**self.own.settings(), "labels": self._labels.written()}


def stored_sampler(settings: dict[str, Any]) -> StoredSampler:
    """What a file's sampler needs, from its settings."""
    kind = str(settings.get("kind"))
    if kind not in SAMPLERS:
        raise FileError(
            f"the bias prior {kind!r} of this file is not known to this version of orthocal: if it is your own, give "
            "it with the simulator, oc.load(path, simulator=f, bias=MyPrior())"
        )
    own = SAMPLERS[kind]
    return own if "labels" not in settings else StoredSampler(partial(_restored, own), own.remarks)


def _restored(
    stored: StoredSampler, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array
) -> OneHotSampler:
    """The sampler of a stored posterior, from the one within."""
    labels = LabelColumns.from_text(settings["labels"])
    own = {name: value for name, value in settings.items() if name != "labels"}
    return OneHotSampler(stored.restore(own, labels.one_hot(x), labels.one_hot(nodes), noise_var), labels)
