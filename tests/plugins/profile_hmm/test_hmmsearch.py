"""The hmmsearch pipeline through the engine: conformance, options, thresholds, ranking and tables."""

import io
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.engine.memory import MemorySink
from seqloom.core.errors import OptionError, UsageError
from seqloom.core.options import build_options
from seqloom.core.records import Hits, Pairs
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.index_reference import HmmProfiles
from seqloom.plugins.profile_hmm.options import HmmsearchOptions
from seqloom.plugins.profile_hmm.plugin import seqloom_stages
from seqloom.plugins.profile_hmm.scoring import hmm_scoring
from seqloom.plugins.profile_hmm.seed_msv_reference import MsvFilter
from seqloom.plugins.profile_hmm.writers import DomainTable, TargetTable
from seqloom.testing import assert_same_hits, check_pipeline, check_stage, run_pipeline

from tests.plugins.profile_hmm.models import batch, consensus_targets, random_model, random_target
from tests.plugins.profile_hmm.tables import Report, table


@pytest.fixture(scope="module")
def search():
    model = random_model(40, 21)
    return batch(model, random_model(35, 5)), consensus_targets(model, 100)


@pytest.mark.parametrize("stage", [s.name for s in seqloom_stages()])
def test_stages_conform(stage):
    check_stage(stage)


def test_results_do_not_depend_on_how_the_work_is_cut_up(search):
    check_pipeline("hmmsearch", *search, least=3)


def test_ssv_alone_takes_the_place_of_msv(search):
    """The same pairs on each back end, without the target that only passes by several segments together."""
    queries, targets = search
    # Weak pieces of the consensus, none of which suffices by itself.
    model, pieces = queries.models[0], []
    for n in range(10):
        start = 3 * n % (model.length - 6)
        pieces += [random_target(1, n), PROTEIN.encode(model.consensus)[start : start + 6]]
    rows = [targets.searched()[a:b] for a, b in pairwise(targets.offsets.tolist())]
    targets = SequenceBatch.of(PROTEIN, [*rows, np.concatenate(pieces)], [*targets.names, "pieces"])
    found = {}
    options = {"F1": 1e-4, "F2": 1.0, "F3": 1.0, "nobias": True}
    for stage in ("msv", "ssv"):
        for backend in ("reference", "cpu"):
            hits = run_pipeline("hmmsearch", queries, targets, options, [f"seed.msv={stage}"], backend=backend)
            assert_same_hits(found.setdefault(stage, hits), hits)
    names = {stage: {targets.names[n] for n in hits.target} for stage, hits in found.items()}
    assert names["msv"] - names["ssv"] == {"pieces"} and {"one", "two"} <= names["ssv"] < names["msv"]
    check_pipeline("hmmsearch", *search, backends=("reference", "cpu"), stages=["seed.msv=ssv"], least=3)


def test_hits_and_domains(search):
    queries, targets = search
    hits = run_pipeline("hmmsearch", queries, targets)
    assert [targets.names[t] for t in hits.target] == ["two", "one", "half"]
    assert np.all(np.diff(hits.evalue) > 0) and hits.included.all()
    domains = hits.alignments
    assert list(zip(domains.target, domains.target_start, domains.target_end, strict=True))[:2] == [
        (2, 0, 40),
        (2, 100, 140),
    ]
    assert domains.query_start.tolist()[:2] == [0, 0] and domains.query_end.tolist()[:2] == [40, 40]
    assert (domains.env_start <= domains.target_start).all() and (domains.env_end >= domains.target_end).all()
    assert domains.identities[0] == 40
    assert np.allclose(domains.conditional_evalue * len(targets), domains.evalue * len(hits))


def test_counters_tell_what_each_filter_passed(search):
    sink = MemorySink()
    run_pipeline("hmmsearch", *search, sink=sink)
    passed = {slot: s.counters.get("passed") for stats in sink.stats for slot, s in stats.items()}
    assert (
        3 <= passed["extend.forward"] <= passed["extend.viterbi"] <= passed["extend.bias"] <= passed["seed.msv"] <= 10
    )
    run_pipeline("hmmsearch", *search, {"max": True}, sink=(everything := MemorySink()))
    for stats in everything.stats:
        assert all(s.counters.get("passed", 10) == 10 for s in stats.values())


def test_evalues_follow_the_sizes_given(search):
    plain = run_pipeline("hmmsearch", *search)
    larger = run_pipeline("hmmsearch", *search, {"Z": 5000})
    assert larger.evalue == pytest.approx(plain.evalue * 1000)
    assert run_pipeline("hmmsearch", *search, space=SearchSpace(10**6, 5000)).evalue.tolist() == larger.evalue.tolist()
    given = run_pipeline("hmmsearch", *search, {"domZ": 300})
    assert given.alignments.conditional_evalue == pytest.approx(plain.alignments.conditional_evalue * 100)


def test_thresholds_by_score_report_and_include(search):
    plain = run_pipeline("hmmsearch", *search)
    limit = float(plain.bit_score[1])
    fewer = run_pipeline("hmmsearch", *search, {"T": limit, "incT": limit + 0.1})
    assert fewer.target.tolist() == plain.target.tolist()[:2]
    assert fewer.included.tolist() == [True, False]
    assert fewer.included_domains.tolist()[1] == 0
    without = run_pipeline("hmmsearch", *search, {"domT": 1000.0})
    assert len(without) == 3 and len(without.alignments) == 0 and not without.reported_domains.any()
    assert not len(run_pipeline("hmmsearch", *search, {"E": 1e-300}))


