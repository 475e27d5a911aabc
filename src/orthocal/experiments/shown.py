"""What a notebook shows of several experiments: their data, and which parameters they share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..pages.notebook import Table, listed, shown_html
from ..problem.html import prior_table
from ..problem.prior.parameters import Parameters
from ..problem.problem import Problem


class Shown:
    """Of ``oc.Experiments``."""

    problems: dict[str, Problem]
    parameters: Parameters
    private: Mapping[str, Any]

    def _repr_html_(self) -> str:
        each = [
            [name, str(one.data.n), listed(one.data.outcome_names), listed(one.parameters.names)]
            for name, one in self.problems.items()
        ]
        pooled = [name for name, how in self.private.items() if how is not None]
        facts = {"private": listed(name for name in self.private if name not in pooled), "pooled": listed(pooled)}
        tables = [Table(["experiment", "rows", "outcomes", "parameters"], each), prior_table(self.parameters)]
        shown = {name: words for name, words in facts.items() if words}
        return shown_html(f"{len(self.problems)} experiments", shown, tables)
