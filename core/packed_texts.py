"""Texts that are kept for later, compressed: most of them are never asked for, and all together they may be large."""

from collections.abc import Iterable, Sequence
from typing import overload

LEVEL = 1
"""Of compression: some hundred million characters a second, to a third of their size where they are numbers."""


class PackedTexts(Sequence[str]):
    """A sequence of texts, each compressed by itself, and unpacked whenever it is asked for."""

    def __init__(self, packed: list[bytes]) -> None:
        self._packed = packed

    @classmethod
    def of(cls, texts: Iterable[str]) -> "PackedTexts":
        """Texts one after the other; a packed sequence stays as it is."""
        if isinstance(texts, PackedTexts):
            return texts
        from isal import igzip_lib

        return cls([igzip_lib.compress(text.encode("utf-8", "surrogateescape"), LEVEL) for text in texts])

    @classmethod
    def concat(cls, parts: Sequence[Sequence[str]]) -> "PackedTexts":
        """One behind the other."""
        return cls([packed for part in parts for packed in cls.of(part)._packed])

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the texts take as they are."""
        return sum(map(len, self._packed))

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "PackedTexts": ...
    def __getitem__(self, index: int | slice) -> "str | PackedTexts":
        if isinstance(index, slice):
            return PackedTexts(self._packed[index])
        from isal import igzip_lib

        return igzip_lib.decompress(self._packed[index]).decode("utf-8", "surrogateescape")
