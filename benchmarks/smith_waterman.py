"""Exact Smith–Waterman: scores against parasail's fastest, in cell updates a second; the whole search beside blastp.

Scores are those of whole queries against 9 million residues on one core. Both sides make their profile of the query
within the time; ours takes targets that are packed already, as a search packs them once for all queries. Needs the
reference data beside the repository and, for the peers, parasail and BLAST+.
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Scoring
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.lanes import interleaved
from seqloom.plugins.common.residues_cpu import residues_of
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence_cpu import LANES, Profile, Workers
from seqloom.plugins.smith_waterman.seed_cpu import exact_scores

from tests.shared import SHARED, read_fasta, read_text

from .timing import SEQLOOM, Timing, alone, in_turns

QUERIES = ("q127", "q514", "q1042")
ROUNDS = 3
TARGETS = "data/proteins/main.fasta.gz"


def measure() -> Iterator[Timing]:
    """Seconds of processor time for scores, with the rate in billions of cells; wall seconds for commands."""
    if not SHARED.is_dir():
        return
    yield from scores()
    yield from searches()


def scores() -> Iterator[Timing]:
    """Scores of three queries, ours and parasail's by turns."""
    _, texts = read_fasta(TARGETS)
    targets = SequenceBatch.of(PROTEIN, texts)
    stretches = Stretches.of(targets, np.arange(len(targets)), None)
    lanes, residues = interleaved(targets), residues_of(targets.residues)
    for name in QUERIES:
        _, (query,) = read_fasta(f"data/proteins/{name}.fasta")
        works: dict[str, Callable[[], object]] = {f"sw-scores cpu, {LANES} lanes": lambda q=query: ours(
            q, stretches, lanes, residues)}
        works |= {f"parasail {function}": lambda q=query, f=function: parasails(f, q, texts)
                  for function in _parasail_functions()}
        best = dict.fromkeys(works, float("inf"))
        for _ in range(ROUNDS):
            for what, work in works.items():
                begin = time.process_time()
                work()
                best[what] = min(best[what], time.process_time() - begin)
        for what, seconds in best.items():
            rate = len(query) * targets.total_residues / seconds / 1e9
            yield Timing(f"{name} {what}", seconds, f"{rate:.1f} GCUPS")


def ours(query: str, stretches: Stretches, lanes: Index, residues: np.ndarray) -> np.ndarray:
    """Exact scores by the CPU back end."""
    scoring = Scoring(printed_matrix("BLOSUM62"), 11, 1)
    return exact_scores(Profile(PROTEIN.encode(query), scoring, residues), scoring, stretches, lanes, Workers())


def _parasail_functions() -> list[str]:
    try:
        import parasail  # noqa: F401
    except ImportError:
        return []
    return ["sw_striped_profile_sat", "sw_scan_profile_sat"]


def parasails(function: str, query: str, targets: list[str]) -> list[int]:
    """Exact scores by parasail: a profile of the query in 8 bits, and in 16 where that overflows."""
    import parasail

    call = getattr(parasail, function)
    profile = parasail.profile_create_sat(query, parasail.blosum62)
    return [call(profile, target, 12, 1).score for target in targets]


def searches() -> Iterator[Timing]:
    """A hundred queries against the same proteins: whole commands on one thread, then the search alone on two."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "proteins.fasta").write_text(read_text(TARGETS))
        list(in_turns({"": (*SEQLOOM, "db", "create", "proteins.duckdb", "proteins.fasta")}, folder, rounds=1))
        list(in_turns({"": ("makeblastdb", "-dbtype", "prot", "-in", "proteins.fasta", "-out", "proteins")}, folder,
                      rounds=1))
        query = ("-query", str(SHARED / "data/proteins/batch100.fasta"))
        sw = (*SEQLOOM, "sw", *query, "--db", "proteins.duckdb", "--out", "sw.tsv", "--backend", "cpu", "--quiet")
        blastp = ("blastp", *query, "-db", "proteins", "-out", "blastp.tsv", "-outfmt", "6", "-num_threads", "1")
        yield from in_turns({
            "sw, 100 queries": (*sw, "--no-store"),
            "sw, 500 targets for each": (*sw, "--no-store", "--evalue", "10000"),
            "sw, scores only": (*sw, "--no-store", "--score-only"),
            "blastp": blastp,
            "blastp -comp_based_stats 0": (*blastp, "-comp_based_stats", "0"),
        }, folder, rounds=ROUNDS)
        yield from alone("sw", query[1], "proteins.duckdb", folder, ROUNDS, evalue=10000)
