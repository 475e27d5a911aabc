"""The figures of a posterior."""
