"""Masks of repeats: against blastn itself, and what can be seen without it."""

import random
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import seqloom
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.engine.location import cut
from seqloom.core.engine.masking import Maskers, Searching, left_by_maskers
from seqloom.core.engine.planning import Settings
from seqloom.core.engine.runner import Runner
from seqloom.core.errors import Cancelled, InputError, OptionError, ResumeError
from seqloom.core.pipeline import compose
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.installed import registry
from seqloom.masking import learn, mask
from seqloom.opening import whole
from seqloom.plugins.nucleotide_blast.repeats import SEARCH, joined
from seqloom.searches import resume

from tests.plugins.nucleotide_blast.sequences import random_bases, relative, reverse_complement
from tests.stopping import StopAtPart


def draw(folder: Path, seed: int) -> None:
    """Repeats, and queries with pieces of them, near to each other and to lower case, on either strand."""
    source = random.Random(seed)
    units = [random_bases(source, source.randint(40, 400)) for _ in range(5)]
    (folder / "reps.fa").write_text("".join(f">r{n}\n{text}\n" for n, text in enumerate(units)))
    texts = []
    for number in range(6):
        text = random_bases(source, source.randint(0, 200))
        for _ in range(0 if number == 3 else source.randint(1, 9)):
            begin = source.randrange(30)
            piece = relative(source, source.choice(units)[begin : begin + source.randint(26, 300)],
                             source.choice((0.0, 0.03, 0.1)))
            text += reverse_complement(piece) if source.random() < 0.5 else piece
            text += random_bases(source, source.randint(0, 8))
            text += source.choice(("", "a" * 30, random_bases(source, 20).lower(), "N" * 12))
            text += random_bases(source, source.choice((0, 3, 100)))
        texts.append(f">q{number}\n{text + random_bases(source, 30)}\n")
    (folder / "q.fa").write_text("".join(texts))


def masks(folder: Path, **options: object) -> list[list[tuple[int, int]]]:
    """First and last base of every stretch that a megablast search masks, by query."""
    found = registry()
    plan = compose(found, found.pipeline("megablast"), {"filtering_db": str(folder / "reps.fa"), **options})
    batch = cut(loaded(folder / "q.fa"), plan.family.location(plan.options))
    masked = Maskers(plan, found, Searching(Runner, whole)).masked(batch)
    first = (plan.family.location(plan.options) or (0,))[0]
    kept = masked.soft if options.get("soft_masking", True) else masked.hard
    runs = Intervals.from_mask(kept.mask(masked.offsets), masked.offsets)
    return [[(start + first, end + first - 1) for start, end in runs.of_sequence(n).tolist()]
            for n in range(len(batch))]


def loaded(path: Path) -> SequenceBatch:
    from seqloom.inputs import load_sequences

    return load_sequences(str(path), registry(), NUCLEOTIDE, queries=True)


def peer_masks(folder: Path, *words: str) -> list[list[tuple[int, int]]]:
    """The same as blastn keeps them in its archive."""
    queries = re.findall(r">(\S+)\n(\S+)", (folder / "q.fa").read_text())
    found = []
    for name, text in queries:  # one by one: the width of words is chosen for all queries that are searched together
        (folder / "one.fa").write_text(f">{name}\n{text}\n")
        said = subprocess.run(
            ["blastn", "-task", "megablast", "-query", "one.fa", "-subject", "reps.fa", "-filtering_db", "reps",
             "-outfmt", "11", *words], cwd=folder, check=True, capture_output=True, text=True).stdout
        begin = said.find("masks {")
        part = said[begin : said.find("results {", begin)] if begin >= 0 else ""
        rows = sorted((int(a), int(b)) for a, b in re.findall(r"from (\d+),\s*to (\d+)", part))
        whole: list[tuple[int, int]] = []
        for start, end in rows:
            if whole and start <= whole[-1][1] + 1:
                whole[-1] = whole[-1][0], max(end, whole[-1][1])
            else:
                whole.append((start, end))
        found.append(whole)
    return found


