"""A slow simulator leaves a table of runs: their design, the campaign that makes them, and the table."""

from .campaigns import campaign as campaign, campaign_status as campaign_status
from .designs import design as design
from .table import RunTable as RunTable
