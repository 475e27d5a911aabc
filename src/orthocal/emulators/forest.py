"""A random forest (scikit-learn)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..progress import announced
from .base import Layout, Settings, listed
from .foreign import learner
from .forest_kernels import walk


@listed
@dataclass(frozen=True)
class Forest(Settings):
    """The mean of trees that were grown on samples of the rows: a step function (needs the extra ``learn``).

    Parameters
    ----------
    trees
        Number of trees.
    least
        Fewest rows of a leaf.
    seed
        Of the samples.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 30)[:, None], np.linspace(0, 1, 10)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.Forest(trees=20), progress=False)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 0.1), emulator.smooth
    (True, False)
    """

    trees: int = 100
    least: int = 1
    seed: int = 0

    name: ClassVar[str] = "forest"
    words: ClassVar[str] = "a random forest"
    layout: ClassVar[Layout] = "components"

    def __post_init__(self) -> None:
        if self.trees < 1 or self.least < 1:
            raise InputError("a forest needs at least one tree and one row a leaf")

    def fit(self, inputs: Array, targets: Array) -> FittedForest:
        trees = learner("ensemble").RandomForestRegressor(
            self.trees, min_samples_leaf=self.least, random_state=self.seed
        )
        return FittedForest(trees.fit(inputs, targets[:, 0] if targets.shape[1] == 1 else targets).estimators_)


class FittedForest:
    """The trees of scikit-learn's forest, walked by compiled code: its own ``predict`` takes milliseconds a row."""

    def __init__(self, estimators: list[Any]) -> None:
        trees = [one.tree_ for one in estimators]
        self._roots = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        self._arrays = [
            np.concatenate([getattr(tree, name) for tree in trees])
            for name in ("children_left", "children_right", "feature", "threshold")
        ]
        self._values = np.concatenate([tree.value[:, :, 0] for tree in trees])

    def predict(self, inputs: Array) -> Array:
        means = np.zeros((len(inputs), self._values.shape[1]))
        compiled: Any = walk
        with announced("compiling the forest for its first use, some seconds, once"):
            compiled(self._roots, *self._arrays, self._values, np.ascontiguousarray(inputs), means)
        return means