CASES = {
    "alone": {"dust": "no"},
    "with dust": {},
    "with lower case": {"lcase_masking": True, "dust": "no"},
    "with both, hard": {"lcase_masking": True, "soft_masking": False},
    "of the plus strand": {"strand": "plus", "dust": "no"},
    "of the minus strand": {"strand": "minus", "dust": "no"},
    "of a part": {"query_loc": "20-400", "dust": "no"},
}


@pytest.mark.skipif(not (shutil.which("blastn") and shutil.which("makeblastdb")), reason="no blastn here")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CASES)
def test_masks_are_those_of_blastn(name: str, seed: int, tmp_path: Path) -> None:
    draw(tmp_path, seed)
    subprocess.run(["makeblastdb", "-in", "reps.fa", "-dbtype", "nucl", "-out", "reps"], cwd=tmp_path, check=True,
                   capture_output=True)
    options = CASES[name]
    words = [word for key, value in options.items()
             for word in ([f"-{key}"] if value is True else [f"-{key}", str(value).lower()])]
    found = masks(tmp_path, **options)
    assert found == peer_masks(tmp_path, *words)
    assert any(found)


@pytest.mark.skipif(not (shutil.which("blastn") and shutil.which("makeblastdb")), reason="no blastn here")
def test_rows_and_reports_are_those_of_blastn(tmp_path: Path) -> None:
    draw(tmp_path, 7)
    text = (tmp_path / "q.fa").read_text().split(">q1\n")[1].split("\n")[0]
    (tmp_path / "t.fa").write_text(f">t\n{text}\n")
    (tmp_path / "one.fa").write_text(f">q1\n{text}\n")
    for source, name in (("reps.fa", "reps"), ("t.fa", "t")):
        subprocess.run(["makeblastdb", "-in", source, "-dbtype", "nucl", "-out", name], cwd=tmp_path, check=True,
                       capture_output=True)
    for form in ("6 std", "5"):
        wanted = subprocess.run(["blastn", "-task", "blastn", "-query", "one.fa", "-db", "t", "-outfmt", form,
                                 "-filtering_db", "reps", "-max_hsps", "5"], cwd=tmp_path, check=True,
                                capture_output=True, text=True).stdout
        run = seqloom.search("blastn", tmp_path / "one.fa", tmp_path / "t.fa", store=False, task="blastn",
                             filtering_db=str(tmp_path / "reps.fa"), max_hsps=5)
        run.write(tmp_path / "rows", form)
        found = (tmp_path / "rows").read_text()
        if form == "5":
            pick = r"<(Parameters_filter)>(.*?)</|<(Hsp_(?:qseq|midline|score|query-from))>(.*?)</"
            wanted = str(re.findall(pick, wanted)).replace("-d reps;", f"-d {tmp_path / 'reps.fa'};")
            found = str(re.findall(pick, found))
        assert found == wanted and found


def test_stretches_are_what_the_search_finds(tmp_path: Path) -> None:
    """Joined with each other and with others where little is open between them, and only where there is any."""
    draw(tmp_path, 11)
    run = seqloom.search("blastn", tmp_path / "q.fa", tmp_path / "reps.fa", store=False, task="blastn", **SEARCH)
    rows = run.alignments.to_pylist()
    found: dict[str, set[int]] = {}
    for row in rows:
        start, end = sorted((row["qstart"], row["qend"]))
        found.setdefault(row["qseqid"], set()).update(range(start - 1, end))
    batch = loaded(tmp_path / "q.fa")
    every = masks(tmp_path, lcase_masking=True, dust="no")
    assert any(every) and len(found) == 5
    for number, stretches in enumerate(every):
        name = f"q{number}"
        open_to = {place for start, end in batch.lower.of_sequence(number).tolist() for place in range(start, end)}
        masked = found.get(name, set()) | open_to
        if name in found:
            places = sorted(masked)
            for before, after in pairwise(places):
                if after - before <= 4:
                    masked.update(range(before, after))
        assert {place for start, end in stretches for place in range(start, end + 1)} == masked


def test_what_is_joined() -> None:
    rows = np.array([[1, 5, 9], [0, 10, 20], [0, 23, 30], [0, 34, 40], [0, 35, 36], [1, 0, 1]])
    assert joined(rows, 3).rows() == [(0, 10, 30), (0, 34, 40), (1, 0, 1), (1, 5, 9)]


