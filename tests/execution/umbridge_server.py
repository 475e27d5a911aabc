"""A real UM-Bridge server for tests: ``python umbridge_server.py PORT [SIGNS]``; it leaves a line for every call."""

import math
import os
import sys
import time
from pathlib import Path

import umbridge


def leave(text):
    if len(sys.argv) > 2:
        with (Path(sys.argv[2]) / "calls").open("a") as file:
            file.write(f"{sys.argv[1]} {text}\n")


def values(x, a, b):
    """f(x, (a, b)) = a exp(-b x)."""
    return [a * math.exp(-b * one) for one in x]


def slopes(x, a, b):
    """Its derivatives by a and b."""
    return [[math.exp(-b * one), -a * one * math.exp(-b * one)] for one in x]


class Decay(umbridge.Model):
    """theta in one block; x in the config, or at four points of its own."""

    jacobian = gradients = False

    def points(self, config):
        return [row[0] for row in config.get("x", [[0.0], [0.5], [1.0], [2.0]])]

    def get_input_sizes(self, config):
        return [2]

    def get_output_sizes(self, config):
        return [len(self.points(config))]

    def __call__(self, parameters, config):
        leave(f"{parameters[0][0]!r}")
        return [values(self.points(config), *parameters[0])]

    def supports_evaluate(self):
        return True

    def supports_apply_jacobian(self):
        return self.jacobian

    def apply_jacobian(self, out_wrt, in_wrt, parameters, vec, config):
        leave("jacobian")
        rows = slopes(self.points(config), *parameters[0])
        return [sum(s * v for s, v in zip(row, vec, strict=True)) for row in rows]

    def supports_gradient(self):
        return self.gradients

    def gradient(self, out_wrt, in_wrt, parameters, sens, config):
        leave("gradient")
        rows = slopes(self.points(config), *parameters[0])
        return [sum(s * row[j] for s, row in zip(sens, rows, strict=True)) for j in range(2)]


class DecayWithJacobian(Decay):
    jacobian = True


class DecayWithGradient(Decay):
    gradients = True


class Blocks(umbridge.Model):
    """a, one point x, b and a fixed shift in four blocks; the value and its square in two."""

    def get_input_sizes(self, config):
        return [1, 1, 1, 2]

    def get_output_sizes(self, config):
        return [1, 1]

    def __call__(self, parameters, config):
        leave("blocks")
        (a,), x, (b,), shift = parameters
        value = values(x, a, b)[0] + sum(shift)
        return [[value], [value**2]]

    def supports_evaluate(self):
        return True

    def supports_gradient(self):
        return True

    def gradient(self, out_wrt, in_wrt, parameters, sens, config):
        (a,), x, (b,), shift = parameters
        value, slope = values(x, a, b)[0] + sum(shift), slopes(x, a, b)[0]
        outer = 2 * value if out_wrt else 1.0
        return [sens[0] * outer * {0: slope[0], 2: slope[1]}[in_wrt]]


class Trouble(Decay):
    """What the first parameter asks for."""

    def __call__(self, parameters, config):
        asked = parameters[0][0]
        if asked == 1:
            raise ValueError("one is too much")
        if asked == 2:
            time.sleep(60)
        if asked == 3:
            os._exit(1)
        if asked == 4:
            return [[math.nan, math.inf, -math.inf, 1.0]]
        return super().__call__(parameters, config)


class Slow(Decay):
    def __call__(self, parameters, config):
        time.sleep(0.05)
        return super().__call__(parameters, config)


MODELS = {
    "plain": Decay,
    "jacobian": DecayWithJacobian,
    "gradient": DecayWithGradient,
    "blocks": Blocks,
    "trouble": Trouble,
    "slow": Slow,
}

if __name__ == "__main__":
    umbridge.serve_models([kind(name) for name, kind in MODELS.items()], int(sys.argv[1]))
