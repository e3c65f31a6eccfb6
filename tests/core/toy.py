"""A toy family of algorithms, small enough to check by eye: exact matches of words, extended while residues are equal.

It uses every kind of stage, both scopes, indexes on both sides, a masker, a sorter, an extra column and counters, so
that the engine can be tested without any real algorithm. ``expected`` says what it finds, in the plainest way.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context, Scoring, SearchSpace
from seqloom.core.hookspecs import hookimpl
from seqloom.core.index import Index
from seqloom.core.keys import byte_keys
from seqloom.core.pipeline import Pipeline, Slot
from seqloom.core.records import Alignments, Column, Hits, Pairs, Ragged, Records, Seeds
from seqloom.core.registry import Registry
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.core.stages import (
    API_VERSION,
    ExtendStage,
    Family,
    Footprint,
    IndexStage,
    Masker,
    Masking,
    ScoreStage,
    SeedStage,
    Shape,
    Sorter,
    SortOptions,
    SortStage,
    option,
)

SEQLOOM_API = API_VERSION
WORD = 3


@dataclass(frozen=True)
class ToyScoring(Scoring):
    """Least length of a match, per query of the batch (i4[k])."""

    least: Any = None


@dataclass(frozen=True)
class ToyOptions:
    """Options of the toy pipelines."""

    least: int = option(4, "least length of a match, in residues", minimum=1)
    max_target_seqs: int = option(3, "most targets per query", minimum=1)
    mask: bool = option(False, "mask runs of A")


class ToyFamily(Family):
    """Exact matches."""

    name = "toy"
    Options = ToyOptions
    Scoring = ToyScoring

    def masking(self, options: Any) -> list[Masking]:
        return [Masking("toy-masker", {}, soft=False)] if options.mask else []

    def scoring(self, queries: Any, space: SearchSpace, options: Any) -> ToyScoring:
        return ToyScoring(least=np.full(len(queries), options.least, np.int32))


class ToyMasker(Masker):
    """Runs of A of two residues and more."""

    name = "toy-masker"
    alphabets = ("protein",)

    def intervals(self, batch: SequenceBatch) -> Intervals:
        mask = batch.residues == PROTEIN.encode("A")[0]
        runs = Intervals.from_mask(mask, batch.offsets)
        return Intervals.of([r for r in runs.rows() if r[2] - r[1] > 1])


class ToySorter(Sorter):
    """Python's own sort."""

    name = "toy-sorter"

    def order(self, keys: Ragged) -> np.ndarray:
        texts = [k.tobytes() for k in keys]
        return np.array(sorted(range(len(texts)), key=lambda n: texts[n]), np.int64)


@dataclass(frozen=True)
class ToySorting(SortOptions):
    """The toy sorter unless another is asked for."""

    sorter: str = option("toy-sorter", "sorter that orders the keys")


def words_of(batch: SequenceBatch) -> Index:
    residues, usable = batch.searched(), batch.indexable()
    rows = []
    for n in range(len(batch)):
        for place in range(batch.offsets[n], batch.offsets[n + 1] - WORD + 1):
            if usable[place : place + WORD].all():
                word = int.from_bytes(residues[place : place + WORD].tobytes(), "big")
                rows.append((word, batch.ordinals[n], place - batch.offsets[n]))
    table = np.array(sorted(rows), np.int64).reshape(-1, 3)
    return Index("", "query", {"word": table[:, 0], "sequence": table[:, 1], "place": table[:, 2]}, {"word": WORD})


class QueryWords(IndexStage):
    """Words of the queries, in order."""

    name, side, provides, scoring = "toy-query-words", "query", "toy-query-words", ToyScoring

    def run(self, context: Context, batch: Any) -> Index:
        assert context.targets is None
        context.count("sequences indexed", len(batch))
        return replace(words_of(batch), kind=self.provides)


class TargetWords(IndexStage):
    """Words of the targets, in order."""

    name, side, provides = "toy-target-words", "target", "toy-target-words"

    def run(self, context: Context, batch: Any) -> Index:
        assert context.queries is None
        return replace(words_of(batch), kind=self.provides, side="target")


