"""What a study is: a model, and one column for each method that is compared on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orthocal as oc
from orthocal.applications import Array
from orthocal.examples import Example

from .emulated import emulated
from .printed import Printed

#: kept draws of a replication, over all chains; data sets, as many as the paper's
DRAWS, REPLICATIONS = 5000, 100
#: the replication that has the measured field data of a model
MEASURED = 0


@dataclass(frozen=True)
class Column:
    """One method of a study.

    Attributes
    ----------
    key, label
        Its name on the command line and in the results, and in the tables.
    method
        Makes the method; called where a replication runs.
    printed
        The paper's figures, None where it has none.
    extra
        Not a column of the paper: it runs only where ``--methods`` names it.
    outcome
        Number of the outcome that is calibrated alone; None for all.
    problem_options
        Changes to the model's problem, for instance ``{"loss_weight": "identity"}``.
    theta_star
        The truth for these options; None for the model's.
    emulator
        What learns the simulator from a grid of runs, as for ``oc.emulate``; None where the simulator itself is called.
    """

    key: str
    label: str
    method: Callable[[], oc.methods.Method]
    printed: Printed | None = None
    extra: bool = False
    outcome: int | None = None
    problem_options: Mapping[str, Any] = field(default_factory=dict)
    theta_star: tuple[float, ...] | None = None
    emulator: str | oc.emulators.Regressor | None = None

    def problem(self, model: Example, x: Array, y: Array) -> oc.Problem:
        """The problem of a data set; where an emulator is needed, it is learnt here."""
        options = dict(self.problem_options)
        model = replace(model, parameters=options.pop("parameters", model.parameters))
        if self.emulator is not None:
            options["simulator"] = emulated(model, x, self.emulator)
        problem = model.problem(x, y, **options)
        return problem if self.outcome is None else problem.outcome(self.outcome)


@dataclass(frozen=True)
class Study:
    """Methods on data sets of one model.

    Attributes
    ----------
    name
        Of the study and of its files.
    reference
        How to find it from another process: its name, or ``"module:NAME"``.
    draws, replications
        Kept draws of a replication, and data sets, where none are asked for.
    checked
        Whether the problems that ``check()`` finds are kept.
    stream
        Where its random numbers start, beside the seed: studies with the same one have the same noise in data set k.
        Those of the paper and of the joint projection have none, so that their published figures can be run again.
    note
        What a reader of the tables should know.
    """

    name: str
    title: str
    model: Example
    columns: tuple[Column, ...]
    note: str = ""
    reference: str = ""
    draws: int = DRAWS
    replications: int = REPLICATIONS
    checked: bool = False
    stream: str = ""

    @property
    def address(self) -> str:
        return self.reference or self.name

    def column(self, key: str) -> Column:
        return next(column for column in self.columns if column.key == key)

    def theta_star(self, column: Column) -> tuple[float, ...]:
        """Empty for measured data, whose truth nobody knows."""
        return column.theta_star or self.model.theta_star

    def numbers(self, replications: int) -> list[int]:
        """The data sets by number: 1, 2, ... are simulated, ``MEASURED`` is the model's measured field data."""
        measured = [] if self.model.file is None else [MEASURED]
        return measured + ([] if self.model.truth is None else list(range(1, replications + 1)))
