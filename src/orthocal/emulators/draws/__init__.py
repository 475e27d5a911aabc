"""Draws of emulators as functions, and how far they are from the simulator."""
