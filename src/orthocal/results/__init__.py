"""What is learnt, and whether to trust it: the record of a run, predictions, checks, figures and the report."""

from .posterior import Posterior as Posterior
from .posterior import load as load
