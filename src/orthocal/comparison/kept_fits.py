"""Many fits in one checkpoint: what was done is not done again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from ..execution.checkpoints.checkpoint_file import Checkpoint, kept_in


@contextmanager
def kept_fits(
    checkpoint: str | Path | Checkpoint | None, work: Callable[[], dict[str, str]], seed: int | None
) -> Iterator[int]:
    """All fits in one file, if there is to be one; the seed, that of the file or a new one where none was given."""
    own = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else seed
    if checkpoint is None:
        yield own
        return
    where = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint(Path(checkpoint))
    with kept_in(where, work, own, seed is not None, "the fits that were done") as file:
        yield file.seed
