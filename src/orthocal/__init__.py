"""Bayesian calibration of computer models whose bias is unknown, identifiable by orthogonality."""
