"""The scripts of benchmarks: all can be loaded without a device, and the papers' experiments draw what they say."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

from tests.simulator import simulated

ROOT = Path(__file__).parents[2]
MODULES = sorted(path.stem for path in (ROOT / "benchmarks").glob("[!_]*.py"))
PHASES = """
from seqloom.plugins.sorting import keys_cuda
keys_cuda.LEAST = 4
from benchmarks import sorting_gpu
sorting_gpu._ROUNDS = 1
for sorter in ("msd-radix", "segment-radix"):
    taken = sorting_gpu.phases(sorter, sorting_gpu.random_keys(8, 4), 1)
    assert list(taken) == [*sorting_gpu.PHASES, "the rest"] and min(taken.values()) > 0, taken
print("done")
"""


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_loads(name: str) -> None:
    import_module(f"benchmarks.{name}")


def drawn(folder: Path, *names: str) -> None:
    """Each picture is there, with its axes said."""
    assert sorted(path.stem for path in folder.iterdir()) == sorted(names)
    for name in names:
        text = (folder / f"{name}.svg").read_text(encoding="utf-8")
        assert text.count("<text") > 4 and "</svg>" in text


def test_what_models_foretell_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import cluster, exact_match_thesis

    cluster.show_paper(tmp_path)
    exact_match_thesis.draw_shares(tmp_path)
    exact_match_thesis.draw_devices(tmp_path)
    drawn(tmp_path, "cluster_paper", "cluster_paper_seconds", "cluster_paper_rates", "matches_by_share",
          "matches_by_devices")
    assert "| 32 | 256 | 76.9 |" in capsys.readouterr().out


def test_measurements_of_devices_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from benchmarks import smith_waterman_paper, sorting_gpu

    monkeypatch.setattr(smith_waterman_paper, "limits", lambda: (1e13, 1e12))
    lengths = smith_waterman_paper.LENGTHS
    rates = {name: [100.0] * len(lengths) for name in (*smith_waterman_paper.FETCHED, "ours")}
    steps = smith_waterman_paper.Steps(0.003, 0.002, 0.001, 16, 0.12, 0.11, 0.09)
    assert steps.foretold == pytest.approx(15 * 0.005 + 0.006)
    smith_waterman_paper.draw(tmp_path, lengths, rates, [steps] * len(lengths))
    smith_waterman_paper.draw_devices(tmp_path, {n: {1: (1.0, 1e12), 2: (0.6, 1.7e12)} for n in (1, 2)})
    sorting_gpu.draw_rates(tmp_path, "rates.svg", "Sorting", "characters", {4.0: [("a", 0.1, 5)], 8.0: [("a", 0.2, 5)]})
    drawn(tmp_path, "sw_paper_rates", "sw_paper_limits", "sw_paper_steps", "sw_devices", "sw_devices_seconds",
          "sw_devices_rates", "rates")


def test_phases_of_a_sort_on_a_device_are_told_apart() -> None:
    done = simulated("-c", PHASES)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr[-2000:]


CUBLASTP = {
    "bins": [(what, bins) for what in ("detection", "sorting") for bins in ("32", "128")],
    "buffering": [("automaton, near", ""), ("automaton, in global memory", "")],
    "scores": [(f"by {way}, {source}", "") for way in ("hit", "windows of 8")
               for source in ("matrix", "pssm, near", "pssm, in global memory")],
    "extensions": [("by hit", ""), ("by windows of 8", "")],
    "occupancy": [("hit detection", ""), ("by hit", ""), ("coarse-grained", "")],
    "speed": [(what, way) for what in ("critical phases", "whole search") for way in ("cuBLASTP", "the CPU's scan")],
    "breakdown": [*((phase, way) for way in ("cuBLASTP", "cuBLASTP, 1 thread", "the CPU's scan, 1 thread")
                    for phase in ("hit detection", "traceback", "other")), ("copying the targets", "cuBLASTP")],
    "scaling": [(what, threads) for threads in ("1", "2", "4") for what in ("gapped extension", "traceback")],
}
"""What is measured by part, and where, if that isn't the query."""


