"""The experiments of Jiang, Ganesan & Yao (2018, CUDAMPF++): their kernels and ours on a CUDA device of today.

    python -m benchmarks.profile_hmm_warps measure TABLE FASTA [--copies 12] [--parts balance rates blocks rows]
                                           [--lengths 10 … 2405] [--threads 16] [--tiny]
    python -m benchmarks.profile_hmm_warps draw TABLE FOLDER

Targets are the proteins of a FASTA file and copies of them with their residues shuffled, models are random proteins
made into profiles as phmmer does. Rates are 10⁹ cells a second (residues × nodes, GCUPS), the best of a few runs after
a first, without compiling and without copying targets and models to the device. The parts:

    balance   table 3: rows and end marks of blocks, their deviations, and padding
    rates     figures 6 to 9: MSV and SSV by the model's length, of kernels with as many sequences a warp as the length
              allows, up to 32, of those with 64 and 128, where the length allows these, and of those with one
              (CUDAMPF), with two states in a register and with four; beside them our scan for the same threshold; and
              whole stages of MSV and of SSV alone, those of the CPU by one thread and by all, held to the same pairs:
              notes say DIFFERENT where they aren't
    blocks    table 6: targets in balanced blocks, and one behind the other as they come
    rows      table 1: 32 sequences a warp, by how many registers of a lane hold states

``--tiny`` takes a few short sequences, which numba's simulator is through with in moments (``NUMBA_ENABLE_CUDASIM=1``).
What fails is told, and the other parts are measured all the same. Where there is no device, the CPU's share of
``rates`` is.

The table has a line per measurement: part, database, nodes of the model (of ``rows``, registers), what, place, rate or
what else is said, note; apart by tabs. ``draw`` writes the same as tables for people, beside the charts.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.backends import cuda_available, simulated
from seqloom.core.context import Context
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.testing import assert_same_records

from .charts import save_chart
from .measurements import Row, carry_out, commands, drawn, written
from .smith_waterman_gpu import best_of, proteins, records, shuffled_copies

LENGTHS = (10, 23, 45, 60, 92, 128, 180, 260, 368, 520, 735, 1040, 1440, 1800, 2405)
BLOCK_LENGTHS = (45, 180, 368, 735, 1440, 2405)
ROWS = range(20, 61, 5)
MODELS = {"msv": (6, 8), "ssv": (7, 9)}
"""With the figures that show their rates and their speed-ups."""
NUMBERS = {2: "two in a register", 4: "four in a register"}
SIDE_BY_SIDE = {32: "several a warp", 1: "one a warp"}
MORE = "64 and more a warp"
"""Where it is so many: sequences share lanes then."""
SCAN, STAGE, ALONE, OURS, CPU = "our scan", "stage", "stage of ssv alone", "our stage", "cpu"
RATE = "10⁹ cells a second"
COMPARED = (f"{SIDE_BY_SIDE[32]}, {NUMBERS[2]}", SCAN, OURS)
"""What figures 8 and 9 hold against the CPU's stage."""
SEED = 7
"""Of the models."""
_TINY, _TINY_ROWS = (9,), (2, 3)


@dataclass(frozen=True)
class Bench:
    """Targets, lengths of models, and threads of the host."""

    name: str
    targets: SequenceBatch
    lengths: Sequence[int]
    threads: int
    tiny: bool = False

    def best(self, work: Callable[[], Any]) -> float:
        """Seconds of the quickest run."""
        return best_of(work, 0 if self.tiny else None)

    def row(self, part: str, nodes: int, what: str, place: str, seconds: float, context: Context,
            note: str = "") -> Row:
        """A rate of all targets."""
        rate = context.queries.total_residues * self.targets.total_residues / seconds / 1e9
        return Row(part, self.name, nodes, what, place, rate,
                   "; ".join(filter(None, [f"{1e3 * seconds:.3f} ms", note])))


def contexts(lengths: Sequence[int], targets: SequenceBatch) -> Iterator[Context]:
    """Random models, one at a time, beside all targets."""
    from seqloom.plugins.profile_hmm.options import PhmmerOptions
    from seqloom.plugins.profile_hmm.query_index_cpu import SequenceProfilesCpu

    options = build_options(PhmmerOptions, {})
    for residues in proteins(lengths, np.random.default_rng(SEED)):
        query = SequenceBatch.of(PROTEIN, [residues])
        index = SequenceProfilesCpu().run(Context(queries=query, options=options), query)
        yield Context(queries=query, targets=targets, options=options, indexes={index.kind: index})


