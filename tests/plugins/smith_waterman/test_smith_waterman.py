"""Exact Smith–Waterman against parasail, against a plain recurrence, and against itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context, Scoring, SearchSpace
from seqloom.core.engine.engine import Engine
from seqloom.core.engine.memory import MemorySource
from seqloom.core.engine.planning import Settings
from seqloom.core.errors import BudgetError, OptionError
from seqloom.core.pipeline import compose
from seqloom.core.records import DELETE, INSERT, MATCH, Hits, Pairs
from seqloom.core.sequences import SequenceBatch
from seqloom.installed import registry
from seqloom.plugins.smith_waterman.extend_reference import trace
from seqloom.plugins.smith_waterman.matrices import PRINTED_RESIDUES, PRINTED_ROWS, nucleotide_matrix, printed_matrix
from seqloom.plugins.smith_waterman.plugin import seqloom_stages
from seqloom.plugins.smith_waterman.recurrence_reference import Packed
from seqloom.plugins.smith_waterman.scoring import SmithWaterman, SmithWatermanOptions
from seqloom.plugins.smith_waterman.seed_reference import SmithWatermanScores, best_scores
from seqloom.testing import assert_same_hits, assert_same_records, check_pipeline, check_stage, run_pipeline

RESIDUES = "ACDEFGHIKLMNPQRSTVWYBZX*UOJ"
proteins = st.one_of(st.text("ACDEFGHIKLMNPQRSTVWY", max_size=40), st.text("WAX", max_size=40),
                     st.text(RESIDUES, max_size=25), st.sampled_from(["", "W", "X" * 30, "A" * 30, "*" * 9]))
costs = st.sampled_from([(11, 1), (0, 1), (3, 0), (9, 2), (40, 20)])


def scoring(gap_open: int = 11, gap_extend: int = 1, matrix: np.ndarray | None = None) -> Scoring:
    return Scoring(printed_matrix("BLOSUM62") if matrix is None else matrix, gap_open, gap_extend)


def plain_score(query: np.ndarray, target: np.ndarray, scoring: Scoring) -> int:
    """Best local score by the textbook's recurrence, cell by cell."""
    first, further, low = scoring.gap_open + scoring.gap_extend, scoring.gap_extend, -(10**6)
    above, f, best = [0] * (len(target) + 1), [low] * (len(target) + 1), 0
    for a in query.tolist():
        h, e = [0], low
        for j, b in enumerate(target.tolist(), 1):
            e = max(e - further, h[-1] - first)
            f[j] = max(f[j] - further, above[j] - first)
            h.append(max(0, above[j - 1] + int(scoring.matrix[a, b]), e, f[j]))
        above, best = h, max(best, *h)
    return best


def path_score(path: list[int], query: np.ndarray, target: np.ndarray, scoring: Scoring) -> int:
    """Score of an edit path along two aligned stretches, which it must use up."""
    i = j = score = 0
    for run in path:
        length, operation = run >> 4, run & 15
        if operation in (INSERT, DELETE):
            score -= scoring.gap_open + length * scoring.gap_extend
            i, j = i + length * (operation == INSERT), j + length * (operation == DELETE)
            continue
        pairs = list(zip(query[i : i + length].tolist(), target[j : j + length].tolist(), strict=True))
        assert len(pairs) == length and all((a == b) == (operation == MATCH) for a, b in pairs)
        score += sum(int(scoring.matrix[a, b]) for a, b in pairs)
        i, j = i + length, j + length
    assert (i, j) == (len(query), len(target))
    return score


@settings(max_examples=150, deadline=None)
@given(proteins, st.lists(proteins, min_size=1, max_size=5), costs)
def test_scores_are_those_of_the_plain_recurrence(query, targets, gap_costs):
    system = scoring(*gap_costs)
    query, targets = PROTEIN.encode(query), [PROTEIN.encode(t) for t in targets]
    found = best_scores(query, Packed.of(targets, system)).tolist()
    assert found == [plain_score(query, target, system) for target in targets]


