"""
Errors that are a share of the outcome
======================================

Concentrations that span three decades, measured to ten per cent. On their own scale the large ones decide everything;
with `transform="log"` bias and noise are shares, and predictions come back in the outcome's unit.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(1)
hour = np.linspace(0.5, 24, 40)
concentration = 80 * np.exp(-0.3 * hour) * np.exp(0.15 * np.sin(hour / 3) + 0.1 * rng.standard_normal(40))  # mg/l


def decay(t, theta):
    return theta[0] * np.exp(-theta[1] * t)


priors = {"start": stats.uniform(10, 190), "rate": stats.uniform(0.01, 1)}
problem = oc.Problem(hour, concentration, decay, priors, oc.Box(0.5, 24), noise_cov=0.01, transform="log")
posterior = oc.calibrate(problem, seed=1, progress=False)
print(posterior.summary().round(3))
print(posterior.bias_size().round(3).T)

# %%
# On the scale of the outcome
# ---------------------------

grid = np.linspace(0.5, 24, 120)
predicted = posterior.predict(grid, draws=250)
figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
axes.semilogy(hour, concentration, ".", color="#333333", label="field data")
for name, color, label in (("model", "#D55E00", "model"), ("mean", "#0072B2", "model + bias")):
    low, middle, high = predicted[name].isel(outcome=0).quantile([0.025, 0.5, 0.975], ("chain", "draw"))
    axes.fill_between(grid, low, high, color=color, alpha=0.3, lw=0)
    axes.plot(grid, middle, color=color, label=label)
axes.set(xlabel="time [h]", ylabel="concentration [mg/l]")
axes.legend(frameon=False)
plt.show()
