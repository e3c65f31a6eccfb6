"""Files of intervals, read as masks of the sequences of a database: what maskers of NCBI and ``seqloom mask`` write."""

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from . import inputs
from .core.errors import InputError
from .open_database import PathLike
from .storage.sequences.named_masks import LOWER_CASE, GivenMask, check_names

_ASN1 = "Blast-db-mask-info"
_LOCATIONS = "Seq-loc"
_INTERVAL = re.compile(r"(\d+) *- *(\d+)")
_STRETCH = re.compile(r"\bfrom\s+(\d+),\s*to\s+(\d+),\s*(?:strand\s+\w+,\s*)?id\s+"
                      r"(?:local\s+id\s+(\d+)|([\w-]+ ?\w*))")
_BEGINS = re.compile(r"\bfrom\s+\d")


def given_masks(masks: Mapping[str, PathLike]) -> list[GivenMask]:
    """Masks by name from files, or from letters in lower case where the file is called "lower-case".

    Raises:
        InputError: a file isn't there, or holds something else.
    """
    check_names([*masks])
    return [GivenMask.of_lower_case(name) if str(path) == LOWER_CASE else read_mask(name, str(path))
            for name, path in masks.items()]


def read_mask(name: str, path: str) -> GivenMask:
    """A mask from a file of intervals: ``interval``, ``acclist`` or ``maskinfo_asn1_text``, plain or packed.

    The first and the last residue of a stretch count from 0. In ``maskinfo_asn1_text`` sequences are told by their
    numbers in the file that was masked.

    Raises:
        InputError: the file isn't there, or holds something else.
    """
    with inputs.opened(path, may_be_empty=True) as stream:
        try:
            text = stream.read().decode()
        except UnicodeDecodeError:
            raise _unreadable(path, "no text") from None
    if text.startswith(_ASN1):
        return _of_asn1(name, path, text)
    if text.startswith(_LOCATIONS):
        raise _unreadable(path, "locations without the mask that they are of")
    return _of_lines(name, path, text.split("\n"))


def _unreadable(path: str, what: str) -> InputError:
    return InputError(f"{path}: is {what}; write intervals: seqloom mask FILE --masker NAME, or dustmasker -in FILE "
                      "-outfmt interval, acclist or maskinfo_asn1_text")


def _of_lines(name: str, path: str, lines: Sequence[str]) -> GivenMask:
    names: dict[str, int] = {}
    rows: list[tuple[int, int, int]] = []
    for number, line in enumerate(lines, 1):
        text = line.rstrip()
        if text.startswith(">"):
            title, *behind = text[1:].rsplit("\t", 2)
            numbers = len(behind) == 2 and all(part.isdecimal() for part in behind)
            own = names.setdefault(((title if numbers else text[1:]).split() or [""])[0], len(names))
            if numbers:
                rows.append((own, int(behind[0]), int(behind[1]) + 1))
        elif (found := _INTERVAL.fullmatch(text)) and names:
            rows.append((own, int(found[1]), int(found[2]) + 1))
        elif text:
            _refuse(path, number)
    return GivenMask(name, path, [*names], *np.array(rows, np.int64).reshape(-1, 3).T)


def _refuse(path: str, number: int) -> NoReturn:
    raise InputError(f"{path}, line {number:,}: neither a title nor first and last residue, such as '10 - 25'; correct "
                     "the line")


def _of_asn1(name: str, path: str, text: str) -> GivenMask:
    """From the text of a Blast-db-mask-info: from, to and the number of the sequence of each interval."""
    found = _STRETCH.findall(text)
    for *_, other in found:
        if other:
            raise InputError(f"{path}: a sequence in it is told by 'id {other}', and numbers are read, as local id 1; "
                             "mask the file without -parse_seqids, or write intervals")
    if len(found) != len(_BEGINS.findall(text)) or not text.rstrip().endswith("}"):
        raise InputError(f"{path}: it is cut off, or isn't as maskers write it; write it anew")
    values = [(int(first), int(last), int(number)) for first, last, number, _ in found]
    start, last, sequence = np.array(values, np.int64).reshape(-1, 3).T
    return GivenMask(name, path, None, sequence - 1, start, last + 1)


__all__ = ["given_masks", "read_mask"]
