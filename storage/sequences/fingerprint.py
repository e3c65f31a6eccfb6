"""What a sequence database holds, as one hash: alphabet, names, lengths and residues in their order.

It depends on nothing else: not on how the sequences came in batches, not on how they are stored, not on descriptions or
masks. Residues and rows are hashed in blocks of fixed size, so that appending hashes again only the last block of each.
"""

from collections.abc import Iterable, Sequence

import numpy as np

BLOCK_RESIDUES = 4 << 20
"""Residues of a block of residues; chunks hold a whole number of blocks."""
BLOCK_ROWS = 1 << 16
"""Sequences of a block of rows."""
DIGEST_BYTES = 32


def residue_digests(codes: np.ndarray) -> bytes:
    """SHA-256 of each block of u8[n] ``codes`` (a byte a residue), one behind the other; the last may be short."""
    import hashlib

    return b"".join(hashlib.sha256(np.ascontiguousarray(codes[n : n + BLOCK_RESIDUES]).data).digest()
                    for n in range(0, len(codes), BLOCK_RESIDUES))


def row_digest(names: Sequence[str], lengths: np.ndarray) -> bytes:
    """SHA-256 of one block of rows: names and i8 lengths."""
    import hashlib

    digest = hashlib.sha256("\n".join(names).encode())
    digest.update(np.ascontiguousarray(lengths, "<i8").data)
    return digest.digest()


def description_digest(descriptions: Sequence[str]) -> bytes:
    """SHA-256 of the descriptions of one block of rows."""
    import hashlib

    return hashlib.sha256("\n".join(descriptions).encode()).digest()


def fingerprint(alphabet: str, sequences: int, total_residues: int, residues: Iterable[bytes],
                rows: Iterable[bytes]) -> str:
    """Hexadecimal fingerprint from the digests of all blocks of residues and of rows, in order."""
    import hashlib

    digest = hashlib.sha256(f"seqloom sequences 1\n{alphabet}\n{sequences}\n{total_residues}\n".encode())
    for part in residues:
        digest.update(part)
    for part in rows:
        digest.update(part)
    return digest.hexdigest()[:32]
