"""Numbers as BLAST+ prints them (version 2.12, found by comparing with its output).

Of all values only NaN, which stands for an absent one, differs from itself: that is quicker to ask than ``math.isnan``.
"""

ABSENT = "*"
"""Printed for a value that a result doesn't have, such as the E-value of an exact match."""
SMALLEST_EVALUE = 1e-180
"""Smaller ones are 0 wherever they are printed."""


def evalue_text(value: float) -> str:
    """E-value as in tabular output: "0.0", "3.05e-05", "0.006", "0.12", "5.5", "21"."""
    if value != value:
        return ABSENT
    if value < SMALLEST_EVALUE:
        return "0.0"
    if value < 0.0009:
        return f"{value:.2e}"
    return _plain_evalue(value)


def short_evalue_text(value: float) -> str:
    """E-value as in pairwise output: "0.0", "3e-05", "0.006", "0.12", "5.5", "21"."""
    if value != value:
        return ABSENT
    if value < SMALLEST_EVALUE:
        return "0.0"
    if value < 0.0009:
        return f"{value:.0e}"
    return _plain_evalue(value)


def _plain_evalue(value: float) -> str:
    if value < 0.1:
        return f"{value:.3f}"
    if value < 1:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def bit_score_text(value: float) -> str:
    """Bit score: one decimal up to 99.9, padded to four characters, else its integer part, cut off, padded to three."""
    if value != value:
        return ABSENT
    if value > 99999:
        return f"{value:5.3e}"
    return f"{int(value):3d}" if value > 99.9 else f"{value:4.1f}"


def score_text(value: float) -> str:
    """Raw score: an integer, or one decimal where scores are not integers."""
    if isinstance(value, int):
        return str(value)
    return ABSENT if value != value else f"{value:.1f}"


def percent_text(count: int, total: int, decimals: int) -> str:
    """``count`` of ``total`` in per cent. The quotient comes first, as in BLAST: 87 of 320 gives 27.187."""
    return f"{count / total * 100:.{decimals}f}" if total > 0 and count >= 0 else ABSENT


def short_percent(count: int, total: int) -> int:
    """Per cent as in pairwise output: rounded, and 100 only when all are."""
    return 100 if count == total else min(99, int(0.5 + 100.0 * count / total))


def coverage_text(covered: int, length: int) -> str:
    """Coverage in whole per cent: rounded below 99, cut off above."""
    if length <= 0:
        return ABSENT
    share = 100.0 * covered / length
    return str(int(share + 0.5 if share < 99 else share))
