"""Changes to bytes that programs stumble over."""

import random
from collections.abc import Sequence

TOKENS = (
    b">",
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\n>",
    b"@",
    b"+",
    b"-",
    b"*",
    b";",
    b"#",
    b" ",
    b"\t",
    b"\0",
    b"\x0b",
    b"\x1c",
    b"\x1b[31m",
    b"\x7f",
    b"\xe9",
    b"\xc3\xa9",
    b"\xff",
    b"\xc2\x85",
    b"\xe2\x80\x83",
    b"\xef\xbb\xbf",
    b"0",
    b"-1",
    b"nan",
    b"inf",
    b"1e308",
    b"-200",
    b"9" * 20,
    b"9" * 5000,
    b"A" * 300,
    b"[" * 50,
    b"'",
    b'"',
    b"\\",
    b"%",
    b"=",
)


def mutated(rng: random.Random, data: bytes, tokens: Sequence[bytes] = TOKENS) -> bytes:
    """``data`` with one to eight changes: bits, bytes, tokens put in, stretches cut, doubled, swapped or zeroed."""
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        size = len(changed)
        at, length = rng.randrange(size + 1), rng.choice((1, 1, 2, 4, 16, 100, 1000))
        kind = rng.randrange(9)
        if kind == 0 and at < size:
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < size:
            changed[at] = rng.randrange(256)
        elif kind in (2, 3):
            changed[at:at] = rng.choice(tokens)
        elif kind == 4:
            del changed[at : at + length]
        elif kind == 5:
            changed[at:at] = changed[at : at + length]
        elif kind == 6:
            other = rng.randrange(size + 1)
            changed[at:at] = changed[other : other + length]
        elif kind == 7:
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        elif rng.random() < 0.3:
            del changed[at:]
        else:
            changed[at : at + length] = rng.randbytes(len(changed[at : at + length]))
    return bytes(changed)


def damaged(rng: random.Random, data: bytes) -> bytes:
    """``data``, those of a large file, with bits flipped, a stretch of zeros or noise, or without their end."""
    changed = bytearray(data)
    kind, at = rng.randrange(5), rng.randrange(len(changed))
    if kind == 0:
        for _ in range(rng.choice((1, 2, 8))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    elif kind == 1:
        del changed[at:]
    elif kind == 2:
        at -= at % 4096
        changed[at : at + 4096] = bytes(len(changed[at : at + 4096]))
    elif kind == 3:
        at %= 12288
        changed[at] ^= 1 << rng.randrange(8)
    else:
        changed[at : at + rng.choice((1, 8, 100, 5000))] = b""
        changed[at:at] = rng.randbytes(len(data) - len(changed))
    return bytes(changed)