@settings(max_examples=150, deadline=None)
@given(proteins, st.lists(proteins, min_size=1, max_size=5), costs)
def test_paths_have_the_score_they_are_reported_with(query, targets, gap_costs):
    system = scoring(*gap_costs)
    query, targets = PROTEIN.encode(query), [PROTEIN.encode(t) for t in targets]
    packed = Packed.of(targets, system)
    traced = trace(query, packed)
    assert [t.score for t in traced] == best_scores(query, packed).tolist()
    for found, target in zip(traced, targets, strict=True):
        parts = query[found.query_start : found.query_end], target[found.target_start : found.target_end]
        assert path_score(found.path, *parts, system) == found.score
        if found.score:
            assert found.path[0] & 15 not in (INSERT, DELETE) and found.path[-1] & 15 not in (INSERT, DELETE)


def test_the_choice_among_equally_good_alignments():
    system = scoring(4, 1)

    def paths(query: str, target: str) -> tuple:
        return tuple(trace(PROTEIN.encode(query), Packed.of([PROTEIN.encode(target)], system))[0])

    assert paths("AWAAW", "W") == (11, 1, 2, 0, 1, [1 << 4 | MATCH])  # the smallest query end
    assert paths("W", "WAW") == (11, 0, 1, 0, 1, [1 << 4 | MATCH])  # then the smallest target end
    # From behind, residues are paired as long as that is as good: gaps stand as far to the left as they can.
    assert paths("WWAAAWW", "WWAAWW") == (47, 0, 7, 0, 6, [2 << 4 | MATCH, 1 << 4 | INSERT, 4 << 4 | MATCH])
    assert paths("WWAAWW", "WWAAAWW") == (47, 0, 6, 0, 7, [2 << 4 | MATCH, 1 << 4 | DELETE, 4 << 4 | MATCH])


