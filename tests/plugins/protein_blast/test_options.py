"""Options of blastp: defaults by matrix, and refusals that say what to do."""

import pytest
from seqloom.core.errors import OptionError
from seqloom.core.options import build_options
from seqloom.core.pipeline import compose
from seqloom.installed import registry
from seqloom.plugins.common.karlin_tables import gapped_parameters
from seqloom.plugins.protein_blast.options import BlastpOptions


def options(**values) -> BlastpOptions:
    return build_options(BlastpOptions, values)


@pytest.mark.parametrize(
    "matrix, threshold, window",
    [("BLOSUM62", 11, 40), ("BLOSUM45", 14, 60), ("BLOSUM80", 12, 25), ("PAM30", 16, 15), ("PAM250", 11, 40)],
)
def test_words_follow_the_matrix(matrix, threshold, window):
    chosen = options(matrix=matrix)
    assert (chosen.neighbour_threshold(), chosen.window()) == (threshold, window)
    given = options(matrix=matrix, threshold=13.9, window_size=0)
    assert (given.neighbour_threshold(), given.window()) == (13, 0)


@pytest.mark.parametrize(
    "values, message",
    [
        ({"comp_based_stats": "4"}, "D or T"),
        ({"comp_based_stats": "2u"}, "D or T"),
        ({"gapopen": 3}, "take one of"),
        ({"ungapped": True}, "give --comp-based-stats 0"),
        ({"ungapped": True, "comp_based_stats": "0", "use_sw_tback": True}, "leave --use-sw-tback out"),
        ({"best_hit_overhang": 0.5}, "below 0.5"),
        ({"best_hit_score_edge": 0.0}, "above 0"),
        ({"best_hit_score_edge": 0.1, "culling_limit": 0}, "exclude each other"),
        ({"query_loc": "9-3"}, "as 10-200"),
        ({"seg": "12 2.2"}, "window locut hicut"),
        ({"seg": "12 3.0 2.0"}, "locut"),
        ({"matrix": "PAM120"}, "BLOSUM62"),
        ({"word_size": 8}, "at most 7"),
        ({"word_size": 6, "matrix": "IDENTITY"}, "at most 5"),
        ({"threshold": 0}, "at least 1e-300"),
        ({"xdrop_ungap": 1e9}, "at most 1,000,000"),
        ({"xdrop_gap": 1e9}, "at most 1,000,000"),
        ({"xdrop_gap_final": 1e9}, "at most 1,000,000"),
    ],
)
def test_refusals(values, message):
    with pytest.raises(OptionError, match=message):
        options(**values)


@pytest.mark.parametrize("name", ["identity", "Identity"])
def test_composition_doesnt_count_with_the_identity_matrix(name):
    chosen = options(matrix=name, comp_based_stats="2")
    assert (chosen.matrix, chosen.composition_mode(), chosen.neighbour_threshold()) == ("IDENTITY", 0, 27)


def test_seg_parameters():
    assert options(seg="no").seg_parameters() is None
    assert options(seg="yes").seg_parameters() == {}
    assert options(seg="10 1.8 2.1").seg_parameters() == {"window": 10, "locut": 1.8, "hicut": 2.1}


@pytest.mark.parametrize("pipeline", ["blastp", "blastp-short"])
@pytest.mark.parametrize("matrix, costs", [("BLOSUM62", (11, 1)), ("BLOSUM45", (14, 2)), ("PAM30", (9, 1))])
def test_gap_costs_follow_the_matrix(pipeline, matrix, costs):
    chosen = compose(registry(), registry().pipeline(pipeline), {"matrix": matrix}, "reference").options
    gapped = gapped_parameters(chosen.matrix, chosen.gapopen, chosen.gapextend)
    assert (gapped.gap_open, gapped.gap_extend) == costs
