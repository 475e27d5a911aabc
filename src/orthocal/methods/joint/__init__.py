"""The joint projection: regress, then project."""
