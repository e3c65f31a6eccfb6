"""phmmer: matrices as probabilities, models of sequences, their calibration, and the pipeline with them."""

import io
from pathlib import Path

import numpy as np
import pytest
import seqloom
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import InputError, OptionError
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.core.subnormals import THERE
from seqloom.plugins.common.matrix_file import matrix_text
from seqloom.plugins.profile_hmm import calibration_cpu, calibration_reference, profile, profile_cpu
from seqloom.plugins.profile_hmm.matrix_names import NAMES
from seqloom.plugins.profile_hmm.options import PhmmerOptions
from seqloom.plugins.profile_hmm.query_model import QueryModels
from seqloom.plugins.profile_hmm.residues import BACKGROUND, MODEL_RESIDUES
from seqloom.plugins.profile_hmm.substitution import (
    conditional_probabilities,
    named_scores,
    rate,
    scores_of_text,
)
from seqloom.testing import check_pipeline, run_pipeline

from tests.integration.samples import proteins

FEW = {"EmN": 20, "EmL": 40, "EvN": 10, "EvL": 30, "EfN": 10, "EfL": 20}
"""Options that make calibration of the ``reference`` back end quick."""
QUERY = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVK"
TARGETS = SequenceBatch.of(PROTEIN, [QUERY, "GGGG" + QUERY + "HHH", QUERY[5:40], "ACDEFGHIKLMNPQRSTVWY" * 3],
                           ["t", "t2", "part", "other"])


def test_scale_of_a_matrix():
    assert rate(named_scores("BLOSUM62"), "") == 0.3179513041122926  # as HMMER 3.3.2 has it
    for name in NAMES:
        scores, f = named_scores(name), BACKGROUND.astype(float)
        assert (scores == scores.T).all()
        assert (np.outer(f, f) * np.exp(rate(scores, name) * scores)).sum() == pytest.approx(1, abs=1e-12)


def test_probabilities_of_degenerate_residues_are_those_of_their_members():
    rows = conditional_probabilities(named_scores("BLOSUM62"), "")
    code = {residue: PROTEIN.codes[ord(residue)] for residue in "DNBXUC*"}
    joint = {r: rows[code[r]] * BACKGROUND[MODEL_RESIDUES.index(r)] for r in "DN"}
    assert rows[code["B"]] == pytest.approx((joint["D"] + joint["N"]) / (joint["D"] + joint["N"]).sum(), rel=0.02)
    assert rows[code["X"]] == pytest.approx(BACKGROUND, abs=0.01)
    assert (rows[code["U"]] == rows[code["C"]]).all() and not rows[code["*"]].any()


@pytest.mark.parametrize("text, told", [
    ("", "0 of 20 rows"), ("A C D\n", "line 1: columns must be the 20 residues"),
    (f"{' '.join(MODEL_RESIDUES)}\nA 1 2\n", "line 2: 20 scores are wanted for A, not 2"),
    (f"# so\n{' '.join(MODEL_RESIDUES)}\nC {'1 ' * 20}\n", "line 3: the row of A begins with 'C'"),
    (f"{' '.join(MODEL_RESIDUES)}\nA {'1.5 ' * 20}\n", "line 2: scores must be whole numbers"),
    (f"{' '.join(MODEL_RESIDUES)}\nA {'1_0 ' * 20}\n", "line 2: scores must be whole numbers of up to four digits"),
    (f"{' '.join(MODEL_RESIDUES)}\n{('1 ' * 20 + chr(10)) * 21}", "line 22: there is a row too many"),
])
def test_bad_matrix_files(tmp_path, text, told):
    (tmp_path / "m").write_text(text)
    with pytest.raises(InputError, match=told):
        matrix_text(str(tmp_path / "m"), PROTEIN)


def test_matrix_files(tmp_path):
    order = MODEL_RESIDUES[::-1]
    rows = named_scores("PAM70")[::-1, ::-1]
    lines = [" ".join([residue.lower(), *map(str, row)]) for residue, row in zip(order, rows.tolist(), strict=True)]
    (tmp_path / "m").write_text("# PAM70\n" + " ".join(order) + "\n\n" + "\n".join(lines) + "\n")
    assert (scores_of_text(matrix_text(str(tmp_path / "m"), PROTEIN)) == named_scores("PAM70")).all()
    with pytest.raises(InputError, match="missing: No such file"):
        matrix_text("missing", PROTEIN)


@pytest.mark.parametrize("scores", [np.ones((20, 20), int), -np.ones((20, 20), int), np.zeros((20, 20), int)])
def test_matrices_without_a_scale(scores):
    with pytest.raises(OptionError, match="no scale makes its scores probabilities"):
        rate(scores, "m")


@pytest.mark.parametrize("options, told", [
    ({"popen": 0.5}, "--popen must be"), ({"pextend": 1.0}, "--pextend must be"), ({"Eft": 0.0}, "--Eft must lie"),
    ({"mx": "PAM30", "mxfile": "# m\n"}, "--mx and --mxfile"), ({"E": 1.0, "T": 5.0}, "-E and -T"),
])
def test_options_that_make_no_sense(options, told):
    with pytest.raises(OptionError, match=told):
        build_options(PhmmerOptions, options)


