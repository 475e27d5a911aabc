"""The noise of the field data: its kinds, its estimate, and the whitening that it defines."""