def laid_out(targets: SequenceBatch, blocks: bool = True) -> Any:
    """Columns of all targets, and what their lengths cost."""
    from seqloom.plugins.profile_hmm.msv_cpu import length_costs
    from seqloom.plugins.profile_hmm.msv_warps_cuda import warps_of_device
    from seqloom.plugins.profile_hmm.warp_blocks import block_count, in_blocks, in_sequence

    lay = in_blocks if blocks else in_sequence
    columns = lay(targets.searched(), targets.offsets[:-1], targets.lengths,
                  block_count(len(targets), warps_of_device()))
    return columns, length_costs(targets.lengths)[0]


def kernel_seconds(bench: Bench, sent: Any, context: Context, model: str, numbers: int, sequences: int,
                   most_rows: int | None = None) -> tuple[float, Any]:
    """Of one kernel with all targets on the device, and its layout."""
    from numba import cuda
    from seqloom.plugins.profile_hmm.index_reference import profile_of
    from seqloom.plugins.profile_hmm.msv_warps_cuda import FORMS, MOST_ROWS, layout_of

    profile = profile_of(context, 0)
    layout = layout_of(profile.length, numbers, most_rows or MOST_ROWS, sequences)
    table = sent.sent_model(profile.bytes, FORMS[numbers], layout)

    def work() -> None:
        sent.begin(profile.bytes, model, numbers, layout, table)
        cuda.synchronize()

    return bench.best(work), layout


def scan_seconds(bench: Bench, context: Context) -> float:
    """Of our scan on the device for targets that may pass."""
    from seqloom.plugins.common.diagonal_scan_cuda import Asked, good_diagonals, scores_profile
    from seqloom.plugins.profile_hmm.index_reference import profile_of
    from seqloom.plugins.profile_hmm.seed_msv_cuda import Lengths, least_segments

    profile, lengths = profile_of(context, 0), Lengths.of(context)
    cutoffs, _ = least_segments(profile, lengths, context.options.largest_p("F1"))
    scores = np.int16(profile.bytes.bias) - profile.bytes.cost.T.astype(np.int16)
    asked = [Asked(0, scores_profile(scores), profile.length, cutoffs)]
    return bench.best(lambda: good_diagonals(asked, context.targets, classes=lengths.classes))


def balance(bench: Bench) -> Iterator[Row]:
    """Table 3."""
    for blocks, what in ((True, "balanced blocks"), (False, "as they come")):
        found = laid_out(bench.targets, blocks)[0].balance()
        for place, value in (("blocks", found.blocks), ("M, mean", found.rows), ("M, deviation", found.rows_deviation),
                             ("end marks, mean", found.ends), ("end marks, deviation", found.ends_deviation),
                             ("PRR", found.padding_to_real)):
            yield Row("balance", bench.name, 0, what, place, value,
                      f"{len(bench.targets):,} targets, {found.residues:,} residues")


def rates(bench: Bench) -> Iterator[Row]:
    """Figures 6 to 9."""
    on_device = cuda_available()
    if on_device:
        from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns

        sent = SentColumns(*laid_out(bench.targets))
    for length, context in zip(bench.lengths, contexts(bench.lengths, bench.targets), strict=True):
        if on_device:
            yield from of_kernels(bench, sent, length, context)
        yield from of_stages(bench, length, context)


def of_kernels(bench: Bench, sent: Any, length: int, context: Context) -> Iterator[Row]:
    from seqloom.plugins.profile_hmm.msv_warps_cuda import layout_of
    from seqloom.plugins.profile_hmm.warp_blocks import WIDTH

    for model in MODELS:
        for numbers, in_register in NUMBERS.items():
            widest = layout_of(length, numbers, most_sequences=WIDTH).sequences
            more = {widest: MORE} if widest > max(SIDE_BY_SIDE) else {}
            for most, side_by_side in (SIDE_BY_SIDE | more).items():
                seconds, layout = kernel_seconds(bench, sent, context, model, numbers, most)
                held = "" if layout.held else ", shared memory"
                yield bench.row("rates", length, model, f"{side_by_side}, {in_register}", seconds, context,
                                f"S {layout.sequences}, H {layout.rows}{held}")
    yield bench.row("rates", length, SCAN, SCAN, scan_seconds(bench, context), context)


