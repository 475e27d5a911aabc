"""A sequence whose members are made when they are asked for: all together may not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

Made = TypeVar("Made", covariant=True)
Weighed = TypeVar("Weighed")


class Room(NamedTuple, Generic[Weighed]):
    """How many bytes the members that are held may have together, and those of one."""

    most: int
    bytes_of: Callable[[Weighed], int]


class Lazy(Sequence[Made]):
    """Members by what makes them; one that is asked for twice is made twice, unless there is room to hold it."""

    def __init__(self, makers: Sequence[Callable[[], Made]], room: Room[Made] | None = None) -> None:
        self._makers, self._room = makers, room
        self._held: dict[int, Made] = {}
        self._free = 0 if room is None else room.most

    def share(self, parts: int) -> Lazy[Made]:
        """As one of so many that have the room together."""
        room = None if self._room is None else self._room._replace(most=self._room.most // parts)
        return Lazy(self._makers, room)

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, number: int) -> Made: ...
    @overload
    def __getitem__(self, number: slice) -> Lazy[Made]: ...
    def __getitem__(self, number: int | slice) -> Made | Lazy[Made]:
        if isinstance(number, slice):
            return Lazy(self._makers[number], self._room)
        place = range(len(self))[number]
        if place in self._held:
            return self._held[place]
        made = self._makers[place]()
        # those that come first stay: all are asked for in turn, and whoever makes room meets none of them again
        if self._room is not None and (size := self._room.bytes_of(made)) <= self._free:
            self._held[place], self._free = made, self._free - size
        return made
