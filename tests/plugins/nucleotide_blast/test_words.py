"""Word tables, scan and mini-extension: every word match is found, at any table width, and nothing else."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import Shape
from seqloom.plugins.nucleotide_blast import index_reference
from seqloom.plugins.nucleotide_blast.discontiguous_cpu import DiscontiguousWordsCpu
from seqloom.plugins.nucleotide_blast.discontiguous_reference import (
    TEMPLATE_WORDS,
    TEMPLATES,
    DiscontiguousOptions,
    DiscontiguousWordHits,
    DiscontiguousWords,
)
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideWordsCpu
from seqloom.plugins.nucleotide_blast.index_reference import (
    BASES,
    WORDS,
    NucleotideBases,
    NucleotideWords,
    compared_strands,
    table_width,
)
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, CHUNK_OVERLAP, chunks_of
from seqloom.plugins.nucleotide_blast.scoring import NucleotideBlastOptions
from seqloom.plugins.nucleotide_blast.seed_cpu import WordHitsCpu
from seqloom.plugins.nucleotide_blast.seed_reference import WordHits
from seqloom.plugins.nucleotide_blast.sort_reference import strand_diagonal

from tests.plugins.nucleotide_blast.sequences import batch, random_bases, reverse_complement


def seeds_of(queries: SequenceBatch, targets: SequenceBatch, options, words=NucleotideWords, hits=WordHits):
    context = Context(queries=queries, targets=targets, options=options)
    made = words().run(context, queries), NucleotideBases().run(context, targets)
    indexes = {index.kind: index for index in made}
    return hits().run(Context(queries=queries, targets=targets, options=options, indexes=indexes), None)


def matches(query: str, target: str, word: int, masked: set[int] = frozenset()) -> set[tuple[int, int, int]]:
    """(frame, query position, target position) of every equal word, by looking at all pairs."""
    found = set()
    for frame, strand in ((1, query), (-1, reverse_complement(query))):
        for i in range(len(query) - word + 1):
            forward = i if frame == 1 else len(query) - word - i
            if set(strand[i : i + word]) <= set("ACGT") and not masked & set(range(forward, forward + word)):
                bases = strand[i : i + word]
                found |= {(frame, forward, j) for j in range(len(target) - word + 1) if target.startswith(bases, j)}
    return found


def stretches(found: set[tuple[int, int, int]], word: int) -> set[tuple[int, int, int]]:
    """Runs of equal bases of at least a word: (frame, diagonal, start in the target)."""
    diagonals: dict[tuple[int, int], list[int]] = {}
    for frame, i, j in found:
        diagonals.setdefault((frame, j - i if frame == 1 else j + i), []).append(j)
    runs = set()
    for (frame, diagonal), starts in diagonals.items():
        last = None
        for j in sorted(starts):
            if last is None or j > last + 1:
                runs.add((frame, diagonal, j))
            last = j
    return runs


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([4, 7, 8, 11, 12]), st.sampled_from([None, 4, 6]))
def test_exactly_the_word_matches_are_found(seed, word, width):
    source = random.Random(seed)
    core = random_bases(source, 40)
    query = random_bases(source, 20) + core + "N" + core[:15] + "ACACACACAC"
    target = random_bases(source, 30) + core + "CACACACACACA" + reverse_complement(core[5:35]) + core[:20]
    queries, targets = batch(query), batch(target)
    with pytest.MonkeyPatch.context() as patch:
        if width and width <= word:
            patch.setattr(index_reference, "table_width", lambda *_: width)
        seeds = seeds_of(queries, targets, NucleotideBlastOptions(word_size=word))
    wanted = matches(query, target, word)
    found = set(zip(seeds.query_frame.tolist(), seeds.query_pos.tolist(), seeds.target_pos.tolist(), strict=True))
    assert found <= wanted
    assert {(f, d, j) for f, d, j in stretches(wanted, word)} <= stretches_covered(found, wanted, word)


def stretches_covered(found, wanted, word):
    """The runs of ``wanted`` that have a hit of ``found`` in them."""
    covered = set()
    for frame, diagonal, start in stretches(wanted, word):
        place = start
        while True:
            i = place - diagonal if frame == 1 else diagonal - place
            if (frame, i, place) not in wanted:
                break
            if (frame, i, place) in found:
                covered.add((frame, diagonal, start))
            place += 1
    return covered


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 30), st.integers(1, 20))
def test_masked_bases_do_not_seed(seed, start, length):
    source = random.Random(seed)
    query = random_bases(source, 60)
    queries = batch(query)
    masked = set(range(start, min(60, start + length)))
    soft = Intervals.of([(0, min(masked), max(masked) + 1)])
    queries = SequenceBatch(NUCLEOTIDE, queries.residues, queries.offsets, queries.ordinals, soft=soft)
    seeds = seeds_of(queries, batch("ACGT" + query + "GGT"), NucleotideBlastOptions(word_size=11))
    wanted = matches(query, "ACGT" + query + "GGT", 11, masked)
    found = set(zip(seeds.query_frame.tolist(), seeds.query_pos.tolist(), seeds.target_pos.tolist(), strict=True))
    assert found <= wanted
    assert bool(found) == bool(wanted)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([4, 11, 28]), st.sampled_from(["both", "plus", "minus"]))
def test_fast_index_is_that_of_the_reference(seed, word, strand):
    """Of queries from no bases on, with ambiguities and masked stretches wherever in eight bases they begin and end."""
    source = random.Random(seed)
    texts = [random_bases(source, source.choice([0, 1, 5, 8, 30, 90])) for _ in range(source.randint(1, 5))]
    texts = [text[: len(text) // 2] + source.choice(["", "N", "RYN"]) + text[len(text) // 2 :] for text in texts]
    queries = batch(*texts)
    stretches_of = [(number, *sorted(source.randint(0, len(text)) for _ in range(2)))
                    for number, text in enumerate(texts)]
    soft = Intervals.of([row for row in stretches_of if row[1] < row[2]])
    queries = SequenceBatch(NUCLEOTIDE, queries.residues, queries.offsets, queries.ordinals, soft=soft)
    kinds = ((NucleotideWords, NucleotideWordsCpu, NucleotideBlastOptions(word_size=word, strand=strand)),
             (DiscontiguousWords, DiscontiguousWordsCpu, DiscontiguousOptions(strand=strand)))
    for slow, fast, options in kinds:
        context = Context(queries=queries, options=options)
        wanted, found = slow().run(context, queries), fast().run(context, queries)
        for name, array in wanted.arrays.items():
            assert found[name].dtype == array.dtype and found[name].tolist() == array.tolist(), name


@pytest.mark.parametrize("hits", [WordHits, WordHitsCpu])
@pytest.mark.parametrize("word", [7, 11, 16])
def test_small_tables_read_two_bits_of_ambiguities(word, hits):
    """An ambiguity before a word may begin its hit, which is then moved on behind it; elsewhere there is no hit."""
    source = random.Random(word)
    text = random_bases(source, word)
    for code in "RYMKWSBDHVN":
        for base in "ACGT":
            seeds = seeds_of(batch(code + text), batch("ACG" + base + text), NucleotideBlastOptions(word_size=word),
                             hits=hits)
            same = int(NUCLEOTIDE.encode(code)[0]) & 3 == "ACGT".index(base)
            rows = [tuple(seeds.data[name].tolist()) for name in ("query_pos", "target_pos", "shift")]
            assert rows == [(1,), (4,), (int(same),)], (code, base)
            for at in range(1, word):
                torn = text[:at] + code + text[at + 1 :]
                whole = text[:at] + base + text[at + 1 :]
                assert not len(seeds_of(batch(torn), batch("ACGT" + whole), NucleotideBlastOptions(word_size=word),
                                        hits=hits))


def test_wider_tables_do_not() -> None:
    text = random_bases(random.Random(9), 12_100)
    context = Context(options=NucleotideBlastOptions())
    for queries, small in ((batch("N" + text[:500]), True), (batch("N" + text), False)):
        index = NucleotideWords().run(context, queries)
        codes, shut = compared_strands(index)
        assert (index["width"][0] <= 8, codes[0] == 2, shut[0]) == (small, small, small)
        assert (codes[1:-1] == index["strands"][1:-1]).all()


def test_reverse_strand_hits_lie_on_a_diagonal_of_their_strand():
    query = random_bases(random.Random(3), 50)
    seeds = seeds_of(batch(query), batch("ACG" + reverse_complement(query)), NucleotideBlastOptions())
    assert set(seeds.query_frame.tolist()) == {-1}
    assert len(set(strand_diagonal(seeds).tolist())) == 1


@pytest.mark.parametrize(("strand", "frames"), [("plus", {1}), ("minus", {-1}), ("both", {1, -1})])
def test_strand_option(strand, frames):
    query = random_bases(random.Random(4), 40)
    seeds = seeds_of(batch(query), batch(query + reverse_complement(query)), NucleotideBlastOptions(strand=strand))
    assert set(seeds.query_frame.tolist()) == frames


def test_width_follows_the_number_of_words():
    assert [table_width(11, n) for n in (0, 11_999, 12_000, 180_000)] == [8, 8, 10, 11]
    assert [table_width(28, n) for n in (8_499, 8_500, 300_000)] == [8, 11, 12]
    assert table_width(4, 10**6) == 4


def test_ambiguities_of_targets_are_searched_as_bases():
    context = Context(options=NucleotideBlastOptions())
    index = NucleotideBases().run(context, batch("ACGNNRY", "ACGT"))
    assert index.kind == BASES and (index["bases"] < 4).all() and len(index["bases"]) == 11


def test_long_targets_are_cut_into_overlapping_chunks():
    numbers, begins = chunks_of(np.array([5_000_000, 5_000_001, 0]), CHUNK, CHUNK_OVERLAP)
    assert numbers.tolist() == [0, 1, 1, 2] and begins.tolist() == [0, 0, 4_999_900, 0]


@pytest.mark.parametrize("kind", ["coding", "optimal", "coding_and_optimal"])
def test_template_words_are_found_and_nothing_else(kind):
    source = random.Random(5)
    query = random_bases(source, 80)
    target = random_bases(source, 10) + "".join(source.choice("ACGT") if n % 3 == 2 else c for n, c in enumerate(query))
    options = DiscontiguousOptions(template_type=kind)
    seeds = seeds_of(batch(query), batch(target), options, DiscontiguousWords, DiscontiguousWordHits)
    kinds = ["coding", "optimal"] if kind == "coding_and_optimal" else [kind]
    wanted = []
    for template in (TEMPLATES[11, 18, name] for name in kinds):
        places = [p for p, bit in enumerate(template) if bit == "1"]
        for frame, strand in ((1, query), (-1, reverse_complement(query))):
            for i in range(len(query) - 17):
                forward = i if frame == 1 else len(query) - 18 - i
                wanted += [
                    (frame, forward, j)
                    for j in range(len(target) - 17)
                    if all(strand[i + p] == target[j + p] for p in places)
                ]
    found = zip(seeds.query_frame.tolist(), seeds.query_pos.tolist(), seeds.target_pos.tolist(), strict=True)
    assert sorted(found) == sorted(wanted)
    assert set(seeds.length.tolist()) <= {18}


def test_templates_have_the_length_and_weight_of_their_name():
    for (weight, length, _), template in TEMPLATES.items():
        assert len(template) == length and template.count("1") == weight and template[0] == template[-1] == "1"


def test_empty_queries_have_no_words():
    index = NucleotideWords().run(Context(options=NucleotideBlastOptions()), batch("", "ACGT", "N" * 40))
    assert index.kind == WORDS and len(index["words"]) == 0 and index["word_offsets"].tolist() == [0, 0, 0, 0]
    assert index["strand_offsets"].tolist() == [0, 1, 10, 91]
    options = DiscontiguousOptions()
    assert DiscontiguousWords().run(Context(options=options), batch("")).kind == TEMPLATE_WORDS
    assert np.array_equal(index["width"], [8, 8, 8])


def test_how_many_words_there_can_be_stays_a_small_number_for_the_longest() -> None:
    counts = {size: WordHits().word_counts(Shape(1, 40, 40, 1, 40, 40, options=NucleotideBlastOptions(word_size=size)))
              for size in (11, 28, 2**31 - 1)}
    assert counts[11][2] == 4**11 < counts[28][2] == 4**28 < counts[2**31 - 1][2] < 2**63