def of_stages(bench: Bench, length: int, context: Context) -> Iterator[Row]:
    """Whole stages of MSV and of SSV alone."""
    from seqloom.plugins.profile_hmm.seed_msv_cpu import MsvFilterCpu, SsvFilterCpu

    of_msv: dict[str, Any] = {}
    alone: dict[str, Any] = {}
    if cuda_available():
        from seqloom.plugins.profile_hmm.seed_msv_cuda import MsvFilterCuda, SsvFilterCuda
        from seqloom.plugins.profile_hmm.seed_msv_warps_cuda import MsvWarps, MsvWarpsOptions, SsvWarps, WarpOptions

        of_msv = {OURS: MsvFilterCuda()} | {
            f"{model} by warps": MsvWarps(build_options(MsvWarpsOptions, {"model": model})) for model in MODELS}
        alone = {OURS: SsvFilterCuda(), "by warps": SsvWarps(build_options(WarpOptions, {}))}
    yield from equal_stages(bench, STAGE, length, context, of_msv, MsvFilterCpu())
    yield from equal_stages(bench, ALONE, length, context, alone, SsvFilterCpu())


def equal_stages(bench: Bench, what: str, length: int, context: Context, on_device: Mapping[str, Any],
                 on_cpu: Any) -> Iterator[Row]:
    """Stages, held to the pairs of the first one."""
    stages = {name: (stage, 1) for name, stage in on_device.items()}
    stages |= {f"{CPU}, {threads} thread{'s' * (threads > 1)}": (on_cpu, threads)
               for threads in sorted({1, bench.threads})}
    expected: Any = None
    for name, (stage, threads) in stages.items():
        around = replace(context, threads=threads)
        pairs = stage.run(around, None)
        expected = pairs if expected is None else expected
        seconds = bench.best(lambda s=stage, a=around: s.run(a, None))  # type: ignore[misc]
        note = f"{len(pairs):,} pairs"
        yield bench.row("rates", length, what, name, seconds, context,
                        note if equal(expected, pairs) else f"DIFFERENT: {note}")


def equal(expected: Any, found: Any) -> bool:
    try:
        assert_same_records(expected, found)
    except AssertionError:
        return False
    return True


def blocks(bench: Bench) -> Iterator[Row]:
    """Table 6."""
    from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns

    ways = {"blocks": SentColumns(*laid_out(bench.targets)),
            "as they come": SentColumns(*laid_out(bench.targets, False))}
    lengths = bench.lengths if bench.tiny else [length for length in BLOCK_LENGTHS if length <= max(bench.lengths)]
    for length, context in zip(lengths, contexts(lengths, bench.targets), strict=True):
        for model in MODELS:
            times = {name: kernel_seconds(bench, sent, context, model, 2, 32)[0] for name, sent in ways.items()}
            for name, seconds in times.items():
                yield bench.row("blocks", length, model, name, seconds, context,
                                f"blocks {times['as they come'] / times['blocks']:.1f} times as fast")


def rows(bench: Bench) -> Iterator[Row]:
    """Table 1."""
    from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns, longest_held

    sent, counts = SentColumns(*laid_out(bench.targets)), _TINY_ROWS if bench.tiny else ROWS
    for numbers, in_register in NUMBERS.items():
        lengths = [longest_held(numbers, 32, most) for most in counts]
        for most, length, context in zip(counts, lengths, contexts(lengths, bench.targets), strict=True):
            for model in MODELS:
                seconds, _ = kernel_seconds(bench, sent, context, model, numbers, 32, most)
                yield bench.row("rows", most, f"{model}, {in_register}", RATE, seconds, context, f"{length} nodes")


PARTS: Mapping[str, Callable[[Bench], Iterable[Row]]] = {
    "balance": balance, "rates": rates, "blocks": blocks, "rows": rows}
WITHOUT_DEVICE = ("rates",)


def tiny_targets() -> SequenceBatch:
    """Short proteins, of which two are the models'."""
    few = [*proteins((12, 7), np.random.default_rng(1)), *2 * proteins(_TINY, np.random.default_rng(SEED))]
    return SequenceBatch.of(PROTEIN, [PROTEIN.decode(residues) for residues in few])


