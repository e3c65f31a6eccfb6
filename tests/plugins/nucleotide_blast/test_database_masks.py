"""Masks of databases: pieces of targets against plain Python, back ends against each other, rows against blastn."""

import io
import os
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import seqloom
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.errors import Cancelled, InputError, OptionError, ResumeError
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.nucleotide_blast import pieces
from seqloom.plugins.nucleotide_blast.pieces import GROUP, TargetPieces, hard_pieces, soft_pieces
from seqloom.plugins.nucleotide_blast.scoring import SMALLEST_WORD
from seqloom.searches import resume

from tests.plugins.nucleotide_blast.sequences import batch, random_bases, relative, reverse_complement
from tests.plugins.nucleotide_blast.test_kernels import OPTIONS, PIPELINES, chunked_modules, compare, related
from tests.stopping import StopAtPart

KINDS = ("soft", "hard")


def drawn(source: random.Random, lengths: list[int]) -> Intervals:
    """Stretches of any lengths that don't touch, of some sequences."""
    rows = []
    for sequence, length in enumerate(lengths):
        place = source.choice((0, 0, 1, 3))
        while place < length and source.random() < 0.8:
            end = min(length, place + source.choice((1, 1, 2, 5, 30)))
            rows.append((sequence, place, end))
            place = end + source.choice((1, 2, 3, 4, 12, 40, 90))
    return Intervals.of(rows)


def masked(targets: SequenceBatch, kind: str, stretches: Intervals) -> SequenceBatch:
    none = Intervals.empty()
    return targets.masked(stretches, none) if kind == "soft" else targets.masked(none, stretches)


def open_runs(flags: list[bool], first: int) -> list[tuple[int, int]]:
    """Runs of True that can hold a word; places count from ``first``."""
    runs, begin = [], None
    for place, flag in enumerate([*flags, False]):
        if flag and begin is None:
            begin = place
        elif not flag and begin is not None:
            runs += [(first + begin, first + place)] if place - begin >= SMALLEST_WORD else []
            begin = None
    return runs


def expected(targets: SequenceBatch, kind: str, chunk: int, overlap: int) -> list[tuple]:
    """Target, begin in it, places of the volume and open stretches of each piece, base by base."""
    hidden = (targets.soft if kind == "soft" else targets.hard).mask(targets.offsets)
    rows = []
    for target, (low, high) in enumerate(zip(targets.offsets[:-1].tolist(), targets.offsets[1:].tolist())):
        whole = open_runs([not flag for flag in hidden[low:high]], low)
        wholes = [(low, high)] if kind == "soft" else [(first - (first - low) % GROUP, last) for first, last in whole]
        for begin, end in wholes:
            while True:
                last = min(begin + chunk, end)
                flags = [not hidden[place] for place in range(begin, last)]
                rows.append((target, begin - low, begin, last, open_runs(flags, begin)))
                if begin + chunk - overlap >= end - overlap:
                    break
                begin += chunk - overlap
    return rows


def rows_of(found: TargetPieces) -> list[tuple]:
    spans, opens = found.spans.tolist(), [tuple(row) for row in found.opens.tolist()]
    return [(target, begin, *spans[number], opens[found.bounds[number] : found.bounds[number + 1]])
            for number, (target, begin) in enumerate(zip(found.targets.tolist(), found.begins.tolist()))]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(KINDS))
def test_pieces_are_what_a_mask_leaves(seed, kind):
    source = random.Random(seed)
    lengths = [source.choice((0, 3, 20, 90, 150)) for _ in range(source.randint(0, 5))]
    targets = masked(batch(*(random_bases(source, length) for length in lengths)), kind, drawn(source, lengths))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "CHUNK", 60)
        patch.setattr(pieces, "CHUNK_OVERLAP", 12)
        found = (soft_pieces if kind == "soft" else hard_pieces)(targets)
        wanted = expected(targets, kind, 60, 12)
    # What is shorter than a word at the end of a chunk is there for the overlap, and never used.
    assert [row[:4] for row in rows_of(found)] == [row[:4] for row in wanted]
    for ours, plain in zip(rows_of(found), wanted, strict=True):
        assert [run for run in ours[4] if run[1] - run[0] >= SMALLEST_WORD] == plain[4]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pipeline", PIPELINES)