@pytest.mark.parametrize("kind", ["FASTA file", "database", "database without its ending"])
def test_repeats_may_stand_in_a_database(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, 5)
    monkeypatch.chdir(tmp_path)
    seqloom.Database.create("base.duckdb", "reps.fa")
    name = {"FASTA file": "reps.fa", "database": "base.duckdb"}.get(kind, "base")
    rows = [batch.soft.rows() for batch in mask("q.fa", "repeats", options={"database": name})]
    assert rows == [[(n, start, end + 1) for n, row in enumerate(masks(tmp_path, dust="no")) for start, end in row]]


def test_batches_and_back_ends_change_nothing(tmp_path: Path) -> None:
    draw(tmp_path, 9)
    options = {"filtering_db": str(tmp_path / "reps.fa"), "evalue": 1000.0, "word_size": 8}
    one, other = (seqloom.search("blastn", tmp_path / "q.fa", tmp_path / "q.fa", store=False, task="blastn",
                                 **options, **how).alignments
                  for how in ({"backend": "cpu"}, {"backend": "reference", "batch_queries": 1}))
    assert len(one) and one.equals(other)


@pytest.mark.parametrize("kind", ["FASTA file", "database", "counts"])
def test_a_run_goes_on_with_the_same_masks_alone(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, 9)
    monkeypatch.chdir(tmp_path)
    database, path = Path("repeats.duckdb"), Path("counts" if kind == "counts" else "reps.fa")
    if kind == "database":
        seqloom.Database.create(database, path).close()
    elif kind == "counts":
        path.write_bytes(learn("q.fa", "windowmasker"))
    by = {"window_masker_db" if kind == "counts" else "filtering_db": str(database if kind == "database" else path)}
    options = {"task": "blastn", "evalue": 1000.0, "word_size": 8, "batch_queries": 1, **by}
    wanted = seqloom.search("blastn", "q.fa", "q.fa", store=False, **options).alignments
    with pytest.raises(Cancelled):
        seqloom.search("blastn", "q.fa", "q.fa", progress=StopAtPart(2), **options)
    kept = database.read_bytes() if kind == "database" else path.read_bytes()
    if kind == "database":
        with seqloom.Database.open(database, read_only=False) as repeats:
            repeats.append("q.fa")
    else:
        path.write_bytes(learn("reps.fa", "windowmasker") if kind == "counts" else kept + b">more\nACGTTGCAACGT\n")
    with pytest.raises(ResumeError, match="by which its queries are masked, has changed"):
        resume("last")
    (database if kind == "database" else path).write_bytes(kept)
    assert resume("last").alignments.equals(wanted)


def test_the_search_of_a_masker_has_a_part_of_the_memory() -> None:
    found, use = registry(), Settings(memory=4000)
    for filtering_db, left in ((None, 4000), ("reps.fa", 3000)):
        plan = compose(found, found.pipeline("blastn"), {"filtering_db": filtering_db})
        assert left_by_maskers(plan, found, use).memory == left
    assert left_by_maskers(plan, found, Settings()).memory is None


@pytest.mark.parametrize("options, error, line", [
    ({"filtering_db": "nowhere"}, InputError, "masker 'repeats' searches nowhere, which is no file"),
    ({"filtering_db": "-"}, InputError, "masker 'repeats' searches -, which is no file"),
    ({"filtering_db": "p.fa"}, InputError, "alphabet|protein"),
    ({"filtering_db": "q.fa", "window_masker_db": "x"}, OptionError, "exclude each other"),
])
def test_what_is_refused(options: dict, error: type, line: str, tmp_path: Path,
                         monkeypatch: pytest.MonkeyPatch) -> None:
    draw(tmp_path, 1)
    monkeypatch.chdir(tmp_path)
    Path("p.fa").write_text(">p\nMKWLLLFEEQ\n")
    with pytest.raises(error, match=line):
        seqloom.search("blastn", "q.fa", "q.fa", store=False, **options)


def test_the_masker_needs_repeats(tmp_path: Path) -> None:
    draw(tmp_path, 1)
    with pytest.raises(OptionError, match="needs a database or FASTA file of repeats"):
        next(iter(mask(tmp_path / "q.fa", "repeats")))
