"""What is shown on a terminal: text in which nothing commands it."""

import re

_COMMANDS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


def printable(text: str) -> str:
    """``text`` with control characters as ``\\x1b``, but for tab and line feed.

    Also those of C1, which some terminals heed, those that turn the direction of writing, and bytes that are no text.
    """
    return re.sub(_COMMANDS, _escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    if 0xDC80 <= number <= 0xDCFF:  # a byte of a file name that is no text
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"
