"""The X-drop passes in vectors against the plain ones, bit for bit: scores, ends and steps, bytes and i4."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from seqloom.plugins.common import xdrop, xdrop_cpu
from seqloom.plugins.common.matrices import MATRIX_NAMES, protein_matrix
from seqloom.plugins.common.xdrop_cpu import (
    COLUMN_START,
    HEIGHT,
    LANES,
    PADDING,
    ROW_START,
    TOP,
    TOP_COLUMN,
    TOP_ROW,
    WIDTH,
)

residues = st.integers(1, 27)
few_residues = st.sampled_from([1, 3, 20])


@st.composite
def related(draw, longest: int = 260):
    """A sequence and a copy with stretches changed, lost and added: ties, long gaps, drift over several vectors."""
    alphabet = draw(st.sampled_from([residues, few_residues, st.just(11), st.integers(0, 27)]))
    unit = draw(st.lists(alphabet, min_size=1, max_size=80))
    first = (unit * draw(st.integers(1, 6)))[:longest]
    second = list(first)
    for _ in range(draw(st.integers(0, 8))):
        place = draw(st.integers(0, len(second)))
        size = draw(st.sampled_from([1, 2, 5, 20, 70]))
        kind = draw(st.sampled_from(["cut", "add", "change", "end"]))
        if kind == "cut":
            del second[place : place + size]
        elif kind == "end":
            del second[place:]
        else:
            new = draw(st.lists(alphabet, min_size=1, max_size=size))
            second[place : place + (len(new) if kind == "change" else 0)] = new
    pair = bytes(first), bytes(second)
    return pair if draw(st.booleans()) else pair[::-1]


costs = st.one_of(st.sampled_from([(11, 1), (9, 2), (0, 1), (5, 0), (0, 0)]),
                  st.tuples(st.integers(0, 20), st.integers(0, 6)))
drops = st.one_of(st.integers(0, 115), st.sampled_from([0, 38, 64, 200, 5000, 10**6]))


class Passes:
    """The passes of ``xdrop_cpu`` on one pair of sequences, in working space full of rubbish."""

    def __init__(self, rows: bytes, columns: bytes, matrix: np.ndarray, cost: tuple[int, int], x_drop: int,
                 as_bytes: bool, backwards: bool, fine: bool = False) -> None:
        self.shape = len(rows), len(columns)
        self.matrix, self.cost, self.x_drop = matrix, cost, x_drop
        self.side = int(backwards)
        # Residues before and behind a sequence must not matter.
        around = np.full(70, 20, np.uint8)
        self.sequences = []
        for sequence in (rows, columns):
            own = np.frombuffer(sequence, np.uint8)
            packed = np.concatenate([around, own[::-1] if backwards else own, around])
            offsets = np.array([0, 35, 70, 70 + len(own), 140 + len(own)])
            ways, starts = xdrop_cpu.both_ways(packed, offsets, np.array([0, 2, 3]))
            assert starts.tolist() == [0, 35, 35 + len(own), 105 + len(own)]
            self.sequences.append(ways)
        begin = PADDING + (70 if backwards else 35)
        self.begins = begin, len(rows), begin, len(columns)
        self.fine = fine
        self.space = xdrop_cpu.workspace(*self.shape, np.int8 if as_bytes else np.int16 if fine else np.int32)
        self.passes = self.space.passes
        self.space.best[:] = self.space.gaps[:] = 99

    def _extend(self, restricted: bool, codes: np.ndarray | None, row_codes: np.ndarray | None) -> bool:
        """Both passes of the kernel; the one that isn't asked for reads the same residues from another place."""
        for side in range(2):
            self.passes[side] = 99
            self.passes[side, [ROW_START, HEIGHT, COLUMN_START, WIDTH]] = self.begins
        other = self.passes[1 - self.side]
        other[[HEIGHT, WIDTH]] = np.minimum(other[[HEIGHT, WIDTH]] * 2 // 3, 90)
        costs, uppers = xdrop_cpu.Costs.of(self.matrix, *self.cost, self.x_drop), None
        if self.fine:
            costs, uppers = xdrop_cpu.fine_costs(*self.cost, self.x_drop)
            xdrop_cpu.set_fine_tables(self.matrix, costs.tables, uppers)
        return xdrop_cpu.extend(*self.sequences, costs, uppers, self.space, restricted, codes, row_codes)

    def score(self, restricted: bool) -> tuple[int, int, int]:
        assert self._extend(restricted, None, None)
        return tuple(self.passes[self.side, [TOP, TOP_ROW, TOP_COLUMN]].tolist())

    def traceback(self, capacity: int) -> tuple[int, int, int, list[int]]:
        codes, row_codes = np.zeros((2, capacity), np.uint64), np.zeros((2, self.shape[0] + 1), np.int64)
        if not self._extend(False, codes, row_codes):
            return -1, 0, 0, []
        steps = np.zeros(sum(self.shape), np.uint8)
        count = xdrop_cpu.walk_back(self.passes, self.side, codes, row_codes, steps)
        found = self.passes[self.side, [TOP, TOP_ROW, TOP_COLUMN]].tolist()
        return *found, steps[:count][::-1].tolist()


def widths(matrix: np.ndarray, cost: tuple[int, int], x_drop: int) -> list[bool]:
    return [False, True] if xdrop_cpu.fits_bytes(matrix, *cost, x_drop) else [False]


@settings(deadline=None, max_examples=300)
@given(related(), st.sampled_from(MATRIX_NAMES), costs, drops, st.booleans())
@example((bytes([20]), bytes([20])), "BLOSUM62", (11, 1), 0, False)
@example((bytes([20, 20]), bytes([1])), "BLOSUM62", (11, 1), 10**6, True)
@example((bytes([20] * 600), bytes([20] * 600)), "PAM30", (9, 1), 40, True)
@example((b"", bytes([20])), "BLOSUM62", (11, 1), 38, False)
@example((bytes([20]), b""), "BLOSUM62", (11, 1), 38, False)
def test_every_pass_gives_the_answer_of_the_plain_one(pair, name, cost, x_drop, backwards):
    matrix = protein_matrix(name)
    plain = *pair, matrix.tolist(), *cost, x_drop
    full, restricted = xdrop.extend_score(*plain), xdrop.extend_score_restricted(*plain)
    traced = xdrop.extend_traceback(*plain)
    for as_bytes in widths(matrix, cost, x_drop):
        passes = Passes(*pair, matrix, cost, x_drop, as_bytes, backwards)
        assert passes.score(restricted=False) == tuple(full)
        assert passes.score(restricted=True) == tuple(restricted)
        assert passes.traceback(1 << 17) == tuple(traced)


@settings(deadline=None)
@given(related(), st.integers(0, 200))
def test_a_traceback_says_when_its_choices_lack_room(pair, capacity):
    matrix = protein_matrix("BLOSUM62")
    passes = Passes(*pair, matrix, (11, 1), 64, True, False)
    enough = passes.traceback(1 << 17)
    assert passes.traceback(capacity) in (enough, (-1, 0, 0, []))
    if len(pair[0]) * xdrop_cpu.CHOICES > capacity and enough[1] * xdrop_cpu.CHOICES > capacity:
        assert passes.traceback(capacity)[0] == -1


@pytest.mark.parametrize("length", [LANES - 1, LANES, 3 * LANES + 1])
def test_gaps_run_over_several_vectors(length):
    generator = np.random.default_rng(length)
    flanks = [generator.integers(1, 21, 400).astype(np.uint8).tobytes() for _ in range(2)]
    inside = bytes([11]) * length
    matrix = protein_matrix("BLOSUM62")
    for pair in ((flanks[0] + inside + flanks[1], flanks[0] + flanks[1]),
                 (flanks[0] + flanks[1], flanks[0] + inside + flanks[1])):
        for cost, x_drop in (((3, 0), 60), ((11, 1), 11 + 3 * LANES + 20)):
            plain = *pair, matrix.tolist(), *cost, x_drop
            for as_bytes in widths(matrix, cost, x_drop):
                passes = Passes(*pair, matrix, cost, x_drop, as_bytes, False)
                assert passes.score(restricted=False) == tuple(xdrop.extend_score(*plain))
                assert passes.score(restricted=True) == tuple(xdrop.extend_score_restricted(*plain))
                assert passes.traceback(1 << 17) == tuple(xdrop.extend_traceback(*plain))


def test_scores_far_above_a_byte_are_exact():
    pair = bytes([20] * 5000), bytes([20] * 5000)
    matrix = protein_matrix("BLOSUM62")
    assert Passes(*pair, matrix, (11, 1), 38, True, False).score(restricted=False) == (55_000, 5000, 5000)


def assert_same_everywhere(pair: tuple[bytes, bytes], cost: tuple[int, int], x_drop: int) -> xdrop.TracedExtension:
    matrix = protein_matrix("BLOSUM62")
    traced = xdrop.extend_traceback(*pair, matrix.tolist(), *cost, x_drop)
    for as_bytes in widths(matrix, cost, x_drop):
        passes = Passes(*pair, matrix, cost, x_drop, as_bytes, False)
        assert passes.score(restricted=False) == tuple(traced[:3])
        assert passes.traceback(1 << 17) == tuple(traced)
    return traced


def random_stretches(seed: int, *lengths: int) -> list[bytes]:
    generator = np.random.default_rng(seed)
    return [generator.integers(1, 21, length).astype(np.uint8).tobytes() for length in lengths]


def test_a_gap_of_one_residue_leads_into_the_next_vector():
    first, second, third, between, one = random_stretches(1, 60, 60, 60, xdrop_cpu.HALF - 1, 1)
    pair = first + second + third, first + between + second + one + third
    assert assert_same_everywhere(pair, (11, 1), 64).columns == len(pair[1])
    assert assert_same_everywhere(pair[::-1], (11, 1), 64).rows == len(pair[1])


def test_gaps_of_a_vector_that_was_left_stay_dead_while_the_base_rises():
    # The band moves away from higher diagonals and the base rises. Only a forgotten gap leads to the last stretch.
    first, gap, second, third = random_stretches(2, 100, 30, 150, 60)
    sizes = [size for size in range(30 + xdrop_cpu.HALF - 1, 90, LANES) if size > 53]
    assert sizes
    for size in sizes:
        for length in range(90, 150, 2):
            pair = first + gap + second[:length] + third, first + second[:length] + bytes([23]) * size + third
            assert assert_same_everywhere(pair, (11, 1), 64).columns < 110 + length


@settings(deadline=None)
@given(related(), costs, st.integers(0, 3000), st.booleans(), st.integers(0, 99))
def test_scores_with_fractions(pair, cost, x_drop, backwards, seed):
    matrix = 32 * protein_matrix("BLOSUM62").clip(-128)
    matrix += np.random.default_rng(seed).integers(-15, 16, matrix.shape).astype(np.int32)
    cost = 32 * cost[0], 32 * cost[1]
    assert xdrop_cpu.fits_words(int(matrix.max()), *cost, x_drop)
    traced = xdrop.extend_traceback(*pair, matrix.tolist(), *cost, x_drop)
    passes = Passes(*pair, matrix, cost, x_drop, False, backwards, fine=True)
    assert passes.score(restricted=False) == tuple(traced[:3])
    assert passes.traceback(1 << 17) == tuple(traced)


def test_scores_with_fractions_far_above_a_word_are_exact():
    pair = bytes([20] * 500), bytes([20] * 500)
    passes = Passes(*pair, 32 * protein_matrix("BLOSUM62").clip(-128), (352, 32), 2076, False, False, fine=True)
    assert passes.score(restricted=False) == (32 * 5500, 500, 500)
