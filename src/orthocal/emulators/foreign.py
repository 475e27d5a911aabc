"""Regressors from elsewhere: scikit-learn's, and any object with ``fit`` and ``predict``."""

from __future__ import annotations

from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from ..arrays import Array
from ..errors import InputError


def learner(module: str) -> Any:
    """A module of scikit-learn, which is an extra."""
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise InputError("the emulators 'forest' and 'mlp' need scikit-learn: pip install 'orthocal[learn]'") from None


class Foreign:
    """Any object with ``fit(inputs, targets)`` and ``predict(inputs)``: one copy of it for each target.

    Its gradient is by central differences over a tenth of the runs' range at least, as that of step functions.
    """

    layout = "components"

    def __init__(self, model: Any) -> None:
        if not callable(getattr(model, "fit", None)) or not callable(getattr(model, "predict", None)):
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

    def predict(self, inputs: Array) -> Array:
        raise InputError("this regressor has not been fitted: call fit, and predict of what it returns")


class FittedForeign:
    """The fitted copies."""

    def __init__(self, models: list[Any]) -> None:
        self.models = models

    def predict(self, inputs: Array) -> Array:
        columns = [np.asarray(model.predict(inputs), dtype=np.float64) for model in self.models]
        wrong = next((column.shape for column in columns if column.size != len(inputs)), None)
        if wrong is not None:
            raise InputError(
                f"predict returned an array of shape {wrong} for {len(inputs)} rows: expected one number a row"
            )
        return np.stack([column.ravel() for column in columns], axis=1)
