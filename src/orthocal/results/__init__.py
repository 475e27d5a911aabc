"""What is learnt, and whether to trust it: the record of a run, predictions, checks, figures and the report."""

from .files.loading import load as load
from .posterior import Posterior as Posterior
