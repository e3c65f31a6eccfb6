"""Options of blastp against blastp itself, on small databases: every line, in order, on both back ends."""

from pathlib import Path

import pytest
from seqloom.testing import run_pipeline

from tests.plugins.protein_blast.peer import needs_peer, peer_database, peer_lines
from tests.plugins.protein_blast.proteins import families
from tests.plugins.protein_blast.tabular import lines

pytestmark = needs_peer
CASES = {
    "ungapped": {"ungapped": True, "comp_based_stats": "0", "evalue": 1000},
    "ungapped, masked": {"ungapped": True, "comp_based_stats": "0", "seg": "10 2.5 2.9", "qcov_hsp_perc": 10},
    "ungapped, in a space": {"ungapped": True, "comp_based_stats": "0", "searchsp": 10**6, "max_hsps": 1},
    "culled": {"culling_limit": 1, "evalue": 100},
    "culled to three": {"culling_limit": 3, "comp_based_stats": "0", "evalue": 1000},
    "culled segments": {"culling_limit": 2, "comp_based_stats": "0", "ungapped": True, "evalue": 1000},
    "best hits": {"best_hit_overhang": 0.1, "best_hit_score_edge": 0.05, "evalue": 100},
    "best hits by the other's default": {"best_hit_overhang": 0.3, "comp_based_stats": "0", "evalue": 1000},
    "best of a target": {"subject_besthit": True, "max_hsps": 2, "evalue": 1000},
    "identity": {"matrix": "IDENTITY"},
    "words of five": {"word_size": 5, "threshold": 22.0},
    "words of six": {"word_size": 6, "threshold": 21.0, "comp_based_stats": "0"},
    "words of seven, one hit": {"word_size": 7, "threshold": 25.0, "window_size": 0},
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tuple:
    queries, targets = families()
    return queries, targets, peer_database(targets, tmp_path_factory.mktemp("peer") / "db")


@pytest.mark.parametrize("name", CASES)
def test_options(name: str, data: tuple) -> None:
    queries, targets, database = data
    wanted = peer_lines(queries, database, CASES[name])
    assert len(wanted) > 3
    if not {"culling_limit", "best_hit_overhang", "subject_besthit"}.isdisjoint(CASES[name]):
        plain = {key: value for key, value in CASES[name].items() if key in ("evalue", "comp_based_stats", "ungapped")}
        assert len(wanted) < len(peer_lines(queries, database, plain))
    for backend in ("cpu",) if CASES[name].get("word_size") == 5 else ("cpu", "reference"):
        assert lines(run_pipeline("blastp", queries, targets, CASES[name], backend=backend), queries, targets) == wanted


@pytest.mark.parametrize("most", [1, 2, 5])
def test_a_list_of_targets_that_is_cut_after_preliminary_alignments(most: int, tmp_path: Path) -> None:
    """An X-drop that stops early has targets go that are better in the end; without the option they stay."""
    queries, targets = families(3, 240, 40)
    options = {"max_target_seqs": most, "evalue": 1000.0, "comp_based_stats": "0", "xdrop_gap": 5.0}
    wanted = peer_lines(queries, peer_database(targets, tmp_path / "db"), options)
    early, late = (lines(run_pipeline("blastp", queries, targets, {**options, "cut_early": choice}, backend="cpu"),
                         queries, targets) for choice in (True, False))
    assert early == wanted and late != wanted
