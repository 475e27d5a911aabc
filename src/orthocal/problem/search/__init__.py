"""The search for theta_tilde and every other minimum of the loss."""
