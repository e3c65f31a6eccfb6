"""Checks of nucleotide BLAST's CUDA stages: in the simulator with tiny tiles, on a device with whole ones.

``python -m tests.plugins.nucleotide_blast.on_cuda CHECK…`` runs some of them, or all; ``NUMBA_ENABLE_CUDASIM=1``
simulates. ``--residues N`` goes on with random cases until the targets had so many bases.
"""

import math
import random
from collections import Counter
from itertools import count
from typing import Any
from unittest import mock

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.cuda.jit import simulating
from seqloom.core.engine.memory import MemorySink
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.sequences import Intervals, SequenceBatch
from seqloom.plugins.common import radix_cuda, resident_cuda
from seqloom.plugins.common.resident_cuda import devices_for
from seqloom.plugins.nucleotide_blast import (
    gapped_cuda,
    greedy_cuda,
    hits_cuda,
    packed_cuda,
    paper_kernels_cuda,
    paper_tables_cuda,
    reached_cuda,
    scan_cuda,
    seed_cuda,
    traceback_cuda,
)
from seqloom.plugins.nucleotide_blast.hits_cuda import DeviceHits, Strands
from seqloom.testing import assert_same_hits, run_pipeline

from ..checks import carry_out
from .sequences import ambiguous, batch, homologues, random_bases, relative, reverse_complement
from .test_kernels import OPTIONS, PIPELINES, chunked_modules, compare, related
from .test_paper_tables import KINDS, seeds_of

if SIMULATED:
    scan_cuda.THREADS, scan_cuda.PER_THREAD, scan_cuda.HITS = 4, 4, 3
    paper_kernels_cuda.NUMBERS = 8
    radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD = 5, 2
    hits_cuda.SLACK = 1  # so that there is too little room at first


def few(source: random.Random) -> tuple[SequenceBatch, SequenceBatch]:
    """Queries and targets that a simulator gets through."""
    first, second = random_bases(source, 60), random_bases(source, 40)
    targets = [relative(source, first, 0.02), "", reverse_complement(relative(source, first[10:] + second, 0.03)),
               random_bases(source, 9) + "NR" + second]
    return batch(first, second[:30] + "N" + second[20:], "ACG"), batch(*targets)


def cases(seed: int) -> tuple[SequenceBatch, SequenceBatch]:
    return few(random.Random(seed)) if SIMULATED else homologues(seed)


def check_megablast() -> None:
    """Hits and segments are those of the reference, of wide words and of narrower ones."""
    for seed, options in enumerate([{}, {"word_size": 12}] if SIMULATED else OPTIONS["megablast"]):
        counts = compare("megablast", *cases(seed), options, fast="cuda")
        assert counts["extend.ungapped"] > 1, counts


def check_blastn() -> None:
    """Narrow tables, whole words, masked ends; and pairs of hits, which the CPU extends."""
    every: list[dict[str, Any]] = [{"word_size": 7}, {"window_size": 30, "off_diagonal_range": 6},
                                   {"strand": "minus", "soft_masking": False}, {"word_size": 12}]
    for seed, options in enumerate(every[:2] if SIMULATED else every):
        pipeline = "blastn" if seed % 2 else "blastn-short"
        counts = compare(pipeline, *cases(seed), {"evalue": 1000, **options}, fast="cuda")
        assert counts["extend.ungapped"] > 1, counts


def check_ambiguities() -> None:
    """Ambiguities of queries, by which words of small tables are completed."""
    source = random.Random(4)
    text = random_bases(source, 70 if SIMULATED else 700)
    queries = batch(ambiguous(source, text, 0.04), ambiguous(source, text, 0.08))
    counts = compare("blastn", queries, batch(text, "ACG" + reverse_complement(text)), {"evalue": 1000}, fast="cuda")
    assert counts["extend.ungapped"] > 1, counts


def check_sampled() -> None:
    """Hits by words of several widths in place of BLAST's, over masked bases, and runs that many words are in."""
    chosen = seed_cuda.sampled_width
    try:
        for seed, (size, width) in enumerate([(11, 11), (13, 9), (28, 8)] if SIMULATED else
                                             [(size, width) for size in (11, 12, 16, 28) for width in range(6, 12)]):
            source = random.Random(seed)
            text = random_bases(source, 70 if SIMULATED else 700)
            repeat = "CA" * 9 if SIMULATED else "CA" * 40
            queries = batch(text, ambiguous(source, text[9:50], 0.03), repeat + reverse_complement(text[:40]))
            targets = batch(relative(source, text, 0.05), "ACG" + reverse_complement(text), repeat + text[5:])
            seed_cuda.sampled_width = lambda *_, width=width: width
            counts = compare("megablast" if seed % 2 else "blastn", queries, targets,
                             {"word_size": size, "evalue": 1000, "dust": "yes"}, fast="cuda")
            assert counts["extend.ungapped"] > 1, counts
    finally:
        seed_cuda.sampled_width = chosen


