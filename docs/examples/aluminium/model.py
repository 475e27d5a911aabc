"""Johnson and Cook's flow stress in MPa; above a rate of 1 / s the metal is heated by its own work."""

import numpy as np

#: temperatures in K, J / (K cm^3), and the share of the work that becomes heat
ROOM, MELT, HEAT, SHARE = 298.0, 893.0, 2.66, 0.9
#: steps of the heating
STEPS = 60


def stress(strain, theta, strain_rate_per_s, temperature_K):
    """Many theta (c, 5) at a time: (c, m)."""
    A, B, C, n, m = theta.T[:, :, None]
    rate = 1 + C * np.log(strain_rate_per_s)

    def at(strain, kelvin):
        soft = np.clip((kelvin - ROOM) / (MELT - ROOM), 0, 1) ** m
        return (A + B * strain**n) * rate * (1 - soft)

    strain = np.ravel(strain)[None]
    kelvin = temperature_K
    if strain_rate_per_s > 1:
        step = strain / STEPS
        for k in range(STEPS):
            kelvin = kelvin + at((k + 0.5) * step, kelvin) * step / (HEAT * SHARE)
    return at(strain, kelvin)