def test_cutoffs_of_the_model(search):
    queries, targets = search
    plain = run_pipeline("hmmsearch", queries, targets)
    model = replace(queries[0], gathering=(float(plain.bit_score[1]), 0.0))
    hits = run_pipeline("hmmsearch", batch(model), targets, {"cut_ga": True})
    assert len(hits) == 2 and hits.included.all() and hits.alignments.included.all()
    with pytest.raises(OptionError, match="--cut_tc: model 'random21' has no TC cutoffs"):
        run_pipeline("hmmsearch", batch(model), targets, {"cut_tc": True})


def test_without_corrections(search):
    hits = run_pipeline("hmmsearch", *search, {"nonull2": True, "nobias": True})
    assert not hits.bias.any() and not hits.alignments.bias.any()


def test_another_seed_samples_other_paths_but_finds_the_same_targets(search):
    hits = run_pipeline("hmmsearch", *search, {"seed": 7})
    assert hits.target.tolist() == run_pipeline("hmmsearch", *search).target.tolist()


def test_a_target_without_residues_that_score_is_no_hit():
    targets = SequenceBatch.of(PROTEIN, ["****", "X"], ["stars", "x"])
    queries = batch(random_model(10, 1))
    sink = MemorySink()
    hits = run_pipeline("hmmsearch", queries, targets, {"max": True, "E": 1e9}, sink=sink)
    assert 0 not in hits.target
    assert sum(s.counters.get("overflowed", 0) for stats in sink.stats for s in stats.values()) == 1


def test_equal_targets_are_ranked_by_name():
    model = random_model(40, 21)
    targets = SequenceBatch.of(PROTEIN, [model.consensus] * 4, ["b", "ab", "a", "a.1"])
    hits = run_pipeline("hmmsearch", batch(model), targets)
    assert [targets.names[t] for t in hits.target] == ["a", "a.1", "ab", "b"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"E": 1, "T": 5}, "-E and -T"),
        ({"incdomE": 1, "incdomT": 5}, "--incdomE and --incdomT"),
        ({"cut_ga": True, "cut_nc": True}, "--cut_ga and --cut_nc"),
        ({"cut_ga": True, "domT": 3}, "leave --domT out"),
        ({"max": True, "F2": 0.1}, "leave --F2 out"),
        ({"E": -1}, "at least 0"),
        ({"E": 0}, "-E must be above 0, not 0"),
        ({"domZ": 0.0}, "--domZ must be above 0"),
        ({"cut_tc": True, "T": 3}, "--cut_tc sets all thresholds; leave -T out"),
        ({"seed": "x"}, "--seed needs a value of type int"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        build_options(HmmsearchOptions, options)


def test_tables(search):
    queries, targets = search
    targets = replace(targets, descriptions=["", "first one", "second", "", ""])
    hits = run_pipeline("hmmsearch", queries, targets)
    lines = table(TargetTable, queries, targets, hits)
    assert [line.startswith("#") for line in lines] == [True] * 3 + [False] * 3 + [True] * 8
    assert lines[-1] == "# [ok]"
    rows = [line.split(maxsplit=18) for line in lines if not line.startswith("#")]
    assert [row[0] for row in rows] == ["two", "one", "half"]
    assert rows[0][4] == f"{hits.evalue[0]:.2g}" and rows[1][18] == "first one" and rows[2][18] == "-"
    lines = table(DomainTable, queries, targets, hits)
    rows = [line.split(maxsplit=22) for line in lines if not line.startswith("#")]
    assert [row[9:11] for row in rows[:2]] == [["1", "2"], ["2", "2"]]
    assert rows[1][15:19] == ["1", "40", "101", "140"]


def test_tables_of_other_searches_are_refused(search):
    other = Hits({"query": [0], "target": [0], "score": [1]})
    with pytest.raises(UsageError, match="profile HMM search"):
        table(TargetTable, *search, other)
    with pytest.raises(UsageError, match="fixed columns"):
        TargetTable().write(Report(*search, other), io.StringIO(), ["qseqid"])


def test_msv_can_be_narrowed_to_pairs(search):
    queries, targets = search
    options = HmmsearchOptions()
    scoring = hmm_scoring(queries, SearchSpace(targets.total_residues, len(targets)), options)
    context = Context(queries=queries, targets=targets, scoring=scoring, options=options)
    context = replace(context, indexes={"hmm-profiles": HmmProfiles().run(context, queries)})
    everything = MsvFilter().run(context, None)
    pairs = Pairs({"query": [0, 0, 1], "target": [1, 3, 2], "score": [0, 0, 0]})
    narrowed = MsvFilter().run(context, pairs)
    wanted = {(0, 1), (0, 3), (1, 2)}
    expected = [n for n, row in enumerate(everything.rows()) if (row["query"], row["target"]) in wanted]
    assert len(expected) and narrowed.rows() == everything.take(np.array(expected)).rows()