def check_tracebacks() -> None:
    """Alignments of repeats, with gaps, by ambiguities and at ends; and what a device has no room for."""
    traced, usual = [], (traceback_cuda.ROOM, greedy_cuda.DIAGONALS, traceback_cuda._TracedSides.scripts)
    modules, on_devices = (gapped_cuda, traceback_cuda), traceback_cuda.on_devices

    def told(there: Any, kept: np.ndarray) -> Any:
        traced.append((len(there._numbers), len(kept)))
        return usual[2](there, kept)

    traceback_cuda._TracedSides.scripts = told
    try:
        every: list[tuple[int, int, dict[str, Any]]] = [
            (256, 1, {}), (16, 4, {"reward": 1, "penalty": -3}), (256, 4, {"xdrop_gap_final": 20, "dust": "no"}),
            (256, 1, {"strand": "minus", "perc_identity": 90.0})]
        for seed, (greedy_cuda.DIAGONALS, share, options) in enumerate(every[:2] if SIMULATED else every):
            traceback_cuda.ROOM = usual[0] // share
            for module in modules if share > 1 else ():  # two devices
                module.devices_for = lambda _: (0, 0)
                module.on_devices = lambda work, items, devices: [work(item) for item in items]
            greedy_cuda.align_kernel.cache_clear()
            source = random.Random(seed)
            unit, other = (random_bases(source, 24 if SIMULATED else size) for size in (171, 700))
            copies = 3 if SIMULATED else 30
            query = relative(source, unit * copies, 0.05) + relative(source, other, 0.1)
            targets = [relative(source, unit * copies + other, 0.08), reverse_complement(query)[9:-5],
                       other[:12] + "N" + other[13:], query[5:], ""]
            counts = compare("megablast", batch(query, other[2:], ambiguous(source, unit * 2, 0.02)), batch(*targets),
                             {"word_size": 8 if SIMULATED else 12, "evalue": 1000, **options}, fast="cuda")
            assert counts["extend.greedy-traceback"] > 3, counts
    finally:
        traceback_cuda.ROOM, greedy_cuda.DIAGONALS, traceback_cuda._TracedSides.scripts = usual
        for module in modules:
            module.devices_for, module.on_devices = devices_for, on_devices
        greedy_cuda.align_kernel.cache_clear()
    assert any(kept < all_ for all_, kept in traced) and sum(kept for _, kept in traced) > 10, traced


TABLE_OPTIONS: list[tuple[str, dict[str, Any], int]] = [
    ("blastn", {}, 1 << 24), ("megablast", {"word_size": 16}, 0), ("blastn-short", {"word_size": 4}, 1 << 24),
    ("blastn", {"word_size": 8, "strand": "minus"}, 0), ("megablast", {}, 1 << 24),
    ("megablast", {"word_size": 12}, 0), ("blastn-short", {"word_size": 7}, 1 << 24)]
"""Pipeline, options, and pairs of words of a launch."""


def check_tables() -> None:
    """G-BLASTN's kernels with BLAST's tables: seeds in the order of the reference, whether in one launch or in one for
    each target; words at one place and at many, ambiguities, whole words; and rows of all slots."""
    launch, usual = paper_tables_cuda.TableWords.launch, paper_tables_cuda.MOST_PAIRS
    with mock.patch.object(paper_tables_cuda.TableWords, "launch", autospec=True, side_effect=launch) as launched:
        for seed, (pipeline, options, most) in enumerate(TABLE_OPTIONS[:3] if SIMULATED else 4 * TABLE_OPTIONS):
            source = random.Random(seed)
            queries, targets = related(source)
            if SIMULATED:
                text = random_bases(source, 40)
                queries = batch(text, ambiguous(source, text[5:], 0.06), "CA" * 9 + text[:17])
                # What is equal to a query goes on behind the end of the first target.
                targets = batch(reverse_complement(text[19]) * 4 + text[20:29], text[29:],
                                "CA" * 6 + reverse_complement(text[3:]), "", relative(source, text, 0.06))
            for name in KINDS.values():
                wanted, _ = seeds_of(name, "reference", pipeline, queries, targets, options)
                paper_tables_cuda.MOST_PAIRS, before = most, launched.call_count
                try:
                    found, _ = seeds_of(name, "cuda", pipeline, queries, targets, options)
                finally:
                    paper_tables_cuda.MOST_PAIRS = usual
                assert found.rows() == wanted.rows() != []
                assert most or launched.call_count >= before + len(targets)
    for seed, name in enumerate(KINDS.values()):
        options = {"word_size": 12, "evalue": 1000, "dust": "yes"}
        counts = compare(("megablast", "blastn")[seed], *cases(seed), options, (f"index.words={name}",), fast="cuda")
        assert counts["extend.ungapped"] > 1, counts


