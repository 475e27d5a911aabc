"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""

from .lazy_names import names_of_stub

# What is not asked for is not loaded: a program that only reads a posterior needs no emulators and no compiler.
__all__, __getattr__, __dir__ = names_of_stub(__name__, __file__)
