"""The hmmscan pipeline: the pairs of hmmsearch from the other side, its statistics, cutoffs of models, and tables."""

import io
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import seqloom
from seqloom.core.context import SearchSpace
from seqloom.core.errors import InputError, OptionError, UsageError
from seqloom.core.records import DELETE, INSERT
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.scan_reference import ScanStatistics
from seqloom.plugins.profile_hmm.score_domains_reference import DomainStatistics, _repeated
from seqloom.plugins.profile_hmm.turned import turned
from seqloom.storage.results import merging
from seqloom.testing import assert_same_hits, assert_same_records, check_pipeline, run_pipeline

from tests.integration.samples import SAMPLE, proteins
from tests.plugins.profile_hmm.model_text import model_text
from tests.plugins.profile_hmm.models import batch, consensus_targets, random_model

EQUAL = {"Z": 10.0, "domZ": 10.0}


@pytest.fixture(scope="module")
def scan():
    model = replace(random_model(40, 21), accession="AC1.2")
    return consensus_targets(model, 100), batch(model, random_model(35, 5), replace(model, name="again", accession=""))


def test_pairs_are_those_of_hmmsearch(scan):
    sequences, models = scan
    searched = run_pipeline("hmmsearch", models, sequences, EQUAL)
    scanned = turned(run_pipeline("hmmscan", sequences, models, EQUAL))
    order = np.lexsort((searched.target, searched.query)), np.lexsort((scanned.target, scanned.query))
    left, right = searched.take(order[0]), scanned.take(order[1])
    assert len(left) > 3
    for name in searched.schema:
        assert np.array_equal(left.data[name], right.data[name]), name
    assert_same_records(left.alignments, right.alignments)


def test_ssv_alone_finds_the_pairs_of_hmmsearch_with_it(scan):
    sequences, models = scan
    searched = run_pipeline("hmmsearch", models, sequences, EQUAL, ["seed.msv=ssv"])
    for backend in ("reference", "cpu"):
        scanned = run_pipeline("hmmscan", sequences, models, EQUAL, ["seed.msv=scan-ssv"], backend=backend)
        found, expected = (sorted(zip(hits.query.tolist(), hits.target.tolist(), hits.bit_score.tolist(), strict=True))
                           for hits in (turned(scanned), searched))
        assert found == expected
    assert len(searched) > 3
    with pytest.raises(UsageError, match="ssv"):
        run_pipeline("hmmscan", sequences, models, EQUAL, ["seed.msv=ssv"])


def test_turned_twice_is_the_same(scan):
    sequences, models = scan
    hits = run_pipeline("hmmsearch", models, sequences)
    assert_same_hits(hits, turned(turned(hits)))
    paths, flipped = hits.alignments.path.values & 15, turned(hits).alignments.path.values & 15
    assert np.array_equal(paths == INSERT, flipped == DELETE)


def test_results_do_not_depend_on_how_the_work_is_cut_up(scan):
    check_pipeline("hmmscan", *scan, least=6, backends=("reference", "cpu"))


def test_sizes_of_evalues_are_numbers_of_models(scan):
    sequences, models = scan
    hits = run_pipeline("hmmscan", sequences, models)
    assert np.allclose(hits.evalue, np.exp(hits.log_p) * len(models))
    own = hits.take(np.flatnonzero(hits.query == 2)).alignments
    assert np.allclose(own.conditional_evalue, np.exp(own.log_p) * 2) and len(own)
    more = run_pipeline("hmmscan", sequences, models, space=SearchSpace(10**4, 500))
    assert np.allclose(more.evalue, np.exp(more.log_p) * 500)


def test_domains_at_the_same_nodes_are_not_the_same_domain():
    """Of two with the same residues of the sequence, the one with the lower score is left out."""
    domains = SimpleNamespace(bit_score=np.array([9.0, 9.0, 8.0]), data={
        "query_start": np.array([0, 40, 40]), "query_end": np.array([30, 70, 70]),
        "target_start": np.array([5, 5, 6]), "target_end": np.array([35, 35, 36])})
    assert _repeated(domains, ScanStatistics.sequence, range(3)) == {2}
    assert _repeated(domains, DomainStatistics.sequence, range(3)) == {1}


