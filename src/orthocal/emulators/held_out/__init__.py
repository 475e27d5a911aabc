"""Emulators compared by the runs that they have not seen."""
