"""Columns of cells against the functions that make one text at a time."""

import math
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.records import Ragged
from seqloom.plugins.common import cells, numbers
from seqloom.plugins.common.cells import ABSENT_CELL, LARGEST, SCIENTIFIC, TEXT, Texts
from seqloom.plugins.formats.aligned import covered

TIES = [0.5, 1.5, 2.5, 0.125, 0.375, 27.1875, 0.0625, 0.1875, 12.25, 12.75, 99.75, 10.5, 11.5, 0.0009765625,
        0.0029296875, 2.0**-20, 3.125e-2, 87 / 320 * 100]
EDGES = [0.0, 5e-324, 2.5e-310, 1e-181, 1e-180, 0.0009, 0.0095, 0.00995, 0.1, 0.995, 1.0, 9.95, 9.995, 10.0, 99.5, 99.9,
         99.95, 100.0, 999.5, 99999.0, 1e5, 2.0**40, 2.0**52, 2.0**53, 1e17, 1e22, 1e300, math.inf, math.nan]


def neighbours(value: float) -> list[float]:
    return [value, math.nextafter(value, math.inf), math.nextafter(value, -math.inf)]


SPECIAL = [sign * near for value in TIES + EDGES for near in neighbours(value) for sign in (1, -1)]
half_way = st.builds(lambda digits, exponent: float(f"{digits}5e-{exponent}"),
                     st.integers(100, 999), st.integers(0, 185)).flatmap(lambda v: st.sampled_from(neighbours(v)))
powers = st.integers(-185, 20).flatmap(lambda n: st.sampled_from(neighbours(float(f"1e{n}"))))
doubles = (st.floats() | st.sampled_from(SPECIAL) | st.floats(0, 100) | st.floats(0, 1) | half_way | powers
           | st.integers(0, 200_000).map(lambda n: n / 2000) | st.integers(0, 1 << 20).map(lambda n: n / 1024))


def joined(columns: list[np.ndarray], texts: Texts, delimiter: str) -> tuple[bytes, list[int]]:
    """Lines and where they end, which are the same with the kernel and without it."""
    made = []
    for few in (0, 1 << 40):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(cells, "FEW_CELLS", few)
            text, ends = texts.joined(columns, delimiter)
            made.append((text.tobytes(), ends.tolist()))
    assert made[0] == made[1]
    return made[0]


def printed(column: np.ndarray, texts: Texts) -> list[str]:
    whole, ends = joined([column], texts, "\t")
    assert [whole[n - 1 : n] for n in ends] == [b"\n"] * len(column)
    return whole.decode("utf-8", "surrogatepass").split("\n")[:-1]


def cell_text(cell: int, texts: list[str]) -> str:
    """What a cell stands for."""
    held, form = cell >> 8, cell & 255
    if form == TEXT:
        return texts[held]
    if form == SCIENTIFIC:
        return f"{Decimal(held // 1000) / 100:.2f}e-{held % 1000:02}"
    decimals, width = form & 15, form >> 4
    return f"{Decimal(held).scaleb(-decimals, WIDE):{width}.{decimals}f}"


WIDE = Context(prec=40)


@settings(deadline=None)
@given(st.lists(doubles))
def test_evalues(values):
    texts = Texts()
    assert printed(cells.evalue_cells(np.array(values, np.float64), texts), texts) == [
        numbers.evalue_text(v) for v in values]


@settings(deadline=None)
@given(st.lists(doubles))
def test_bit_scores(values):
    texts = Texts()
    assert printed(cells.bit_score_cells(np.array(values, np.float64), texts), texts) == [
        numbers.bit_score_text(v) for v in values]


@settings(deadline=None)
@given(st.lists(doubles), st.sampled_from([np.float64, np.float32]))
def test_scores_with_decimals(values, dtype):
    texts = Texts()
    with np.errstate(over="ignore"):
        column = np.array(values, np.float64).astype(dtype)
    assert printed(cells.score_cells(column, texts), texts) == [numbers.score_text(v) for v in column.tolist()]


@settings(deadline=None)
@given(st.lists(st.integers(-2**63, 2**63 - 1) | st.just(-2**63) | st.integers(-1, 100) | st.sampled_from(
    [sign * (edge + n) for edge in (10**6, LARGEST) for n in (-1, 0, 1) for sign in (1, -1)])))
