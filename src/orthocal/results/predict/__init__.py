"""Predictions from a posterior, their scores, and the size of the bias."""
