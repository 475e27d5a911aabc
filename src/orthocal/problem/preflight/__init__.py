"""What is said before a run: its cost, the priors beside the data, the emulator."""