@settings(max_examples=8, deadline=None)
@given(st.data(), st.integers(0, 10**9))
def test_back_ends_agree(kind, pipeline, data, seed):
    source = random.Random(seed)
    queries, targets = related(source)
    targets = masked(targets, kind, drawn(source, targets.lengths.tolist()))
    options = {**data.draw(st.sampled_from(OPTIONS[pipeline])), f"db_{kind}_mask": "drawn"}
    compare(pipeline, queries, targets, options)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stages", [(), ("index.words=small-word-table",), ("index.words=megablast-word-table",)])
def test_back_ends_agree_on_chunks_and_with_other_tables(kind, stages, monkeypatch):
    for module in chunked_modules():
        monkeypatch.setattr(module, "CHUNK", 400)
    source = random.Random(8)
    text = random_bases(source, 900)
    targets = batch(relative(source, text * 2, 0.02), text[300:700])
    targets = masked(targets, kind, drawn(source, targets.lengths.tolist()))
    options = {f"db_{kind}_mask": "drawn", "word_size": 11}
    counts = compare("blastn", batch(text, text[350:500]), targets, options, stages)
    assert counts["extend.gapped"] > 3


# ---- the peer

def written(run: seqloom.Run, outfmt: str) -> str:
    stream = io.StringIO()
    run.write(stream, outfmt)
    return stream.getvalue()


def make_database(folder: Path, masks: list[tuple[int, int, int]]) -> None:
    """From ``t.fa`` and masks, as stretches of its sequences, t.duckdb and the mask file."""
    stretches = ",\n".join(f"int {{ from {start}, to {end - 1}, id local id {target + 1} }}"
                           for target, start, end in masks)
    (folder / "mask").write_text('Blast-db-mask-info ::= {\nalgo-id 2,\nalgo-program dust,\nalgo-options "",\n'
                                 f"masks {{\nmasks {{\n{stretches}\n}},\nmore FALSE\n}}\n}}\n")
    seqloom.Database.create(folder / "t.duckdb", folder / "t.fa", masks={"own": folder / "mask"}).close()


