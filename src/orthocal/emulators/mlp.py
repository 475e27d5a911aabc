"""A neural network (scikit-learn's multi-layer perceptron), with the gradient of its formula."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import ClassVar

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .base import Layout, Settings, listed
from .foreign import learner

_FILTERS = Lock()
#: rows times iterations: a minute or two
MOST_WORK = 20_000_000


@listed
@dataclass(frozen=True)
class MLP(Settings):
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
