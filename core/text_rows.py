"""Texts as bytes, one behind the other: many that are seldom looked at one by one, such as names of reads."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

import numpy as np

from .records import Ragged

ENCODING, UNDECODED = "utf-8", "surrogatepass"


class TextRows(Sequence[str]):
    """A sequence of texts, each of which is made when it is asked for.

    Args:
        rows: of u1, UTF-8.

    Attributes:
        rows: these.
    """

    def __init__(self, rows: Ragged) -> None:
        self.rows = rows

    @classmethod
    def of(cls, texts: Sequence[str]) -> "TextRows":
        """The same texts; rows stay as they are."""
        if isinstance(texts, TextRows):
            return texts
        whole = "".join(texts).encode(ENCODING, UNDECODED)
        lengths = list(map(len, texts))
        if sum(lengths) != len(whole):  # not ASCII alone
            lengths = [len(text.encode(ENCODING, UNDECODED)) for text in texts]
        offsets = np.zeros(len(lengths) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return cls(Ragged(offsets, np.frombuffer(whole, np.uint8)))

    @classmethod
    def blank(cls, count: int) -> "TextRows":
        """Texts without a character."""
        return cls(Ragged(np.zeros(count + 1, np.int64), np.empty(0, np.uint8)))

    @classmethod
    def concat(cls, parts: Sequence[Sequence[str]]) -> "TextRows":
        """One behind the other."""
        rows = [cls.of(part).rows for part in parts]
        return cls.blank(0) if not rows else cls(rows[0] if len(rows) == 1 else Ragged.concat(rows))

    @property
    def sizes(self) -> np.ndarray:
        """i8[n]: bytes of each."""
        return np.diff(self.rows.offsets)

    def take(self, index: np.ndarray) -> "TextRows":
        """Those at ``index`` (integers or a bool mask), in that order."""
        return TextRows(self.rows.take(index))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "TextRows": ...
    def __getitem__(self, index: int | slice) -> "str | TextRows":
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            if step != 1:
                return TextRows(self.rows.take(np.arange(first, last, step)))
            return TextRows(self.rows.between(first, max(first, last)))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self.rows[index % len(self)].tobytes().decode(ENCODING, UNDECODED)

    def __iter__(self) -> Iterator[str]:
        offsets = self.rows.offsets
        whole = self.rows.values[offsets[0] : offsets[-1]].tobytes()
        bounds = (offsets - offsets[0]).tolist()
        if whole.isascii():
            text = whole.decode("ascii")
            return iter([text[first:last] for first, last in pairwise(bounds)])
        return (whole[first:last].decode(ENCODING, UNDECODED) for first, last in pairwise(bounds))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) or not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == two for one, two in zip(self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TextRows({len(self)} texts)"
