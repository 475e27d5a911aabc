"""The command line."""

from .commands import app as app
from .commands import main as main
