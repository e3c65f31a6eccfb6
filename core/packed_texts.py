"""Texts that are kept for later, compressed: most of them are never asked for, and all together they may be large."""

from collections.abc import Iterable, Sequence
from typing import overload

from .joined import Joined

LEVEL = 1
"""Of compression: some hundred million characters a second, to a third of their size where they are numbers."""
LONGEST = 1 << 30
"""Bytes of a text that is unpacked."""


class PackedTexts(Sequence[str]):
    """A sequence of texts, each compressed by itself (deflate), and unpacked whenever it is asked for.

    Raises ``ValueError``, or an error of the library's own, where packed bytes from elsewhere are no text.
    """

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
        """One behind the other; those that are read when they are asked for, still so."""
        packed = [cls.of(part) for part in parts]
        if any(type(part) is not PackedTexts for part in packed):
            return _JoinedTexts(Joined(packed))
        return cls([text for part in packed for text in part._packed])

    @property
    def packed(self) -> list[bytes]:
        """The texts as they are kept."""
        return self._packed

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

        unpacking = igzip_lib.IgzipDecompressor(igzip_lib.DECOMP_DEFLATE)
        text = unpacking.decompress(self._packed[index], LONGEST)
        if not unpacking.eof:
            raise ValueError(f"a text is cut off, or has more than {LONGEST:,} bytes")
        return text.decode("utf-8", "surrogateescape")


class _JoinedTexts(PackedTexts):
    """Packed texts of several places."""

    def __init__(self, joined: Joined) -> None:
        self._joined = joined

    @property
    def _packed(self) -> list[bytes]:  # type: ignore[override]
        return [packed for part in self._joined.parts for packed in part.packed]

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self._joined.parts)

    def __len__(self) -> int:
        return len(self._joined)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> PackedTexts: ...
    def __getitem__(self, index: int | slice) -> "str | PackedTexts":
        return _JoinedTexts(self._joined[index]) if isinstance(index, slice) else self._joined[index]
