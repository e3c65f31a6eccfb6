"""Sizes of memory as people write them."""

import re

from .errors import OptionError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_bytes(text: "str | int | None", where: str = "--memory") -> int | None:
    """Bytes of "512M", "8G", "1.5GiB" or a plain number; None for None or "". Units are powers of 1,024."""
    if text is None or isinstance(text, int):
        return text
    if not text:
        return None
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", text, re.IGNORECASE)
    if not match or not float(match[1]):
        raise OptionError(f"{where} needs a size such as 512M or 8G, not '{text}'")
    return int(float(match[1]) * _UNITS[match[2].upper()])
