"""The methods that orthogonal calibration is compared with."""
