"""Blocks of sequences against Algorithm 1 as the paper writes it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.plugins.profile_hmm import warp_blocks
from seqloom.plugins.profile_hmm.warp_blocks import END, PADDING, WIDTH, Columns, block_count, in_blocks, in_sequence

sizes = st.lists(st.integers(1, 90), min_size=1, max_size=700)


def containers(lengths: list[int], lines: int) -> list[list[int]]:
    """Numbers of the sequences in each container, line by line of the paper; ``lengths`` descend."""
    held: list[list[int]] = [[n] if n < len(lengths) else [] for n in range(lines)]

    def filled(ptr: int) -> int:
        return sum(lengths[n] + 1 for n in held[ptr])

    ptr = lines - 1
    for y in range(lines, len(lengths)):
        longest = max(map(filled, range(lines)))
        while True:
            attached = False
            if ptr < 0:
                ptr = lines - 1
                held[ptr].append(y)
                attached = True
            elif lengths[y] + 1 + filled(ptr) <= longest:
                held[ptr].append(y)
                attached = True
            ptr -= 1
            if attached:
                break
        if ptr < 0:
            ptr = lines - 1
    return held


def sequences(lengths: list[int], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Residues, begins and lengths of random sequences, with others between them."""
    gaps = np.random.default_rng(seed).integers(0, 3, len(lengths))
    ends = np.cumsum(np.array(lengths) + gaps)
    residues = np.random.default_rng(seed).integers(0, 28, int(ends[-1]), np.uint8)
    return residues, (ends - lengths).astype(np.int64), np.array(lengths, np.int64)


def columns_of(found: Columns) -> list[bytes]:
    """What stands in each column, padding of its block included where there is any."""
    rows = np.repeat(found.rows, WIDTH) if found.stride > 1 else found.lengths
    return [found.residues[start : start + int(count) * found.stride : found.stride].tobytes() if count else b""
            for start, count in zip(found.starts.tolist(), rows, strict=True)]


def expected_columns(found: Columns, residues: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    """What should, by their members."""
    made = []
    for first, last in pairwise(found.firsts.tolist()):
        parts = [residues[begins[n] : begins[n] + lengths[n]].tobytes() + bytes([END])
                 for n in found.members[first:last]]
        made.append(b"".join(parts))
    return made


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 5), st.integers(0, 99))
def test_blocks_are_those_of_the_algorithm(given_sizes: list[int], most: int, seed: int) -> None:
    residues, begins, lengths = sequences(given_sizes, seed)
    blocks = block_count(len(lengths), most)
    found = in_blocks(residues, begins, lengths, blocks)
    order = np.argsort(-lengths, kind="stable")
    wanted = containers(lengths[order].tolist(), blocks * WIDTH)
    assert [found.members[a:b].tolist() for a, b in pairwise(found.firsts.tolist())] == [
        [int(order[n]) for n in held] for held in wanted]
    made = expected_columns(found, residues, begins, lengths)
    assert [len(column) for column in made] == found.lengths.tolist()
    rows = [max(map(len, made[n : n + WIDTH])) for n in range(0, len(made), WIDTH)]
    assert found.rows.tolist() == rows
    assert columns_of(found) == [column.ljust(rows[n // WIDTH], bytes([PADDING])) for n, column in enumerate(made)]


@settings(deadline=None, max_examples=60)
@given(sizes, st.integers(1, 5), st.integers(0, 99))
def test_columns_in_sequence_hold_every_sequence_once(given_sizes: list[int], most: int, seed: int) -> None:
    residues, begins, lengths = sequences(given_sizes, seed)
    found = in_sequence(residues, begins, lengths, block_count(len(lengths), most))
    assert found.members.tolist() == list(range(len(lengths)))
    assert found.firsts[0] == 0 and found.firsts[-1] == len(lengths) and (np.diff(found.firsts) >= 0).all()
    assert columns_of(found) == expected_columns(found, residues, begins, lengths)
    assert found.rows.tolist() == found.lengths.reshape(-1, WIDTH).max(axis=1).tolist()
    # No column has more than its share by more than the longest sequence.
    assert found.lengths.max() <= (lengths + 1).sum() / len(found.lengths) + lengths.max() + 2


def test_the_balance_is_that_of_rows_end_marks_and_padding() -> None:
    residues, begins, lengths = sequences([5] * WIDTH + [3] * (WIDTH - 28), 1)
    balance = in_blocks(residues, begins, lengths, 2).balance()
    assert balance == (2, 5.0, 1.0, 114.0, 14.0, 28 * 4, 5 * 128 + 3 * 100)
    assert balance.padding_to_real == pytest.approx(112 / 940)


def test_blocks_of_many_sequences_are_even() -> None:
    lengths = np.random.default_rng(3).gamma(2.3, 150, 20_000).astype(np.int64) + 20
    residues, begins, lengths = sequences(lengths.tolist(), 3)
    balance = in_blocks(residues, begins, lengths, 8).balance()
    assert balance.padding_to_real < 0.02 and balance.rows_deviation < 0.02 * balance.rows
    apart = in_sequence(residues, begins, lengths, 8).balance()
    assert apart.padding_to_real > 4 * balance.padding_to_real


def test_no_sequences_make_no_blocks() -> None:
    nothing = np.empty(0, np.int64)
    for laid in (in_blocks, in_sequence):
        found = laid(np.empty(0, np.uint8), nothing, nothing, 0)
        assert len(found.rows) == 0 and found.balance().padding == 0
    assert warp_blocks.block_count(0, 7) == 0