@dataclass(frozen=True)
class SeedOptions:
    """Options of the toy seed stage."""

    step: int = option(1, "look at every so many word of the targets", minimum=1)


class WordSeeds(SeedStage):
    """Pairs of equal words."""

    name, Options = "toy-words", SeedOptions
    reads = ("toy-query-words", "toy-target-words")
    scoring = ToyScoring

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=1000 * shape.query_residues + 10 * shape.target_residues)

    def run(self, context: Context, records: Records | None) -> Seeds:
        queries, targets = context.index("toy-query-words"), context.index("toy-target-words")
        rows = []
        for word, target, place in zip(targets["word"], targets["sequence"], targets["place"], strict=True):
            context.cancellation.check()
            if place % self.options.step == 0:
                low, high = np.searchsorted(queries["word"], [word, word + 1])
                rows += [(queries["sequence"][n], target, queries["place"][n], place) for n in range(low, high)]
        context.count("words looked up", len(targets["word"]))
        table = np.array(rows, np.int64).reshape(-1, 4)
        ones = np.ones(len(table), np.int8)
        return Seeds({"query": table[:, 0], "target": table[:, 1], "query_pos": table[:, 2], "target_pos": table[:, 3],
                      "length": np.full(len(table), WORD), "query_frame": ones, "target_frame": ones})


class WordPairs(SeedStage):
    """All pairs of a query and a target."""

    name, gives = "toy-all-pairs", Pairs

    def run(self, context: Context, records: Records | None) -> Pairs:
        query, target = np.meshgrid(context.queries.ordinals, context.targets.ordinals, indexing="ij")
        return Pairs({"query": query.ravel(), "target": target.ravel(), "score": np.zeros(query.size, np.int32)})


class SortDiagonal(SortStage):
    """Orders seeds by query, target and diagonal."""

    name, Options = "toy-diagonal", ToySorting
    gives_order = ("query", "target", "diagonal", "target_pos")

    def run(self, context: Context, records: Any) -> Records:
        keys = byte_keys([records.query, records.target, records.target_pos - records.query_pos, records.target_pos])
        return records.take(self.order(context, keys))


class ExtendExact(ExtendStage):
    """Extends seeds while residues are equal; one alignment per run of equal residues."""

    name = "toy-exact"
    takes_order = ("query", "target", "diagonal")
    gives_order = ("query", "target")
    columns = (Column("toy_residues", "str", "residues of the match"),)

    def run(self, context: Context, records: Any) -> Alignments:
        rows: list[tuple] = []
        seen = set()
        columns = (records.query, records.target, records.query_pos, records.target_pos)
        for query, target, query_pos, target_pos in zip(*(c.tolist() for c in columns), strict=True):
            at = int(context.queries.locate(query))
            residues = context.queries.searched()[context.queries.offsets[at] : context.queries.offsets[at + 1]]
            other = context.target(target)
            start, end = 0, WORD
            while min(query_pos, target_pos) + start > 0:
                if residues[query_pos + start - 1] != other[target_pos + start - 1]:
                    break
                start -= 1
            while query_pos + end < len(residues) and target_pos + end < len(other):
                if residues[query_pos + end] != other[target_pos + end]:
                    break
                end += 1
            row = (query, target, end - start, query_pos + start, query_pos + end, target_pos + start, target_pos + end)
            if row not in seen:
                seen.add(row)
                rows.append((*row, PROTEIN.decode(residues[query_pos + start : query_pos + end])))
        names = ["query", "target", "score", "query_start", "query_end", "target_start", "target_end", "toy_residues"]
        data: dict[str, Any] = {name: [r[n] for r in rows] for n, name in enumerate(names)}
        ones = np.ones(len(rows), np.int8)
        return Alignments({**data, "query_frame": ones, "target_frame": ones}, extra=self.columns)


class ScoreLength(ScoreStage):
    """Drops short matches; the bit score says how large the space was."""

    name, scoring = "toy-length", ToyScoring

    def run(self, context: Context, records: Any) -> Alignments:
        least = context.scoring.least[context.queries.locate(records.query)]
        kept = records.take(records.score >= least)
        context.count("too short", len(records) - len(kept))
        return kept.replace(bit_score=kept.score - np.log2(context.space.total_residues))