def small_for_the_simulator() -> None:
    """Few threads, so that a simulated device is done in moments."""
    from seqloom.plugins.common import diagonal_tiles_cuda

    diagonal_tiles_cuda.LANE_COUNTS, diagonal_tiles_cuda.ROW_COUNTS = (1, 2, 4), (4,)
    diagonal_tiles_cuda.LEAST_SPREAD, diagonal_tiles_cuda.WARPS = 4, 1


def measure(arguments: argparse.Namespace) -> int:
    """Write the table; how many parts failed."""
    if simulated():
        small_for_the_simulator()
    parts = [part for part in arguments.parts if part in WITHOUT_DEVICE or cuda_available()]
    if without := [part for part in arguments.parts if part not in parts]:
        print(f"there is no CUDA device: left out are {', '.join(without)}", file=sys.stderr)
    generator, failed = np.random.default_rng(1), 0
    if not arguments.tiny and not arguments.fasta:
        raise SystemExit("say which FASTA file has the proteins")
    with arguments.table.open("w", encoding="utf-8") as table:
        for path in [""] if arguments.tiny else arguments.fasta:
            targets = shuffled_copies(records(path), arguments.copies, generator) if path else tiny_targets()
            name = Path(path).name.split(".")[0] if path else "tiny"
            print(f"{name}: {len(targets):,} targets, {targets.total_residues:,} residues", flush=True)
            bench = Bench(name, targets, _TINY if arguments.tiny else arguments.lengths, arguments.threads,
                          arguments.tiny)
            failed += written(table, name, {part: partial(PARTS[part], bench) for part in parts})
    return failed


Series = dict[str, list[tuple[float, float]]]


def draw(arguments: argparse.Namespace) -> int:
    """Draw the charts, and write the table anew."""
    return drawn(arguments, "profile_hmm_warps", draw_part)


def draw_part(folder: Path, name: str, part: str, database: str, rows: list[Row]) -> None:
    """The charts of a part."""
    if part == "rates":
        for model, (figure, other) in MODELS.items():
            found = by_length(rows, model, SCAN)
            if found:
                save_chart(folder / f"{model}_by_length.svg",
                           f"{model.upper()} by the length of the model (figure {figure} of CUDAMPF++)", "nodes", RATE,
                           found)
            if times := speed_ups(rows, model):
                save_chart(folder / f"{model}_speedup.svg",
                           f"{model.upper()} beside the CPU's stage by the length of the model (figure {other})",
                           "nodes", "times as fast", times)
    elif part == "blocks":
        gains: Series = {}
        for model in MODELS:
            found = by_length(rows, model)
            gains[model.upper()] = [(length, rate / slow) for (length, rate), (_, slow) in zip(
                found["blocks"], found["as they come"], strict=False)]
        save_chart(folder / f"{name}.svg", f"Targets in balanced blocks, {database}", "nodes", "times as fast", gains)
    elif part == "rows":
        save_chart(folder / f"{name}.svg", f"32 sequences a warp by registers of states, {database}",
                   "registers of a lane that hold states", RATE,
                   {what: by_length(rows, what)[RATE] for what in dict.fromkeys(row.what for row in rows)})


def by_length(rows: Sequence[Row], *what: str) -> Series:
    """Rates of these things by place."""
    found: Series = {}
    for row in rows:
        if row.what in what:
            found.setdefault(row.place, []).append((row.query, max(1e-7, row.seconds)))
    return found


def speed_ups(rows: Sequence[Row], model: str) -> Series:
    """How many times as fast as the CPU's stage a model's kernel, our scan and our stage are."""
    stage = ALONE if model == "ssv" else STAGE
    found, stages = by_length(rows, model, SCAN, stage), by_length(rows, stage)
    return {f"{place}, beside {cpu}": [(length, rate / slow) for (length, rate), (_, slow) in zip(
        found[place], stages[cpu], strict=False)]
        for cpu in stages if cpu.startswith(CPU) for place in COMPARED if place in found}


def main() -> None:
    parser, command = commands(__doc__, measure, draw)
    command.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    command.add_argument("--copies", type=int, default=12)
    command.add_argument("--lengths", type=int, nargs="+", default=LENGTHS)
    command.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of the CPU's stage, beside one")
    command.add_argument("--tiny", action="store_true", help="a few short sequences, once")
    carry_out(parser)


if __name__ == "__main__":
    main()
