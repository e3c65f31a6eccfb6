"""Lines of text from cells."""

from seqloom.core.jit import kernel

from .cells import SCIENTIFIC, TEXT

_ZERO, _POINT, _MINUS, _BLANK, _EXPONENT, _END = b"0.- e\n"


@kernel
def join(cells, texts, offsets, delimiter, text, ends):
    """Write all lines of i8[columns, lines] ``cells`` and where each ends; gives the length of the text.

    texts, offsets: u1[…], i8[n + 1], texts of cells; see ``cells`` for the forms.
    """
    place = 0
    columns, lines = cells.shape
    for line in range(lines):
        for column in range(columns):
            if column:
                for n in range(len(delimiter)):
                    text[place] = delimiter[n]
                    place += 1
            held, form = cells[column, line] >> 8, cells[column, line] & 255
            if form == TEXT:
                first, last = offsets[held], offsets[held + 1]
                for n in range(last - first):
                    text[place + n] = texts[first + n]
                place += last - first
                continue
            exponent = 0
            if form == SCIENTIFIC:
                held, exponent, form = held // 1000, held % 1000, 2
            decimals, least = form & 15, form >> 4
            left = abs(held)
            digits, limit = 1, 10
            while limit <= left:
                digits += 1
                limit *= 10
            digits = max(digits, decimals + 1)
            size = digits + (decimals > 0) + (held < 0)
            while size < least:
                text[place] = _BLANK
                place += 1
                least -= 1
            if held < 0:
                text[place] = _MINUS
            place += size
            for n in range(digits):
                text[place - 1 - n - (n >= decimals > 0)] = _ZERO + left % 10
                left //= 10
            if decimals:
                text[place - 1 - decimals] = _POINT
            if exponent:
                text[place], text[place + 1] = _EXPONENT, _MINUS
                place += 2
                if exponent >= 100:
                    text[place] = _ZERO + exponent // 100
                    place += 1
                text[place], text[place + 1] = _ZERO + exponent // 10 % 10, _ZERO + exponent % 10
                place += 2
        text[place] = _END
        place += 1
        ends[line] = place
    return place
