"""Agreement of ``blastp`` on the CPU back end with blastp of BLAST+ 2.12, and of each way of cutting the work with
each other: all rows, all columns, in order.

The reference outputs that lie beside the repository are met on the whole databases. Other queries, databases and
options are compared with the installed program.
"""

import io
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import seqloom
from seqloom.core.alphabet import PROTEIN
from seqloom.core.engine.memory import MemorySink
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.karlin_tables import GAPPED
from seqloom.testing import assert_same_hits, run_pipeline

from tests.integration.commands import seqloom as command_line
from tests.plugins.protein_blast.peer import FORMAT, needs_peer, peer_database, peer_lines
from tests.plugins.protein_blast.tabular import lines
from tests.shared import SHARED, needs_shared, read_fasta, read_text

pytestmark = [needs_shared, pytest.mark.gold]
ENOUGH = 60_000
"""More targets than any database here has, so that no hit list is cut."""
AMINO = "ARNDCQEGHILKMFPSTWYV"


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    path = tmp_path_factory.mktemp("databases") / f"{request.param}.duckdb"
    seqloom.Database.create(path, SHARED / "data" / "proteins" / f"{request.param}.fasta.gz").close()
    yield request.param, path
    path.unlink()


@cache
def gold(name: str, folder: str) -> str:
    return read_text(f"gold/{folder}blastp.{name}.tsv.gz")


def search(query: str, path: Path, **options: object) -> "tuple[seqloom.Run, str]":
    queries = SHARED / "data" / "proteins" / f"{query}.fasta"
    run = seqloom.search("blastp", queries, path, backend="cpu", store=False, max_target_seqs=ENOUGH, **options)
    text = io.StringIO()
    run.write(text, FORMAT)
    return run, text.getvalue()


@pytest.mark.parametrize("database, seg", [("main", "no"), ("main", "yes"), ("large", "no")], indirect=["database"])
@pytest.mark.parametrize("query", ["q127", "q514", "q1042"])
def test_reference_outputs(query: str, seg: str, database: tuple[str, Path]) -> None:
    name, path = database
    folder = "large." if name == "large" else ""
    assert search(query, path, seg=seg, comp_based_stats="0")[1] == gold(f"{query}.cbs0_seg{seg}", folder)


@pytest.mark.parametrize("database", ["main", "large"], indirect=True)
@pytest.mark.parametrize("query", ["q127", "q514", "q1042"])
def test_reference_outputs_with_composition_based_statistics(query: str, database: tuple[str, Path]) -> None:
    name, path = database
    assert search(query, path)[1] == gold(f"{query}.default", "large." if name == "large" else "")


@pytest.mark.parametrize("database", ["main"], indirect=True)
@pytest.mark.parametrize("seg", ["no", "yes"])
def test_a_hundred_queries_and_what_the_scan_leaves_out(seg: str, database: tuple[str, Path]) -> None:
    run, text = search("batch100", database[1], seg=seg, comp_based_stats="0")
    assert text == gold(f"batch100.cbs0_seg{seg}", "")
    slots = {row["slot"]: row for row in run.slots.to_pylist()}
    pairs = 100 * 20_000
    assert json.loads(slots["seed.scan"]["counters"])["pairs left out"] > 0.8 * pairs


@pytest.mark.parametrize("database", ["main"], indirect=True)
def test_a_hundred_queries_with_composition_based_statistics(database: tuple[str, Path]) -> None:
    assert search("batch100", database[1])[1] == gold("batch100.default", "")


@pytest.mark.parametrize("database", ["main"], indirect=True)
def test_the_command_line(database: tuple[str, Path], tmp_path: Path) -> None:
    words = ["blastp", "-query", SHARED / "data/proteins/q127.fasta", "-db", database[1], "-outfmt", FORMAT,
             "-max_target_seqs", ENOUGH, "-seg", "no", "-comp_based_stats", "0", "--no-store", "--backend", "cpu"]
    assert command_line(tmp_path, *words).stdout == gold("q127.cbs0_segno", "")


# ---- fresh queries, databases and options


@cache
def proteins() -> SequenceBatch:
    names, sequences = read_fasta("data/proteins/main.fasta.gz")
    return SequenceBatch.of(PROTEIN, sequences, names=names)


def changed(generator: np.random.Generator, text: str, share: float, residues: str) -> str:
    """``text`` with a share of its residues replaced by residues drawn from ``residues``."""
    drawn = generator.choice(list(residues), len(text))
    return "".join(np.where(generator.random(len(text)) < share, drawn, list(text)))


