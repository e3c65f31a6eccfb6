"""The stretch of every query or target that a search is limited to, as BLAST names it: "first-last", from 1."""

from __future__ import annotations

from seqloom.core.errors import OptionError


def location_of(text: str | None, flag: str = "--query-loc") -> tuple[int, int] | None:
    """Half-open stretch from 0 on that "10-200", the value of the option ``flag``, names; None for None.

    Raises `OptionError` for anything else.
    """
    if text is None:
        return None
    first, dash, last = text.strip().partition("-")
    if not (dash and first.isdecimal() and last.isdecimal() and 0 < int(first) <= int(last)):
        raise OptionError(f"{flag} takes the first and the last residue, from 1 on, as 10-200, not '{text}'")
    return int(first) - 1, int(last)


def target_location_of(text: str | None) -> tuple[int, int] | None:
    """The same of the targets."""
    return location_of(text, "--subject-loc")
