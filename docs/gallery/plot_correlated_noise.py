"""
Errors that are correlated along time
=====================================

A sensor drifts: errors of neighbouring readings are alike. Taken for independent, every reading counts in full, and the
interval of the rate is far too short. `oc.CorrelatedNoise` says how they go together.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(3)
n, rho, sd = 150, 0.8, 0.3
time = np.linspace(0, 10, n)  # hours
drift = np.empty(n)
drift[0] = rng.standard_normal()
for i in range(1, n):
    drift[i] = rho * drift[i - 1] + np.sqrt(1 - rho**2) * rng.standard_normal()
level = 20 * np.exp(-0.25 * time) + 0.6 * np.sin(0.7 * time) + sd * drift  # mg/l


def decay(t, theta):
    return 20 * np.exp(-theta[0] * t)


prior = {"rate": stats.uniform(0, 1)}
length = -(time[1] - time[0]) / np.log(rho)
noises = {
    "taken for independent": sd**2,
    "correlated, as it is": oc.CorrelatedNoise("time", length=length, share=1.0, sd=sd),
}
posteriors = {}
for name, noise in noises.items():
    problem = oc.Problem(time, level, decay, prior, oc.Box(0, 10), noise_cov=noise, input_names="time")
    posteriors[name] = oc.calibrate(problem, seed=1, progress=False)
    print(name, posteriors[name].summary().round(4), sep="\n")

# %%
# `check()` notices it by itself, where nothing was said:

print(next(line for line in str(posteriors["taken for independent"].check()).splitlines() if "alike" in line))

# %%
# The two posteriors
# ------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(time, level, ".", color="#333333")
left.set(xlabel="time [h]", ylabel="concentration [mg/l]")
for (name, posterior), color in zip(posteriors.items(), ("#D55E00", "#0072B2"), strict=True):
    right.hist(
        posterior.data["posterior"]["rate"].values.ravel(), bins=50, density=True, color=color, alpha=0.5, label=name
    )
right.set(xlabel="rate [1/h]", yticks=[])
right.legend(frameon=False)
plt.show()
