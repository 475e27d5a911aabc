"""FMUs for tests, built by pythonfmu (FMI 2, co-simulation) and pythonfmu3 (FMI 3, model exchange)."""

import zipfile

SPRING = '''
import math
import os

from pythonfmu import DefaultExperiment, Fmi2Causality, Fmi2Slave, Fmi2Variability, Integer, Real, String


class Load:
    force = 0.0


class Spring(Fmi2Slave):
    """x'' = -k x - c x' + force, released at x(0) = start; exact at every step."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.k, self.c, self.start, self.x, self.v, self.steps, self.words = 4.0, 0.5, 1.0, 1.0, 0.0, 0, "none"
        self.load = Load()
        self.default_experiment = DefaultExperiment(start_time=0.0, stop_time=2.0, step_size=0.01)
        for name in ("k", "c", "start", "load.force"):
            self.register_variable(Real(name, causality=Fmi2Causality.parameter, variability=Fmi2Variability.fixed))
        for name in ("x", "v"):
            self.register_variable(Real(name, causality=Fmi2Causality.output))
        self.register_variable(Integer("steps", causality=Fmi2Causality.output))
        self.register_variable(String("words", causality=Fmi2Causality.output))

    def exit_initialization_mode(self):
        self.x, self.v = self.start, 0.0

    def do_step(self, current_time, step_size):
        self.steps += 1
        if self.k > 1e6:
            self.log("the spring is too stiff")
            return False
        if self.k < 0:
            self.x = self.v = math.nan
            return True
        rest, decay, t = self.load.force / self.k, self.c / 2, current_time + step_size
        w, gone = math.sqrt(self.k - decay**2), math.exp(-decay * t)
        a = self.start - rest
        self.x = rest + gone * a * (math.cos(w * t) + decay / w * math.sin(w * t))
        self.v = -gone * a * self.k / w * math.sin(w * t)
        return True
'''

DECAY = '''
from pythonfmu3 import Fmi3Causality, Fmi3Initial, Fmi3SlaveBase, Fmi3Variability, Float64, ModelExchange


class Decay(Fmi3SlaveBase, ModelExchange):
    """x' = -k x."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.time, self.k, self.x, self.derx = 0.0, 1.0, 1.0, 0.0
        continuous = Fmi3Variability.continuous
        self.register_variable(Float64("time", causality=Fmi3Causality.independent, variability=continuous))
        self.register_variable(
            Float64("x", causality=Fmi3Causality.output, start=1, variability=continuous, initial=Fmi3Initial.exact)
        )
        self.register_variable(Float64("derx", causality=Fmi3Causality.local, variability=continuous, derivative=1))
        self.register_variable(Float64("k", causality=Fmi3Causality.parameter, variability=Fmi3Variability.fixed))

    def get_continuous_state_derivatives(self):
        self.derx = -self.k * self.x
        return [self.derx]
'''


def build_spring(folder):
    from pythonfmu.builder import FmuBuilder

    (folder / "spring.py").write_text(SPRING)
    return FmuBuilder.build_FMU(folder / "spring.py", dest=folder)


def build_decay(folder):
    from pythonfmu3.builder import FmuBuilder

    (folder / "decay.py").write_text(DECAY)
    return FmuBuilder.build_FMU(folder / "decay.py", dest=folder)


def without(fmu, part, name):
    """A copy of an FMU that lacks what has ``part`` in its name."""
    copy = fmu.with_name(name)
    with zipfile.ZipFile(fmu) as old, zipfile.ZipFile(copy, "w") as new:
        for one in old.namelist():
            if part not in one:
                new.writestr(one, old.read(one))
    return copy
