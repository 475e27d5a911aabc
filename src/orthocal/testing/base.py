"""What all checks share."""

from __future__ import annotations


class ContractError(AssertionError):
    """A part does not keep its contract; the message says which clause, and how it was seen."""


def require(kept: bool, message: str) -> None:
    if not kept:
        raise ContractError(message)
