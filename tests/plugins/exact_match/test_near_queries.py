"""Queries with a few other residues: every place, as the obvious scan finds them, and as bowtie does."""

import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import OptionError
from seqloom.core.records import MATCH, MISMATCH
from seqloom.core.sequences import SequenceBatch
from seqloom.testing import assert_same_hits, check_pipeline, run_pipeline

STAGES = ("seed.queries=near-queries", "extend.matches=near-matches")
sequences = st.sampled_from(["A", "AC", "ACGT", "ACGTN", "ACGTRYN"]).flatmap(
    lambda residues: st.tuples(st.lists(st.text(residues, max_size=14), min_size=1, max_size=5),
                               st.lists(st.text(residues, max_size=80), min_size=1, max_size=4)))
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


def reverse_complement(text: str) -> str:
    return NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(text)][::-1])


def scan(queries: list[str], targets: list[str], frames: tuple[int, ...], acgt_only: bool, most: int) -> list[tuple]:
    found = []
    for q, query in enumerate(queries):
        for frame in frames:
            word = query if frame > 0 else reverse_complement(query)
            for t, target in enumerate(targets):
                for place in range(len(target) - len(word) + 1 if word else 0):
                    equal = [a == b and not (acgt_only and a not in "ACGT")
                             for a, b in zip(word, target[place:], strict=False)]
                    if equal.count(False) <= most:
                        found.append((q, frame, t, place, "".join("=X"[not e] for e in equal)))
    return sorted(found)


def rows(hits) -> list[tuple]:
    found = []
    for row in hits.alignments.rows():
        path = "".join({MATCH: "=", MISMATCH: "X"}[item & 15] * (item >> 4) for item in row["path"])
        counts = row["identities"], row["mismatches"], row["score"], row["length"]
        assert counts == (path.count("="), path.count("X"), path.count("="), len(path))
        found.append((row["query"], row["query_frame"], row["target"], row["target_start"], path))
    return sorted(found)


@settings(max_examples=150, deadline=None)
@given(sequences, strands, st.booleans(), st.integers(0, 3), st.sampled_from([10**6, 50, 1]), st.sampled_from([1, 3]))
def test_every_place_is_found(given_, strand, acgt_only, most, volume, threads):
    queries, targets = given_
    queries = [*queries, targets[0][3:20]]
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (queries, targets)]
    frames = {"both": (1, -1), "reverse": (-1,)}.get(next(iter(strand), ""), (1,))
    wanted = scan(queries, targets, frames, acgt_only, most)
    found = [run_pipeline("exact", *batches, {"acgt_only": acgt_only, **strand}, stages=STAGES, backend=backend,
                          settings=[f"seed.queries.mismatches={most}"], threads=threads, volume_residues=volume)
             for backend in ("reference", "cpu")]
    assert rows(found[0]) == rows(found[1]) == wanted
    assert_same_hits(*found)


def changed_reads(rng: np.random.Generator, genome: str, count: int, length: int) -> list[str]:
    reads = []
    for place in rng.integers(0, len(genome) - length, count):
        read = list(genome[place : place + length])
        for at in rng.integers(0, length, int(rng.integers(0, 5))):
            read[at] = "ACGT"[int(rng.integers(4))]
        reads.append("".join(read) if place % 2 else reverse_complement("".join(read)))
    return reads


def test_rows_do_not_depend_on_how_the_work_is_cut():
    rng = np.random.default_rng(5)
    genome = "".join(rng.choice(list("ACGT"), 9000))
    batches = [SequenceBatch.of(NUCLEOTIDE, texts) for texts in (
        changed_reads(rng, genome, 200, 40), [genome, genome[500:900] * 2 + "N" * 9, genome[::-1]])]
    check_pipeline("exact", *batches, {"both": True}, stages=STAGES, settings=["seed.queries.mismatches=3"],
                   backends=("cpu",), least=120)


def test_without_mismatches_places_are_those_of_whole_queries():
    rng = np.random.default_rng(6)
    batches = [SequenceBatch.of(PROTEIN, texts) for texts in (["GAG", "MKX", "W"], ["MKVLITGAGSGAG", "AAMKXX"])]
    for backend in ("reference", "cpu"):
        found = run_pipeline("exact-protein", *batches, stages=STAGES, settings=["seed.queries.mismatches=0"],
                             backend=backend)
        assert_same_hits(run_pipeline("exact-protein", *batches), found)
    with pytest.raises(OptionError, match="mismatches"):
        run_pipeline("exact", *[SequenceBatch.of(NUCLEOTIDE, ["".join(rng.choice(list("ACGT"), 9))])] * 2,
                     stages=STAGES, settings=["seed.queries.mismatches=4"])


@pytest.mark.skipif(shutil.which("bowtie") is None, reason="bowtie is not installed")
@pytest.mark.parametrize("most", range(4))
def test_places_are_those_of_bowtie(tmp_path, most):
    rng = np.random.default_rng(40 + most)
    genome = "".join(rng.choice(list("ACGT"), 40_000))
    targets, reads = [genome, genome[700:1900]], changed_reads(rng, genome, 500, 36)
    (tmp_path / "genome.fa").write_text("".join(f">{n}\n{text}\n" for n, text in enumerate(targets)))
    (tmp_path / "reads.fa").write_text("".join(f">{n}\n{text}\n" for n, text in enumerate(reads)))
    subprocess.run(["bowtie-build", "-q", "genome.fa", "genome"], cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run(["bowtie", "-v", str(most), "-a", "-f", "-x", "genome", "reads.fa"], cwd=tmp_path, check=True,
                          capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    wanted = sorted((int(line[0]), 1 if line[1] == "+" else -1, int(line[2]), int(line[3])) for line in lines)
    hits = run_pipeline("exact", *(SequenceBatch.of(NUCLEOTIDE, texts) for texts in (reads, targets)), {"both": True},
                        stages=STAGES, settings=[f"seed.queries.mismatches={most}"], backend="cpu")
    assert [row[:4] for row in rows(hits)] == wanted and len(wanted) > 100