def test_the_experiments_of_cublastp_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part is, on any device; what differs is said in the page."""
    pytest.importorskip("matplotlib")
    rows = [f"{part}\tmain\t{query}\t{what}\t{place or query}\t0.25\t{'DIFFERENT: 3 hits' if part == 'speed' else ''}"
            for part, things in CUBLASTP.items()
            for query in ((300,) if part == "scaling" else (517,) if part == "occupancy" else (127, 517))
            for what, place in things]
    (tmp_path / "table").write_text("\n".join(rows), encoding="utf-8")
    measured(monkeypatch, "blastp_paper", "draw", str(tmp_path / "table"), str(tmp_path / "images"))
    page = tmp_path / "images" / "blastp_paper.md"
    assert page.read_text(encoding="utf-8").count("0.25000 DIFFERENT") == 8
    page.unlink()
    drawn(tmp_path / "images", *(f"blastp_paper_main_{name}" for name in (
        "bins", "bins_127", "bins_517", "breakdown_127", "breakdown_517", "breakdown_shares_127",
        "breakdown_shares_517", "buffering", "scores_by_hit", "scores_by_windows_of_8", "extensions", "occupancy",
        "speed_critical", "speed_whole", "scaling")))


def measured(monkeypatch: pytest.MonkeyPatch, name: str, *words: str) -> None:
    """A benchmark has been carried out in this process, without a device."""
    module = import_module(f"benchmarks.{name}")
    monkeypatch.setattr(module, "cuda_available", lambda: False)
    monkeypatch.setattr(sys, "argv", [name, *words])
    with pytest.raises(SystemExit) as ended:
        module.main()
    assert ended.value.code == 0


def test_the_experiments_of_g_blastn(tmp_path: Path) -> None:
    """All parts can be measured and drawn, on a tiny scale, and all ways find the same."""
    table, images = tmp_path / "table", tmp_path / "images"
    done = simulated("-m", "benchmarks.nucleotide_blast_paper", "measure", str(table), "--tiny", "--blastn", "nowhere")
    assert done.returncode == 0 and "without nowhere" in done.stderr, done.stderr[-2000:]
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert all(float(row[5]) >= 0 for row in rows) and "DIFFERENT" not in table.read_text()
    assert {row[0] for row in rows} == {"profile", "speed", "sets"}
    assert {row[3] for row in rows if row[0] == "profile"} == {
        "setting up", "scan and look-up", "ungapped extension", "gapped extension", "traceback", "other"}
    ways = {row[4] for row in rows if row[0] == "sets"}
    assert ways == {f"{backend}, 1 thread, {mode}" for backend in ("cuda", "cpu")
                    for mode in ("normal mode", "pipeline mode", "batches as usual")}
    assert not any(row[6].startswith("0 rows") for row in rows)
    pytest.importorskip("matplotlib")
    done = simulated("-m", "benchmarks.nucleotide_blast_paper", "draw", str(table), str(images))
    assert done.returncode == 0, done.stderr[-2000:]
    page = (images / "nucleotide_blast_paper.md").read_text()
    (images / "nucleotide_blast_paper.md").unlink()
    assert "| bases of a query | normal mode beside cpu, 1 thread |" in page
    assert "| pipeline's gain, cuda, 1 thread |" in page
    drawn(images, *(f"nucleotide_blast_paper_tiny_{part}_{task}" for part in ("profile", "speed", "sets")
                    for task in ("megablast", "blastn")))


def test_the_experiments_of_cudampf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise, with the CPU's stage beside the device's; without a device its rates alone."""
    table, images = tmp_path / "table", tmp_path / "images"
    done = simulated("-m", "benchmarks.profile_hmm_warps", "measure", str(table), "--tiny", "--threads", "2")
    assert done.returncode == 0 and "DIFFERENT" not in table.read_text(), done.stderr[-2000:]
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert {row[0] for row in rows} == {"balance", "rates", "blocks", "rows"}
    assert {row[4] for row in rows if row[0] == "balance"} == {
        "blocks", "M, mean", "M, deviation", "end marks, mean", "end marks, deviation", "PRR"}
    stages = {row[4]: row[6] for row in rows if row[3] == "stage"}
    assert list(stages) == ["our stage", "msv by warps", "ssv by warps", "cpu, 1 thread", "cpu, 2 threads"]
    assert all(note.endswith("; 2 pairs") for note in stages.values())
    alone = {row[4]: row[6] for row in rows if row[3] == "stage of ssv alone"}
    assert list(alone) == ["our stage", "by warps", "cpu, 1 thread", "cpu, 2 threads"]
    assert all(note.endswith("; 2 pairs") for note in alone.values())
    more = [row[6].split("; ")[1] for row in rows if row[4].startswith("64 and more")]
    assert more == ["S 64, H 9", "S 128, H 9"] * 2
    measured(monkeypatch, "profile_hmm_warps", "measure", str(tmp_path / "other"), "--tiny", "--threads", "2")
    assert [line.split("\t")[4] for line in (tmp_path / "other").read_text().splitlines()] == [
        *list(stages)[3:], *list(alone)[2:]]
    pytest.importorskip("matplotlib")
    measured(monkeypatch, "profile_hmm_warps", "draw", str(table), str(images))
    assert "| 0 | balanced blocks | 1.00000 | 13.00000 | 0.00000 | 4.00000 |" in (
        images / "profile_hmm_warps.md").read_text()
    (images / "profile_hmm_warps.md").unlink()
    drawn(images, "msv_by_length", "ssv_by_length", "msv_speedup", "ssv_speedup", "profile_hmm_warps_tiny_blocks",
          "profile_hmm_warps_tiny_rows")


def test_without_a_device_the_rest_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "table"
    measured(monkeypatch, "nucleotide_blast_paper", "measure", str(table), "--tiny", "--blastn", "nowhere", "--threads",
             "2", "--tasks", "megablast")
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert {row[4] for row in rows if row[0] == "speed"} == {"cpu, 1 thread", "cpu, 2 threads"}
    assert {row[4] for row in rows if row[0] == "sets"} == {
        "cpu, 1 thread, batches as usual", *(f"cpu, 2 threads, {mode}" for mode in (
            "normal mode", "pipeline mode", "batches as usual"))}


def test_other_rows_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Of our ways as of the peer's, whose rows may be in another order; and what the pipeline gains."""
    from benchmarks.nucleotide_blast_paper import NORMAL, PIPELINE, Bench, Way

    found = {Way("cuda", 2, NORMAL): (3.0, "a\nb\n"), Way("cuda", 2, PIPELINE): (2.0, "a\nb\n"),
             Way("cpu", 2): (2.0, "b\na\n"), Way("blastn", 1): (9.0, "b\na\n"), Way("blastn", 2): (5.0, "a\nc\nd\n")}
    monkeypatch.setattr(Bench, "best", lambda bench, task, queries, way: found[way])
    bench = Bench.__new__(Bench)
    bench.name = "some"
    rows = list(bench.compared("sets", 500, "megablast", tmp_path, list(found)))
    assert [row.note for row in rows] == ["2 rows", "2 rows; pipeline +50 %", "DIFFERENT; 2 rows", "2 rows",
                                          "DIFFERENT: 2 and 1 of one alone; 3 rows"]
    assert rows[0].place == "cuda, 2 threads, normal mode" and rows[3].place == "blastn, 1 thread"
