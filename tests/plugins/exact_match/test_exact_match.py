"""Exact matches against brute force, against MUMmer's rules and against mummer itself."""

import io
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.errors import OptionError, UnknownNameError
from seqloom.core.records import MATCH, Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.index_reference import SuffixArray, SuffixArrayOptions
from seqloom.plugins.exact_match.mummer_writer import MummerWriter
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.plugins.exact_match.plugin import seqloom_stages
from seqloom.plugins.exact_match.seed_reference import backward_search
from seqloom.plugins.exact_match.suffix_array import suffix_array
from seqloom.plugins.exact_match.symbols import end, residues_in_order, separator, target_text
from seqloom.testing import check_pipeline, check_stage, run_pipeline

from tests.plugins.exact_match.mummer import MODES, MemoryReport, mummer_lines, needs_mummer, seqloom_lines
from tests.shared import needs_shared, read_fasta

Match = tuple[int, int, int, int, int, int]

sequences = st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN"]).flatmap(
    lambda residues: st.tuples(*2 * [st.lists(st.text(residues, min_size=1, max_size=30), min_size=1, max_size=3)]))
modes = st.sampled_from(MODES)
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


def reverse_complement(text: str) -> str:
    return NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(text)][::-1])


def brute_force(queries: list[str], targets: list[str], length: int, mode: str, frames: tuple[int, ...],
                acgt_only: bool) -> set[Match]:
    """(query, frame, start on the strand, target, start, length) of what a mode reports, by the definitions alone."""

    def may(residue: str) -> bool:
        return not acgt_only or residue in "ACGT"

    def occurrences(word: str) -> int:
        return sum(t[i : i + len(word)] == word for t in targets for i in range(len(t)))

    found = set()
    for q, query in enumerate(queries):
        for frame in frames:
            strand = query if frame > 0 else reverse_complement(query)
            matches = []
            for t, target in enumerate(targets):
                for i in range(len(strand)):
                    for j in range(len(target)):
                        size = 0
                        while (i + size < len(strand) and j + size < len(target)
                               and strand[i + size] == target[j + size] and may(strand[i + size])):
                            size += 1
                        extends = i and j and strand[i - 1] == target[j - 1] and may(strand[i - 1])
                        if size >= length and not extends:
                            matches.append((q, frame, i, t, j, size))
            if mode != "maxmatch":
                matches = [m for m in matches if occurrences(strand[m[2] : m[2] + m[5]]) == 1]
            if mode == "mum":
                matches = [m for m in matches if not any(
                    o is not m and o[3] == m[3] and o[4] <= m[4] and m[4] + m[5] <= o[4] + o[5] for o in matches)]
                matches = [m for m in matches if m[3:] != (0, 0, 1)]  # which mummer never reports
            found.update(matches)
    return found


def rows_of(hits: Hits, lengths: np.ndarray) -> set[Match]:
    rows = hits.alignments.rows()
    found = {(r["query"], r["query_frame"], r["query_start"] if r["query_frame"] > 0 else
              int(lengths[r["query"]]) - r["query_end"], r["target"], r["target_start"], r["length"]) for r in rows}
    assert len(found) == len(rows)
    return found


@settings(max_examples=200, deadline=None)
@given(sequences, modes, strands, st.integers(1, 6), st.booleans(), st.sampled_from([10**6, 25, 1]))
def test_matches_are_those_of_the_definitions(sequences, mode, strand, length, acgt_only, volume):
    queries, targets = sequences
    options = {mode: True, "length": length, "acgt_only": acgt_only, **strand}
    batch = SequenceBatch.of(NUCLEOTIDE, queries)
    hits = run_pipeline("mum", batch, SequenceBatch.of(NUCLEOTIDE, targets), options, volume_residues=volume)
    frames = tuple(MatchOptions(**options).frames())
    assert rows_of(hits, batch.lengths) == brute_force(queries, targets, length, mode, frames, acgt_only)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=120))
def test_suffixes_are_sorted(symbols):
    text = np.array([*symbols, 9], np.uint8)
    suffixes = [bytes(text[i:].tolist()) for i in range(len(text))]
    assert suffix_array(text).tolist() == sorted(range(len(text)), key=suffixes.__getitem__)


def test_long_repeats_are_sorted():
    text = np.array([0] * 3000 + [1] + [0] * 3000 + [9], np.uint8)
    order = suffix_array(text)
    rank = np.empty(len(text), int)
    rank[order] = np.arange(len(text))
    assert sorted(order.tolist()) == list(range(len(text)))
    for left, right in zip(order[:-1].tolist(), order[1:].tolist(), strict=True):
        assert text[left] < text[right] or (text[left] == text[right] and rank[left + 1] < rank[right + 1])


