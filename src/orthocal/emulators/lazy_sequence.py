"""A sequence whose members are made when they are asked for: all together may not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, overload

Made = TypeVar("Made", covariant=True)


class Room:
    """Bytes that may be held, by all sequences that share the room."""

    def __init__(self, most: int) -> None:
        self.free = most

    def take(self, size: int) -> bool:
        """Whether there is room for so many, which are then taken."""
        if size > self.free:
            return False
        self.free -= size
        return True


class Lazy(Sequence[Made]):
    """Members by what makes them; one that is asked for twice is made twice, unless there is room to hold it.

    ``size`` says the bytes of a member.
    """

    def __init__(
        self, makers: Sequence[Callable[[], Made]], room: Room | None = None, size: Callable[[Made], int] | None = None
    ) -> None:
        self._makers, self._room, self._size = makers, room, size
        self._held: dict[int, Made] = {}
        self._taken = 0

    def __del__(self) -> None:
        if self._room is not None:
            self._room.free += self._taken

    def __len__(self) -> int:
        return len(self._makers)

    @overload
    def __getitem__(self, number: int) -> Made: ...
    @overload
    def __getitem__(self, number: slice) -> Lazy[Made]: ...
    def __getitem__(self, number: int | slice) -> Made | Lazy[Made]:
        if isinstance(number, slice):
            return Lazy(self._makers[number], self._room, self._size)
        place = range(len(self))[number]
        if place in self._held:
            return self._held[place]
        made = self._makers[place]()
        # those that come first stay: all are asked for in turn, and whoever makes room meets none of them again
        if self._room is not None and self._size is not None and self._room.take(size := self._size(made)):
            self._held[place] = made
            self._taken += size
        return made
