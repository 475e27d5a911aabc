"""Functions learnt from noisy values: what the priors on the bias and the emulators share."""
