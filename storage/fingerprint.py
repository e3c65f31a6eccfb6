"""What a sequence database holds, as one hash: alphabet, names, lengths and residues in their order.

It depends on nothing else: not on how the sequences came in batches, not on how they are stored, not on descriptions or
masks. Residues and rows are hashed in blocks of fixed size, so that appending hashes again only the last block of each.
"""

from collections.abc import Iterable, Sequence

import numpy as np

BLOCK_LETTERS = 4 << 20
"""Letters of a block of residues; chunks hold a whole number of blocks."""
BLOCK_ROWS = 1 << 16
"""Sequences of a block of rows."""
DIGEST_BYTES = 32


def residue_digests(codes: np.ndarray) -> bytes:
    """SHA-256 of each block of u8[n] ``codes`` (a byte a letter), one behind the other; the last may be short."""
    import hashlib

    return b"".join(hashlib.sha256(np.ascontiguousarray(codes[n : n + BLOCK_LETTERS]).data).digest()
                    for n in range(0, len(codes), BLOCK_LETTERS))


def row_digest(names: Sequence[str], lengths: np.ndarray) -> bytes:
    """SHA-256 of one block of rows: names and i8 lengths."""
    import hashlib

    digest = hashlib.sha256("\n".join(names).encode())
    digest.update(np.ascontiguousarray(lengths, "<i8").data)
    return digest.digest()


def fingerprint(alphabet: str, sequences: int, letters: int, residues: Iterable[bytes], rows: Iterable[bytes]) -> str:
    """Hexadecimal fingerprint from the digests of all blocks of residues and of rows, in order."""
    import hashlib

    digest = hashlib.sha256(f"seqloom sequences 1\n{alphabet}\n{sequences}\n{letters}\n".encode())
    for part in residues:
        digest.update(part)
    for part in rows:
        digest.update(part)
    return digest.hexdigest()[:32]
