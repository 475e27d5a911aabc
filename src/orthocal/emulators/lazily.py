"""A sequence whose members are made when they are asked for: all together may not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

Made = TypeVar("Made", covariant=True)


class Lazy(Sequence[Made]):
    """Members by what makes them; one that is asked for twice is made twice."""

    def __init__(self, makers: Sequence[Callable[[], Made]]) -> None:
        self._makers = makers

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, number: int) -> Made: ...
    @overload
    def __getitem__(self, number: slice) -> Lazy[Made]: ...
    def __getitem__(self, number: int | slice) -> Made | Lazy[Made]:
        return Lazy(self._makers[number]) if isinstance(number, slice) else self._makers[number]()
