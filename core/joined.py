"""Several sequences as one, for those that read what they hold when it is asked for."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np


class Joined(Sequence[Any]):
    """Sequences one behind the other. A slice is made of slices of theirs; nothing is read for it.

    Attributes:
        parts: the sequences, none of them empty.
    """

    def __init__(self, parts: Sequence[Sequence[Any]]) -> None:
        self.parts: list[Any] = [part for part in parts if len(part)]
        self._ends = np.cumsum([len(part) for part in self.parts], dtype=np.int64)

    def __len__(self) -> int:
        return int(self._ends[-1]) if self.parts else 0

    def __iter__(self) -> Iterator[Any]:
        return (item for part in self.parts for item in part)

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> "Joined": ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                raise ValueError("slices are of neighbours")
            starts = [int(end) - len(part) for end, part in zip(self._ends, self.parts, strict=True)]
            return Joined([part[max(first - start, 0) : max(last - start, 0)]
                           for start, part in zip(starts, self.parts, strict=True)])
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        place = index % len(self)
        number = int(np.searchsorted(self._ends, place, "right"))
        return self.parts[number][place - int(self._ends[number])]
