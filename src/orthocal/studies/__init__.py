"""The paper's test problems."""

from .models import MODEL1, MODEL2, MODEL3, TWO_OUTCOMES, StudyModel

__all__ = ["MODEL1", "MODEL2", "MODEL3", "TWO_OUTCOMES", "StudyModel"]
