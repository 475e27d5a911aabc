"""
A hundred thousand observations
===============================

Along one input a Matern process is Markov: one pass over the data is exact, and the call is the same as for a hundred.
The interval of theta shrinks with the square root of their number, as it should.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

import orthocal as oc
from orthocal.examples import MODEL1

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for row, n in enumerate((100, 1_000, 100_000)):
    x, y = MODEL1.simulate(np.random.default_rng(1), n)
    start = time.process_time()
    posterior = oc.calibrate(MODEL1.problem(x, y), draws=250, seed=1, progress=False)
    draws = posterior.data["posterior"]["theta"].values.ravel()
    print(f"{n:7} observations: theta {draws.mean():.4f} ± {draws.std():.4f}, {time.process_time() - start:.1f} CPU s")
    low, high = np.quantile(draws, [0.025, 0.975])
    axes.plot([low, high], [row, row], color="#0072B2", lw=3, solid_capstyle="butt")
    axes.plot(draws.mean(), row, "o", color="#0072B2")
axes.axvline(MODEL1.theta_star[0], color="k", ls=":", label="closest in truth")
axes.set(xlabel="theta", yticks=range(3), yticklabels=["100", "1000", "100 000"], ylabel="observations")
axes.legend(frameon=False)
plt.show()

# %%
# What was done with the last of them, in the words of `check()`:

print("\n".join(line for line in str(posterior.check()).splitlines() if "large" in line or "exact" in line))