class Rank(SortStage):
    """The best targets of each query by their longest match; ties by number of the target."""

    name, Options = "toy-rank", ToySorting
    takes, gives, scopes = (Alignments,), Hits, ("reduce",)

    def run(self, context: Context, records: Any) -> Hits:
        assert context.targets is None
        keys = byte_keys([records.query, records.score, records.target, records.query_start, records.target_start],
                         [False, True, False, False, False])
        best = records.take(self.order(context, keys))
        kept: dict[tuple[int, int], int] = {}
        per_query: dict[int, int] = {}
        for n, key in enumerate(zip(best.query.tolist(), best.target.tolist(), strict=True)):
            if key not in kept and per_query.get(key[0], 0) < context.options.max_target_seqs:
                kept[key] = n
                per_query[key[0]] = per_query.get(key[0], 0) + 1
        first = best.take(np.array(sorted(kept.values()), np.int64))
        hits = Hits({"query": first.query, "target": first.target, "score": first.score, "bit_score": first.bit_score})
        return Hits(hits.data, alignments=best).take(np.arange(len(hits)))


class RankSeveral(Rank):
    """As toy-rank, and may stand in either scope."""

    name, scopes = "toy-rank-anywhere", ("unit", "reduce")


TOY = Pipeline("toy", "exact matches", "toy", (
    Slot("index.queries", "toy-query-words"),
    Slot("index.targets", "toy-target-words"),
    Slot("seed.words", "toy-words"),
    Slot("sort.diagonal", "toy-diagonal"),
    Slot("extend.exact", "toy-exact"),
    Slot("score.length", "toy-length"),
    Slot("sort.rank", "toy-rank", scope="reduce"),
))


@hookimpl
def seqloom_stages() -> list:
    return [QueryWords, TargetWords, WordSeeds, WordPairs, SortDiagonal, ExtendExact, ScoreLength, Rank, RankSeveral]


@hookimpl
def seqloom_families() -> list:
    return [ToyFamily]


@hookimpl
def seqloom_pipelines() -> list:
    return [TOY]


@hookimpl
def seqloom_maskers() -> list:
    return [ToyMasker]


@hookimpl
def seqloom_sorters() -> list:
    return [ToySorter]


def registry() -> Registry:
    """A registry with the toy alone."""
    import sys

    made = Registry()
    made.register(sys.modules[__name__], "toy")
    return made


def sequences(count: int, length: int, seed: int, residues: str = "ACD") -> SequenceBatch:
    """Random sequences of various lengths (0 to ``length``) over few residues, so that there are matches and ties."""
    generator = np.random.default_rng(seed)
    texts = ["".join(generator.choice(list(residues), generator.integers(0, length + 1))) for _ in range(count)]
    return SequenceBatch.of(PROTEIN, texts)


def expected(queries: SequenceBatch, targets: SequenceBatch, least: int = 4, most: int = 3) -> list[tuple]:
    """(query, target, score, [(query_start, target_start, length), …]) in order of report, by brute force."""
    found = []
    for q in range(len(queries)):
        hits = []
        for t in range(len(targets)):
            query, target = queries.text(q), targets.text(t)
            matches = [(-length, a, b) for a in range(len(query)) for b in range(len(target))
                       if (not a or not b or query[a - 1] != target[b - 1])
                       and (length := _common(query[a:], target[b:])) >= max(least, WORD)]
            if matches:
                hits.append((min(matches)[0], t, [(a, b, -n) for n, a, b in sorted(matches)]))
        found += [(q, t, -score, matches) for score, t, matches in sorted(hits)[:most]]
    return found


def _common(one: str, other: str) -> int:
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def found(hits: Hits) -> list[tuple]:
    """``hits`` in the form of ``expected``."""
    children = hits.alignments.rows()
    return [(h["query"], h["target"], h["score"],
             [(c["query_start"], c["target_start"], c["score"]) for c in children
              if (c["query"], c["target"]) == (h["query"], h["target"])]) for h in hits.rows()]