@pytest.mark.parametrize("bucket", [1, 7, 64])
def test_backward_search_finds_every_place(bucket):
    rng = np.random.default_rng(bucket)
    batch = SequenceBatch.of(NUCLEOTIDE, ["".join(rng.choice(list("ACGT"), n)) for n in (200, 1, 90)])
    index = SuffixArray(SuffixArrayOptions(bucket=bucket)).run(Context(options=MatchOptions()), batch)
    text = index["text"].tobytes()
    for word in ("A", "CG", "TTT", "ACGT", "GGGGGGGG", batch.text(0)[50:80]):
        symbols = np.array([residues_in_order(NUCLEOTIDE).index(c) for c in word], np.uint8)
        low, high = backward_search(index, symbols, np.array([0]), len(word))
        found = sorted(index["suffixes"][low[0] : high[0]].tolist())
        assert found == [i for i in range(len(text)) if text.startswith(symbols.tobytes(), i)]


def test_symbols_sort_like_mummers_text():
    assert residues_in_order(NUCLEOTIDE) == "-ABCDGHKMNRSTVWY"
    text, starts = target_text(SequenceBatch.of(NUCLEOTIDE, ["ACN", "G"]), acgt_only=True)
    assert text.tolist() == [1, 3, 16, separator(NUCLEOTIDE), 5, end(NUCLEOTIDE)] and starts.tolist() == [0, 4]


@pytest.mark.parametrize("mode", MODES)
def test_results_do_not_depend_on_how_the_work_is_cut(mode):
    rng = np.random.default_rng(4)
    targets = ["".join(rng.choice(list("ACGT"), n)) for n in (300, 120, 40, 200)]
    queries = [targets[0][20:150] + "N" + reverse_complement(targets[3][10:90]),
               targets[1][5:100] + targets[0][200:240], "ACG", reverse_complement(targets[2])]
    batches = [SequenceBatch.of(NUCLEOTIDE, s) for s in (queries, [*targets, targets[1][30:80]])]
    check_pipeline("mum", *batches, {mode: True, "length": 12, "both": True}, least=4)


def test_a_match_is_an_alignment_of_equal_residues_without_statistics():
    query = SequenceBatch.of(NUCLEOTIDE, ["ttACGTTGCATTGACC"])
    hits = run_pipeline("mum", query, SequenceBatch.of(NUCLEOTIDE, ["G" * 9, "GGACGTTGCATTGAGG"]), {"length": 8})
    (row,) = hits.alignments.rows()
    place = [row[n] for n in ("target", "query_start", "query_end", "target_start", "target_end", "query_frame")]
    assert place == [1, 2, 14, 2, 14, 1]
    counts = [row[n] for n in ("score", "length", "identities", "positives", "mismatches", "gap_opens", "gaps")]
    assert counts == [12, 12, 12, 12, 0, 0, 0]
    assert row["path"] == [12 << 4 | MATCH]
    assert np.isnan([row["bit_score"], row["evalue"]]).all() and np.isnan(hits.evalue).all()


def test_queries_that_can_not_match_give_nothing():
    queries = SequenceBatch.of(NUCLEOTIDE, ["ACG", "", "NNNNNNNNNNNNNNNNNNNNNNNNNNNNNN"])
    targets = SequenceBatch.of(NUCLEOTIDE, ["", "ACGTTGCATT", ""])
    for length in (4, 10**9):
        assert not len(run_pipeline("mum", queries, targets, {"length": length, "both": True, "acgt_only": True}))


def test_hits_are_ranked_by_their_longest_match():
    targets = ["ACGTTGCATT", "GGGG", "TTACGTTGCATTGA"]
    hits = run_pipeline("mum", SequenceBatch.of(NUCLEOTIDE, ["ACGTTGCATTGA"]), SequenceBatch.of(NUCLEOTIDE, targets),
                        {"maxmatch": True, "length": 2})
    assert hits.target.tolist() == [2, 0] and hits.score.tolist() == [12, 10]
    assert hits.alignments.target.tolist() == sorted(hits.alignments.target.tolist(), key=[2, 0].index)


def test_proteins_match_residue_by_residue():
    queries = SequenceBatch.of(PROTEIN, ["MKVLITGAGSGLGRA", "mkvlXXX"])
    targets = SequenceBatch.of(PROTEIN, ["GGKVLITGAGSG", "WWMKVLXXXW"])
    hits = run_pipeline("mum-protein", queries, targets, {"length": 4})
    names = ("query", "target", "query_start", "target_start", "length")
    found = {tuple(row[name] for name in names) for row in hits.alignments.rows()}
    assert found == {(0, 0, 1, 2, 10), (0, 1, 0, 2, 4), (1, 1, 0, 2, 7)}


@pytest.mark.parametrize(("options", "message"), [
    ({"mum": True, "maxmatch": True}, "--mum and --maxmatch exclude each other"),
    ({"both": True, "reverse": True}, "exclude each other"), ({"length": 0}, "at least 1"),
], ids=str)
def test_contradictions_are_refused(options, message):
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGT"])
    with pytest.raises(OptionError, match=message):
        run_pipeline("mum", batch, batch, options)


