"""The paper's test problems, and the studies that compare methods on them."""

from .models import MODEL1, MODEL2, MODEL2_PART, MODEL3, TWO_OUTCOMES, Printed, StudyModel
from .registry import STUDIES, Column, Study

__all__ = [
    "MODEL1",
    "MODEL2",
    "MODEL2_PART",
    "MODEL3",
    "STUDIES",
    "TWO_OUTCOMES",
    "Column",
    "Printed",
    "Study",
    "StudyModel",
]
