"""Machine code laid out as it will lie in memory, so that it is taken into the process without LLVM.

LLVM's library alone takes longer to load than many a search. What it does with an object file is little: it puts the
sections one behind the other and writes addresses into them. All of that but the addresses themselves is done when a
kernel has been compiled. Of object files that need more than this, of other processors and systems, none is laid out;
LLVM takes in those (``loader.py``).

Source: System V Application Binary Interface, chapter 4 (object files), and of its supplement for AMD64 the section on
relocation.
"""

import mmap
import struct
from collections.abc import Callable
from ctypes import CDLL, addressof, c_char, c_int, c_size_t, c_void_p, get_errno
from functools import cache
from os import strerror
from typing import Any

from ..classes import NamedTuple

_MAGIC = b"\x7fELF\x02\x01"
"""64 bits, little-endian."""
_RELOCATABLE, _AMD64 = 1, 62
_SYMBOLS, _RELOCATIONS, _EMPTY, _UNWINDING = 2, 4, 8, 0x70000001
_WRITTEN, _ALLOCATED = 0x1, 0x2
_UNDEFINED, _COMMON = 0, (0xFFF2, 0xFF02)
_ADDRESS = 1
"""The relocation that is an address of 64 bits."""
_HEADER, _SECTION, _SYMBOL, _RELOCATION = "<16xHH20xQ10x2H", "<2I4Q2I2Q", "<IBBHQQ", "<QQq"
_WORD = struct.Struct("<Q")


class LaidOut(NamedTuple):
    """Machine code and read-only data, one section behind the other.

    inside: places of addresses of 64 bits, and where in the code each points to. outside: places of addresses, the name
    of what each points to, and how far behind it. symbols: places of functions and variables by name.
    """

    code: bytes
    inside: list[tuple[int, int]]
    outside: list[tuple[int, str, int]]
    symbols: dict[str, int]


def laid_out(content: bytes) -> LaidOut | None:
    """What an object file is in memory; None where it isn't of this kind or needs more than addresses of 64 bits."""
    if not content.startswith(_MAGIC):
        return None
    kind, processor, at, size, count = struct.unpack_from(_HEADER, content)
    if (kind, processor) != (_RELOCATABLE, _AMD64):
        return None
    sections = [_Section._make(struct.unpack_from(_SECTION, content, at + size * k)) for k in range(count)]
    places: dict[int, int] = {}
    code = bytearray()
    for number, section in enumerate(sections):
        if section.flags & _ALLOCATED and section.size and section.kind != _UNWINDING:
            if section.flags & _WRITTEN or section.kind == _EMPTY:
                return None
            places[number] = _appended(code, section.of(content), section.alignment)
    [table] = [section for section in sections if section.kind == _SYMBOLS]
    names = sections[table.link].of(content)
    symbols = [_symbol(entry, names) for entry in struct.iter_unpack(_SYMBOL, table.of(content))]
    there = {}
    for number, (_, within, value, length) in enumerate(symbols):
        if within in _COMMON:
            there[number] = _appended(code, bytes(length), value)
        elif within in places:
            there[number] = places[within] + value
    inside, outside = [], []
    for section in sections:
        if section.kind != _RELOCATIONS or section.info not in places:
            continue
        for offset, about, behind in struct.iter_unpack(_RELOCATION, section.of(content)):
            number, place = about >> 32, places[section.info] + offset
            if about & 0xFFFFFFFF != _ADDRESS:
                return None
            if number in there:
                inside.append((place, there[number] + behind))
            elif symbols[number][1] == _UNDEFINED:
                outside.append((place, symbols[number][0], behind))
            else:
                return None
    return LaidOut(bytes(code), inside, outside, {symbols[number][0]: place for number, place in there.items()})


class _Section(NamedTuple):
    """A section's header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int

    def of(self, content: bytes) -> bytes:
        return content[self.offset : self.offset + self.size]


def _symbol(entry: tuple[Any, ...], names: bytes) -> tuple[str, int, int, int]:
    """Name, section, value and size of a symbol."""
    name, _, _, section, value, size = entry
    return names[name : names.index(0, name)].decode(), section, value, size


def _appended(code: bytearray, data: bytes, alignment: int) -> int:
    """Append data; returns where it begins."""
    code.extend(bytes(-len(code) % max(1, alignment)))
    place = len(code)
    code.extend(data)
    return place


@cache
def _protect() -> Any:
    """The system's ``mprotect``."""
    protect = CDLL(None, use_errno=True).mprotect
    protect.argtypes = c_void_p, c_size_t, c_int
    return protect


_in_memory: list[Any] = []
"""Code that has been taken in. It stays for as long as the process."""


def taken_in(code: LaidOut, address: Callable[[str], int], variables: dict[str, int]) -> int:
    """Put code into memory of its own, which then can be run and no more written to; returns where it begins.

    Args:
        address: where something outside is, by name.
        variables: u8 values that variables of the code, by name, have.

    Raises:
        OSError: the system doesn't allow it.
    """
    memory = mmap.mmap(-1, len(code.code), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE)
    memory[:] = code.code
    first = c_char.from_buffer(memory)
    begin, put = addressof(first), _WORD.pack_into
    for place, to in code.inside:
        put(memory, place, begin + to)
    for place, name, behind in code.outside:
        put(memory, place, address(name) + behind)
    for name, value in variables.items():
        put(memory, code.symbols[name], value)
    if _protect()(begin, len(code.code), mmap.PROT_READ | mmap.PROT_EXEC):
        raise OSError(get_errno(), f"memory for kernels can't be made executable: {strerror(get_errno())}")
    _in_memory.append(first)
    return begin
