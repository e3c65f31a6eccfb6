"""Two-hit extension: diagonal by diagonal against target position by target position, and the filter's soundness."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.records import Seeds
from seqloom.plugins.common.grouping import group_starts
from seqloom.plugins.common.matrices import protein_matrix
from seqloom.plugins.protein_blast.sort_diagonal_reference import near_another, packed_keys
from seqloom.plugins.protein_blast.ungapped_reference import diagonal_segments, extend_one_hit, extend_two_hit

ROWS = protein_matrix("BLOSUM62").tolist()
WORD = 3
residues = st.lists(st.sampled_from([1, 3, 10, 11, 20]), min_size=3, max_size=120).map(bytes)
hit_places = st.sets(st.integers(0, 100), max_size=30).map(sorted)


def segments(hits, query, target, window, x_drop):
    profile = [ROWS[code] for code in query]
    return list(diagonal_segments(hits, profile, target, WORD, window, x_drop))


@settings(deadline=None)
@given(residues, residues, st.integers(5, 40), st.integers(5, 30))
def test_against_the_scan_along_the_target(query, target, window, x_drop):
    """The same rules with an array of diagonals, hit by hit in the order of a scan (cuBLASTP algorithm 1)."""
    profile = [ROWS[code] for code in query]
    last = [-window] * (len(query) + len(target))
    extended = [False] * len(last)
    expected = []
    by_diagonal: dict[int, list[tuple[int, int]]] = {}
    for j in range(len(target) - WORD + 1):
        for i in range(len(query) - WORD + 1):
            if sum(profile[i + k][target[j + k]] for k in range(WORD)) < 11:
                continue
            diagonal = j - i + len(query)
            by_diagonal.setdefault(j - i, []).append((i, j))
            if extended[diagonal]:
                if j >= last[diagonal]:
                    last[diagonal], extended[diagonal] = j, False
            elif j - last[diagonal] >= window:
                last[diagonal] = j
            elif j - last[diagonal] >= WORD:
                found = extend_two_hit(profile, target, i, j, WORD, last[diagonal] + WORD, x_drop)
                expected.append(found)
                extended[diagonal] = found.stop >= 0
                last[diagonal] = found.stop - (WORD - 1) if found.stop >= 0 else j
    found = [
        segment
        for hits in by_diagonal.values()
        for segment in diagonal_segments(hits, profile, target, WORD, window, x_drop)
    ]
    assert sorted(found) == sorted(expected)


def as_seeds(places: list[int]) -> Seeds:
    count = len(places)
    ones, zeros = np.ones(count, np.int8), np.zeros(count, np.int32)
    return Seeds(
        {
            "query": zeros,
            "target": zeros,
            "query_pos": np.array(places, np.int32),
            "target_pos": np.array(places, np.int32),
            "length": zeros + WORD,
            "query_frame": ones,
            "target_frame": ones,
        }
    )


@settings(deadline=None)
@given(hit_places, st.lists(st.sampled_from([1, 20]), min_size=110, max_size=110), st.integers(3, 40), st.data())
def test_dropping_lone_hits_changes_no_segment(places, pattern, window, data):
    query = bytes(pattern)
    target = bytes(data.draw(st.permutations(pattern)))
    kept = near_another(as_seeds(places), window)
    whole = segments([(place, place) for place in places], query, target, window, 16)
    filtered = segments([(p, p) for p, keep in zip(places, kept, strict=True) if keep], query, target, window, 16)
    assert whole == filtered


@given(residues, residues, st.data())
def test_segment_scores_are_sums_of_their_residues(query, target, data):
    profile = [ROWS[code] for code in query]
    i = data.draw(st.integers(0, len(query) - WORD))
    j = data.draw(st.integers(0, len(target) - WORD))
    window = data.draw(st.integers(WORD, 20))
    two = extend_two_hit(profile, target, i, j, WORD, j - window + WORD, 16)
    is_hit = sum(profile[i + k][target[j + k]] for k in range(WORD)) >= 11
    one = [extend_one_hit(profile, target, i, j, WORD, 16)] if is_hit else []
    for segment in (two, *one):
        pairs = range(segment.length)
        total = sum(profile[segment.query_start + k][target[segment.target_start + k]] for k in pairs)
        assert total == segment.score >= 0
        assert segment.query_start - segment.target_start == i - j


def test_one_hit_mode_leaps_over_a_word_without_positive_residues_and_the_residue_behind_it():
    query, target = PROTEIN.encode("HVXXXDWY").tobytes(), PROTEIN.encode("HIXXXLWF").tobytes()
    profile = [ROWS[code] for code in query]
    segment = extend_one_hit(profile, target, 2, 2, WORD, 16)
    assert (segment.score, segment.query_start) == (8 + 3 + 11 + 3, 0)


def test_one_hit_mode_skips_what_an_extension_covered():
    query = target = bytes([20, 5, 9] * 10)
    found = segments([(0, 0), (3, 3), (12, 12), (27, 27)], query, target, 0, 16)
    assert [segment.length for segment in found] == [30]


def test_keys_sort_by_query_target_diagonal_and_position():
    generator = np.random.default_rng(1)
    count = 500
    columns = {name: generator.integers(0, 7, count) for name in ("query", "target", "query_pos", "target_pos")}
    ones = np.ones(count, np.int8)
    seeds = Seeds({**columns, "length": ones, "query_frame": ones, "target_frame": ones})
    (packed,) = packed_keys(seeds)
    rows = list(
        zip(columns["query"], columns["target"], columns["target_pos"] - columns["query_pos"], columns["target_pos"])
    )
    order = np.argsort(packed, kind="stable")
    assert [rows[place] for place in order] == sorted(rows)
    far = seeds.replace(target=seeds.target + (generator.integers(0, 2, count) << 60))
    assert len(packed_keys(far)) == 4


def test_group_starts():
    assert group_starts(np.array([], int)).tolist() == [0]
    assert group_starts(np.array([3, 3, 4, 4, 4]), np.array([1, 1, 1, 2, 2])).tolist() == [0, 2, 3, 5]
