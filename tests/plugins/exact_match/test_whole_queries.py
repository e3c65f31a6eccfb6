"""Short queries found whole: every place, as plain text search finds them."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.errors import InputError, OptionError
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Shape
from seqloom.plugins.exact_match import whole_seed_cpu
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.strands_cpu import strand_of
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.testing import check_pipeline, run_pipeline

sequences = st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN"]).flatmap(
    lambda residues: st.tuples(st.lists(st.text(residues, max_size=12), min_size=1, max_size=5),
                              st.lists(st.text(residues, max_size=80), min_size=1, max_size=4)))
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


def reverse_complement(text: str) -> str:
    return NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(text)][::-1])


def places(word: str, text: str) -> list[int]:
    found, place = [], text.find(word)
    while place >= 0:
        found.append(place)
        place = text.find(word, place + 1)
    return found


def text_search(queries: list[str], targets: list[str], frames: tuple[int, ...], acgt_only: bool) -> list[tuple]:
    found = []
    for q, query in enumerate(queries):
        for frame in frames:
            word = query if frame > 0 else reverse_complement(query)
            if word and not (acgt_only and set(word) - set("ACGT")):
                found += [(q, frame, t, place) for t, target in enumerate(targets) for place in places(word, target)]
    return sorted(found)


def rows(hits) -> list[tuple]:
    return sorted((r["query"], r["query_frame"], r["target"], r["target_start"]) for r in hits.alignments.rows())


@settings(max_examples=150, deadline=None)
@given(sequences, strands, st.booleans(), st.sampled_from([10**6, 50, 1]), st.sampled_from([1, 3]),
       st.sampled_from([0, 10**6]))
def test_every_place_is_found(given_, strand, acgt_only, volume, threads, many):
    queries, targets = given_
    queries = [*queries, targets[0][3:20]]
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (queries, targets)]
    frames = {"both": (1, -1), "reverse": (-1,)}.get(next(iter(strand), ""), (1,))
    wanted = text_search(queries, targets, frames, acgt_only)
    for backend in ("reference", "cpu"):
        with patch.object(whole_seed_cpu, "_MANY", many):  # what is left is compared with the text, or looked up
            hits = run_pipeline("exact", *batches, {"acgt_only": acgt_only, **strand}, backend=backend, threads=threads,
                                volume_residues=volume)
        assert rows(hits) == wanted


@pytest.mark.parametrize("many", [0, 10**6], ids=["by the text", "by the index alone"])
def test_reads_are_found_however_the_work_is_cut(many, monkeypatch):
    monkeypatch.setattr(whole_seed_cpu, "_MANY", many)
    rng = np.random.default_rng(3)
    genome = "".join(rng.choice(list("ACGT"), 60_000))
    targets = [genome, genome[500:900] * 2 + "N" * 9, genome[::-1]]
    places = rng.integers(0, 59_900, 400)
    reads = [genome[p : p + 100] if p % 2 else reverse_complement(genome[p : p + 60]) for p in places]
    reads[7], reads[9] = reads[7][:50] + "N" + reads[7][51:], ""
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (reads, targets)]
    hits = check_pipeline("exact", *batches, {"both": True}, backends=("cpu",), least=300)
    assert rows(hits) == text_search(reads, targets, (1, -1), False)
    [row] = [r for r in hits.alignments.rows() if r["query"] == 0][:1]
    assert (row["length"], row["identities"], row["query_start"]) == (len(reads[0]), len(reads[0]), 0)


def test_proteins_are_found():
    batches = [SequenceBatch.of(PROTEIN, texts) for texts in (["GAG", "MKX", "W"], ["MKVLITGAGSGAG", "AAMKXX"])]
    for backend in ("reference", "cpu"):
        assert rows(run_pipeline("exact-protein", *batches, backend=backend)) == [(0, 1, 0, 6), (0, 1, 0, 10),
                                                                                   (1, 1, 1, 2)]


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_queries_that_are_too_long_are_refused(backend):
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGT", "ACGTACGTACG"], ["short", "long"])
    with pytest.raises(InputError,
                       match=r"query .long. has 11 residues and at most 10 .* raise seed\.queries\.longest"):
        run_pipeline("exact", batch, batch, settings=["seed.queries.longest=10"], backend=backend)
    with pytest.raises(OptionError, match="exclude each other"):
        run_pipeline("exact", batch, batch, {"both": True, "reverse": True}, backend=backend)


@pytest.mark.parametrize(("memory", "read"), [(None, True), (1 << 30, True), (10_000, False)])
def test_the_text_is_read_as_soon_as_many_batches_have_been_looked_up(memory, read, monkeypatch):
    monkeypatch.setattr(whole_seed_cpu, "_MANY", 100)
    batch, texts = SequenceBatch.of(NUCLEOTIDE, ["ACGTTGCAACGGTATCCGATTACA" * 30]), []
    index = FmIndexCpu().run(Context(), batch)
    for n in range(8):
        queries = SequenceBatch.of(NUCLEOTIDE, [batch.text(0)[n : n + 20], "A" * 20])
        context = Context(queries=queries, targets=batch, indexes={index.kind: index}, memory=memory)
        strands = [strand_of(queries, 1, False)]
        texts.append(len(whole_seed_cpu.text_for(index, context, len(strands), batch.total_residues + 2)[0]))
    assert [bool(text) for text in texts] == [read and 40 * (n + 1) >= 100 for n in range(8)]
    shape = Shape(2, 40, 20, 1, batch.total_residues, batch.total_residues, memory=memory)
    assert (WholeQueriesCpu().footprint(shape).host > 2 * batch.total_residues) == read
