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
from .base import SAMPLERS, BiasPrior, BiasSampler, Restore, Setting, StoredSampler, scales_noise, trace_of
from .sized import sized


def prepared(prior: BiasPrior, setting: Setting, size_drawn: bool = False) -> BiasSampler:
    """The prior's sampler; it sees a column for each label, unless the prior says that it ``knows_labels``.

    The size of the bias is drawn with it if ``size_drawn``, of priors that have a sampler for functions of size one.
    """
    one_hot = bool(setting.labels) and not getattr(prior, "knows_labels", False)
    seen = widened(setting) if one_hot else setting
    unit = getattr(prior, "prepare_unit", None) if size_drawn else None
    own: BiasSampler = prior.prepare(seen) if unit is None else sized(unit(seen), setting.noise_var)
    return OneHotSampler(own, setting.labels) if one_hot else own


def widened(setting: Setting) -> Setting:
    """The same with a column for each label."""
    labels, numeric = setting.labels, setting.labels.numeric(len(setting.span))
    counts, x = [len(one.labels) for one in labels.each], labels.one_hot(setting.x)
    bounds = None
    if setting.bounds is not None:
        # between labels there is nothing to cut that the data do not have
        own = x[:, len(numeric) :]
        bounds = np.hstack([setting.bounds[:, numeric], np.stack([own.min(axis=0), own.max(axis=0)])])
    shares = np.concatenate([np.ones(len(numeric)), *(np.full(count, 1 / count) for count in counts)])
    return setting._replace(
        x=x,
        nodes=labels.one_hot(setting.nodes),
        span=np.concatenate([setting.span[numeric], np.ones(sum(counts))]),
        labels=NO_LABELS,
        shares=shares,
        bounds=bounds,
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
        **more: Array,
    ) -> tuple[Any, Array]:
        given = more if noise_scale is None else {"noise_scale": noise_scale, **more}
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
    if settings.get("sized"):
        own = own._replace(restore=partial(_sized, own.restore))
    return own if "labels" not in settings else StoredSampler(partial(_restored, own), own.remarks)


def _sized(restore: Restore, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array) -> BiasSampler:
    """The sampler of a bias whose size was drawn."""
    return sized(restore(settings, x, nodes, noise_var), noise_var)


def _restored(
    stored: StoredSampler, settings: dict[str, Any], x: Array, nodes: Array, noise_var: Array
) -> OneHotSampler:
    """The sampler of a stored posterior, from the one within."""
    labels = LabelColumns.from_text(settings["labels"])
    own = {name: value for name, value in settings.items() if name != "labels"}
    return OneHotSampler(stored.restore(own, labels.one_hot(x), labels.one_hot(nodes), noise_var), labels)