def test_flags_of_the_writer_are_checked():
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGT"])
    report = MemoryReport(batch, batch, Hits.empty(), {"options": {}, "sequences": 1})
    with pytest.raises(UnknownNameError, match="unknown flag 'x' of output format 'mummer'"):
        MummerWriter().write(report, io.StringIO(), ["x"])
    with pytest.raises(OptionError, match="reverse strand"):
        MummerWriter().write(report, io.StringIO(), ["c"])


def test_lines_of_the_writer():
    references = {"one": "ACGTTGCANNNACGTTGCAT", "longer": "TTACGTTGCAGG"}
    queries = {"q1": "GGACGTTGCATT", "q2": "ACG", "q4": "CCTGCAACGTAA"}
    assert seqloom_lines(references, queries, {"mum": True, "length": 4, "both": True}, "L s") == """\
> q1  Len = 12
  one           12         3         9
acgttgcat
> q1 Reverse  Len = 12
> q2  Len = 3
> q2 Reverse  Len = 3
> q4  Len = 12
> q4 Reverse  Len = 12
  longer         1         1        12
ttacgttgcagg
"""
    lines = seqloom_lines(references, queries, {"maxmatch": True, "length": 4, "both": True}, "c")
    assert lines.split("> q1 Reverse\n")[1].split("> q2")[0] == """\
  longer         7        10         4
  one            5        10         4
  one           16        10         4
  longer         3         6         4
  one            1         6         4
  one           12         6         4
"""


def peer_inputs() -> dict[str, tuple[Mapping[str, str], Mapping[str, str], Mapping[str, object], str]]:
    """Five small searches: references, queries, options, flags of the output."""
    (human,), (orang,), (phage,) = (read_fasta(f"data/genomes/{name}.fasta")[1]
                                    for name in ("mito_human", "mito_orang", "lambda"))
    pieces = {f"p{n}": phage[n : n + 3000] if n % 2 else reverse_complement(phage[n : n + 3000])
              for n in range(0, 40_000, 6001)}
    repeats = "ACGTTG" * 40 + "TTAGGC" * 30
    unknown = human[:2000] + "N" * 50 + human[2000:4000].lower()
    return {
        "mitochondria": ({"orang": orang}, {"human": human}, {"mum": True, "length": 20, "both": True}, "c L"),
        "phage pieces": ({"lambda": phage}, pieces, {"maxmatch": True, "length": 12, "both": True}, "c F"),
        "repeats": ({"one": repeats, "other": repeats[30:200] + "AAC"}, {"q": repeats[7:120], "r": "TTAGGC" * 5},
                    {"maxmatch": True, "length": 15, "both": True}, "s"),
        "runs of N": ({"a": unknown, "b": "N" * 80}, {"q": human[1900:2000] + "N" * 40 + human[2000:2100]},
                      {"mumreference": True, "length": 20}, "L"),
        "short queries": ({"orang": orang}, {"q": human[:19], "r": human[300:320], "s": "A"},
                          {"mumreference": True, "length": 20, "both": True}, "F L"),
    }


@needs_shared
@needs_mummer
@pytest.mark.parametrize("name", ["mitochondria", "phage pieces", "repeats", "runs of N", "short queries"])
@pytest.mark.parametrize("acgt_only", [False, True], ids=["any residue", "acgt only"])
def test_lines_are_mummers(name, acgt_only, tmp_path):
    references, queries, options, flags = peer_inputs()[name]
    options = {**options, "acgt_only": acgt_only}
    ours = seqloom_lines(references, queries, options, flags)
    assert ours == mummer_lines(tmp_path, references, queries, options, flags)
    assert "\n  " in ours or name == "short queries"


@needs_mummer
def test_random_searches_print_mummers_lines(tmp_path):
    rng = np.random.default_rng(21)
    for _ in range(120):
        residues = list(rng.choice(["AC", "ACGT", "ACGTN", "ACGTacgtRYN", "ACGTACGTN-"]))

        def text(low: int, high: int, residues: list[str] = residues) -> str:
            return "".join(rng.choice(residues, rng.integers(low, high)))

        references = {f"{'x' * rng.integers(5)}{n}": text(1, 60) for n in range(rng.integers(1, 4))}
        given = list(references.values())
        queries = {}
        for n in range(rng.integers(1, 4)):
            piece = given[rng.integers(len(given))][rng.integers(20) :]
            piece = reverse_complement(piece) if rng.random() < 0.5 else piece
            queries[f"q{n}"] = text(1, 8) + piece + text(0, 8)
        strand = [{}, {"both": True}, {"reverse": True}][rng.integers(3)]
        options = {MODES[rng.integers(3)]: True, "length": int(rng.integers(2, 15)), **strand,
                   "acgt_only": bool(rng.random() < 0.4)}
        flags = " ".join(f for f in ("cFLs" if strand else "FLs") if rng.random() < 0.5)
        ours = seqloom_lines(references, queries, options, flags, volume_residues=int(rng.integers(1, 100)))
        assert ours == mummer_lines(tmp_path, references, queries, options, flags), (references, queries, options)


@pytest.mark.parametrize("name", sorted({s.name for s in seqloom_stages()}))
def test_stages_are_declared_whole(name):
    check_stage(name)
