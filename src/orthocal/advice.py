"""Advice in two forms: for a Python program, and for problem files and the command line.

``NOISE_COV + " may be too small"`` is an ``Advice``: as a text it says ``noise_cov``, its ``files`` say
``cov in [noise]``. What is added to one has one form, and the sum has two.
"""

from __future__ import annotations


class Advice(str):
    """The form for a program; ``files`` is that for problem files and commands."""

    files: str

    def __new__(cls, python: str, files: str | None = None) -> Advice:
        self = super().__new__(cls, python)
        self.files = in_files(python) if files is None else files
        return self

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        return str(self), self.files

    def __add__(self, text: str) -> Advice:
        return Advice(super().__add__(text), self.files + in_files(text))

    def __radd__(self, text: str) -> Advice:
        return Advice(text + str(self), in_files(text) + self.files)


def in_files(text: str) -> str:
    """The form for problem files and commands; of any other text, the text."""
    return text.files if isinstance(text, Advice) else text


NOISE_COV = Advice("noise_cov", "cov in [noise]")
UNKNOWN_NOISE = Advice('noise_cov="unknown"', 'cov = "unknown" in [noise]')
VARYING_NOISE = Advice("noise_cov=oc.VaryingNoise()", "varying in [noise]")
GROUP_NOISE = Advice("oc.GroupNoise with a group", "groups in [noise], one")
Y_ERR = Advice("y_err", "y_err in [data]")
JOINT = Advice('the joint projection, method="gp"', 'the joint projection, name = "gp" in [method]')
LENGTHSCALE = Advice("lengthscale, oc.bias.GP(lengthscale=...)", "lengthscale in [method]")
NODES = Advice("nodes: oc.Box(lower, upper, nodes=...)", "nodes in [domain]")
STARTS = Advice("starts", "starts in [sampling]")
DRAWS = Advice("draws", "draws in [sampling]")
WARMUP = Advice("warmup", "warmup in [sampling]")
RUN_LONGER = "run longer: more draws, and more " + WARMUP
EMULATOR_DRAWS = Advice("emulator_draws", "emulator_draws in [sampling]")
EMULATOR_ERROR = Advice("emulator_error=True", "error = true in [simulator]")
KNOWS_ITS_ERROR = Advice('emulator "gp"', 'emulator = "gp" in [simulator]') + ", which knows its own"
NEXT_RUNS = Advice("(oc.next_runs)", "(orthocal next-runs says where)")
COMPARE_EMULATORS = Advice("oc.compare_emulators", "orthocal emulate")
BATCHED = Advice("batched=True", "batched = true in [simulator]")


def named_transform(*names: str) -> Advice:
    """One of these transforms of an outcome."""
    words = " or ".join(f'"{name}"' for name in names)
    return Advice(f"transform={words}", f"transform = {words} in [data]")
