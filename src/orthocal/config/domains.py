"""[domain] of a problem file: a box, a table of nodes, weights of labels."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from ..errors import ConfigError
from ..problem.domain.domain import Box, Domain, Points
from ..problem.domain.labels import Labels
from ..sections import Names
from .tables import TableSection, columns_of, inputs_of, read_table

Numbers = float | list[float]


class DomainSection(TableSection):
    lower: Numbers | None = None
    upper: Numbers | None = None
    nodes: int | None = None
    file: str | None = None
    x: Names | None = None
    weight: str | None = None
    labels: dict[str, dict[str, float]] | None = None


def domain_of(config: DomainSection | None, folder: Path, categorical: list[str]) -> Domain | Labels | None:
    """The domain that a section describes; columns that are ``categorical`` hold labels."""
    if config is None:
        return None
    if config.labels is not None:
        within = config.model_copy(update={"labels": None})
        alone = config.model_fields_set <= {"labels"}
        return Labels(None if alone else cast(Domain | None, domain_of(within, folder, categorical)), config.labels)
    if config.file is not None:
        if config.x is None or config.lower is not None or config.upper is not None:
            raise ConfigError("[domain] with a file takes the columns x and weight, and no box")
        table = read_table(folder / config.file, config)
        weights = None if config.weight is None else columns_of(table, [config.weight]).iloc[:, 0]
        return Points(inputs_of(table, config.x, categorical), weights)
    if config.lower is None or config.upper is None or config.x is not None or config.weight is not None:
        raise ConfigError("[domain] needs lower and upper, or a file with the columns x and weight")
    return Box(config.lower, config.upper, config.nodes)
