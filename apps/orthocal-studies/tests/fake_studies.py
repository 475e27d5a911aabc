"""Studies that cost nothing, for the tests of what runs them. Found by other processes as ``fake_studies:NAME``."""

import os
import signal
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from orthocal import bias, emulators
from orthocal.examples import MODEL1, MODEL2_PART
from orthocal.methods import Draws, Projected
from orthocal_studies.base import Column, Study
from orthocal_studies.printed import UNAVAILABLE, Printed

#: a folder for what the methods leave and look for; the tests set it
FOLDER = "ORTHOCAL_FAKE_STUDIES"


def _sign(problem, name):
    """A file that belongs to this data set."""
    return Path(os.environ[FOLDER]) / f"{name}-{problem.data.x[0, 0]:.12f}"


@dataclass(frozen=True)
class Cheap:
    """Independent normal draws around theta_tilde, with sd 0.04, after a pause."""

    pause: float = 0.0

    def run(self, problem, plan):
        time.sleep(self.pause)
        if FOLDER in os.environ:
            with (Path(os.environ[FOLDER]) / "log").open("a") as log:
                log.write(f"{os.getpid()} {problem.data.x[0, 0]!r}\n")
        theta = np.stack([problem.theta_tilde + 0.04 * rng.standard_normal((plan.draws, 1)) for rng in plan.rngs])
        nothing = np.zeros((*theta.shape[:2], *problem.data.y.shape))
        zero = np.zeros(theta.shape[:2])
        return Draws(theta, nothing, nothing, {"lp": zero, "acceptance_rate": zero})

    def describe(self):
        return {"kind": "cheap"}


@dataclass(frozen=True)
class Raising(Cheap):
    """Raises for the data sets whose first x is below 0.5, unless the file ``mended`` is there."""

    def run(self, problem, plan):
        if problem.data.x[0, 0] < 0.5 and not (Path(os.environ[FOLDER]) / "mended").exists():
            raise RuntimeError("the first x is small")
        return super().run(problem, plan)


@dataclass(frozen=True)
class Dying(Cheap):
    """Its process is killed: once for each data set whose first x is below 0.5, or always."""

    always: bool = False

    def run(self, problem, plan):
        sign = _sign(problem, "died")
        if problem.data.x[0, 0] < 0.5 and (self.always or not sign.exists()):
            sign.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(problem, plan)


_PRINTED = Printed(("3.47–3.66",), ("0.09–0.11",), ("0.97",), "3.78 s")
_CHEAP = Column("cheap", "cheap", Cheap, _PRINTED)


def _study(attribute, *columns, **options):
    name = attribute.lower()
    return Study(name, "nothing", MODEL1, columns, reference=f"fake_studies:{attribute}", **options)


CHEAP = _study("CHEAP", _CHEAP, replace(_CHEAP, key="other", label="<other>", printed=None, extra=True))
SLOW = _study("SLOW", replace(_CHEAP, method=lambda: Cheap(0.1)))
RAISING = _study("RAISING", _CHEAP, Column("raising", "raising", Raising))
DYING = _study("DYING", _CHEAP, Column("dying", "dying", Dying))
DEADLY = _study("DEADLY", _CHEAP, Column("deadly", "deadly", lambda: Dying(always=True)))


class Patient(emulators.GP):
    """A Gaussian process that takes its time to fit."""

    def fit_components(self, inputs, targets):
        time.sleep(0.5)
        return super().fit_components(inputs, targets)


_TREES = emulators.BART(trees=20, draws=20, burn=50, thin=1)
EMULATED = Study(
    "emulated",
    "small emulators",
    MODEL2_PART,
    (
        Column("gp", "GP emulator", lambda: Projected(bias.GP(nu=1.5)), UNAVAILABLE["pgp"], emulator=Patient()),
        Column("bart", "BART emulator", lambda: Projected(bias.BART(trees=20)), UNAVAILABLE["pbart"], emulator=_TREES),
    ),
    reference="fake_studies:EMULATED",
    draws=40,
)
