"""Simulators behind HTTP servers: the UM-Bridge protocol."""
