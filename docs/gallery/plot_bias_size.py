"""
How large is the bias?
======================

`posterior.bias_size()` gives the bias over the domain: in the outcome's unit, in standard deviations of the noise, and
as a share of what the real process varies. Here the true bias is made larger step by step.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(1)
x = np.linspace(0, 1, 60)
noise = 0.1 * rng.standard_normal(60)
# orthogonal to a line through the origin, with a root mean square of one
wave = np.sin(7 * x) - x * (x @ np.sin(7 * x)) / (x @ x)
wave /= np.sqrt(np.mean(wave**2))

true_sizes = np.array([0.0, 0.03, 0.1, 0.2, 0.4])
rows = []
for size in true_sizes:
    y = 3 * x + size * wave + noise
    problem = oc.Problem(x, y, lambda x, t: t[0] * x, {"slope": stats.norm(0, 10)}, oc.Box(0, 1), noise_cov=0.01)
    rows.append(oc.calibrate(problem, draws=500, seed=1, progress=False).bias_size().iloc[0])
    print(f"true size {size:.2f}:", rows[-1].round(3).to_dict())

# %%
# True and found
# --------------
# A bias far below the noise (0.1, dotted) cannot be told from none; what is found there is its uncertainty.

found, low, high = (np.array([row[name] for row in rows]) for name in ("rms", "rms_lower", "rms_upper"))
figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
axes.plot([0, 0.42], [0, 0.42], color="0.7", lw=1)
axes.errorbar(true_sizes, found, [found - low, high - found], fmt="o", color="#009E73", capsize=3)
axes.axhline(0.1, color="k", ls=":", lw=1)
axes.set(xlabel="true size of the bias (rms)", ylabel="found, with 95 % interval")
plt.show()