OTHER = dict(zip("ACGT", "CGTA"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Targets with masks, and queries with words beside and across the ends of these, and with what lies around."""
    folder, source = tmp_path_factory.mktemp("masks"), random.Random(11)
    texts = [random_bases(source, length) for length in (400, 397, 260, 200)]
    masks = [(0, 100, 120), (0, 201, 203), (0, 290, 300), (1, 0, 37), (1, 150, 151), (1, 200, 250), (1, 253, 254),
             (2, 30, 200), (2, 240, 260)]
    queries = []
    for target, start, end in masks:
        text = texts[target]
        for first, last in ((start - 28, start), (start - 27, start + 1), (end, end + 28), (end - 1, end + 27)):
            if first >= 0 and last <= len(text):
                # Other bases on either side, so that the word is all that is equal.
                sides = ["".join(OTHER[base] for base in text[max(0, first - 20) : first]),
                         "".join(OTHER[base] for base in text[last : last + 20])]
                word = sides[0] + text[first:last] + sides[1]
                queries.append(reverse_complement(word) if len(queries) % 3 == 0 else word)
        queries.append(relative(source, text[max(0, start - 60) : end + 60], 0.03))
    queries.append(texts[3])
    (folder / "t.fa").write_text("".join(f">t{number}\n{text}\n" for number, text in enumerate(texts)))
    (folder / "q.fa").write_text("".join(f">q{number}\n{text}\n" for number, text in enumerate(queries)))
    make_database(folder, masks)
    return folder


SEARCHES = [("megablast", {}), ("megablast", {"word_size": 16, "perc_identity": 97.0}), ("blastn", {}),
            ("blastn", {"ungapped": True, "evalue": 1000.0}), ("blastn", {"window_size": 40, "off_diagonal_range": 4}),
            ("dc-megablast", {}), ("dc-megablast", {"window_size": 0}), ("blastn-short", {"evalue": 100.0}),
            ("megablast", {"word_size": 12, "culling_limit": 1})]


@pytest.fixture(scope="module")
def repeats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Targets of repeats in which single bases are masked, and queries of the same repeats."""
    folder, source = tmp_path_factory.mktemp("repeats"), random.Random(12)
    texts, masks, queries = [], [], []
    for target in range(12):
        units = [random_bases(source, source.choice((6, 17, 40))) for _ in range(2)]
        text, query = (relative(source, "".join(source.choices(units, k=12)), 0.1) for _ in range(2))
        texts.append(text)
        queries.append(query)
        place = 10
        while place < len(text) - 10:
            masks.append((target, place, place + 1))
            place += source.randint(9, 40)
    (folder / "t.fa").write_text("".join(f">t{number}\n{text}\n" for number, text in enumerate(texts)))
    (folder / "q.fa").write_text("".join(f">q{number}\n{text}\n" for number, text in enumerate(queries)))
    make_database(folder, masks)
    return folder


needs_blastn = pytest.mark.skipif(not (shutil.which("blastn") and shutil.which("makeblastdb")), reason="no blastn here")


@needs_blastn
@pytest.mark.parametrize("outfmt", ["6", "6 std btop nident positive"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("task", "options"), SEARCHES)
def test_rows_are_blastns(folder, task, options, kind, outfmt):
    assert_rows_are_blastns(folder, task, options, kind, outfmt)


@needs_blastn
@pytest.mark.parametrize(("task", "options"), [
    ("blastn", {"word_size": 5, "evalue": 100.0}), ("megablast", {"word_size": 11, "evalue": 100.0}),
    ("blastn", {"word_size": 7, "ungapped": True, "evalue": 100.0}),
    ("blastn", {"word_size": 5, "evalue": 100.0, "subject_besthit": True}),
    ("blastn", {"word_size": 4, "ungapped": True, "evalue": 100.0, "subject_besthit": True})])
def test_rows_are_blastns_where_alignments_meet_at_a_masked_base(repeats, task, options):
    assert_rows_are_blastns(repeats, task, options, "hard", "6 std btop nident positive")


def assert_rows_are_blastns(folder: Path, task: str, options: dict, kind: str, outfmt: str) -> None:
    if not (folder / "db.nsq").exists():
        subprocess.run(["makeblastdb", "-in", "t.fa", "-dbtype", "nucl", "-out", "db", "-mask_data", "mask", "-mask_id",
                        "own", "-mask_desc", "own"], cwd=folder, check=True, capture_output=True)
    words = [word for name, value in options.items()
             for word in ([f"-{name}"] if value is True else [f"-{name}", str(value)])]
    # Each query is a batch by itself: the peer's table of words is of all queries of a batch together.
    peer = subprocess.run(
        ["blastn", "-task", task, "-query", "q.fa", "-db", "db", "-dust", "no", f"-db_{kind}_mask", "own", "-outfmt",
         outfmt, *words],
        cwd=folder, env={**os.environ, "BATCH_SIZE": "1"}, check=True, capture_output=True, text=True).stdout
    for backend in ("reference", "cpu"):
        run = seqloom.search(task, folder / "q.fa", folder / "t.duckdb", store=False, backend=backend, task=task,
                             dust="no", **{f"db_{kind}_mask": "own"}, **options)
        assert written(run, outfmt) == peer, backend
    assert peer.count("\n") > 5


def test_what_masks_hide(folder):
    """Words in masked bases seed nothing; under a soft mask alignments go through them, under a hard one they end."""
    text = (folder / "t.fa").read_text().split("\n")[5]
    found = {}
    for mask in ({}, {"db_soft_mask": "own"}, {"db_hard_mask": "own"}):
        run = seqloom.search("megablast", {"across": text[:240], "inside": text[180:230]}, folder / "t.duckdb",
                             store=False, word_size=16, dust="no", **mask)
        rows = run.alignments.to_pylist()
        found[tuple(mask)] = [(row["qseqid"], row["sstart"], row["send"]) for row in rows]
    assert found[()] == [("across", 1, 240), ("inside", 181, 230)]
    assert found["db_soft_mask",] == [("across", 1, 240), ("inside", 181, 230)]  # what isn't masked seeds
    assert found["db_hard_mask",] == [("across", 201, 240), ("across", 1, 30), ("inside", 201, 230)]


def test_masks_that_are_not_there(folder):
    query = {"q": "ACGT" * 10}
    with pytest.raises(InputError, match=r"t\.duckdb has no mask 'dust'; its masks are: own"):
        seqloom.search("megablast", query, folder / "t.duckdb", store=False, db_soft_mask="dust")
    with pytest.raises(InputError, match=r"t\.fa has no mask 'own'; masks come into a database when it is made"):
        seqloom.search("megablast", query, folder / "t.fa", store=False, db_hard_mask="own")
    with pytest.raises(InputError, match=r"t\.fa has no mask 'own'"):
        seqloom.search("blastn", query, folder / "t.duckdb", folder / "t.fa", store=False, db_hard_mask="own")
    with pytest.raises(OptionError, match="--db-soft-mask and --db-hard-mask exclude each other"):
        seqloom.search("blastn", query, folder / "t.duckdb", store=False, db_soft_mask="own", db_hard_mask="own")
    with pytest.raises(OptionError, match="--subject-loc and --db-hard-mask exclude each other"):
        seqloom.search("blastn", query, folder / "t.duckdb", store=False, db_hard_mask="own", subject_loc="3-90")


@pytest.mark.parametrize("kind", KINDS)
def test_rows_do_not_depend_on_volumes_or_batches(folder, kind):
    options = {"word_size": 11, f"db_{kind}_mask": "own", "dust": "no", "store": False}
    wanted = seqloom.search("megablast", folder / "q.fa", folder / "t.duckdb", **options).alignments.to_pylist()
    assert len(wanted) > 20
    for cut in ({"volume_residues": 300}, {"batch_queries": 3, "threads": 2}):
        rows = seqloom.search("megablast", folder / "q.fa", folder / "t.duckdb", **options, **cut)
        assert rows.alignments.to_pylist() == wanted, cut
    # Of a pick, and of two databases, the search space is another one.
    picked = seqloom.search("megablast", folder / "q.fa", folder / "t.duckdb", target_ids=["t1", "t2"], **options)
    assert places(picked.alignments.to_pylist()) == places([row for row in wanted if row["sseqid"] in ("t1", "t2")])
    if not (folder / "u.duckdb").exists():
        (folder / "u.fa").write_text(">u\n" + "ACGT" * 9 + "\n")
        seqloom.Database.create(folder / "u.duckdb", folder / "u.fa", masks={"own": "lower-case"}).close()
    both = seqloom.search("megablast", folder / "q.fa", folder / "u.duckdb", folder / "t.duckdb", **options)
    assert places(both.alignments.to_pylist()) == places(wanted)


def places(rows: list[dict]) -> list[tuple]:
    return [tuple(row[name] for name in ("qseqid", "sseqid", "qstart", "qend", "sstart", "send", "score"))
            for row in rows]


def test_letters_in_lower_case_of_alignments(folder):
    """Pairwise text shows masked bases of targets in lower case."""
    text = (folder / "t.fa").read_text().split("\n")[1]
    for query, shown in ((text[80:130], text[80:100] + text[100:120].lower() + text[120:130]),
                         (reverse_complement(text[110:160]),
                          reverse_complement(text[120:160]) + reverse_complement(text[110:120]).lower())):
        run = seqloom.search("blastn", {"q": query}, folder / "t.duckdb", store=False, task="blastn", dust="no",
                             db_soft_mask="own")
        lines = [line for line in written(run, "0").splitlines() if line.startswith("Sbjct")]
        assert [line.split()[2] for line in lines] == [shown]


def test_a_run_goes_on_with_the_same_mask_alone(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("t.fa", "q.fa", "mask"):
        shutil.copy(folder / name, name)
    (tmp_path / "other").write_text(">t2\n30 - 60\n")
    database = tmp_path / "t.duckdb"
    seqloom.Database.create(database, "t.fa", masks={"own": "mask"}).close()
    options = {"word_size": 11, "db_soft_mask": "own", "dust": "no"}
    wanted = seqloom.search("megablast", "q.fa", database, store=False, **options).alignments
    with pytest.raises(Cancelled):
        seqloom.search("megablast", "q.fa", database, batch_queries=4, progress=StopAtPart(3), **options)
    kept = database.read_bytes()
    database.unlink()
    seqloom.Database.create(database, "t.fa", masks={"own": "other"}).close()
    with pytest.raises(ResumeError, match="the mask that its databases had has changed"):
        resume("last")
    database.write_bytes(kept)
    assert resume("last").alignments.equals(wanted)


def test_stretches_are_united():
    found = Intervals.of([(0, 5, 9), (0, 7, 8), (0, 9, 12), (0, 13, 15), (2, 0, 3), (2, 1, 9)]).united()
    assert found.rows() == [(0, 5, 12), (0, 13, 15), (2, 0, 9)]
    assert Intervals.empty().united().rows() == [] and found.start.dtype == np.int32
