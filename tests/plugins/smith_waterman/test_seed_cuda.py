"""``sw-scores`` on CUDA equals the reference: in numba's simulator here, tiles and rows made small to keep it quick."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

SCRIPT = """
import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Scoring
from seqloom.plugins.smith_waterman import seed_cuda
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence import packed_chunks
from seqloom.plugins.smith_waterman.seed_reference import best_scores

seed_cuda.ROW_COUNTS, seed_cuda.WARPS = (1, 2, 3), 1
generator = np.random.default_rng({seed})
letters = PROTEIN.encode("ARNDCQEGHILKMFPSTWYVBZXU*OJ")
scoring = Scoring(printed_matrix("BLOSUM62"), {gap_open}, {gap_extend})
for length in {lengths}:
    query = letters[generator.integers(0, 20, length)]
    targets = [letters[generator.integers(0, 27, n)] for n in (0, 1, 4, 17)]
    targets.append(np.concatenate([letters[generator.integers(0, 20, 3)], query[1 : length - 1]]))
    offsets = np.concatenate([[0], np.cumsum([len(t) for t in targets])]).astype(np.int64)
    found = seed_cuda.DeviceVolume(np.concatenate(targets), offsets).best_scores(query, scoring)
    wanted = np.concatenate([best_scores(query, p) for _, p in packed_chunks(targets, scoring, 1 << 16)])
    assert found.tolist() == wanted.tolist(), (length, found.tolist(), wanted.tolist())
print("equal")
"""


@pytest.mark.parametrize(("gap_open", "gap_extend", "lengths"), [
    (11, 1, [1, 2, 5, 12, 13]),  # one to three rows, four and eight lanes
    (0, 1, [23, 40]),  # eight and sixteen lanes; a gap beside another
    (5, 0, [9]),
])
def test_scores_equal_the_reference(gap_open: int, gap_extend: int, lengths: list[int]) -> None:
    run_simulated(SCRIPT.format(seed=gap_open, gap_open=gap_open, gap_extend=gap_extend, lengths=lengths))


@pytest.mark.gold
def test_queries_of_several_tiles() -> None:
    run_simulated(SCRIPT.format(seed=3, gap_open=11, gap_extend=1, lengths=[110, 200]))


def run_simulated(script: str) -> None:
    done = subprocess.run([sys.executable, "-c", script], env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-2000:]


@pytest.mark.gold
def test_overflow_is_scored_again() -> None:
    run_simulated("""
import numpy as np
from collections import Counter
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, Scoring
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.smith_waterman import seed_cuda
from seqloom.plugins.smith_waterman.scoring import SmithWatermanScoring
seed_cuda.WARPS = 1
matrix = np.full((28, 28), -4, np.int32)
np.fill_diagonal(matrix, 127)
batch = SequenceBatch.of(PROTEIN, ["A" * 280, "C" * 20])
context = Context(queries=batch, targets=batch, scoring=SmithWatermanScoring(matrix, 11, 1), counters=Counter())
table = seed_cuda.SmithWatermanScoresCuda().table(context, np.arange(1), np.arange(2))
assert table.tolist() == [[280 * 127, 0]], table
assert context.counters["scored again in full precision"] == 1
print("equal")
""")
