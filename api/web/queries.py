"""Queries as they arrive: plain or gzip text, and nothing that a reader could take for something else."""

import zlib

from ..core.errors import InputError


class Refused(InputError):
    """Queries that can't be taken."""


def unpacked(data: bytes, most: int) -> bytes:
    """The text of queries, of so many bytes at most once it is unpacked.

    Raises:
        Refused: it is more, or damaged.
    """
    if data[:2] != b"\x1f\x8b":
        return data
    found, rest = [], data
    room = most
    try:
        while rest[:2] == b"\x1f\x8b":  # several may be joined
            unpacker = zlib.decompressobj(wbits=31)
            found.append(unpacker.decompress(rest, room + 1))
            room -= len(found[-1])
            if room < 0:
                raise Refused(f"unpacked, the queries have more than {most:,} bytes")
            if not unpacker.eof:
                raise Refused("the queries are cut off: their gzip data have no end")
            rest = unpacker.unused_data
    except zlib.error as error:
        raise Refused(f"the queries are damaged gzip data ({error})") from None
    return b"".join(found)


def checked(data: bytes, kind: str) -> None:
    """Refuse what is no text of queries of a kind; residues are looked at when they are read.

    Raises:
        Refused
    """
    if not data.strip():
        raise Refused("there are no queries; paste some, or choose a file")
    if b"\0" in data or data.startswith((b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")):
        raise Refused("queries are plain text or gzip: FASTA, FASTQ, or models of HMMER")
    if kind == "model" and not data.lstrip().startswith(b"HMMER"):
        raise Refused("this pipeline takes models: a file of HMMER that begins with HMMER3")
