"""
The emulator's uncertainty in the posterior
===========================================

Five runs of a slow simulator are few. Its emulator has draws, functions that may be the simulator as far as the runs
tell, and `oc.calibrate` takes them in the simulator's place. `emulator_draws=0` takes the emulator's mean alone, and is
sure of a wrong answer.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc


def slow(x, theta):
    return np.sin(3 * theta[0] * x) + 0.5 * theta[0] ** 2


x = np.linspace(0, 1, 30)
y = slow(x, [1.15]) + 0.03 * np.random.default_rng(1).standard_normal(30)
prior = {"theta": stats.uniform(0, 2)}
plan = np.array([[0.1], [0.55], [0.9], [1.45], [1.9]])
runs = oc.RunTable(plan, np.stack([slow(x, one) for one in plan]), x, parameter_names=["theta"])
emulator = oc.emulate(runs, "gp", progress=False)
problem = oc.Problem(x, y, emulator, prior, oc.Box(0, 1), noise_cov=0.03**2)
posteriors = {
    "64 draws of the emulator": oc.calibrate(problem, draws=500, seed=1, progress=False),
    "its mean alone": oc.calibrate(problem, draws=500, seed=1, progress=False, emulator_draws=0),
    "the simulator itself": oc.calibrate(
        oc.Problem(x, y, slow, prior, oc.Box(0, 1), noise_cov=0.03**2), draws=500, seed=1, progress=False
    ),
}
for name, posterior in posteriors.items():
    print(name, posterior.summary().round(4), sep="\n")

# %%
# Draws and posteriors
# --------------------

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
theta = np.linspace(0.05, 1.95, 80)
point = x[20:21]
for draw in emulator.draws(20, seed=1):
    left.plot(theta, [draw(point, [one]).item() for one in theta], color="#0072B2", lw=0.6, alpha=0.6)
left.plot(theta, [slow(point, [one]).item() for one in theta], "k--", lw=1.2, label="simulator")
left.plot(plan[:, 0], [slow(point, one).item() for one in plan], "o", color="#D55E00", label="runs")
left.set(xlabel="theta", ylabel=f"output at x = {point[0]:.2f}")
left.legend(frameon=False)
for (name, posterior), color in zip(posteriors.items(), ("#0072B2", "#D55E00", "#333333"), strict=True):
    draws = posterior.data["posterior"]["theta"].values.ravel()
    right.hist(draws, bins=50, density=True, histtype="stepfilled", color=color, alpha=0.4, label=name)
right.axvline(1.15, color="k", ls=":", lw=1)
right.set(xlabel="theta", yticks=[])
right.legend(frameon=False, fontsize=8)
plt.show()