def test_calibration_has_the_peers_values():
    # lambda, mu and tau of HMMER 3.3.2 for UniProt RBFA_CHLSY, whose residues these are.
    options = PhmmerOptions()
    targets = calibration_cpu.RandomTargets(calibration_cpu.random_sequences(options))
    assert targets.sequences.msv[0, :3].tolist() == calibration_reference.random_sequences(
        build_options(PhmmerOptions, FEW)).msv[0, :3].tolist()
    models, codes = QueryModels(options), PROTEIN.encode(RBFA)
    found = calibration_cpu.statistics(profile_cpu.search_profile(models.model(codes)), models.rate(codes), targets,
                                       options.Eft)
    wanted = -9.64185429, 0.71505481, -10.9321089, 0.71505481, -3.55673361, 0.71505481
    assert [np.float32(x) for x in found] == [np.float32(x) for x in wanted]


@settings(max_examples=25, deadline=None)
@given(st.text("ACDEFGHIKLMNPQRSTVWYBJZOUX*", min_size=1, max_size=90), st.sampled_from(NAMES),
       st.sampled_from([0.001, 0.02, 0.3]))
def test_calibration_is_the_same_on_the_cpu(text, matrix, popen):
    options = build_options(PhmmerOptions, {**FEW, "mx": matrix, "popen": popen})
    models, codes = QueryModels(options), PROTEIN.encode(text)
    model, lambda_ = models.model(codes), models.rate(codes)
    slow, fast = calibration_reference.random_sequences(options), calibration_cpu.random_sequences(options)
    assert all((a == b).all() for a, b in zip(slow, fast, strict=True))
    found = []
    for calibrate, configured, sequences in (
            (calibration_reference.statistics, profile.search_profile(model), slow),
            (calibration_cpu.statistics, profile_cpu.search_profile(model), calibration_cpu.RandomTargets(fast))):
        try:
            found.append(calibrate(configured, lambda_, sequences, options.Eft))
        except ArithmeticError:
            found.append(None)
    assert found[0] == found[1] or (None not in found and np.array_equal(*found, equal_nan=True))


@given(st.floats(0, 0.49), st.floats(0, 0.99))
def test_occupancies_are_those_of_the_profile(popen, pextend):
    models = QueryModels(PhmmerOptions(popen=popen, pextend=pextend))
    occupancy = np.empty(301, np.float32)
    profile_cpu._occupancies(models.model(np.ones(300, np.uint8)).transitions, occupancy)
    assert (models.occupancies(300) == occupancy[1:]).all()


def test_consensus_is_the_query_in_upper_case_where_it_is_sure():
    sure = QueryModels(PhmmerOptions(mx="PAM30"))
    unsure = QueryModels(PhmmerOptions())
    codes = PROTEIN.encode("WCAX")
    assert sure.model(codes).consensus == "WCAx" and unsure.model(codes).consensus == "wcax"


def test_results_do_not_depend_on_how_the_work_is_cut_up():
    queries = SequenceBatch.of(PROTEIN, [QUERY, QUERY[10:30] + "XB" + QUERY[30:], "MKV"])
    check_pipeline("phmmer", queries, TARGETS, FEW, least=3)


def test_evalues_are_the_peers():
    hits = run_pipeline("phmmer", SequenceBatch.of(PROTEIN, [QUERY[:30] + "B" + QUERY[30:]]), TARGETS.take(0, 2),
                        backend="cpu")
    assert [f"{e:.2g} {s:.1f}" for e, s in zip(hits.evalue, hits.bit_score, strict=True)] == [
        "4.3e-37 111.0", "6.5e-37 110.5"]  # of phmmer 3.3.2


@pytest.mark.parametrize("more, wanted", [({}, (28, 12)), ({"cut_tc": True}, (6, 3))])  # of phmmer 3.3.2
def test_profiles_made_here_have_cutoffs_of_0_bits(more, wanted):
    hits = run_pipeline("phmmer", SequenceBatch.of(PROTEIN, [RBFA]), proteins().take(0, 40),
                        {"max": True, "Z": 1.0, **more}, backend="cpu")
    assert (len(hits), len(hits.alignments)) == wanted


def test_cutoffs_exclude_thresholds():
    with pytest.raises(OptionError, match="--cut_ga sets all thresholds; leave -T out"):
        build_options(PhmmerOptions, {"cut_ga": True, "T": 1.0})