def test_cutoffs_are_those_of_each_model(scan):
    sequences, models = scan
    whole = run_pipeline("hmmscan", sequences, models)
    first = whole.take(np.flatnonzero(whole.target == 0))
    limit = float(np.median(first.bit_score))
    strict, lax = (replace(models[n], gathering=cutoffs) for n, cutoffs in ((0, (limit, limit)), (2, (-99.0, -99.0))))
    hits = run_pipeline("hmmscan", sequences, batch(strict, lax), {"cut_ga": True})
    assert sorted(hits.bit_score[hits.target == 0]) == sorted(first.bit_score[first.bit_score >= limit])
    assert len(np.flatnonzero(hits.target == 1)) >= len(first) and hits.included.all()
    domains = hits.alignments
    assert (domains.bit_score[domains.target == 0] >= limit).all() and domains.included.all()
    with pytest.raises(OptionError, match="model 'random21' has no TC cutoffs"):
        run_pipeline("hmmscan", sequences, models, {"cut_tc": True})


def test_models_are_wanted(scan):
    sequences, models = scan
    with pytest.raises(InputError, match="searches model databases, this one holds protein sequences"):
        run_pipeline("hmmscan", sequences, sequences)
    with pytest.raises(InputError, match="searches protein databases, this one holds models"):
        run_pipeline("hmmsearch", models, models)


@pytest.mark.parametrize("text, line", [
    (model_text()[: model_text().index("      2   ")], "the file ends where"),
    (model_text().replace("amino", "beads"), "ALPH must be amino"),
    (model_text().replace("STATS LOCAL MSV -8.0 0.70000\n", ""), "lacks its score statistics"),
    (model_text(length=4).replace("LENG  4", "LENG  3"), "must follow the 3 nodes"),
])
def test_bad_models_are_one_line(tmp_path, text, line):
    file = tmp_path / "lib.hmm"
    file.write_text(model_text() + text)
    with pytest.raises(InputError, match=line) as caught:
        seqloom.search("hmmscan", "MKVLAAGH", file, store=False, backend="reference")
    assert str(caught.value).startswith(f"{file}, line ") and "\n" not in str(caught.value)


def test_kept_runs_are_written_as_new_ones(tmp_path):
    file, home = tmp_path / "lib.hmm", tmp_path / "store.duckdb"
    text = (SAMPLE / "globins4.hmm").read_text()
    other = text.replace("NAME  globins4", "NAME  other\nACC   PF1.1\nDESC  described")
    file.write_text(text + model_text(length=4) + other)
    formats = ("hmmer", "hmmer acc noali", "tblout", "domtblout", "pfamtblout")
    texts = []
    queries = proteins().take(240, 262).renumbered(np.arange(22))
    for kept in (True, False):
        run = seqloom.search("hmmscan", queries, file, store=kept, results=home)
        for name in formats:
            run.write(stream := io.StringIO(), name)
            texts.append(stream.getvalue())
    assert texts[:5] == texts[5:] and " PF1.1 " in texts[2]
    assert ">> other  described" in texts[0] and ">> PF1.1  described" in texts[1]
    assert "Target model(s):                           3  (302 nodes)" in texts[0]
    rows = run.hits.to_pylist()
    assert {row["sseqid"]: row["model_accession"] for row in rows} == {"globins4": None, "other": "PF1.1"}


def test_empty_answers(scan):
    _, models = scan
    hits = run_pipeline("hmmscan", SequenceBatch.of(models.alphabet, ["XXXX", "", "*"]), models)
    assert not len(hits) and not len(hits.alignments)


def test_models_of_a_run_are_brought_into_the_store_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(merging, "BYTES_TOGETHER", 5000)
    file, home = tmp_path / "lib.hmm", tmp_path / "store.duckdb"
    text = (SAMPLE / "globins4.hmm").read_text()
    file.write_text("".join(text.replace("globins4", f"copy{n}") for n in range(7)))
    targets = proteins().take(240, 250)
    run = seqloom.search("hmmsearch", file, targets, results=home)
    rows = run.sql("SELECT query, name, octet_length(residues) AS size FROM queries ORDER BY query").to_pylist()
    assert [(row["query"], row["name"]) for row in rows] == [(n, f"copy{n}") for n in range(7)]
    assert 5000 < 7 * rows[0]["size"] < len(text) * 7 // 2