def test_scores(values):
    texts = Texts()
    assert printed(cells.score_cells(np.array(values, np.int64), texts), texts) == [
        numbers.score_text(v) for v in values]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 5000), st.integers(-1, 5000))), st.sampled_from([2, 3]))
def test_percentages(pairs, decimals):
    texts = Texts()
    pairs = [*pairs, (87, 320), (1, 0), (-1, 5), (0, 3), (3, 3), (0, 0)]
    counts, totals = np.array(pairs, np.int32).T
    assert printed(cells.percent_cells(counts, totals, decimals, texts), texts) == [
        numbers.percent_text(count, total, decimals) for count, total in pairs]


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 3000))))
def test_coverage(pairs):
    texts = Texts()
    part, length = np.array([*pairs, (985, 1000), (996, 1000), (0, 0)], np.int64).T
    assert printed(cells.coverage_cells(part, length), texts) == [
        numbers.coverage_text(c, n) for c, n in zip(part.tolist(), length.tolist())]


def test_many_numbers_of_every_size():
    generator = np.random.default_rng(5)
    drawn = [generator.integers(0, 2**63, 20_000).view(np.float64), 10 ** generator.uniform(-182, 8, 50_000),
             generator.uniform(0, 100, 50_000), generator.integers(0, 10_000, 50_000) / generator.integers(1, 10_000)]
    values = np.concatenate(drawn)
    for made, text in ((cells.evalue_cells, numbers.evalue_text), (cells.score_cells, numbers.score_text)):
        texts = Texts()
        assert printed(made(values, texts), texts) == [text(v) for v in values.tolist()]


def test_usual_numbers_need_no_texts():
    texts = Texts()
    generator = np.random.default_rng(6)
    for column in (cells.evalue_cells(10 ** generator.uniform(-180, 3, 10_000), texts),
                   cells.bit_score_cells(generator.uniform(0, 99_999, 10_000), texts),
                   cells.percent_cells(generator.integers(0, 500, 10_000), np.full(10_000, 500), 3, texts)):
        assert not (column & 255 == TEXT).any()


text_lists = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=())), min_size=1, max_size=6)
numeric = st.builds(lambda held, decimals, width: held << 8 | width << 4 | decimals,
                    st.integers(1 - LARGEST, LARGEST - 1) | st.integers(-1000, 1000), st.integers(0, 5),
                    st.integers(0, 15))
scientific = st.builds(lambda digits, exponent: (digits * 1000 + exponent) << 8 | SCIENTIFIC,
                       st.integers(100, 999), st.integers(1, 300))


@settings(deadline=None)
@given(st.data(), text_lists, st.integers(1, 4), st.integers(0, 6), st.sampled_from("\t,é€𝄞"))
def test_lines(data, names, columns, lines, delimiter):
    texts = Texts()
    named = texts.add(names)
    assert texts.add_rows(Ragged.of([[], [99]], np.uint8)).tolist() == [
        ABSENT_CELL, len(names) + 2 << 8 | TEXT]
    known = [numbers.ABSENT, *names, "", "c"]
    one = st.sampled_from([ABSENT_CELL, *named.tolist()]) | numeric | scientific
    chosen = [data.draw(st.lists(one, min_size=lines, max_size=lines)) for _ in range(columns)]
    text, ends = joined([np.array(column, np.int64) for column in chosen], texts, delimiter)
    wanted = [(delimiter.join(cell_text(c, known) for c in row) + "\n").encode("utf-8", "surrogatepass")
              for row in zip(*chosen)]
    assert text == b"".join(wanted)
    assert ends == np.cumsum([len(line) for line in wanted]).tolist()


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 9))))
def test_covered(stretches):
    inside = [{(g, n) for g, start, length in stretches if g == group for n in range(start, start + length)}
              for group in range(4)]
    groups, starts, lengths = (np.array([s[k] for s in stretches], np.int64) for k in range(3))
    assert covered(groups, starts, starts + lengths).tolist() == [len(inside[g]) for g in groups.tolist()]


def test_nothing_is_covered_by_hits_without_place():
    none = np.array([-1, -1, 2], np.int32)
    assert covered(np.array([0, 1, 1]), none, np.array([-1, -1, 5], np.int32)).tolist() == [0, 3, 3]
