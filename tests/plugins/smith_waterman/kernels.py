"""The CPU kernels of exact Smith–Waterman against the reference, on generated pairs; run by itself for one width.

``python -m tests.plugins.smith_waterman.kernels`` checks the width that ``SEQLOOM_SIMD`` names and prints it.
"""

import sys

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, Scoring
from seqloom.core.records import Hits
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.common.lanes import interleaved
from seqloom.plugins.common.residues_cpu import residues_of
from seqloom.plugins.common.stretches_cpu import Stretches
from seqloom.plugins.smith_waterman.extend_cpu import SmithWatermanTracebackCpu
from seqloom.plugins.smith_waterman.extend_reference import SmithWatermanTraceback
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence_cpu import LANES, Profile, Workers
from seqloom.plugins.smith_waterman.recurrence_reference import Packed
from seqloom.plugins.smith_waterman.scoring import SmithWatermanOptions, SmithWatermanScoring
from seqloom.plugins.smith_waterman.seed_cpu import exact_scores
from seqloom.plugins.smith_waterman.seed_reference import best_scores
from seqloom.testing import assert_same_hits

AMINO_ACIDS = "ACDEFGHIKLMNPQRSTVWY"


def cpu_scores(query: np.ndarray, targets: SequenceBatch, scoring: Scoring) -> list[int]:
    """Scores of the CPU back end, in order of targets."""
    stretches = Stretches.of(targets, np.arange(len(targets)), None)
    return exact_scores(Profile(query, scoring, residues_of(targets.searched())), scoring, stretches,
                        interleaved(targets), Workers()).tolist()


def reference_scores(query: np.ndarray, targets: SequenceBatch, scoring: Scoring) -> list[int]:
    """Scores of the reference back end, in order of targets."""
    return best_scores(query, Packed.of([targets[n] for n in range(len(targets))], scoring)).tolist()


def alignments(stage: type, queries: SequenceBatch, targets: SequenceBatch, scoring: SmithWatermanScoring) -> Hits:
    """Every query with every target, traced by a stage."""
    pairs = np.array([(q, t) for q in range(len(queries)) for t in range(len(targets))], np.int64).reshape(-1, 2)
    hits = Hits({"query": pairs[:, 0], "target": pairs[:, 1], "score": np.zeros(len(pairs))})
    context = Context(queries=queries, targets=targets, scoring=scoring, options=SmithWatermanOptions())
    return stage().run(context, hits)


def assert_equal_to_reference(queries: SequenceBatch, targets: SequenceBatch, scoring: SmithWatermanScoring) -> None:
    """Scores, coordinates, counts and paths of every pair are those of the reference."""
    for n in range(len(queries)):
        assert cpu_scores(queries[n], targets, scoring) == reference_scores(queries[n], targets, scoring)
    assert_same_hits(alignments(SmithWatermanTraceback, queries, targets, scoring),
                     alignments(SmithWatermanTracebackCpu, queries, targets, scoring))


def related(rng: np.random.Generator, residues: str, most: int) -> tuple[list[str], list[str]]:
    """Some queries and some targets: random ones, relatives with changes and gaps, runs, empty and tiny ones."""
    def random(low: int, high: int) -> str:
        return "".join(rng.choice(list(residues), rng.integers(low, high + 1)))

    def relative(text: str) -> str:
        for _ in range(int(rng.integers(0, 6))):
            place, length = int(rng.integers(0, len(text) + 1)), int(rng.integers(0, 9))
            text = text[:place] + random(0, 5) + text[place + length :]
        return random(0, 20) + text + random(0, 20)

    queries = [random(0, most), random(1, 8), random(most // 2, most), residues[0] * 20]
    targets = [relative(queries[rng.integers(0, 4)]) for _ in range(int(rng.integers(1, 90)))]
    return queries, [*targets, "", residues[-1], residues[0] * 40, *(random(0, 2 * most) for _ in range(5))]


def check(rounds: int) -> None:
    """Generated pairs under several matrices and costs."""
    rng = np.random.default_rng(20)
    systems = [("BLOSUM62", 11, 1), ("BLOSUM62", 0, 1), ("BLOSUM62", 0, 0), ("BLOSUM62", 3, 0), ("PAM30", 9, 1),
               ("BLOSUM45", 126, 1), ("BLOSUM62", 127, 1), ("BLOSUM62", 40_000, 2), ("PAM250", 5, 300),
               ("PAM30", 126, 20)]
    for number in range(rounds):
        name, gap_open, gap_extend = systems[number % len(systems)]
        matrix = printed_matrix(name)
        times = (1, 1, 25, 700, 9000, 1 << 17)[rng.integers(0, 6)]
        scoring = SmithWatermanScoring(matrix * times, gap_open * times, gap_extend * times)
        residues = (AMINO_ACIDS + "BZX*UOJ", "WAX", "CW", "AWLKGE")[rng.integers(0, 4)]
        queries, targets = related(rng, residues, (30, 70, 300)[rng.integers(0, 3)])
        assert_equal_to_reference(SequenceBatch.of(PROTEIN, queries), SequenceBatch.of(PROTEIN, targets), scoring)


if __name__ == "__main__":
    check(int(sys.argv[1]))
    print(LANES)
