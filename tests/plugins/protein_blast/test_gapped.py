"""Where gapped extensions start, and what restricted mode may and may not change."""

from hypothesis import given
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.culling import Hsp
from seqloom.plugins.protein_blast.gapped_reference import ANCHOR_WINDOW, anchor_shift, preliminary_hsps
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import protein_scoring

QUERY = "MAKTSNQRVAEQIRRELAELIQRELRDPRIGFVTITDVEVTPDYSHAKVYYTVLGDDEQRALTEEALEHAAGFLRSELGRRLTMRTVPELRFVYDESLE"


@given(st.lists(st.integers(-4, 11), min_size=1, max_size=60))
def test_anchor_is_the_middle_of_the_first_best_window(scores):
    shift = anchor_shift(scores)
    if len(scores) <= ANCHOR_WINDOW:
        assert shift == len(scores) // 2
        return
    sums = [sum(scores[start : start + ANCHOR_WINDOW]) for start in range(len(scores) - ANCHOR_WINDOW + 1)]
    assert shift == (sums.index(max(sums)) + ANCHOR_WINDOW // 2 if max(sums) > 0 else 0)


def found_in(target: str, segment: tuple[int, int, int], evalue: float) -> list[Hsp]:
    """Preliminary HSPs from the segment (query start, target start, length) at an E-value limit in a large database."""
    batch = SequenceBatch.of(PROTEIN, [QUERY])
    scoring = protein_scoring(batch, SearchSpace(10**9, 10**6), BlastpOptions(evalue=evalue))
    rows = scoring.matrix_rows()
    query, residues = batch[0].tobytes(), PROTEIN.encode(target).tobytes()
    q, t, length = segment
    score = sum(rows[query[q + k]][residues[t + k]] for k in range(length))
    return preliminary_hsps([Hsp(score, q, q + length, t, t + length)], query, residues, rows, scoring, 0)


def test_a_weak_segment_of_a_gapped_alignment_is_found_in_full_and_after_restricted_extension():
    target = QUERY[:30] + QUERY[33:70] + "WW" + QUERY[70:]
    segment = (20, 20, 9)
    (full,) = found_in(target, segment, evalue=20.0)
    (restarted,) = found_in(target, segment, evalue=1.0)
    assert (full.query_start, full.query_end) == (0, len(QUERY))
    assert (restarted.query_start, restarted.query_end, restarted.target_end) == (0, len(QUERY), len(target))
    assert restarted.score <= full.score
    assert (full.anchor_query, restarted.anchor_query) == (24, 24)


def test_an_alignment_below_the_cutoff_is_dropped():
    assert found_in(QUERY[:20] + "G" * 60, (0, 0, 20), evalue=1e-9) == []
