"""BLAST databases made byte by byte."""

import struct
from pathlib import Path


def written(folder: Path, kind: str = "n", *, words: bytes = b"", bases: bytes = b"\x1b\x01") -> str:
    """A database of version 4 with one sequence, made here; ``words`` are places of its ambiguous bases."""
    header = (b"\x30\x80\x30\x80\xa0\x80\x1a\x04name\0\0\xa1\x80\xaa\x80\x30\x80\xa0\x80\x1a\x09BL_ORD_ID\0\0"
              b"\xa1\x80\xa0\x80\x02\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0")
    (folder / f"db.{kind}hr").write_bytes(header)
    (folder / f"db.{kind}sq").write_bytes(b"\0" + bases + words)
    places = [[0, len(header)], [1, 1 + len(bases) + len(words)]] + ([[1 + len(bases), 0]] if kind == "n" else [])
    (folder / f"db.{kind}in").write_bytes(
        struct.pack(">iii", 4, kind == "p", 1) + b"t" + struct.pack(">i", 0) + struct.pack(">i", 1) +
        struct.pack("<q", 4) + struct.pack(">i", 4) + b"".join(struct.pack(">II", *some) for some in places))
    return str(folder / "db")