@cache
def targets(first: int, count: int, odd: bool = False) -> SequenceBatch:
    """Proteins of the main database from ``first`` on; with ``odd`` also ones full of residues beyond the twenty."""
    generator = np.random.default_rng(first)
    texts = [proteins().text(place) for place in range(first, first + count)]
    if odd:
        texts += [changed(generator, texts[place], 0.25, "XBZUOJ*") for place in range(0, count, 7)]
        texts += ["X" * 60, "*" * 30, "W", "MK", "Q" * 200]
    return SequenceBatch.of(PROTEIN, texts, names=[f"t{number}" for number in range(len(texts))])


@cache
def queries(kind: str, first: int, count: int) -> SequenceBatch:
    """Queries of a kind, made from the targets that ``targets(first, count)`` gives."""
    generator = np.random.default_rng(count)
    texts = [proteins().text(first + place) for place in generator.integers(0, count, 12).tolist()]
    long = "".join(proteins().text(place) for place in range(first, first + 40))
    made = {
        "proteins": [changed(generator, text, share, AMINO) for text, share in zip(texts[:4], (0, 0.2, 0.4, 0.6))],
        "fragments": [text[5 : 5 + size] for text, size in zip(texts, (5, 6, 8, 10, 12, 15, 20, 25, 30, 35, 40, 50))],
        "long": [long[:2000], changed(generator, long[:5000], 0.3, AMINO)],
        "low complexity": ["Q" * 80, "PT" * 50 + texts[0][:90], "SR" * 20 + texts[1] + "GGS" * 30, "AAG" * 60],
        "X-rich": [changed(generator, texts[0], 0.5, "X"), texts[1][:60] + "X" * 100 + texts[1][60:], "X" * 50],
        "odd residues": [changed(generator, text, 0.15, "XBZUOJ*") for text in texts[:4]],
    }[kind]
    return SequenceBatch.of(PROTEIN, made, names=[f"{kind.replace(' ', '_')}_{n}" for n in range(len(made))])


@cache
def peer(first: int, count: int, odd: bool, folder: Path) -> Path:
    return peer_database(targets(first, count, odd), folder / f"peer_{first}_{count}_{odd}")


def compare(kind: str, first: int, count: int, odd: bool, folder: Path, **options: object) -> int:
    """Check that our lines are the peer's; returns their number."""
    asked, searched = queries(kind, first, count), targets(first, count, odd)
    hits = run_pipeline("blastp", asked, searched, {"max_target_seqs": ENOUGH, **options}, backend="cpu")
    found = lines(hits, asked, searched)
    assert found == peer_lines(asked, peer(first, count, odd, folder), options)
    return len(found)


KINDS = ["proteins", "fragments", "long", "low complexity", "X-rich", "odd residues"]
GAP_COSTS = [(matrix, *costs) for matrix, rows in GAPPED.items() for costs in (min(rows), max(rows))]
OPTIONS = [
    {"evalue": 1e-10}, {"evalue": 1e-3}, {"evalue": 0.5}, {"evalue": 1000},
    {"word_size": 2}, {"word_size": 4, "threshold": 15}, {"word_size": 4, "threshold": 17, "window_size": 0},
    {"threshold": 9.9}, {"threshold": 14}, {"window_size": 0}, {"window_size": 0, "evalue": 1000}, {"window_size": 15},
    {"xdrop_ungap": 2}, {"xdrop_ungap": 15}, {"xdrop_gap": 6}, {"xdrop_gap": 30}, {"xdrop_gap_final": 10},
    {"xdrop_gap_final": 80}, {"seg": "yes"}, {"seg": "10 1.8 2.1"}, {"seg": "yes", "soft_masking": "true"},
    {"dbsize": 10**9}, {"searchsp": 10**7}, {"max_hsps": 1}, {"qcov_hsp_perc": 30},
    *({"comp_based_stats": mode, "evalue": limit} for mode in "013" for limit in (1e-3, 10, 1000)),
]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("peer")


@needs_peer
@pytest.mark.parametrize("matrix, gap_open, gap_extend", GAP_COSTS)
def test_matrices_and_gap_costs(matrix: str, gap_open: int, gap_extend: int, folder: Path) -> None:
    costs = {"matrix": matrix, "gapopen": gap_open, "gapextend": gap_extend}
    assert compare("proteins", 3000, 200, False, folder, **costs) > 3


