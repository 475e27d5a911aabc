"""
A straight line for a curved process
====================================

The simulator is a line through the origin, the real process bends. The line alone cannot follow it; with its bias it
does, and the slope is that of the closest line.
"""

import matplotlib.pyplot as plt
import numpy as np

import orthocal as oc
from orthocal.examples import MODEL1

x, y = MODEL1.simulate(np.random.default_rng(1))
problem = MODEL1.problem(x, y)
posterior = oc.calibrate(problem, seed=1, progress=False)
print(posterior.summary().round(3))

# %%
# What is predicted
# -----------------
# Model, and model with bias, at new points; bands are 95 % intervals.

grid = np.linspace(0, 1, 101)[:, None]
predicted = posterior.predict(grid)
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.plot(x[:, 0], y, ".", color="0.5", label="field data")
for name, color, label in (("model", "C0", "model"), ("mean", "C1", "model + bias")):
    low, middle, high = predicted[name].isel(outcome=0).quantile([0.025, 0.5, 0.975], ("chain", "draw"))
    axes.fill_between(grid[:, 0], low, high, alpha=0.25, color=color, lw=0)
    axes.plot(grid[:, 0], middle, color=color, label=label)
axes.plot(grid[:, 0], MODEL1.truth(grid), "k--", lw=1, label="real process")
axes.set(xlabel="x", ylabel="y")
axes.legend()
plt.show()