def check_discontiguous() -> None:
    """Words of one template, and of two."""
    for seed, options in enumerate([{}, {"template_type": "coding_and_optimal", "template_length": 21}]):
        counts = compare("dc-megablast", *cases(seed), {"evalue": 1000, **options}, fast="cuda")
        assert counts["extend.ungapped"] > 0, counts


def check_database_masks() -> None:
    """Targets with a mask, softly and hard: the host looks for words, devices extend these and trace alignments."""
    for seed, (pipeline, kind) in enumerate([("megablast", "soft"), ("megablast", "hard"), ("dc-megablast", "hard")]):
        for more in range(1 if SIMULATED else 20):
            source = random.Random(100 * seed + more)
            text = random_bases(source, 90 if SIMULATED else 900)
            targets = batch(relative(source, text, 0.03), "ACG" + reverse_complement(text), text[5:60] + text)
            rows = [(number, first, first + source.randint(1, 12)) for number in range(3)
                    for first in range(source.randint(0, 9), len(text) - 20, 40)]
            stretches, none = Intervals.of(rows), Intervals.empty()
            targets = targets.masked(stretches, none) if kind == "soft" else targets.masked(none, stretches)
            options = {"evalue": 1000, f"db_{kind}_mask": "drawn"} | ({"word_size": 8} if seed < 2 else {})
            counts = compare(pipeline, batch(text, ambiguous(source, text[9:70], 0.03)), targets, options, fast="cuda")
            assert counts["extend.ungapped"] > 1, counts


def check_chunks() -> None:
    """Targets in chunks, several devices, and launches that are cut since keys have few bits."""
    modules, step = chunked_modules(), 120 if SIMULATED else 400
    before = [module.CHUNK for module in modules], seed_cuda.device_count, seed_cuda.on_devices, hits_cuda.KEY_BITS
    seed_cuda.device_count = lambda: 2
    seed_cuda.on_devices = lambda work, items, devices: [work((0, item)) for _, item in items]
    try:
        for module in modules:
            module.CHUNK = step
        source = random.Random(8)
        text = random_bases(source, 150 if SIMULATED else 900)
        queries = batch(text[: 90 if SIMULATED else 900], text[50:])
        for hits_cuda.KEY_BITS in (18,) if SIMULATED else (63, 18):
            counts = compare("megablast", queries, batch(relative(source, text * 2, 0.02), text[9:]),
                             {"word_size": 16}, fast="cuda")
            assert counts["extend.ungapped"] > 2, counts
    finally:
        for module, chunk in zip(modules, before[0], strict=True):
            module.CHUNK = chunk
        seed_cuda.device_count, seed_cuda.on_devices, hits_cuda.KEY_BITS = before[1:]


def check_memory() -> None:
    """Hits that a device has no room for are found by the CPU."""
    usual = hits_cuda.BYTES_PER_HIT
    hits_cuda.BYTES_PER_HIT = 1 << 40
    try:
        for pipeline in ("megablast", "dc-megablast"):
            counts = compare(pipeline, *cases(1), {"evalue": 1000}, fast="cuda")
            assert counts["extend.ungapped"] > 0, counts
    finally:
        hits_cuda.BYTES_PER_HIT = usual


def check_parts() -> None:
    """Volumes that devices have no room for: word hits are found part by part and extended later; several widths of
    words, two devices, and seeds that are looked at."""
    usual, found = seed_cuda.bases_with_room, list[int]()
    modules, step = chunked_modules(), 120 if SIMULATED else 5000
    before = [module.CHUNK for module in modules], seed_cuda.device_count, seed_cuda.on_devices, packed_cuda._WHOLE

    def two_chunks(*_: Any) -> int:
        found.append(2 * step)
        return found[-1]

    seed_cuda.bases_with_room, packed_cuda._WHOLE = two_chunks, 1 << 40
    try:
        for module in modules:
            module.CHUNK = step
        for seed, pipeline in enumerate(("megablast", "dc-megablast") if SIMULATED else PIPELINES):
            queries, targets = cases(20 + seed)
            options = {"evalue": 10.0, "dust": "no"}
            compare(pipeline, queries, targets, options, fast="cuda", device_memory=1 << 34)
            wanted = run_pipeline(pipeline, queries, targets, options, backend="cpu")
            assert len(wanted)
            for devices in (1, 2):
                seed_cuda.device_count = lambda devices=devices: devices
                seed_cuda.on_devices = lambda work, items, numbers: [work((0, item)) for _, item in items]
                assert_same_hits(wanted, run_pipeline(pipeline, queries, targets, options, backend="cuda",
                                                      device_memory=1 << 34))
        assert len(found) > 3
    finally:
        for module, chunk in zip(modules, before[0], strict=True):
            module.CHUNK = chunk
        seed_cuda.bases_with_room = usual
        seed_cuda.device_count, seed_cuda.on_devices, packed_cuda._WHOLE = before[1:]


