"""Weights of draws, and what is known of their tail."""

import numpy as np
import pytest

from orthocal.methods.joint.weights import pareto_smoothed


@pytest.mark.parametrize("draws", [1, 4, 20])
def test_few_draws_have_no_tail(draws):
    log_weights = -np.arange(float(draws))
    smoothed, pareto_k = pareto_smoothed(log_weights)
    assert smoothed == pytest.approx(log_weights)
    assert np.isnan(pareto_k)