@pytest.mark.skipif(not THERE, reason="other processors aren't told to make such numbers 0")
@pytest.mark.parametrize("backend", ["reference", "cpu"])
def test_what_is_smaller_than_any_normal_number_is_0(backend):
    """29 residues of 120 bits scale what is before them down that far; domains that would begin later are lost."""
    hits = run_pipeline("phmmer", SequenceBatch.of(PROTEIN, ["Y" * 18 + "W" + "Y" * 10]),
                        SequenceBatch.of(PROTEIN, ["Y" * 135]), {**FEW, "max": True, "pextend": 0.1, "mx": "PAM30"},
                        backend=backend)
    [domain] = hits.alignments.rows()
    assert (f"{domain['bit_score']:.1f} {domain['accuracy']:.2f}", domain["query_end"], domain["target_end"]) == (
        "-503.0 0.47", 24, 79)  # of phmmer 3.3.2; with smaller numbers -501.1 0.68, 68


def test_evalues_too_small_for_all_their_digits_are_0():
    text = (RBFA * 4)[:420]
    found = {}
    for size in (1.0, 1e-290):
        hits = run_pipeline("phmmer", SequenceBatch.of(PROTEIN, [text]), SequenceBatch.of(PROTEIN, [RBFA, text]),
                            {"Z": size, "mx": "PAM30"}, backend="cpu")
        found[size] = dict(zip(hits.target.tolist(), hits.evalue.tolist(), strict=True))
    assert 0 < found[1.0][0] < 1e-20 and found[1e-290][0] == 0.0 and found[1.0][1] == 0.0


def test_queries_without_scores_are_refused():
    with pytest.raises(InputError, match="query 'odd' can't be calibrated"):
        run_pipeline("phmmer", SequenceBatch.of(PROTEIN, ["***"], ["odd"]), TARGETS, FEW, backend="cpu")


def test_matrix_of_a_file_is_kept_with_the_run(tmp_path: Path):
    path, texts = tmp_path / "m.txt", []
    rows = [" ".join(map(str, row)) for row in named_scores("PAM30").tolist()]
    path.write_text("\n".join([" ".join(MODEL_RESIDUES), *rows]))
    for matrix in ({"mxfile": str(path)}, {"mx": "PAM30"}):
        run = seqloom.search("phmmer", {"one": QUERY}, TARGETS, results=tmp_path / "store.duckdb", backend="cpu",
                             **matrix)
        path.unlink(missing_ok=True)
        text = io.StringIO()
        run.write(text, "hmmer")
        texts.append(text.getvalue().splitlines())
    assert f"# subst score matrix (file):       {path}" in texts[0]
    assert [line for line in texts[0] if line[:1] != "#"] == [line for line in texts[1] if line[:1] != "#"]


def test_report_of_a_stored_run(tmp_path: Path):
    run = seqloom.search("phmmer", {"one": QUERY}, TARGETS, results=tmp_path / "store.duckdb", backend="cpu",
                         mx="PAM30")
    text = io.StringIO()
    run.write(text, "hmmer")
    lines = text.getvalue().splitlines()
    assert "Query:       one  [L=60]" in lines and "# subst score matrix (built-in):   PAM30" in lines
    assert any(line.split()[:3] == ["one", "1", QUERY] for line in lines)
    assert run.hits["evalue"].to_pylist() == sorted(run.hits["evalue"].to_pylist())


def domains_of(query, targets, **options):
    """(E-value, target, whether it is a single residue, score) of the domains of a Pfam table, in its order."""
    run = seqloom.search("phmmer", {"q": query}, SequenceBatch.of(PROTEIN, targets), backend="cpu", store=False,
                         max=True, E=1e9, domE=1e9, **options)
    text = io.StringIO()
    run.write(text, "pfamtblout")
    rows = [line.split() for line in text.getvalue().split("# Domain scores")[1].splitlines() if line[:1] not in "#"]
    return [(float(row[2]), row[0], row[7] == row[8], float(row[1])) for row in rows]


def test_domains_of_pfams_table_by_significance_or_by_score():
    targets = ["SELFGTIPEANFPLIQSIYECLIWYECLIWYECLIWLEEADGSGARFVEDVWSR",
               "MDCNKEFIFADNPESKWHNALKHLGIDEIHFSSQIGNAMIELHQVS"]
    by_evalue, by_score = domains_of("GIDFVW", targets), domains_of("GIDFVW", targets, incT=5.0)
    assert sorted(by_evalue) == sorted(by_score) and by_evalue != by_score
    assert [row[:2] for row in by_evalue] == sorted(row[:2] for row in by_evalue)
    assert [row[3] for row in by_score] == sorted((row[3] for row in by_score), reverse=True)


def test_domains_of_one_residue_stand_last_among_equals():
    found = domains_of("VAWRPH", ["CSHQLSKNCSSSPGYFLR"])
    assert [single for *_, single, _ in found] == [False, True] and found[0][0] == found[1][0]


RBFA = ("MAKHRLQQVADTMQRVLGDVIQKELKDPRVGFATVTGVEVSADLQHAKVRISVMGSPEEREAAMAALQRARGFLRKRVAEEMSYMRFVPELHLIQDTSLD"
        "YTMHMDEVFRAIQHERLVNPPKLDDEQ")
