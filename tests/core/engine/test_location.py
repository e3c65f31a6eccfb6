"""Queries and targets of which a stretch is searched: the rows of the stretch alone, moved to where it lies."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import SearchSpace
from seqloom.core.engine.location import cut
from seqloom.core.errors import InputError, OptionError
from seqloom.core.records import Hits
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common.location import location_of, target_location_of
from seqloom.testing import run_pipeline

from tests.integration.test_independence import queries_and_targets


def check_moved(found: Hits, alone: Hits, by: int, which: str) -> None:
    """Fail unless the rows are those of the stretch, which lies ``by`` residues behind the starts."""
    assert len(found.alignments) > 0
    for name, column in found.alignments.data.items():
        wanted = getattr(alone.alignments, name)
        if name in (f"{which}_start", f"{which}_end") or (name == f"anchor_{which}" and (wanted >= 0).all()):
            wanted = wanted + by
        same = column.values.tolist() == wanted.values.tolist() if name == "path" else np.array_equal(
            column, wanted, equal_nan=column.dtype.kind == "f")
        assert same, name


@pytest.mark.parametrize("pipeline, stretch, options", [
    ("blastp", "11-60", {"seg": "yes", "lcase_masking": True}), ("blastp", "1-40", {}), ("blastn", "31-140", {})])
def test_a_stretch_has_the_hits_that_it_has_alone(pipeline: str, stretch: str, options: dict) -> None:
    queries, targets = queries_and_targets(pipeline)
    first, last = location_of(stretch)
    alone = run_pipeline(pipeline, cut(queries, (first, last)), targets, options)
    found = run_pipeline(pipeline, queries, targets, {**options, "query_loc": stretch})
    check_moved(found, alone, first, "query")


@pytest.mark.parametrize("pipeline, stretch, volume", [
    ("blastp", "11-90", 64_000_000), ("blastn", "41-5000", 300),
    ("megablast", "31-200", 300)])
def test_a_stretch_of_targets_has_the_hits_that_it_has_alone(pipeline: str, stretch: str, volume: int) -> None:
    queries, targets = queries_and_targets(pipeline)
    where = target_location_of(stretch)
    alone = run_pipeline(pipeline, queries, cut(targets, where), {"evalue": 1000})
    short = cut(targets, where)
    space = SearchSpace(short.total_residues, len(short), short.longest)
    found = run_pipeline(pipeline, queries, targets, {"evalue": 1000, "subject_loc": stretch}, space=space,
                         volume_residues=volume)
    check_moved(found, alone, where[0], "target")


@pytest.mark.parametrize("program", ["blastp", "blastn"])
def test_a_stretch_of_targets_has_the_rows_of_the_peer(program: str, tmp_path: Path) -> None:
    import seqloom

    if shutil.which(program) is None:
        pytest.skip(f"no {program} here")
    batches = queries_and_targets(program)
    stretch = (30, int(batches[1].lengths.min()) + 60)
    targets = [batches[1].text(n) for n in range(len(batches[1])) if batches[1].lengths[n] > stretch[0]]
    for name, texts in ("q", [batches[0].text(n) for n in range(len(batches[0]))]), ("t", targets):
        (tmp_path / f"{name}.fa").write_text("".join(f">{name}{n}\n{text}\n" for n, text in enumerate(texts)))
    where, columns = f"{stretch[0] + 1}-{stretch[1]}", "qseqid sseqid qstart qend sstart send slen evalue bitscore sseq"
    peer = subprocess.run([program, "-query", "q.fa", "-subject", "t.fa", "-subject_loc", where, "-outfmt",
                           f"6 {columns}"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    run = seqloom.search(program, tmp_path / "q.fa", tmp_path / "t.fa", store=False, subject_loc=where)
    run.write(tmp_path / "found", f"6 {columns}")
    assert peer and (tmp_path / "found").read_text() == peer


def test_cutting_keeps_lower_case_and_takes_what_there_is() -> None:
    queries = SequenceBatch.of(PROTEIN, ["MKvlaAGIV", "MK", "mkvl"], ["a", "b", "c"])
    part = cut(queries, (2, 5))
    assert [part.text(place) for place in range(3)] == ["vla", "", "vl"]
    assert part.lower.rows() == [(0, 0, 3), (2, 0, 2)] and part.names == ["a", "b", "c"]
    assert cut(queries, None) is queries
    assert isinstance(part.lower, Intervals)


@pytest.mark.parametrize("text", ["5", "0-5", "6-5", "a-b", "1-", "-3", "1-2-3", ""])
def test_other_texts_are_no_stretches(text: str) -> None:
    with pytest.raises(OptionError, match="10-200"):
        location_of(text)
    with pytest.raises(OptionError, match=r"--subject-loc takes .* 10-200"):
        target_location_of(text)


def test_a_stretch_that_no_query_has_is_refused() -> None:
    import seqloom

    with pytest.raises(InputError, match="the longest query has 5"):
        seqloom.search("blastp", "MKVLA", SequenceBatch.of(PROTEIN, ["MKVLA"]), store=False, query_loc="6-9")
    with pytest.raises(InputError, match="the longest target has 5"):
        seqloom.search("blastp", "MKVLA", SequenceBatch.of(PROTEIN, ["MKVLA"]), store=False, subject_loc="6-9")
