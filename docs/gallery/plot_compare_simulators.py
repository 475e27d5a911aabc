"""
Two simulators, one process: which is closer?
=============================================

Cooling by Newton's law, or by free convection? `oc.compare_simulators` calibrates both to the same data and says which
of them can come closer to the real process, with its probability.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import orthocal as oc

rng = np.random.default_rng(4)
minute = np.linspace(0, 40, 60)


def newton(t, theta):
    """Temperature [°C] of a body that was at 300 °C, in a room of 20 °C."""
    return 20 + 280 * np.exp(-theta[0] * t)


def convection(t, theta):
    """The rate falls with the temperature: free convection, theta[1] is its exponent."""
    start, rate, power = 280.0, theta[0], theta[1]
    return 20 + start * (1 + power * rate * t) ** (-1 / power)


real = 20 + 280 * (1 + 0.3 * 0.09 * minute) ** (-1 / 0.3) + 2.5 * np.sin(minute / 6)
temperature = real + 2 * rng.standard_normal(60)
rate = {"rate": stats.uniform(0.01, 0.3)}
common = {"domain": oc.Box(0, 40), "noise_cov": 4.0, "input_names": "minute", "outcome_names": "temperature"}
problems = {
    "Newton": oc.Problem(minute, temperature, newton, rate, **common),
    "convection": oc.Problem(minute, temperature, convection, {**rate, "power": stats.uniform(0.05, 1)}, **common),
}
compared = oc.compare_simulators(problems, seed=1)
print(compared)

# %%
# The best of each
# ----------------

figure, axes = plt.subplots(figsize=(6, 3.4), layout="constrained")
axes.plot(minute, temperature, ".", color="#333333", label="field data")
for (name, problem), color in zip(problems.items(), ("#D55E00", "#0072B2"), strict=True):
    function = newton if name == "Newton" else convection
    axes.plot(minute, function(minute, problem.theta_tilde), color=color, label=name)
axes.set(xlabel="time [min]", ylabel="temperature [°C]")
axes.legend(frameon=False)
plt.show()
