"""Word hits on CUDA devices: packed targets are scanned there, and hits stay there for the ungapped extension.

Several devices share the pieces of a volume. Seeds come in the order of the CPU when somebody looks at them. Hits that
no device has room for, since the queries are full of repeats, are found by the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.context import Context
from seqloom.core.distinct import distinct
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.errors import BudgetError
from seqloom.core.index import Index
from seqloom.core.records import Records, Seeds
from seqloom.core.stages import Footprint, SeedStage, Shape
from seqloom.plugins.common.resident_cuda import VOLUME_RESIDUES, device_memory, on_devices
from seqloom.plugins.common.resident_index_cuda import OnDevices
from seqloom.plugins.nucleotide_blast.discontiguous_cpu import DiscontiguousWordHitsCpu
from seqloom.plugins.nucleotide_blast.discontiguous_reference import TEMPLATE_WORDS, DiscontiguousWordHits
from seqloom.plugins.nucleotide_blast.greedy_cpu import sequence
from seqloom.plugins.nucleotide_blast.hits_cuda import (
    BYTES_OF_COUNTERS,
    BYTES_PER_PIECE,
    BYTES_PER_PLACE,
    Cutoffs,
    DeviceHits,
    Kept,
    Outgrown,
    RankedWords,
    SeedsOnDevices,
    Strands,
    TargetChunks,
    Words,
    bases_with_room,
    bytes_of_hits,
    expected_hits,
    runs_of_pieces,
)
from seqloom.plugins.nucleotide_blast.index_reference import WORDS, compared_strands
from seqloom.plugins.nucleotide_blast.packed_cuda import (
    SCANNED,
    PackedTargets,
    bases_in_parts,
    packed_size,
    packed_targets,
    shape_of_part,
)
from seqloom.plugins.nucleotide_blast.paper_tables_cuda import TableWords
from seqloom.plugins.nucleotide_blast.paper_tables_reference import TABLE, table_of
from seqloom.plugins.nucleotide_blast.pieces import CHUNK, CHUNK_OVERLAP, is_masked
from seqloom.plugins.nucleotide_blast.query_words_cpu import KEPT_SHARE, SAMPLED, QueryWords
from seqloom.plugins.nucleotide_blast.sampled_words_cpu import sampled_table
from seqloom.plugins.nucleotide_blast.scan_cpu import QueryTable
from seqloom.plugins.nucleotide_blast.scan_cuda import extraction_runs
from seqloom.plugins.nucleotide_blast.scanned_cpu import Scanned, places_of
from seqloom.plugins.nucleotide_blast.seed_cpu import WordHitsCpu, extends_single_hits, keeps_saved
from seqloom.plugins.nucleotide_blast.seed_reference import (
    CHUNK_COLUMN,
    SHIFT_COLUMN,
    WordHits,
)
from seqloom.plugins.nucleotide_blast.strands import SENTINEL
from seqloom.plugins.nucleotide_blast.strands_cpu import complete
from seqloom.plugins.nucleotide_blast.ungapped_cpu import (
    grouped,
    laid_out_strands,
    scores_of_groups,
    strand_limits,
)
from seqloom.plugins.nucleotide_blast.ungapped_cuda import segments_of

WINDOW = 32
"""Bases that words are taken from."""
_PLACE, _PAIR, _KIND = 0.03, 1.0, 0.5
"""About how many nanoseconds a device takes for a place, and for a pair of equal words, and the host for each possible
word: a table of words of 13 bases took one core of an AMD EPYC 39 ms where one of 12 took 19 (900,000 words)."""
BYTES_OF_HIT_HERE = 8 + 4 + 4
"""Of one that is set aside."""
_ALONE = 0.9
"""Of a device's memory that a part of a volume, its hits and the table take in place of ``SCANNED`` where parts would
have less than half as many bases otherwise."""
BYTES_PER_SEED_HERE = 30
"""Of a hit on the host, where it is extended on the device: segments, which few grow to."""


def strands_of(context: Context, index: Index, length: int) -> Strands:
    """Strands of the queries, with a sentinel behind those of each; hits have ``length`` bases."""
    codes, begins = laid_out_strands(context)
    compared, shut = compared_strands(index)
    groups, indexed, opens = np.empty_like(codes), *np.empty((2, len(codes)), np.bool_)
    complete(codes, begins, shut, index["indexed"], length, groups, indexed, opens)
    as_searched = compared is index["strands"]
    compared = codes if as_searched else np.insert(compared, index["strand_offsets"][1:], SENTINEL)
    return Strands(codes, compared, begins, groups, indexed, opens)


def shares(pieces: TargetChunks, devices: int) -> list[tuple[int, int]]:
    """Pieces first … last − 1 for each device: about as many bases for all, fewer devices than pieces."""
    ends = np.cumsum(pieces.lengths)
    cuts = np.searchsorted(ends, ends[-1] * np.arange(1, devices) / devices) if len(ends) else np.empty(0, np.int64)
    bounds = distinct(np.r_[0, cuts, len(ends)]).astype(np.int64).tolist()
    return list(pairwise(bounds))


def seeds_on_devices(context: Context, kind: str, length: int, words: Callable[[QueryWords, Strands], Words],
                     follow: bool, sampled: Callable[[Strands], Words] | None = None) -> Seeds:
    """Seeds of all words of the index of a kind.

    Args:
        length: bases of a hit.
        words: gives for ``QueryWords`` and strands what is looked for.
        follow: as of ``seed_cpu.word_seeds``.
        sampled: gives words that are looked for in place of these, with ``Cutoffs``.

    Raises:
        BudgetError: there are more hits than devices have room for.
    """
    index, queries, targets = context.index(kind), context.queries, context.targets
    strands = index.kept(("strands on devices", length), lambda: strands_of(context, index, length))
    packed_bases, pieces = packed_targets(context), TargetChunks.of(targets.offsets, CHUNK, CHUNK_OVERLAP)
    of_widths = [own for width in distinct(index["width"]).tolist() if (own := QueryWords(width, index)).total]
    if sampled and of_widths:
        looked_for = [sampled(strands)]
    else:
        looked_for = [index.kept(("words on devices", own.width), partial(words, own, strands))
                      for own in of_widths]
    work, budget, aside = shares(pieces, device_count()), context.device_memory, bases_in_parts(context)
    chunks = np.stack([targets.ordinals[pieces.targets], pieces.chunks], axis=1).astype(np.int64)

    def done(hits: DeviceHits) -> DeviceHits:
        context.cancellation.check()
        context.advance(int(hits.pieces.lengths.sum()), len(looked_for) * targets.total_residues)
        return hits

    def search(task: tuple[int, tuple[int, int]]) -> list[tuple[int, DeviceHits]]:
        device, (begin, end) = task
        parts, own = list[tuple[int, DeviceHits]](), pieces.part(begin, end)

        def extend(first: int, kept: Kept, hits: DeviceHits) -> np.ndarray:
            return segments_of(context, hits, length, chunks, begin + first, kept)

        for wanted in looked_for:
            if aside and budget is not None:
                found = _set_aside(device, wanted, packed_bases, own, strands, budget, done,
                                   extend if wanted.saved_only else None)
            else:
                found = [(first, done(DeviceHits(device, wanted, packed_bases, own.part(first, last), strands, budget)))
                         for first, last in runs_of_pieces(own, wanted, len(strands.codes))]
            parts += [(begin + first, hits) for first, hits in found]
        return parts

    with short_switch_interval():
        found = on_devices(search, list(enumerate(work)), range(len(work))) if work else []
    parts = [part for some in found for part in some]
    context.count("table_hits", sum(part.looked_up for _, part in parts))

    def all_hits() -> Scanned:
        again = seeds_on_devices(context, kind, length, words, follow).unmade
        assert isinstance(again, SeedsOnDevices)
        return again.found

    make = SeedsOnDevices(parts, strands, chunks, length, queries.ordinals, follow, all_hits if sampled else None)
    return Seeds.later(sum(part.total for _, part in parts), make, (CHUNK_COLUMN, SHIFT_COLUMN))


def _set_aside(device: int, words: Words, bases: PackedTargets, pieces: TargetChunks, strands: Strands, budget: int,
               done: Callable[[DeviceHits], DeviceHits], extend: Callable[[int, Kept, DeviceHits], np.ndarray] | None
               ) -> list[tuple[int, DeviceHits]]:
    """Hits of words, found part by part of a volume in a turn of the current device; with the first piece of each.

    Where there turn out to be more than there is room for, they are looked for while nobody else has the device.

    Args:
        done: is given the hits of each part.
        extend: what extends hits of a part at once, so that bases and hits needn't come back for it; it is told the
            first piece, and what is kept for all parts.
    """
    room = SCANNED * budget
    most = bases_with_room(words, strands, pieces, room)
    alone = bases_with_room(words, strands, pieces, _ALONE * budget)
    total, longest = int(pieces.lengths.sum()), int(pieces.lengths.max(initial=0))
    if most < max(alone // 2, longest):
        most, room = alone, math.inf
    # About as many in all parts, so that each takes the place of the one before.
    most = min(most, total // max(1, -(-total // most)) + longest)
    runs, found = runs_of_pieces(pieces, words, len(strands.codes), most), list[tuple[int, DeviceHits]]()

    def find(kept: Kept) -> None:
        for first, last in runs[len(found) :]:
            own, piece = part_of(bases, pieces.part(first, last))
            grow = partial(extend, first, kept) if extend else None
            found.append((first, done(DeviceHits(device, words, own, piece, strands, budget, kept, room, grow))))

    while len(found) < len(runs):
        with device_memory().turn(room, budget, fills=True, most=room), suppress(Outgrown):
            find(Kept())
        room = math.inf
    return found


def part_of(bases: PackedTargets, pieces: TargetChunks) -> tuple[PackedTargets, TargetChunks]:
    """The bases of neighbouring pieces alone, and where these are among them."""
    part, first = bases.part(int(pieces.lows.min()), int((pieces.lows + pieces.lengths).max()))
    return part, pieces._replace(lows=pieces.lows - first)


def sampled_words(context: Context, index: Index, length: int, strands: Strands) -> Words:
    """Words by which hits of all queries are found (``sampled_words_cpu.py``), and what says which are saved."""
    width = sampled_width(int(np.diff(index["word_offsets"]).sum()), context.targets.total_residues, length)
    query = QueryTable(strands.compared, sequence(strands.compared).words, strands.indexed, strands.opens,
                       *places_of(strands.begins))
    limits = strand_limits(context).astype(np.int64).ravel()
    groups = grouped(context)
    eights = np.zeros(len(groups) // 8 + 2, np.uint64)
    eights.view(np.uint8)[: len(groups)] = groups
    cutoffs = Cutoffs(index["width"].astype(np.int32), scores_of_groups(context.scoring).astype(np.int32), eights,
                      limits)
    return RankedWords(width, length, sampled_table(query, index, length, width, context.threads), runs_of_word(width),
                       2 * width, cutoffs)


def sampled_width(words: int, residues: int, size: int) -> int:
    """Bases of words by which hits of ``size`` bases are found in the least time.

    Wider words are equal by chance less often, and more places are looked at; and the host makes a larger table.
    """
    def nanoseconds(width: int) -> float:
        return residues / (size - width + 1) * (_PLACE + _PAIR * words / 4**width) + _KIND * 4**width

    return min((min(width, size) for width in SAMPLED), key=nanoseconds)


def runs_of_word(width: int) -> np.ndarray:
    """``RankedWords.runs`` of words of neighbouring bases."""
    return np.array([[[2 * (WINDOW - width), (1 << 2 * width) - 1]]], np.int64)


def device_footprint(shape: Shape, stride: int, kinds: int, templates: int, extended: bool, kept: int = 1
                     ) -> Footprint:
    """Tables, strands, and hits of unrelated sequences.

    Args:
        stride: bases from one word of a target to the next.
        kinds: how many different words there can be in a table.
        extended: whether the device extends hits, so that they don't come to the host.
        kept: of so many hits by chance one is kept.
    """
    places, bits = 2 * shape.query_residues, (kinds // templates).bit_length() - 1
    table, part = kinds // 8 + kinds // 16, shape_of_part(shape)

    def hits(targets: Shape) -> int:
        return expected_hits(targets.target_residues // stride, places * templates, bits, stride - 1) // kept

    there = part or shape
    scanned = there.target_residues // stride
    found = 2 * min(scanned * templates, scanned * templates * places >> bits)
    device = (BYTES_OF_COUNTERS + table + (BYTES_PER_PLACE + 8 * templates) * places + BYTES_PER_PIECE * shape.targets
              + 4 * found + bytes_of_hits(hits(there)))
    if part:
        device += packed_size(part.target_residues).nbytes
    here = (BYTES_PER_SEED_HERE if extended else 120) + (BYTES_OF_HIT_HERE if part else 0)
    return Footprint(host=table + (18 + 8 * templates) * places + here * hits(shape), device=device,
                     in_turn=part is not None)


class _OnDevices(OnDevices):
    """What both kinds of word hits share. Subclasses name the stage of the CPU."""

    by_cpu: ClassVar[type[SeedStage]]
    # Many small units: a scan hardly counts, and what the host does for each is done by one thread here and there.
    batch_residues, flight = 500_000, 6
    volume_residues = 4 * VOLUME_RESIDUES  # four bases are a byte

    def _or_by_cpu(self, context: Context, seeds: Callable[[], Seeds]) -> Seeds:
        """What ``seeds_on_devices`` gives, or the seeds of the CPU where devices have no room for them, or targets have
        a mask: a launch is for whole ones."""
        if not is_masked(context.options):
            try:
                return seeds()
            except BudgetError:
                context.count("units without room on a device", 1)
        by_cpu = self.by_cpu(self.options).run(context, None)
        assert isinstance(by_cpu, Seeds)
        return by_cpu


class WordHitsCuda(_OnDevices, WordHits):
    __doc__ = WordHits.__doc__
    by_cpu = WordHitsCpu
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        stride, kinds, _ = self.word_counts(shape)
        options = shape.options
        if options and extends_single_hits(options, size := options.word_size):
            width = sampled_width(2 * shape.query_residues, shape.target_residues, size)
            return device_footprint(shape, size - width + 1, 4**width, 1, True, KEPT_SHARE)
        return device_footprint(shape, stride, kinds, 1, not (options and options.window_size))

    def seconds(self, shape: Shape) -> float:
        return scan_seconds(shape, self.word_counts(shape)[2])

    def run(self, context: Context, records: Records | None) -> Seeds:
        size, index = context.options.word_size, context.index(WORDS)

        def words(own: QueryWords, strands: Strands) -> Words:
            if (table := table_of(index, own.width)) is not None:
                return TableWords.of(table, own, size, strands, index)
            return RankedWords(own.width, size, own.table(strands.begins, 4**own.width), runs_of_word(own.width),
                               2 * own.width)

        def sampled(strands: Strands) -> Words:
            made: Words = index.kept("sampled on devices", partial(sampled_words, context, index, size, strands))
            return made

        one_by_one = keeps_saved(context, size) and TABLE not in index.parameters
        return self._or_by_cpu(context, lambda: seeds_on_devices(
            context, WORDS, size, words, True, sampled if one_by_one else None))


class DiscontiguousWordHitsCuda(_OnDevices, DiscontiguousWordHits):
    __doc__ = DiscontiguousWordHits.__doc__
    by_cpu = DiscontiguousWordHitsCpu
    reads_residues = False

    def footprint(self, shape: Shape) -> Footprint:
        _, kinds, _, templates = self.word_counts(shape)
        return device_footprint(shape, 1, kinds, templates, True)

    def seconds(self, shape: Shape) -> float:
        return scan_seconds(shape, *self.word_counts(shape)[2:])

    def run(self, context: Context, records: Records | None) -> Seeds:
        options = context.options
        length, templates, bits = options.template_length, options.templates(), 2 * options.word_size
        runs = extraction_runs(templates, length)
        runs[:, :, 0] += 2 * (WINDOW - length)

        def words(own: QueryWords, strands: Strands) -> Words:
            return RankedWords(length, length, own.table(strands.begins, len(templates) << bits), runs, bits)

        return self._or_by_cpu(context, lambda: seeds_on_devices(
            context, TEMPLATE_WORDS, length, words, len(templates) == 1))


def scan_seconds(shape: Shape, kinds: int, templates: int = 1) -> float:
    """A pass over packed bases; and stages behind, with hits by chance of so many kinds of words of all templates."""
    cells = 2 * shape.query_residues * shape.target_residues
    return shape.target_residues / 1e10 + cells / 2e15 + cells * templates**2 / kinds / 1e8
