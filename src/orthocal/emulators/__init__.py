"""Emulators: an expensive simulator becomes a cheap one with a gradient."""

from .bart import BART
from .base import Emulator, Regressor
from .bmars import BMARS
from .forest import Forest
from .gp import GP
from .mlp import MLP

__all__ = ["BART", "BMARS", "GP", "MLP", "Emulator", "Forest", "Regressor"]
