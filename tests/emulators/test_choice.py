"""Emulators side by side at runs that they have not seen."""

import numpy as np
import pytest
from emulator_cases import QUICK, Nearest, table

import orthocal as oc
from orthocal.errors import InputError


@pytest.mark.slow
def test_comparison():
    pytest.importorskip("sklearn", reason="needs scikit-learn, the extra learn")
    comparison = oc.compare_emulators(table(), ["gp", QUICK["forest"]], folds=3)
    assert comparison.held_out == 60
    assert list(comparison.ranking.index) == ["gp", "forest"]
    assert comparison.best == "gp"
    errors = comparison.table["relative_rmse"].unstack("outcome")
    assert (errors.loc["gp"] < 0.05).all()
    assert (errors.loc["forest"] > 0.05).all()
    assert np.isnan(comparison.table.loc["forest", "coverage"]).all()
    assert (comparison.table.loc["gp", "coverage"] > 0.85).all()
    assert "60 held-out runs" in str(comparison)
    assert len(comparison.figure().axes) == 2


def test_comparison_leaves_out_what_cannot_be_fitted():
    class Broken:
        def fit(self, inputs, targets):
            raise RuntimeError("no licence")

        def predict(self, inputs):
            raise AssertionError

    comparison = oc.compare_emulators(table(), {"broken": Broken(), "ours": Nearest()}, folds=1)
    assert comparison.held_out == 12
    assert "no licence" in comparison.failures["broken"]
    assert "broken was left out" in str(comparison)
    with pytest.raises(InputError, match="no emulator could be fitted"):
        oc.compare_emulators(table(), [Broken()], folds=1)
    with pytest.raises(InputError, match="folds=0"):
        oc.compare_emulators(table(), ["gp"], folds=0)


@pytest.mark.slow
def test_auto_takes_the_best(monkeypatch):
    monkeypatch.setattr("orthocal.emulators.choice.EMULATORS", {"forest": None, "gp": None})
    assert oc.emulate(table(25), "auto").name == "gp"