def check_reached() -> None:
    """Alignments of volumes that devices have no room for: devices make them, with the bases around hits alone, of all
    groups at a time or of one, or the host if these would be too many; both strands, ambiguities, soft and hard masks,
    and stretches that overlap."""
    share, most, whole = reached_cuda.REACHED, reached_cuda.MOST_PARTS, packed_cuda._WHOLE
    copied, aligned = list[tuple[int, int]](), list[int]()
    align, copy = greedy_cuda.Sides.align, reached_cuda.Reached.copy

    def told_align(there: greedy_cuda.Sides, runs: bool) -> np.ndarray:
        aligned.append(there.count)
        return align(there, runs)

    def told_copy(there: reached_cuda.Reached, targets: packed_cuda.PackedTargets) -> packed_cuda.PackedTargets:
        made = copy(there, targets)
        copied.append((len(there.spans), len(targets.bits) - len(made.bits)))
        return made

    try:
        packed_cuda._WHOLE = 1 << 40
        greedy_cuda.Sides.align, reached_cuda.Reached.copy = told_align, told_copy  # type: ignore[method-assign]
        for seed in range(4 if SIMULATED else 100):
            of_one = seed % 2 == 0
            reached_cuda.REACHED = 0.0 if of_one else share
            reached_cuda.MOST_PARTS = 2 if seed % 8 == 2 else 1000
            source = random.Random(seed)
            text, other = random_bases(source, 60 if SIMULATED else 300), random_bases(source, 35)
            far = 400 if SIMULATED else source.randint(0, 3000)
            targets = batch(
                random_bases(source, far) + relative(source, text, 0.04) + random_bases(source, source.randint(0, 40))
                + reverse_complement(text)[5:] + random_bases(source, far) + text[9:30] + "N" + text[31:] + other,
                "ACG", reverse_complement(relative(source, text, 0.05)) + random_bases(source, far), text[5:] + other)
            rows = [(number, first, first + source.randint(1, 12)) for number in (0, 2)
                    for first in range(source.randint(0, 9), far, 50)]
            options: dict[str, Any] = {"word_size": 11, "evalue": 1000, "dust": "no"}
            if seed % 3 == 2:
                hard = seed % 2 == 0
                masks = (Intervals.of(rows), Intervals.empty())
                targets = targets.masked(*(masks[::-1] if hard else masks))
                options[f"db_{'hard' if hard else 'soft'}_mask"] = "drawn"
            before = len(aligned), len(copied)
            counts = compare("megablast", batch(text, ambiguous(source, text[9:50], 0.03) + other), targets, options,
                             fast="cuda", device_memory=1 << 34)
            assert counts["extend.greedy-traceback"] > 3, counts
            calls, parts = len(aligned) - before[0], copied[before[1] :]
            if reached_cuda.MOST_PARTS == 2:
                assert not calls and not parts, parts
                continue
            # Both stages three times; of one group at a time there are more.
            assert len(parts) >= calls >= 6 and sum(aligned[before[0] :]) > 10, parts
            assert not of_one or len(parts) > 12, parts
            assert not SIMULATED or all(saved > 0 for _, saved in parts), parts
    finally:
        reached_cuda.REACHED, reached_cuda.MOST_PARTS, packed_cuda._WHOLE = share, most, whole
        greedy_cuda.Sides.align, reached_cuda.Reached.copy = align, copy
    assert any(spans > 1 for spans, _ in copied), copied


