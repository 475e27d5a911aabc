"""Priors of theta: independent and joint ones, the user's own, and constraints between parameters."""
