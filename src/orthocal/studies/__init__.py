"""The studies that compare methods on the paper's test problems, our figures beside the paper's."""

from .printed import Printed
from .registry import STUDIES, Column, Study

__all__ = ["STUDIES", "Column", "Printed", "Study"]
