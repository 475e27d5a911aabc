"""Regressors from elsewhere: scikit-learn's, and any object with ``fit`` and ``predict``."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from ..arrays import Array
from ..errors import InputError
from ..progress import announced
from .base import Layout, ListedRegressor, listed
from .tree_kernels import walk


def learner(module: str) -> Any:
    """A module of scikit-learn, which is an extra."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise InputError("the emulators 'forest' and 'mlp' need scikit-learn: pip install 'orthocal[learn]'") from None


@runtime_checkable
class FitPredict(Protocol):
    """A model of one target: learns (N,) from inputs (N, k), and predicts (M,)."""

    def fit(self, inputs: Array, target: Array, /) -> Any:
        """The fitted model, or nothing if it is the model itself."""

    def predict(self, inputs: Array, /) -> Any:
        """Numbers, one a row."""


class ExternalRegressor:
    """Any object with ``fit(inputs, targets)`` and ``predict(inputs)``: one copy of it for each target.

    Its gradient is by central differences over a tenth of the runs' range at least, as that of step functions.
    """

    layout: Layout = "components"

    def __init__(self, model: FitPredict) -> None:
        if not isinstance(model, FitPredict):
            raise InputError(f"the emulator is {type(model).__name__}: give a name, or an object with fit and predict")
        self.model = model

    def fit(self, inputs: Array, targets: Array) -> FittedExternal:
        models = []
        for target in targets.T:
            model = deepcopy(self.model)
            try:
                fitted = model.fit(inputs, target)
            except Exception as error:
                raise InputError(
                    f"fit of {type(self.model).__name__} raised {type(error).__name__}: {error}"
                ) from error
            models.append(model if fitted is None else fitted)
        return FittedExternal(models)


class FittedExternal:
    """The fitted copies."""

    def __init__(self, models: list[FitPredict]) -> None:
        self.models = models

    def predict(self, inputs: Array) -> Array:
        columns = [np.asarray(model.predict(inputs), dtype=np.float64) for model in self.models]
        wrong = next((column.shape for column in columns if column.size != len(inputs)), None)
        if wrong is not None:
            raise InputError(
                f"predict returned an array of shape {wrong} for {len(inputs)} rows: expected one number a row"
            )
        return np.stack([column.ravel() for column in columns], axis=1)


# A random forest (scikit-learn).


@listed
@dataclass(frozen=True)
class Forest(ListedRegressor):
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


# A neural network (scikit-learn's multi-layer perceptron), with the gradient of its formula.

_FILTERS = Lock()
#: rows times iterations: a minute or two
MOST_WORK = 20_000_000


@listed
@dataclass(frozen=True)
class MLP(ListedRegressor):
    """Layers of tanh(W u + b), the last one linear; weights by least squares with a penalty on their size.

    It needs the extra ``learn``.

    Parameters
    ----------
    layers
        Units of each hidden layer.
    penalty
        Of the squared weights.
    iterations
        Most iterations of the search; fewer with more than 20 000 rows, whose number times the iterations is bounded.
    seed
        Of the weights it starts from.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> theta, x = np.linspace(1, 3, 20)[:, None], np.linspace(0, 1, 5)
    >>> runs = oc.RunTable(theta, np.exp(-theta * x), x, parameter_names=["rate"])
    >>> emulator = oc.emulate(runs, oc.emulators.MLP(layers=(10,), iterations=200), progress=False)
    >>> bool(abs(emulator([0.5], [2.2]) - np.exp(-1.1)) < 0.05)
    True
    """

    layers: tuple[int, ...] = (64, 64)
    penalty: float = 1e-3
    iterations: int = 1000
    seed: int = 0

    name: ClassVar[str] = "mlp"
    words: ClassVar[str] = "a neural network"
    layout: ClassVar[Layout] = "components"

    def __post_init__(self) -> None:
        if not self.layers or min(self.layers) < 1 or self.penalty < 0 or self.iterations < 1:
            raise InputError(
                "a network needs hidden layers of at least one unit, a penalty of 0 or more and iterations"
            )

    def fit(self, inputs: Array, targets: Array) -> FittedMLP:
        import warnings

        iterations = max(1, min(self.iterations, MOST_WORK // len(inputs)))
        network = learner("neural_network").MLPRegressor(
            hidden_layer_sizes=self.layers,
            activation="tanh",
            solver="lbfgs",
            alpha=self.penalty,
            max_iter=iterations,
            max_fun=100 * iterations,
            tol=1e-7,
            random_state=self.seed,
        )
        # the filters belong to the process, and several networks may be fitted in threads
        with _FILTERS, warnings.catch_warnings():
            # the search is meant to stop there
            warnings.filterwarnings("ignore", category=learner("exceptions").ConvergenceWarning)
            network.fit(inputs, targets[:, 0] if targets.shape[1] == 1 else targets)
        return FittedMLP(network.coefs_, network.intercepts_)


class FittedMLP:
    """The network with weights (in, out) and intercepts (out,) of each layer."""

    def __init__(self, weights: list[Array], intercepts: list[Array]) -> None:
        self.weights, self.intercepts = weights, intercepts

    def predict(self, inputs: Array) -> Array:
        return self._layers(inputs)[-1]

    def gradient(self, inputs: Array) -> Array:
        """d predict / d inputs, (M, r, k), by the chain rule from the last layer to the first."""
        *hidden, _ = self._layers(inputs)
        slope = np.broadcast_to(self.weights[-1].T, (len(inputs), *self.weights[-1].T.shape))
        for weight, values in zip(self.weights[-2::-1], hidden[::-1], strict=True):
            slope = (slope * (1 - values**2)[:, None, :]) @ weight.T
        return np.asarray(slope)

    def _layers(self, inputs: Array) -> list[Array]:
        """The values of every layer."""
        values, layers = inputs, []
        for i, (weight, intercept) in enumerate(zip(self.weights, self.intercepts, strict=True)):
            values = values @ weight + intercept
            if i < len(self.weights) - 1:
                values = np.tanh(values)
            layers.append(values)
        return layers
