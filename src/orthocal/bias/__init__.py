"""Priors on the unknown bias. A new one is a file of its own, and a line here: messages list them in this order."""
# ruff: noqa: I001

from .base import BiasPrior as BiasPrior
from .base import BiasSampler as BiasSampler
from .base import ChainwiseSampler as ChainwiseSampler
from .base import Setting as Setting
from .gp import GP as GP
from .bart import BART as BART
from .softbart import SoftBART as SoftBART
from .bmars import BMARS as BMARS
from .bnn import BNN as BNN
from .independent import Independent as Independent
from . import large_gp as large_gp
from . import sampled_gp as sampled_gp
