"""Emulators: an expensive simulator becomes a cheap one with a gradient. A new one is a file, and a line here.

Messages and comparisons list them in this order.
"""
# ruff: noqa: I001

from .base import EMULATORS as EMULATORS
from .base import Regressor as Regressor
from .emulator import Emulator as Emulator
from .gp import GP as GP
from .bart import BART as BART
from .bmars import BMARS as BMARS
from .scikit_learn import Forest as Forest
from .scikit_learn import MLP as MLP
from .choice import emulate as emulate
from .choice import EmulatorComparison as EmulatorComparison
from .choice import compare_emulators as compare_emulators
