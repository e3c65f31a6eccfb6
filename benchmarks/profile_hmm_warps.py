"""The experiments of Jiang, Ganesan & Yao (2018, CUDAMPF++) on a CUDA device of today, their kernels and ours.

    python -m benchmarks.profile_hmm_warps FASTA [--copies 12] [--parts balance rates blocks rows]
                                           [--lengths 10 … 2405] [--images FOLDER]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled, models are random proteins
made into profiles as phmmer does. Rates are cells a second (residues × nodes), without compiling and without copying
targets and models to the device. The parts:

    balance   table 3: rows and end marks of blocks, their deviations, and padding
    rates     figures 6 and 7: MSV and SSV by the model's length, of kernels with as many sequences a warp as the length
              allows and of those with one (CUDAMPF), with two states in a register and with four; beside them our scan
              for the same threshold, and whole stages, held to the same pairs. Draws both figures in the folder
    blocks    table 6: targets in balanced blocks, and one behind the other as they come
    rows      table 1: 32 sequences a warp, by how many registers of a lane hold states
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context
from seqloom.core.options import build_options
from seqloom.core.sequences import SequenceBatch
from seqloom.testing import assert_same_records

from .charts import save_chart
from .smith_waterman_gpu import best_of, proteins, records, show, shuffled_copies
from .timing import Timing

PARTS = ("balance", "rates", "blocks", "rows")
LENGTHS = (10, 23, 45, 60, 92, 128, 180, 260, 368, 520, 735, 1040, 1440, 1800, 2405)
BLOCK_LENGTHS = (45, 180, 368, 735, 1440, 2405)
ROWS = range(20, 61, 5)
MODELS = ("msv", "ssv")
NUMBERS = {2: "two in a register", 4: "four in a register"}


def contexts(lengths: Sequence[int], targets: SequenceBatch) -> Iterator[Context]:
    """Random models, one at a time, beside all targets."""
    from seqloom.plugins.profile_hmm.options import PhmmerOptions
    from seqloom.plugins.profile_hmm.query_index_cpu import SequenceProfilesCpu

    options = build_options(PhmmerOptions, {})
    for residues in proteins(lengths, np.random.default_rng(7)):
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


def kernel_seconds(sent: Any, context: Context, model: str, numbers: int, sequences: int,
                   most_rows: int | None = None) -> tuple[float, Any]:
    """Of one kernel with all targets on the device, and its layout."""
    from numba import cuda
    from seqloom.plugins.profile_hmm.index_reference import profile_of
    from seqloom.plugins.profile_hmm.msv_warps_cuda import FORMS, MOST_ROWS, layout_of

    profile = profile_of(context, 0)
    layout = layout_of(profile.length, numbers, most_rows or MOST_ROWS, sequences)
    table = sent.sent_model(profile.bytes, FORMS[model, numbers], layout)

    def work() -> None:
        sent.begin(profile.bytes, model, numbers, layout, table)
        cuda.synchronize()

    return best_of(work), layout


def scan_seconds(context: Context) -> float:
    """Of our scan on the device for targets that may pass."""
    from seqloom.plugins.common.diagonal_scan_cuda import Asked, good_diagonals, scores_profile
    from seqloom.plugins.profile_hmm.index_reference import profile_of
    from seqloom.plugins.profile_hmm.seed_msv_cuda import Lengths, least_segments

    profile, lengths = profile_of(context, 0), Lengths.of(context)
    cutoffs, _ = least_segments(profile, lengths, context.options.largest_p("F1"))
    scores = np.int16(profile.bytes.bias) - profile.bytes.cost.T.astype(np.int16)
    asked = [Asked(0, scores_profile(scores), profile.length, cutoffs)]
    return best_of(lambda: good_diagonals(asked, context.targets, classes=lengths.classes))


def cells(context: Context) -> int:
    return int(context.queries.total_residues * context.targets.total_residues)


def timing(what: str, seconds: float, context: Context, note: str = "") -> Timing:
    return Timing(what, seconds, f"{cells(context) / seconds / 1e9:,.0f} GCUPS{note}")


def balance(targets: SequenceBatch) -> Iterator[Timing]:
    for blocks, what in ((True, "balanced blocks"), (False, "as they come")):
        found = laid_out(targets, blocks)[0].balance()
        yield Timing(f"{found.blocks} {what}", 0.0, f"{found.rows:,.0f} rows, deviation {found.rows_deviation:.1f}; "
                     f"{found.ends:,.1f} end marks, deviation {found.ends_deviation:.1f}; "
                     f"PRR {found.padding_to_real:.2e}")


def rates(targets: SequenceBatch, lengths: Sequence[int], images: Path | None) -> Iterator[Timing]:
    from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns
    from seqloom.plugins.profile_hmm.seed_msv_cuda import MsvFilterCuda
    from seqloom.plugins.profile_hmm.seed_msv_warps_cuda import MsvWarps, MsvWarpsOptions

    sent = SentColumns(*laid_out(targets))
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {model: {} for model in MODELS}
    for length, context in zip(lengths, contexts(lengths, targets), strict=True):
        def seen(model: str, name: str, seconds: float, length: int = length, context: Context = context) -> None:
            drawn[model].setdefault(name, []).append((length, cells(context) / seconds / 1e9))

        for model in MODELS:
            for numbers, in_register in NUMBERS.items():
                for most, side_by_side in ((32, "several a warp"), (1, "one a warp")):
                    seconds, layout = kernel_seconds(sent, context, model, numbers, most)
                    name = f"{side_by_side}, {in_register}"
                    seen(model, name, seconds)
                    yield timing(f"{length} {model}, {name}", seconds, context,
                                 f"; S {layout.sequences}, H {layout.rows}{'' if layout.held else ', shared memory'}")
        seconds = scan_seconds(context)
        for model in MODELS:
            seen(model, "our scan", seconds)
        yield timing(f"{length} our scan", seconds, context)
        stages: dict[str, Any] = {"ours": MsvFilterCuda()}
        stages |= {f"{model} by warps": MsvWarps(build_options(MsvWarpsOptions, {"model": model})) for model in MODELS}
        found = [stage.run(context, None) for stage in stages.values()]
        for pairs in found[1:]:
            assert_same_records(found[0], pairs)
        for name, stage in stages.items():
            seconds = best_of(lambda stage=stage, context=context: stage.run(context, None))
            yield timing(f"{length} stage, {name}", seconds, context, f"; {len(found[0])} pairs")
    for number, model in enumerate(MODELS, 6):
        if images:
            images.mkdir(parents=True, exist_ok=True)
            save_chart(images / f"{model}_by_length.svg",
                       f"{model.upper()} by the length of the model (figure {number} of CUDAMPF++)",
                       "nodes", "10⁹ cells a second", drawn[model])


def blocks(targets: SequenceBatch, lengths: Sequence[int]) -> Iterator[Timing]:
    from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns

    ways = {"blocks": SentColumns(*laid_out(targets)), "as they come": SentColumns(*laid_out(targets, False))}
    for length, context in zip(lengths, contexts(lengths, targets), strict=True):
        for model in MODELS:
            times = {name: kernel_seconds(sent, context, model, 2, 32)[0] for name, sent in ways.items()}
            for name, seconds in times.items():
                yield timing(f"{length} {model}, {name}", seconds, context,
                             f"; {times['as they come'] / seconds:.1f} times as fast" if name == "blocks" else "")


def rows(targets: SequenceBatch) -> Iterator[Timing]:
    from seqloom.plugins.profile_hmm.msv_warps_cuda import SentColumns, longest_held

    sent = SentColumns(*laid_out(targets))
    for numbers, in_register in NUMBERS.items():
        lengths = [longest_held(numbers, 32, most) for most in ROWS]
        for most, context in zip(ROWS, contexts(lengths, targets), strict=True):
            for model in MODELS:
                seconds, _ = kernel_seconds(sent, context, model, numbers, 32, most)
                yield timing(f"H {most} {model}, {in_register}", seconds, context)


def measure(targets: SequenceBatch, parts: Sequence[str], lengths: Sequence[int], images: Path | None
            ) -> Iterator[Timing]:
    if "balance" in parts:
        yield from balance(targets)
    if "rates" in parts:
        yield from rates(targets, lengths, images)
    if "blocks" in parts:
        yield from blocks(targets, [length for length in BLOCK_LENGTHS if length <= max(lengths)])
    if "rows" in parts:
        yield from rows(targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--copies", type=int, default=12)
    parser.add_argument("--lengths", type=int, nargs="*", default=LENGTHS)
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where the figures are drawn")
    given = parser.parse_args()
    targets = shuffled_copies(records(given.fasta), given.copies, np.random.default_rng(1))
    print(f"{targets.total_residues:,} residues, {len(targets):,} targets", flush=True)
    show(measure(targets, given.parts, given.lengths, given.images))


if __name__ == "__main__":
    main()
