"""The order of lines where references end alike: MUMmer reads on in the next reference, whether it matches or not."""

from functools import cmp_to_key

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.engine.memory import MemorySource
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.suffix_order import SuffixOrder
from seqloom.plugins.exact_match.symbols import target_text

from tests.plugins.exact_match.mummer import MODES, MemoryReport, mummer_lines, needs_mummer, seqloom_lines
from tests.plugins.exact_match.test_against_mummer import ROUTES

pieces = st.sampled_from(["A", "AA", "AC", "ACGT", "N", "RA"])
references = st.lists(st.lists(pieces, min_size=1, max_size=3).map("".join), min_size=1, max_size=8)

RECORDED = [
    (["ACGTT", "GGACGTT", "ACGTT", "CCACGTT", "ACGTT", "GGACGTT", "ACGTT"], {"maxmatch": True, "length": 5}, """\
> q
  r1         3         2         5
  r3         3         2         5
  r5         3         2         5
  r2         1         2         5
  r0         1         2         5
  r4         1         2         5
  r6         1         2         5
"""),
    (["ACGTT", "CCCCC", "ACGTT", "CCCCC", "ACGTT", "CCCCA", "ACGTT"], {"maxmatch": True, "length": 5}, """\
> q
  r4         1         2         5
  r2         1         2         5
  r0         1         2         5
  r6         1         2         5
"""),
    (["TAGA"], {"mum": True, "length": 1, "both": True}, """\
> q
       1         1         2
> q Reverse
       1         2         2
       3         1         1
"""),
]
"""References, options, and what mummer 3.23 prints of them."""


@pytest.mark.parametrize(("given", "options", "lines"), RECORDED, ids=["behind the match", "two references on", "l 1"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_lines_stand_as_mummer_prints_them(given, options, lines, route, backend):
    query = {"q": "TACGTT" if "maxmatch" in options else "TAC"}
    named = {f"r{n}": residues for n, residues in enumerate(given)}
    for volume in (10**6, 7, 1):
        assert seqloom_lines(named, query, options, stages=ROUTES[route], backend=backend,
                             volume_residues=volume) == lines


@settings(max_examples=200, deadline=None)
@given(references, st.booleans(), st.data())
def test_suffixes_are_compared_as_those_of_the_joined_text(residues, acgt_only, data):
    everything = SequenceBatch.of(NUCLEOTIDE, residues)
    text, starts = target_text(everything, acgt_only)
    whole = text.tobytes()
    numbers = sorted(data.draw(st.sets(st.integers(0, len(residues) - 1), min_size=1)))
    targets = MemorySource(everything).fetch(np.array(numbers))
    order = SuffixOrder(MemoryReport(everything, everything, Hits.empty(), {"sequences": len(residues)}), acgt_only)
    places = [(number, at) for number in numbers for at in range(len(residues[number]))]
    wanted = sorted(places, key=lambda place: whole[starts[place[0]] + place[1] :])
    for given_order in (places, places[::-1], data.draw(st.permutations(places))):
        key = cmp_to_key(lambda one, other: order.compare(targets, one, other))
        assert sorted(given_order, key=key) == wanted


long_pieces = st.sampled_from(["A", "C", "N", "ACGT", "ACGTTGCA" * 5, "T" * 31, "T" * 33])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(long_pieces, min_size=1, max_size=4).map("".join), min_size=1, max_size=4), st.booleans(),
       st.data())
def test_runs_of_suffixes_that_share_much_come_in_order(residues, acgt_only, data):
    everything = SequenceBatch.of(NUCLEOTIDE, residues)
    text, starts = target_text(everything, acgt_only)
    whole, ends = text.tobytes(), starts + everything.lengths
    place = st.integers(0, len(residues) - 1).flatmap(
        lambda number: st.tuples(st.just(number), st.integers(0, len(residues[number]) - 1)))
    runs = data.draw(st.lists(st.lists(place, min_size=2, max_size=4, unique=True), min_size=1, max_size=4))
    numbers, positions = np.array([pair for run in runs for pair in run]).T
    firsts = np.cumsum([0, *map(len, runs)])
    order = SuffixOrder(MemoryReport(everything, everything, Hits.empty(), {"sequences": len(residues)}), acgt_only)
    rows, unsure = order.sort(everything, numbers, positions, firsts, np.zeros(len(numbers), np.int64))
    for n, (first, last) in enumerate(zip(firsts[:-1].tolist(), firsts[1:].tolist(), strict=True)):
        there = [whole[starts[numbers[row]] + positions[row] : ends[numbers[row]]] for row in rows[first:last].tolist()]
        assert sorted(rows[first:last].tolist()) == list(range(first, last))
        assert unsure[n] or there == sorted(there, key=lambda suffix: suffix + b"\xff")
        assert not unsure[n] or len(set(there)) < len(there)


@needs_mummer
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(6))
def test_references_that_end_alike_print_mummers_lines(mode, seed, tmp_path):
    rng = np.random.default_rng([seed, MODES.index(mode)])
    for _ in range(6):
        residues = list(rng.choice(["AC", "ACGT", "ACGTN"]))
        tails = ["".join(rng.choice(residues, rng.integers(1, 9))) for _ in range(2)]
        named = {f"r{n}": "".join(rng.choice(residues, rng.integers(0, 3))) + tails[rng.integers(2)]
                 for n in range(rng.integers(2, 9))}
        queries = {"q": "".join(rng.choice(residues, 2)) + tails[0] + tails[1], "p": "".join(tails) + tails[0]}
        options = {mode: True, "length": int(rng.integers(1, 5)), "both": True, "acgt_only": bool(rng.integers(2))}
        wanted = mummer_lines(tmp_path, named, queries, options, "c F")
        for route, stages in ROUTES.items():
            assert seqloom_lines(named, queries, options, "c F", stages=stages, backend="cpu",
                                 volume_residues=int(rng.choice([100, 9]))) == wanted, (route, named, queries, options)