def check_turns() -> None:
    """Whole searches in parts with several units side by side, whose stages share as much memory as one needs or a
    little more; and more hits than were to be expected, which are looked for again by whoever has the device alone."""
    whole, chunk, modules, alone = packed_cuda._WHOLE, seed_cuda.CHUNK, chunked_modules(), list[bool]()
    turn, find, made, finds = resident_cuda.DeviceMemory.turn, DeviceHits._find, radix_cuda.DeviceWords, count()

    def told(memory: resident_cuda.DeviceMemory, size: float = math.inf, *more: Any, **others: Any) -> Any:
        alone.append(size == math.inf)
        return turn(memory, size, *more, **others)

    def find_less(hits: DeviceHits, strands: Strands, budget: int | None, most: float) -> None:
        find(hits, strands, budget, 1 if most < math.inf and next(finds) % 3 == 2 else most)

    def made_between(capacity: int) -> Any:
        with simulating:  # the simulator replaces what makes arrays while a kernel of the same module runs
            return made(capacity)

    try:
        packed_cuda._WHOLE, radix_cuda.DeviceWords = 1 << 40, made_between  # type: ignore[misc,assignment]
        resident_cuda.DeviceMemory.turn, DeviceHits._find = told, find_less  # type: ignore[method-assign]
        for module in modules:
            module.CHUNK = 120 if SIMULATED else 5000
        queries, targets = cases(31)
        targets = SequenceBatch.of(NUCLEOTIDE, [targets.text(n) for n in range(len(targets))] * 3)
        options = {"evalue": 10.0, "dust": "no"}
        wanted = run_pipeline("megablast", queries, targets, options, backend="cpu")
        assert len(wanted)
        for budget in (1_300_000 if SIMULATED else 3_000_000, 6_000_000, 1 << 30):
            sink, counters = MemorySink(), Counter[str]()
            rows = run_pipeline("megablast", queries, targets, options, backend="cuda", device_memory=budget,
                                 threads=4, volume_residues=150 if SIMULATED else 3000, sink=sink)
            assert_same_hits(wanted, rows, f"with {budget} bytes")
            for slots in sink.stats:
                for slot in slots.values():
                    counters.update(slot.counters)
            assert counters["extended"] and not counters["units without room on a device"], counters
    finally:
        packed_cuda._WHOLE, radix_cuda.DeviceWords = whole, made  # type: ignore[misc]
        resident_cuda.DeviceMemory.turn, DeviceHits._find = turn, find  # type: ignore[method-assign]
        for module in modules:
            module.CHUNK = chunk
    assert any(alone) and not all(alone)


def check_pipeline() -> None:
    """Whole searches give the hits of the CPU, over several volumes."""
    for pipeline in ("megablast",) if SIMULATED else PIPELINES:
        queries, targets = cases(11)
        options = {"evalue": 10.0, "dust": "no"}
        wanted = run_pipeline(pipeline, queries, targets, options, backend="cpu")
        assert len(wanted)
        assert_same_hits(wanted, run_pipeline(pipeline, queries, targets, options, backend="cuda",
                                              volume_residues=150 if SIMULATED else 1500))


def check_random(residues: int, seed: int = 0) -> None:
    """Random cases, until the targets had so many bases: all stages on small ones, whole searches on larger ones."""
    done = 0
    while done < residues:
        source, generator = random.Random(seed), np.random.default_rng(seed)
        pipeline = PIPELINES[seed % len(PIPELINES)]
        options = source.choice(OPTIONS[pipeline])
        compare(pipeline, *related(source), options, fast="cuda")
        queries = [random_bases(source, source.randint(1, 3000)) for _ in range(source.randint(1, 6))]
        targets = ["".join(NUCLEOTIDE.decode(generator.integers(0, 4, int(size)).astype(np.uint8)))
                   for size in generator.integers(0, 90_000, 8)]
        targets += [relative(source, source.choice(queries), 0.05) for _ in range(300)]
        sequences = batch(*queries), batch(*targets)
        found = [run_pipeline(pipeline, *sequences, options, backend=backend, threads=threads, volume_residues=size)
                 for backend, threads, size in (("cpu", 4, 1 << 26), ("cuda", 1, 1 << 26), ("cuda", 4, 150_000))]
        assert_same_hits(found[0], found[1])
        assert_same_hits(found[0], found[2])
        done, seed = done + sequences[1].total_residues, seed + 1
    print(f"{done:,} bases of random targets, {seed} cases")


CHECKS = {"megablast": check_megablast, "blastn": check_blastn, "ambiguities": check_ambiguities,
          "sampled": check_sampled, "tables": check_tables, "tracebacks": check_tracebacks,
          "discontiguous": check_discontiguous, "chunks": check_chunks, "database_masks": check_database_masks,
          "memory": check_memory, "parts": check_parts, "reached": check_reached, "turns": check_turns,
          "pipeline": check_pipeline}


if __name__ == "__main__":
    carry_out(__doc__, CHECKS, check_random)