@needs_peer
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(f"{n}={v}" for n, v in options.items()))
def test_options(options: dict, folder: Path) -> None:
    assert compare("proteins", 6000, 300, False, folder, **options) > 1


@needs_peer
@pytest.mark.parametrize("seg", ["no", "yes"])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_queries(kind: str, seg: str, folder: Path) -> None:
    found = compare(kind, 9000, 400, True, folder, evalue=100, seg=seg)
    assert found > 5 or seg == "yes"


@needs_peer
@pytest.mark.parametrize("evalue", [1e-3, 10])
@pytest.mark.parametrize("kind", ["proteins", "fragments", "odd residues"])
@pytest.mark.parametrize("count", [1, 63, 65])
def test_small_databases(count: int, kind: str, evalue: float, folder: Path) -> None:
    assert compare(kind, 12_000, count, False, folder, evalue=evalue) > 0


@needs_peer
@pytest.mark.parametrize("kind", ["low complexity", "X-rich", "odd residues"])
def test_one_hit_mode(kind: str, folder: Path) -> None:
    assert compare(kind, 9000, 100, True, folder, evalue=1000, window_size=0) > 50


@needs_peer
def test_one_hit_extensions_of_a_word_of_unknown_residues(tmp_path: Path) -> None:
    """Alike but for every third residue, so that XXX is the only word; scores on both sides of the cutoff."""
    first, second = "GPGPNDSTKREQ" * 2, "HHWWYYFFHHWW" * 2
    pairs = ["HH", "HH KR", "HH IV", "CC IV", "CC IL KR", "WW", "WW KR", "WW IV", "HH QQ", "HH QQ IL", "WW QQ", "WW HH"]
    reported = []
    for ahead in ("DB", "IV"):
        for behind in pairs:
            residues = [ahead, *behind.split()]
            asked, found = ("XXX" + "".join(pair[n] for pair in residues) for n in (0, 1))
            query = SequenceBatch.of(PROTEIN, [asked + first], names=["q"])
            two = SequenceBatch.of(PROTEIN, [found + second, (AMINO * 30)[7:]], names=["t", "other"])
            options = {"threshold": 50, "window_size": 0}
            hits = run_pipeline("blastp", query, two, options, backend="cpu")
            assert lines(hits, query, two) == peer_lines(query, peer_database(two, tmp_path / "two"), options)
            reported.append(len(hits))
    assert 0 < sum(reported) < len(reported)


# ---- the same rows however the work is done


@cache
def batch100() -> SequenceBatch:
    names, sequences = read_fasta("data/proteins/batch100.fasta")
    return SequenceBatch.of(PROTEIN, sequences, names=names)


def cpu(asked: SequenceBatch, **how: object) -> Hits:
    return run_pipeline("blastp", asked, targets(0, 1500), {"evalue": 1.0}, backend="cpu", **how)


@cache
def plain(count: int) -> Hits:
    return cpu(batch100().take(0, count))


@pytest.mark.parametrize("how", [
    {"threads": 2}, {"volume_residues": 80_000}, {"volume_residues": 80_000, "threads": 2, "batch_queries": 7},
    {"batch_queries": 1}, {"batch_queries": 7},
], ids=str)
def test_same_rows_however_the_work_is_cut(how: dict) -> None:
    sink = MemorySink()
    assert_same_hits(cpu(batch100(), **how, sink=sink), plain(100))
    assert len(plain(100)) > 300
    plan = sink.plan()
    assert plan is not None
    assert "volume_residues" not in how or len(plan.volumes) >= 7
    assert len(plan.batches) >= -(-100 // how.get("batch_queries", 100))


@pytest.mark.parametrize("how", [{"settings": ["seed.scan.enabled=false"]}, {"stages": ["seed.scan=ungapped-scan"]}],
                         ids=str)
def test_the_filter_changes_no_row(how: dict[str, list[str]]) -> None:
    assert_same_hits(cpu(batch100().take(0, 8), **how), plain(8))
    assert len(plain(8)) > 20


def test_each_query_alone_as_with_others() -> None:
    every = lines(plain(100), batch100(), targets(0, 1500))
    for place in range(0, 100, 9):
        alone = batch100().take(place, place + 1)
        name = batch100().names[place]
        assert lines(cpu(alone), alone, targets(0, 1500)) == [row for row in every if row.split("\t")[0] == name]
