"""What all checks share: the clauses of a contract, one after the other, and an error that says which is not kept.

It stands alone because every family of checks uses it.
"""

from __future__ import annotations


class ContractError(AssertionError):
    """A part does not keep its contract; the message says which clause, and how it was seen.

    Examples
    --------
    >>> import numpy as np, orthocal as oc
    >>> from orthocal.testing import check_bias_prior
    >>> class Broken:
    ...     def prepare(self, setting):
    ...         return BrokenSampler()
    ...
    ...     def describe(self):
    ...         return {"kind": "broken"}
    >>> class BrokenSampler(oc.bias.ChainwiseSampler):
    ...     def one_draw(self, rng, state, residual):
    ...         return None, np.zeros(3)
    >>> check_bias_prior(Broken())
    Traceback (most recent call last):
        ...
    orthocal.testing.base.ContractError: draw returned shape (3, 3), expected (chains, n + m) = (3, 32)
    """


def require(kept: bool, message: str) -> None:
    if not kept:
        raise ContractError(message)


def check_clauses(check: object) -> list[str]:
    """Check all clauses, the public methods of ``check`` in their order; their names in words."""
    clauses = [name for name in vars(type(check)) if not name.startswith("_")]
    for clause in clauses:
        getattr(check, clause)()
    return [clause.replace("_", " ") for clause in clauses]
