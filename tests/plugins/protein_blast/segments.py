"""Ungapped segments of pairs, made of repeats or anything, for stages that extend them."""

from dataclasses import replace

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, SearchSpace
from seqloom.core.records import Seeds
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.protein_blast.options import BlastpOptions
from seqloom.plugins.protein_blast.scoring import protein_scoring, read_as_query

from tests.plugins.protein_blast.proteins import random_protein, relative


def inputs(seed: int, repeats: int, segments: int, longest: int = 70, **options: object) -> tuple[Context, Seeds]:
    """Queries and relatives made of repeats, so that segments hit many alignments, and random segments of each pair."""
    generator = np.random.default_rng(seed)
    asked, found = [], []
    for _ in range(2):
        units = [random_protein(generator, int(generator.integers(12, longest))) for _ in range(2)]
        parts = [units[int(generator.integers(2))] for _ in range(repeats)]
        asked.append(np.concatenate([random_protein(generator, 8), *parts, random_protein(generator, 8)]))
        for changed in (0.0, 0.3, 0.6):
            copies = [relative(generator, unit, changed) if changed else unit for unit in parts]
            found.append(np.concatenate([*copies, random_protein(generator, int(generator.integers(0, 40))), *copies]))
    asked[0][:4] = PROTEIN.letters.index("O")
    queries = replace(SequenceBatch.of(PROTEIN, asked, first=3), hard=Intervals.of([(1, 15, 19)]))
    targets = SequenceBatch.of(PROTEIN, [*found, np.array([20], np.uint8)], first=7)
    settings_ = BlastpOptions(**options)
    scoring = protein_scoring(queries, SearchSpace(10**7, 10**4), settings_)
    context = Context(queries=queries, targets=targets, scoring=scoring, options=settings_)
    return context, random_segments(generator, context, segments)


def random_segments(generator: np.random.Generator, context: Context, count: int) -> Seeds:
    rows = []
    residues = read_as_query(context.queries.searched())
    for place, number in enumerate(context.queries.ordinals.tolist()):
        query = residues[context.queries.offsets[place] : context.queries.offsets[place + 1]]
        for other, target_number in enumerate(context.targets.ordinals.tolist()):
            target = context.targets[other]
            own = set()
            for _ in range(int(generator.integers(1, count + 1))):
                length = int(generator.integers(1, min(len(query), len(target), 40) + 1))
                q = int(generator.integers(0, len(query) - length + 1))
                t = int(generator.integers(0, len(target) - length + 1))
                score = int(context.scoring.matrix[query[q : q + length], target[t : t + length]].sum())
                own.add((-score, t, -length, q))
            rows += [(number, target_number, -score, q, t, -length) for score, t, length, q in sorted(own)]
    table = np.array(rows, np.int64).T
    frames = np.ones(len(rows), np.int8)
    return Seeds({"query": table[0], "target": table[1], "score": table[2], "query_pos": table[3],
                  "target_pos": table[4], "length": table[5], "query_frame": frames, "target_frame": frames})
