"""One Parquet file out of several that were encoded side by side, the same that one writer makes of all their rows.

Between its marks a Parquet file has the pages of its row groups, and a footer that says where in the file they begin.
So the pages of the parts stand one behind the other, and of the footers places and ordinals of row groups change.

Source: Apache Parquet, parquet.thrift; Apache Thrift, compact protocol.
"""

from collections.abc import Iterator, Sequence

from seqloom.core.classes import NamedTuple

MARK = b"PAR1"
_TAIL = 8
"""Bytes behind the footer: its length, and the mark."""
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 11, 12
"""Types of the compact protocol; those between are integers."""
_ROWS, _GROUPS = 3, 4
"""Fields of FileMetaData."""
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
"""Fields of RowGroup."""
_META_DATA, _OFFSETS = 3, (9, 10, 11)
"""Fields of ColumnChunk and of ColumnMetaData: where data pages, index pages and dictionary pages begin."""


class RowGroup(NamedTuple):
    """What a footer says of a row group.

    Attributes:
        pieces: bytes before, between and behind the numbers that change.
        places: these: where something of the group begins in the part, 0 if it isn't there; None is its ordinal.
    """

    pieces: Sequence[bytes]
    places: Sequence[int | None]

    def moved(self, by: int, ordinal: int) -> bytes:
        """The same of a group that stands ``by`` bytes further on in a file."""
        numbers = [_zigzag(ordinal if place is None else place and place + by) for place in self.places]
        return b"".join(part for both in zip(self.pieces, numbers) for part in both) + self.pieces[-1]


class Part(NamedTuple):
    """A Parquet file in pieces.

    Attributes:
        pages: of all its row groups.
        before, between, behind: of the footer: what stands before the number of rows, between it and the first row
            group, where the number of row groups is left out, and behind the last one.
        rows: how many there are.
        groups: row groups.
    """

    pages: memoryview
    before: bytes
    between: bytes
    behind: bytes
    rows: int
    groups: Sequence[RowGroup]


def part_of(data: memoryview) -> Part:
    """The pieces of a Parquet file, of bytes.

    Raises:
        ValueError: its footer is laid out in another way than pyarrow does it.
    """
    size = int.from_bytes(data[-_TAIL : -len(MARK)], "little")
    footer = _Compact(bytes(data[len(data) - _TAIL - size : -_TAIL]))
    pages = data[len(MARK) : len(data) - _TAIL - size]
    rows, end = 0, 0
    for field, kind, at in footer.fields():
        if field == _ROWS:
            before, rows, end = footer.data[:at], footer.number(), footer.at
        elif field == _GROUPS:
            between = footer.data[end:at]
            _, count = footer.begin_list()
            groups = [_row_group(footer) for _ in range(count)]
            return Part(pages, before, between, footer.data[footer.at :], rows, groups)
        else:
            footer.skip(kind)
    raise ValueError("a Parquet footer without row groups")


class Joining:
    """Makes the bytes of one file of parts with the same columns, one behind the other."""

    def __init__(self) -> None:
        self._first: Part | None = None
        self._groups: list[bytes] = []
        self._rows, self._written = 0, len(MARK)

    def add(self, part: Part) -> Iterator["bytes | memoryview"]:
        """The bytes of the next part."""
        if self._first is None:
            self._first = part._replace(pages=memoryview(b""), groups=())
            yield MARK
        by = self._written - len(MARK)
        self._groups += [group.moved(by, len(self._groups) + n) for n, group in enumerate(part.groups)]
        self._rows, self._written = self._rows + part.rows, self._written + len(part.pages)
        yield part.pages

    def end(self) -> bytes:
        """What stands behind the last part, of which there is one at least."""
        assert self._first is not None
        first, count = self._first, len(self._groups)
        head = bytes([count << 4 | _STRUCT]) if count < 15 else bytes([0xF0 | _STRUCT]) + _varint(count)
        footer = b"".join([first.before, _zigzag(self._rows), first.between, head, *self._groups, first.behind])
        return footer + len(footer).to_bytes(4, "little") + MARK


def _row_group(footer: "_Compact") -> RowGroup:
    """The row group that is next in a footer."""
    first, pieces, places = footer.at, list[bytes](), list[int | None]()
    for at, place in _places_of_group(footer):
        pieces.append(footer.data[first:at])
        places.append(place)
        first = footer.at
    return RowGroup([*pieces, footer.data[first : footer.at]], places)


def _places_of_group(footer: "_Compact") -> Iterator[tuple[int, int | None]]:
    """Of the row group that is next: where each number that changes stands in the footer, and ``RowGroup.places``."""
    for field, kind, at in footer.fields():
        if field == _COLUMNS:
            _, count = footer.begin_list()
            for _ in range(count):
                yield from _places_of_column(footer)
        elif field == _GROUP_OFFSET:
            yield at, footer.number()
        elif field == _ORDINAL:
            footer.skip(kind)
            yield at, None
        else:
            footer.skip(kind)


def _places_of_column(footer: "_Compact") -> Iterator[tuple[int, int]]:
    """The same of the ColumnChunk that is next."""
    for field, kind, _ in footer.fields():
        if field != _META_DATA:
            footer.skip(kind)
            continue
        for inner, inner_kind, at in footer.fields():
            if inner in _OFFSETS:
                yield at, footer.number()
            else:
                footer.skip(inner_kind)


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    found.append(number)
    return bytes(found)


def _zigzag(number: int) -> bytes:
    """A number ≥ 0 that might have been negative."""
    return _varint(number << 1)


class _Compact:
    """Reads the compact protocol.

    Attributes:
        data: what is read. at: how far it has been read.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def fields(self) -> Iterator[tuple[int, int, int]]:
        """Number, type and place of each field of the struct that is next; whoever asks reads it or skips it."""
        field = 0
        while head := self._byte():
            if head >> 4:
                field += head >> 4
            else:
                field = self.number()
            yield field, head & 15, self.at

    def number(self) -> int:
        """The integer that is next."""
        found = self._unsigned()
        return found >> 1 ^ -(found & 1)

    def begin_list(self) -> tuple[int, int]:
        """Type and number of the items of the list that is next."""
        head = self._byte()
        return head & 15, self._unsigned() if head >> 4 == 15 else head >> 4

    def skip(self, kind: int) -> None:
        """Read past a field of this type."""
        if kind in (_TRUE, _FALSE):  # which are in the field's head
            return
        if kind == _BINARY:
            size = self._unsigned()
            self.at += size
        elif kind in (_LIST, _SET):
            items, count = self.begin_list()
            if items in (_TRUE, _FALSE):
                self.at += count
                return
            for _ in range(count):
                self.skip(items)
        elif kind == _STRUCT:
            for _, inner, _ in self.fields():
                self.skip(inner)
        elif kind in (_BYTE, _DOUBLE):
            self.at += 1 if kind == _BYTE else 8
        elif kind == _MAP:
            raise ValueError("a map in a Parquet footer")
        else:
            self._unsigned()

    def _byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def _unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7
