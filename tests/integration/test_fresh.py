"""The comparison with the peers finds and keeps differences, whatever peers are installed."""

from tests.fresh.blast import told
from tests.fresh.case import Case, Known, Tally, run_case, same
from tests.fresh.masks import in_any_order
from tests.fresh.residues import AMINO_ACIDS, BASES, Draw


def test_a_difference_is_found_and_a_refusal_is_counted(tmp_path):
    (tmp_path / "lines").write_text("b\na\n")
    sort = ["sort", "lines", "--format", "lines", "-o", "out"]
    tally = Tally()
    for peer in (["printf", "a\\nb\\n"], ["printf", "a\\nc\\n"], ["false"]):
        tally.add(run_case(Case(sort, [peer], ["out"]), tmp_path))
    tally.add(run_case(Case(["sort", "nothing"], [["true"]]), tmp_path))
    tally.add(run_case(Case(["sort", "nothing"], [["false"]]), tmp_path))
    assert tally.counts == {"same": 1, "different": 1, "peer refused": 1, "refused": 1, "both refused": 1}
    assert tally.lines == 2 and (tmp_path / "commands").read_text().startswith("seqloom sort")


def test_a_seed_draws_the_same_sequences_again(tmp_path):
    for kind in (AMINO_ACIDS, BASES):
        first, second = (Draw("a 1", kind, tmp_path).search((5, 200), 3, 6) for _ in range(2))
        assert first == second != Draw("a 2", kind, tmp_path).search((5, 200), 3, 6)


def test_known_differences_are_recognised_narrowly():
    assert same("a\nb\n", "a\nb\n") is None and "line 2" in (same("a\nb\n", "a\nc\n") or "")
    assert isinstance(in_any_order(">s\n1 - 2\n5 - 6\n", ">s\n5 - 6\n1 - 2\n"), Known)
    assert not isinstance(in_any_order(">s\n1 - 2\n5 - 6\n", ">s\n5 - 6\n1 - 3\n"), Known)
    assert told("BLASTP 2.12.0+ (seqloom 1)\n  User specified sequence set (Input: ./t.fa).\nPosted date: x\n") == (
        "BLASTP 2.12.0+\n  t.fa\nPosted date\n")
