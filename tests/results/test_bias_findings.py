"""What is found about the bias."""

import numpy as np
import pandas as pd
from scipy import stats

import orthocal as oc


def test_inputs_are_named():
    """A prior knows inputs by their numbers; people know their names."""
    rng = np.random.default_rng(2)
    x = pd.DataFrame({"speed": rng.random(60), "pressure": rng.random(60)})
    y = 2 * x["speed"] + np.sin(6 * x["speed"]) + 0.05 * rng.standard_normal(60)
    problem = oc.Problem(x, y, lambda x, theta: theta[0] * x[:, 0], {"a": stats.norm(0, 10)}, oc.Box([0, 0], [1, 1]))
    found = oc.calibrate(problem, "pgp", draws=50, seed=1, progress=False).check()
    said = [one.message for one in found if one.topic == "bias prior"]
    assert any("its length-scale along pressure ended at the longest" in one for one in said), said
    assert not any("input" in one for one in said)