def test_a_long_target_is_aligned_as_if_it_were_traced_whole():
    rng = np.random.default_rng(12)
    for _ in range(30):
        query = "".join(rng.choice(list("ACGT"), rng.integers(1, 25)))
        pieces = ["".join(rng.choice(list("ACGT" if n % 2 else "AT"), rng.integers(0, 40))) for n in range(20)]
        target = query[:9].join(pieces) + query + query[: len(query) // 2].join(pieces[:5])
        options = {"match": 2, "mismatch": -1, "gapopen": int(rng.integers(0, 3)), "gapextend": int(rng.integers(1, 3)),
                   "strand": "plus"}
        row = run_pipeline("sw-nucleotide", SequenceBatch.of(NUCLEOTIDE, [query]),
                           SequenceBatch.of(NUCLEOTIDE, [target]), options).alignments.rows()[0]
        system = scoring(options["gapopen"], options["gapextend"], nucleotide_matrix(2, -1))
        whole = trace(NUCLEOTIDE.encode(query), Packed.of([NUCLEOTIDE.encode(target)], system))[0]
        names = ("score", "query_start", "query_end", "target_start", "target_end", "path")
        assert tuple(row[name] for name in names) == whole


@pytest.mark.parametrize("name", sorted(PRINTED_ROWS))
def test_printed_matrices_are_parasails(name):
    parasail = pytest.importorskip("parasail")
    theirs = getattr(parasail, name.lower()).matrix[: len(PRINTED_RESIDUES), : len(PRINTED_RESIDUES)]
    places = [PROTEIN.letters.index(residue) for residue in PRINTED_RESIDUES]
    ours = printed_matrix(name)
    assert np.array_equal(ours[np.ix_(places, places)], theirs)
    assert np.array_equal(ours, ours.T)
    for residue, other in (("U", "C"), ("O", "X"), ("J", "X")):
        assert np.array_equal(ours[PROTEIN.letters.index(residue)], ours[PROTEIN.letters.index(other)])


def test_scores_are_parasails():
    parasail = pytest.importorskip("parasail")
    rng = np.random.default_rng(11)

    def random(low: int, high: int, residues: str = "ACDEFGHIKLMNPQRSTVWYBZX*") -> str:
        return "".join(rng.choice(list(residues), rng.integers(low, high)))

    relatives = random(200, 201)
    targets = [random(1, 2), "W", "X" * 200, "*" * 50, relatives[40:160], "A" * 300,
               relatives[:60] + random(30, 31) + relatives[60:], relatives[:90] + relatives[97:],
               *(random(1, 400) for _ in range(60)), *(random(1, 120, "WX") for _ in range(20))]
    for name, gap_open, gap_extend in (("BLOSUM62", 11, 1), ("BLOSUM62", 5, 0), ("PAM250", 14, 2), ("BLOSUM45", 0, 3)):
        system = scoring(gap_open, gap_extend, printed_matrix(name))
        packed = Packed.of([PROTEIN.encode(t) for t in targets], system)
        for query in ("W", relatives, "X" * 40, random(300, 301), "A" * 100 + relatives[30:90]):
            theirs = [parasail.sw(query, t, gap_open + gap_extend, gap_extend,
                                  getattr(parasail, name.lower())).score for t in targets]
            assert best_scores(PROTEIN.encode(query), packed).tolist() == theirs


def proteins_with_relatives(seed: int = 3) -> tuple[SequenceBatch, SequenceBatch]:
    rng = np.random.default_rng(seed)
    residues = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    queries = ["".join(rng.choice(residues, n)) for n in (60, 35, 1, 90)]
    targets = ["".join(rng.choice(residues, rng.integers(1, 120))) for _ in range(40)]
    targets += [q[:30] + q[33:] for q in queries] + [queries[0], queries[0], ""]
    return SequenceBatch.of(PROTEIN, [*queries, ""]), SequenceBatch.of(PROTEIN, targets)


@pytest.mark.parametrize("options", [{}, {"max_target_seqs": 3}, {"evalue": 0.1}, {"gapopen": 1, "gapextend": 3},
                                     {"score_only": True}], ids=str)
def test_results_do_not_depend_on_how_the_work_is_cut(options):
    check_pipeline("sw", *proteins_with_relatives(), options)


def test_the_best_targets_win_in_documented_order():
    queries, targets = proteins_with_relatives()
    everything = run_pipeline("sw", queries, targets, {"evalue": 1e9})
    best = run_pipeline("sw", queries, targets, {"evalue": 1e9, "max_target_seqs": 3})
    assert_same_hits(best, Hits.concat([everything.take(np.flatnonzero(everything.query == q)[:3]) for q in range(5)]))
    rows = [(r["query"], r["evalue"], -r["score"], r["target"]) for r in everything.rows()]
    assert rows == sorted(rows)
    assert [r["target"] for r in best.rows()[:2]] == [44, 45]  # the two copies of the first query, in database order


def test_statistics_and_counts_of_a_perfect_hit():
    query = "MKVLITGAGSGLGRALAERFAAEGWRVVATD"
    hits = run_pipeline("sw", SequenceBatch.of(PROTEIN, [query]), SequenceBatch.of(PROTEIN, ["A" * 30, "GG" + query]))
    row = hits.alignments.rows()[0]
    place = [row[name] for name in ("target", "query_start", "query_end", "target_start", "target_end")]
    assert place == [1, 0, 31, 2, 33]
    counts = [row[name] for name in ("length", "identities", "positives", "mismatches", "gap_opens", "gaps")]
    assert counts == [31, 31, 31, 0, 0, 0]
    assert row["path"] == [31 << 4 | MATCH]
    assert row["bit_score"] == pytest.approx((0.267 * row["score"] - np.log(0.041)) / np.log(2))
    assert hits.evalue.tolist() == hits.alignments.evalue.tolist()


def test_hits_without_statistics_are_ranked_by_score_and_say_so():
    queries, targets = proteins_with_relatives()
    hits = run_pipeline("sw", queries, targets, {"gapopen": 1, "gapextend": 3})
    assert np.isnan(hits.evalue).all() and np.isnan(hits.bit_score).all()
    assert np.isnan(hits.alignments.evalue).all()
    rows = [(r["query"], -r["score"], r["target"]) for r in hits.rows()]
    assert rows == sorted(rows)
    with pytest.raises(OptionError, match="no statistics are known for BLOSUM62 with gap costs 1/3"):
        run_pipeline("sw", queries, targets, {"gapopen": 1, "gapextend": 3, "evalue": 1})


def test_score_only_gives_the_same_hits_without_alignments():
    queries, targets = proteins_with_relatives()
    full, bare = (run_pipeline("sw", queries, targets, {"score_only": s}) for s in (False, True))
    assert len(bare.alignments) == 0 and len(full.alignments) == len(full)
    assert_same_records(full, bare)
    assert full.alignments.score.tolist() == full.score.tolist()


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_no_memory_is_asked_for_to_trace_scores_only(backend):
    batch = SequenceBatch.of(PROTEIN, ["W" * 35_000])
    source, plugins = MemorySource(batch), registry()
    for score_only, slot in ((False, "extend.traceback"), (True, "seed.scores")):
        plan = compose(plugins, plugins.pipeline("sw"), {"score_only": score_only}, backend)
        engine = Engine(plan, plugins, batch, source, SearchSpace(source.total_residues, 1), Settings(memory=1 << 20))
        with pytest.raises(BudgetError, match=f"slot '{slot}' for one query and one target needs"):
            engine.unit_plan()


def test_given_pairs_only_those_are_scored():
    queries, targets = proteins_with_relatives()
    hits = run_pipeline("sw", queries, targets, {"evalue": 1e9})
    some = Pairs({"query": [0, 1], "target": [44, 3], "score": [0, 0]})
    options = SmithWatermanOptions(evalue=1e9)
    space = SearchSpace(targets.total_residues, len(targets))
    context = Context(queries=queries, targets=targets, options=options, space=space,
                      scoring=SmithWaterman().scoring(queries, space, options))
    found = SmithWatermanScores().run(context, some)
    known = {(r["query"], r["target"]): r["score"] for r in hits.rows()}
    assert {(r["query"], r["target"]): r["score"] for r in found.rows()} == {k: known[k] for k in [(0, 44), (1, 3)]}


def test_nucleotides_on_both_strands():
    rng = np.random.default_rng(9)
    query = "".join(rng.choice(list("ACGT"), 60))
    other = NUCLEOTIDE.decode(NUCLEOTIDE.complement[NUCLEOTIDE.encode(query)][::-1])
    targets = SequenceBatch.of(NUCLEOTIDE, ["TT" + query[5:50], "GG" + other[:20] + other[22:], "N" * 40, "acgtnnnn"])
    queries = SequenceBatch.of(NUCLEOTIDE, [query])
    hits = check_pipeline("sw-nucleotide", queries, targets)
    rows = {r["target"]: r for r in hits.alignments.rows()}
    assert 2 not in rows
    plus, minus = rows[0], rows[1]
    assert (plus["query_frame"], plus["query_start"], plus["query_end"], plus["target_start"]) == (1, 5, 50, 2)
    assert (minus["query_frame"], minus["query_start"], minus["query_end"]) == (-1, 0, 60)
    system = scoring(5, 2, nucleotide_matrix(2, -3))
    assert minus["score"] == 2 * 58 - 5 - 2 * 2
    assert minus["score"] == path_score(minus["path"], NUCLEOTIDE.encode(other), targets[1][2:], system)
    plus_only = run_pipeline("sw-nucleotide", queries, targets, {"strand": "plus"})
    assert set(plus_only.alignments.query_frame.tolist()) == {1}


def test_ambiguous_bases_score_the_mean_of_what_they_may_mean_rounded_down():
    matrix = nucleotide_matrix(2, -3)
    code = NUCLEOTIDE.letters.index
    assert matrix[code("A"), code("A")] == 2 and matrix[code("A"), code("C")] == -3
    assert matrix[code("N"), code("A")] == -2 and matrix[code("R"), code("A")] == -1
    assert matrix[code("R"), code("C")] == -3
    assert matrix[code("-"), code("A")] < -1000


def test_lower_case_counts_like_upper_case():
    hits = [run_pipeline("sw", SequenceBatch.of(PROTEIN, [q]), SequenceBatch.of(PROTEIN, ["MKVLITGAGSGLGRALAERF"]))
            for q in ("MKVLITGAGSGLGRALAERF", "mkvliTGAGSGLGRALAERF")]
    assert_same_hits(*hits)


@pytest.mark.parametrize("name", sorted({s.name for s in seqloom_stages()}))
def test_stages_are_declared_whole(name):
    check_stage(name)


@pytest.mark.parametrize(("match", "mismatch", "gapopen", "gapextend"), [(2, -3, 5, 2), (1, -2, 2, 2), (1, -3, 9, 9)])
def test_nucleotide_statistics_are_those_of_blastn(match, mismatch, gapopen, gapextend):
    rng = np.random.default_rng(3)
    query = rng.choice(list("ACGT"), 300)
    targets = []
    for length in (30, 60, 120, 240):
        changed = query[:length].copy()
        changed[rng.choice(length, length // 20)] = "A"
        targets.append("".join(rng.choice(list("ACGT"), 200)) + "".join(changed) + "".join(rng.choice(list("CG"), 50)))
    batches = SequenceBatch.of(NUCLEOTIDE, ["".join(query)]), SequenceBatch.of(NUCLEOTIDE, targets)
    costs = {"gapopen": gapopen, "gapextend": gapextend}
    exact = run_pipeline("sw-nucleotide", *batches, {"match": match, "mismatch": mismatch, **costs})
    blast = run_pipeline("blastn", *batches, {"reward": match, "penalty": mismatch, **costs, "dust": "no"})
    exact, blast = ({r["target"]: (r["score"], r["bit_score"], r["evalue"]) for r in hits.rows()}
                    for hits in (exact, blast))
    assert len(exact) == 4
    assert {t: row[0] for t, row in exact.items()} == {t: row[0] for t, row in blast.items()}
    # BLAST's parameters are those of each strand's composition, which differ from others in the last digits.
    assert all(row[1:] == pytest.approx(blast[t][1:], rel=1e-9) for t, row in exact.items())


def test_nucleotide_scores_without_statistics():
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGTACGGTTCA"])
    row = run_pipeline("sw-nucleotide", batch, batch, {"match": 7, "mismatch": -1}).rows()[0]
    assert row["score"] == 84 and np.isnan(row["evalue"])
    with pytest.raises(OptionError, match="no statistics for reward 7 and penalty -1; known ratios"):
        run_pipeline("sw-nucleotide", batch, batch, {"match": 7, "mismatch": -1, "evalue": 1.0})


@pytest.mark.parametrize(("match", "mismatch"), [(2, -3), (1, -2), (1, -1)])
def test_gaps_that_cost_nothing_have_no_statistics(match, mismatch):
    rng = np.random.default_rng(5)
    query, target = (SequenceBatch.of(NUCLEOTIDE, ["".join(rng.choice(list("ACGT"), n))]) for n in (60, 400))
    options = {"match": match, "mismatch": mismatch, "gapopen": 0, "gapextend": 0}
    row = run_pipeline("sw-nucleotide", query, target, options).rows()[0]
    assert row["score"] > 30 and np.isnan(row["evalue"]) and np.isnan(row["bit_score"])
    with pytest.raises(OptionError, match="no statistics for gaps that cost nothing"):
        run_pipeline("sw-nucleotide", query, target, {**options, "evalue": 1.0})


@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_scores_are_kept_whole_or_refused(backend):
    most, match = 500_000_000, 2**31 // 7
    batch = SequenceBatch.of(NUCLEOTIDE, ["ACGTACG", "AC", "TTTTTTTTT"])
    options = {"match": match, "mismatch": -most, "gapopen": most, "gapextend": most, "strand": "plus"}
    rows = run_pipeline("sw-nucleotide", batch.take(0, 2), batch, options, backend=backend).rows()
    best = {(row["query"], row["target"]): row["score"] / match for row in rows}
    assert best == {(0, 0): 7, (0, 1): 2, (0, 2): 1, (1, 0): 2, (1, 1): 2}
    with pytest.raises(OptionError, match="scores may come to 9 × 306783378, and 2,147,483,647 is the largest"):
        run_pipeline("sw-nucleotide", batch, batch, options, backend=backend)
    with pytest.raises(OptionError, match="match must be at most 500,000,000"):
        run_pipeline("sw-nucleotide", batch, batch, {"match": most + 1}, backend=backend)
