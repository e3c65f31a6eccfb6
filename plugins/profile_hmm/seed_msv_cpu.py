"""``msv`` on the CPU: SSV of all targets in eight-bit lanes, MSV of those where a second segment could count; and
``ssv``, which is without that.

Short models go over many targets side by side, and so do all of them where a CPU looks residues up in one instruction;
else longer models are striped over the lanes. Of these most targets may be sieved out first (``ssv_striped_cpu.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import NamedTuple
from seqloom.core.context import Context
from seqloom.core.distinct import distinct, ranked
from seqloom.core.engine.threads import run_tasks
from seqloom.core.index import Index
from seqloom.core.kernels.simd import BYTE_LANES
from seqloom.core.records import Pairs, Records
from seqloom.core.sequences import offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.lanes import FEW, LAID
from seqloom.plugins.common.stretches_cpu import LEAST_PIECE, Stretches

from .columns import PAIR_COLUMNS
from .index_reference import profile_of
from .msv_cpu import decided, least_segments, length_costs, look_up_scores, scores_and_p_values, segment_scores
from .msv_striped_cpu import by_rows
from .profile import SearchProfile
from .seed_msv_reference import MsvFilter, SsvFilter, candidates
from .ssv_striped_cpu import LEAST_LENGTH, SIEVES, StripedScores, sieve
from .ssv_striped_cpu import segment_scores as striped_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CHUNK_CELLS = 1 << 31
"""Between two looks at the cancellation flag: some hundredths of a second."""
TOGETHER, _NODES, _GROUPS_PER_THREAD = 1 << 18, 1 << 16, 4
"""Pairs that are decided together, and nodes of their models, at most; groups of models for each of several threads."""
_FEW_RESIDUES, _LEAST_REACH, _LAYOUTS = 1 << 22, 256, 5
"""Targets of so many residues in all are laid out for models of several lengths, twice as long each time, the first of
this one; the last layout is for all that are longer."""
_STEPS = (256, 512, 1024, 2048, 4096)
"""Residues by which pieces of few targets may follow each other, beside whole targets."""


class _Layout(NamedTuple):
    """Targets side by side, for models up to some length.

    Attributes:
        lanes: of stretches of the targets. first: i8[n], the first stretch of each target.
        stretches: how many there are.
    """

    lanes: Index
    first: NDArray[np.int64]
    stretches: int


class Targets:
    """The candidates of a query.

    Attributes:
        numbers: i8[n], global numbers.
        whole: the candidates, none of them cut. residues: of all of them.
        costs, nulls: of each candidate. kinds: the same of one candidate of each length, and kind: which each is of.
    """

    def __init__(self, context: Context, numbers: NDArray[np.int64], lengths_of_models: Iterable[int]) -> None:
        places = context.targets.locate(numbers)
        self.numbers = numbers
        self.whole = Stretches.of(context.targets, places, None)
        self.residues = int(self.whole.lengths.sum())
        lengths, self.kind = ranked(self.whole.lengths)
        self.kinds = length_costs(lengths)
        self.costs, self.nulls = (of_kinds[self.kind] for of_kinds in self.kinds)
        reaches = {self._reach(length) for length in lengths_of_models if length < LEAST_LENGTH}
        self._layouts = {reach: _layout(context, places, reach, self.residues) for reach in sorted(reaches)}

    def _reach(self, length: int) -> int:
        """Longest model of those that have a layout together with one of this length."""
        if self.residues > _FEW_RESIDUES:
            return LEAST_LENGTH
        reach = max(_LEAST_REACH, 1 << (length - 1).bit_length())
        return min(reach, LEAST_LENGTH) if reach < _LEAST_REACH << (_LAYOUTS - 1) else LEAST_LENGTH

    def layout(self, length: int) -> _Layout:
        """For a model of this length."""
        return self._layouts[self._reach(length)]


def _layout(context: Context, places: NDArray[np.int64], reach: int, residues: int) -> _Layout:
    """Long ones of few targets would leave the lanes beside them idle; they are cut into pieces that suit best."""
    # A segment has at most as many residues as the model has nodes.
    reach, step = min(reach, int(context.queries.lengths.max())), None
    if residues <= _FEW_RESIDUES:
        lengths = context.targets.lengths[places]
        step = min((max(LEAST_PIECE, 4 * reach), *_STEPS), key=lambda step: _columns(lengths, reach, step))
    stretches = Stretches.of(context.targets, places, reach, step)
    few = len(context.queries) <= FEW and residues > _FEW_RESIDUES
    lanes = (stretches.grouped if few else stretches.interleaved)(np.arange(len(stretches)))
    return _Layout(lanes, np.searchsorted(stretches.owners, places), len(stretches))


def _columns(lengths: NDArray[np.int64], reach: int, step: int) -> int:
    """Columns of all groups of lanes together, if targets of some lengths are cut with this step."""
    pieces = np.maximum(1, -(-(lengths - reach) // step))
    rest = np.sort(np.concatenate([lengths - (pieces - 1) * step, np.full(int((pieces - 1).sum()), step + reach)]))
    return int(rest[::-1][::BYTE_LANES].sum())


class MsvFilterCpu(MsvFilter):
    __doc__ = MsvFilter.__doc__
    backend = "cpu"
    cells_per_second = 5e10

    def footprint(self, shape: Shape) -> Footprint:
        # Interleaved targets, which for every thread may be a part of them again; rows of a model and its tables;
        # scores of each target.
        reach = min(shape.longest_query, LEAST_LENGTH)
        piece = min(shape.longest_target, max(LEAST_PIECE, 4 * reach) + reach)
        side_by_side = shape.target_residues * 3 // 2 + piece * BYTE_LANES
        if shape.target_residues <= _FEW_RESIDUES:
            side_by_side *= min(_LAYOUTS, max(1, shape.queries))
        each = side_by_side // 4 + shape.longest_target * BYTE_LANES + (2 * BYTE_LANES + 256) * shape.longest_query
        together = 64 * max(shape.targets, min(TOGETHER, shape.queries * shape.targets)) + 32 * _NODES
        return Footprint(host=side_by_side + shape.threads * (each + together) + 100 * shape.targets)

    def run(self, context: Context, records: Records | None) -> Pairs:
        everything = len(context.queries) * context.targets.total_residues
        shared = None
        if records is None:
            shared = Targets(context, candidates(context, 0, None), context.queries.lengths.tolist())

        def of_queries(queries: Sequence[int], threads: int) -> Pairs:
            targets = shared
            if targets is None:
                lengths = [profile_of(context, query).length for query in queries]
                targets = Targets(context, candidates(context, queries[0], records), lengths)
            found = passing(context, queries, targets, threads, False, everything, self.multihit)
            context.count("passed", len(found))
            return found

        queries = [int(n) for n in context.queries.ordinals]
        groups = [[query] for query in queries] if shared is None else _groups(context, queries, len(shared.numbers))
        if len(groups) >= 2 * context.threads:
            parts = run_tasks(context.threads, lambda group: of_queries(group, 1), groups)
        else:
            parts = [of_queries(group, context.threads) for group in groups]
        return Pairs.concat(parts) if parts else Pairs.empty(PAIR_COLUMNS)


class SsvFilterCpu(SsvFilter, MsvFilterCpu):
    __doc__ = SsvFilter.__doc__


def _groups(context: Context, queries: list[int], targets: int) -> list[list[int]]:
    """Queries whose pairs with so many targets are decided together, or each by itself where threads would be idle."""
    most = max(1, len(queries) // (_GROUPS_PER_THREAD * context.threads)) if context.threads > 1 else len(queries)
    groups: list[list[int]] = []
    nodes = 0
    for query, length in zip(queries, context.queries.lengths.tolist(), strict=True):
        nodes += length
        group = groups[-1] if groups else []
        if not groups or (len(group) + 1) * targets > TOGETHER or nodes > _NODES or len(group) == most:
            groups.append([])
            nodes = length
        groups[-1].append(query)
    return groups


def passing(context: Context, queries: Sequence[int], targets: Targets, threads: int, sieved: bool = False,
            everything: int = 0, multihit: bool = True) -> Pairs:
    """Pairs of some queries that pass MSV (``multihit``) or SSV alone, in order of queries and targets.

    ``sieved`` says that most of them do, ``everything`` residues are those of the stage in all, of which progress is
    told where it isn't 0.
    """
    if not len(targets.numbers):
        return Pairs.empty(PAIR_COLUMNS)
    profiles = [profile_of(context, query) for query in queries]
    best = np.empty((len(queries), len(targets.numbers)), np.uint8)
    for profile, of_query in zip(profiles, best, strict=True):
        if profile.length < LEAST_LENGTH:
            of_query[:] = _segments(context, profile, targets, threads)
        else:
            _segments_striped(context, profile, targets, threads, sieved, multihit, of_query)
        if everything:
            context.advance(targets.residues, everything)
    of_bytes, whole = [profile.bytes for profile in profiles], targets.whole
    found = decided(of_bytes, best, targets.costs, multihit)
    models, chosen = np.nonzero(found.again)
    if len(chosen):
        asked, places = ranked(models)
        found.ended_j[models, chosen], found.overflow[models, chosen] = by_rows(
            [of_bytes[n] for n in asked.tolist()], places, whole.residues, whole.begins[chosen], whole.ends[chosen],
            targets.costs[chosen], found.begin_j[models, chosen], multihit)
        context.count("with J" if multihit else "row by row", len(chosen))
    statistics = ([getattr(profile.model, field) for profile in profiles] for field in ("msv_mu", "msv_lambda"))
    scores, p_values = scores_and_p_values(found.ended_j, found.overflow, targets.costs, targets.nulls,
                                           *(np.array(values, np.float64) for values in statistics))
    models, kept = np.nonzero(p_values <= context.options.largest_p("F1"))
    return Pairs(
        {
            "query": np.array(queries)[models],
            "target": targets.numbers[kept],
            "score": scores[models, kept],
            "filter_p": p_values[models, kept],
            "filter_null": targets.nulls[kept],
        },
        PAIR_COLUMNS,
    )


def _segments(context: Context, profile: SearchProfile, targets: Targets, threads: int) -> NDArray[np.uint8]:
    """u1[n]: best segment score of each candidate, many of them side by side."""
    lanes, first_of_target, stretches = targets.layout(profile.length)
    best = np.empty((len(lanes["starts"]) - 1) * BYTE_LANES, np.int8)
    tables = look_up_scores(profile.bytes)
    most = _CHUNK_CELLS if "columns" in lanes.arrays else min(_CHUNK_CELLS, LAID * profile.length)
    _in_parts(context, lanes["starts"], profile.length, threads,
              lambda first, last: segment_scores(tables, profile.length, lanes, first, last, best), most)
    of_stretches = np.empty(stretches, np.uint8)
    of_stretches[lanes["order"]] = _unsigned(best[:stretches])
    return np.maximum.reduceat(of_stretches, first_of_target)


def _segments_striped(context: Context, profile: SearchProfile, targets: Targets, threads: int, sieved: bool,
                      multihit: bool, found: NDArray[np.uint8]) -> None:
    """Fill u1[n] with the best segment score of each candidate, one after the other; 0 where it is too small."""
    scores, whole = StripedScores(profile.bytes), targets.whole
    begins, ends, looked_at = whole.begins, whole.ends, None
    if SIEVES and not sieved:
        looked_at = _may_pass(context, profile, scores, targets, threads, multihit)
        begins, ends = begins[looked_at], ends[looked_at]
    best = np.empty(len(begins), np.int8)
    _in_parts(context, offsets_of(ends - begins), profile.length, threads,
              lambda a, b: striped_scores(scores, whole.residues, begins[a:b], ends[a:b], best[a:b]))
    if looked_at is None:
        found[:] = _unsigned(best)
    else:
        found[:] = 0
        found[looked_at] = _unsigned(best)


def _may_pass(context: Context, profile: SearchProfile, scores: StripedScores, targets: Targets,
              threads: int, multihit: bool) -> NDArray[np.int64] | slice:
    """Which candidates have a segment that suffices; all of them where any would."""
    whole, model = targets.whole, profile.model
    least = least_segments(profile.bytes, *targets.kinds, model.msv_mu, model.msv_lambda,
                           context.options.largest_p("F1"), multihit)
    if not least.any():
        return slice(None)
    # A lane that holds score − 128 is above what is one less; a score of 0 is always there.
    cutoffs = (np.maximum(least, 1) - 129).astype(np.int8)[targets.kind]
    above = np.empty(len(whole), np.bool_)
    _in_parts(context, offsets_of(whole.lengths), profile.length, threads,
              lambda a, b: sieve(scores, whole.residues, whole.begins[a:b], whole.ends[a:b], cutoffs[a:b],
                                 above[a:b]))
    return np.flatnonzero(above | (least == 0)[targets.kind])


def _in_parts(context: Context, ends: NDArray[np.int64], length: int, threads: int,
              work: Callable[[int, int], None], most: int = _CHUNK_CELLS) -> None:
    """``work(first, last)`` for parts of n things of which the k-th ends after i8[n + 1] ``ends[k + 1]`` residues, of
    about ``most`` cells at most."""
    count = len(ends) - 1
    parts = min(count, max(threads, -(-length * int(ends[-1]) // most)))
    cuts = np.searchsorted(ends, np.arange(1, parts) * int(ends[-1]) // parts)
    bounds = distinct(np.concatenate([[0], cuts, [count]])).tolist()

    def part(n: int) -> None:
        context.cancellation.check()
        work(bounds[n], bounds[n + 1])

    run_tasks(threads, part, range(len(bounds) - 1))


def _unsigned(scores: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Scores of lanes that hold score − 128."""
    return scores.view(np.uint8) ^ np.uint8(128)
