"""Regressors from elsewhere: scikit-learn's, and any object with ``fit`` and ``predict``."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..arrays import Array
from ..errors import InputError
from .base import Layout


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


class Foreign:
    """Any object with ``fit(inputs, targets)`` and ``predict(inputs)``: one copy of it for each target.

    Its gradient is by central differences over a tenth of the runs' range at least, as that of step functions.
    """

    layout: Layout = "components"

    def __init__(self, model: FitPredict) -> None:
        if not isinstance(model, FitPredict):
            raise InputError(f"the emulator is {type(model).__name__}: give a name, or an object with fit and predict")
        self.model = model

    def fit(self, inputs: Array, targets: Array) -> FittedForeign:
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
        return FittedForeign(models)


class FittedForeign:
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
