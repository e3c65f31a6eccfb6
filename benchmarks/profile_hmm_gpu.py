"""hmmsearch on CUDA devices: what kernels take to compile, each filter beside the CPU's, whole commands.

    python -m benchmarks.profile_hmm_gpu FASTA MODELS [--parts compile filters lengths slots command core]
                                         [--copies 60] [--threads 16] [--images FOLDER]

Targets are the proteins of a FASTA file and copies of them with their residues shuffled. The parts:

    compile   the first search on a machine, and the second, of FASTA alone, with kernels kept in a folder of their own
    filters   MSV, and each filter on the pairs that the one before leaves, on the device and on threads of the host,
              kernels compiled and targets on the device before; in FASTA and as many copies as suit one volume, both
              held to the same pairs
    lengths   the MSV filter, SSV before it, by length of the model, on the device and on threads of the host, likewise:
              CUDAMPF++'s figures 6 to 9, one model of 10 to 2,410 positions at a time, drawn in a folder
    slots     the search of all copies on the device, twice in one process: seconds of each slot, of all units together,
              and its counters, of which some say how long units waited for a turn and for the device
    command   whole commands on the device, with room for all targets there and for a tenth, and on all threads, which
              must write the same rows
    core      the whole command on one thread, in FASTA alone; ``--copies`` times that is what all would take at most
"""

import argparse
import gzip
import io
import json
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.context import Context
from seqloom.core.options import build_options
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.testing import assert_same_records

from .blastp_gpu import SHARE
from .charts import save_chart
from .smith_waterman_gpu import best_of, proteins, records, show, shuffled_copies, with_room_for, write_fasta
from .timing import Timing, seconds_of

PARTS = ("compile", "filters", "lengths", "slots", "command", "core")
LENGTHS = tuple(range(10, 2411, 50))
"""Of models; each is made of a random protein, as phmmer makes it."""
PAPER_GCUPS = {"MSV, Tesla K40 (CUDAMPF++)": 283.9, "SSV, Tesla K40 (CUDAMPF++)": 471.7}
"""Of CUDAMPF++, at most; nearly the same for all lengths."""
_VOLUME_COPIES = 12


def models_of(path: str) -> ModelBatch:
    from seqloom.plugins.profile_hmm.hmmfile import read_models
    from seqloom.plugins.profile_hmm.reader import model_batch

    return model_batch([model for model, *_ in read_models(io.StringIO(_text(path)), path)])


def _text(path: str) -> str:
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return str(file.read())


def filters(models: ModelBatch, targets: SequenceBatch, threads: int) -> Iterator[Timing]:
    """Each filter on both back ends, the second time."""
    from seqloom.plugins.profile_hmm.extend_bias_cpu import BiasFilterCpu
    from seqloom.plugins.profile_hmm.extend_bias_cuda import BiasFilterCuda
    from seqloom.plugins.profile_hmm.extend_forward_cpu import ForwardFilterCpu
    from seqloom.plugins.profile_hmm.extend_forward_cuda import ForwardFilterCuda
    from seqloom.plugins.profile_hmm.extend_viterbi_cpu import ViterbiFilterCpu
    from seqloom.plugins.profile_hmm.extend_viterbi_cuda import ViterbiFilterCuda
    from seqloom.plugins.profile_hmm.index_cpu import HmmProfilesCpu
    from seqloom.plugins.profile_hmm.options import ProfileOptions
    from seqloom.plugins.profile_hmm.seed_msv_cpu import MsvFilterCpu
    from seqloom.plugins.profile_hmm.seed_msv_cuda import MsvFilterCuda

    index = HmmProfilesCpu().run(Context(queries=models), models)
    context = Context(queries=models, targets=targets, threads=threads, options=build_options(ProfileOptions, {}),
                      indexes={index.kind: index})
    pairs: Any = None
    for on_cpu, on_device in ((MsvFilterCpu, MsvFilterCuda), (BiasFilterCpu, BiasFilterCuda),
                              (ViterbiFilterCpu, ViterbiFilterCuda), (ForwardFilterCpu, ForwardFilterCuda)):
        given, found = pairs, []
        for back_end, stage in (("cuda", on_device()), ("cpu", on_cpu())):
            stage.run(context, given)
            context.counters.clear()
            begin, before = time.perf_counter(), time.process_time()
            pairs = stage.run(context, given)
            seconds, used = time.perf_counter() - begin, time.process_time() - before
            found.append(pairs)
            cells = _cells(context, given)
            note = f"{used:.2f} s of the processor; {cells / seconds / 1e9:.0f} · 10⁹ cells a second"
            if back_end == "cuda" and given is not None:
                note += f"; {context.counters['by the host']} of {len(given)} pairs by the host"
            yield Timing(f"{stage.name} on {back_end}", seconds, note)
        assert_same_records(*found)


def lengths(targets: SequenceBatch, threads: int, images: Path | None) -> Iterator[Timing]:
    """The filter on both back ends by length of the model, the least of some rounds after a first."""
    from seqloom.plugins.profile_hmm.options import PhmmerOptions
    from seqloom.plugins.profile_hmm.query_index_cpu import SequenceProfilesCpu
    from seqloom.plugins.profile_hmm.seed_msv_cpu import MsvFilterCpu
    from seqloom.plugins.profile_hmm.seed_msv_cuda import MsvFilterCuda

    options = build_options(PhmmerOptions, {})
    queries = SequenceBatch.of(PROTEIN, proteins(LENGTHS, np.random.default_rng(2)))
    index = SequenceProfilesCpu().run(Context(queries=queries, options=options, threads=threads), queries)
    series: dict[str, list[tuple[float, float]]] = {}
    for number, length in enumerate(LENGTHS):
        context = Context(queries=queries.take(number, number + 1), targets=targets, threads=threads, options=options,
                          indexes={index.kind: index})
        found = []
        for what, stage in (("CUDA device", MsvFilterCuda()), (f"{threads} threads of the host", MsvFilterCpu())):
            seconds = best_of(lambda s=stage, c=context: s.run(c, None))
            found.append(stage.run(context, None))
            rate = _cells(context, None) / seconds / 1e9
            series.setdefault(what, []).append((length, rate))
            yield Timing(f"msv, {length} positions, {what}", seconds, f"{rate:,.0f} · 10⁹ cells a second")
        assert_same_records(*found)
    if images:
        images.mkdir(parents=True, exist_ok=True)
        series |= {name: [(LENGTHS[0], rate), (LENGTHS[-1], rate)] for name, rate in PAPER_GCUPS.items()}
        save_chart(images / "msv_stage_by_length.svg", "MSV filter of one model, with SSV before it",
                   "positions of the model", "10⁹ cells a second", series)


def _cells(context: Context, pairs: Any) -> float:
    if pairs is None:
        return float(context.queries.lengths.sum()) * context.targets.total_residues
    lengths = context.targets.lengths[context.targets.locate(pairs.target)]
    return float((lengths * context.queries.lengths[np.searchsorted(context.queries.ordinals, pairs.query)]).sum())


class Commands:
    """``seqloom hmmsearch`` of models against databases in a folder."""

    def __init__(self, folder: Path, models: str) -> None:
        self.folder = folder
        (folder / "models.hmm").write_text(_text(models))

    def create(self, name: str, targets: SequenceBatch) -> None:
        write_fasta(self.folder / f"{name}.fasta", targets)
        seconds_of(self.folder, "db", "create", f"{name}.duckdb", f"{name}.fasta")

    def search(self, what: str, name: str, back_end: str, threads: int, *more: str) -> Timing:
        before = _processor()
        seconds = seconds_of(self.folder, "hmmsearch", "models.hmm", f"{name}.duckdb", "--backend", back_end, "-p",
                             str(threads), "--no-store", "--quiet", "--noali", "-o", f"{name}.{back_end}.txt",
                             "--domtblout", f"{name}.{back_end}.domtblout", *more)
        return Timing(f"{what}: {back_end}, {threads} threads", seconds,
                      f"{_processor() - before:.1f} s of the processor")

    def same(self, name: str) -> Timing:
        rows = [[line for line in (self.folder / f"{name}.{back_end}.domtblout").read_text().splitlines()
                 if line[:1] != "#"] for back_end in ("cuda", "cpu")]
        if rows[0] != rows[1]:
            raise SystemExit("rows of cuda and cpu differ")
        return Timing(f"{len(rows[0])} domains of cuda and cpu", 0.0, "equal")


def _processor() -> float:
    """Seconds of the processor that commands have taken so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def slots(commands: Commands, name: str, threads: int) -> Iterator[Timing]:
    """What the slots of a search take, waiting included, the second time; whole searches beside them."""
    import seqloom

    for turn in ("first", "second"):
        begin, before = time.perf_counter(), time.process_time()
        run = seqloom.search("hmmsearch", str(commands.folder / "models.hmm"), str(commands.folder / f"{name}.duckdb"),
                             backend="cuda", threads=threads, store=False)
        seconds, used = time.perf_counter() - begin, time.process_time() - before
        yield Timing(f"{turn} search in a process: cuda, {threads} threads", seconds, f"{used:.1f} s of the processor")
    for slot in run.slots.to_pylist():
        counters = json.loads(slot["counters"] or "{}")
        note = ", ".join([f"{slot['records_in']} in", f"{slot['records_out']} out",
                          *(f"{number} {what}" for what, number in counters.items())])
        yield Timing(f"  {slot['slot']} ({slot['backend']})", slot["seconds"], note)


def compiling(commands: Commands) -> Iterator[Timing]:
    with tempfile.TemporaryDirectory() as kept:
        former = os.environ.get("NUMBA_CACHE_DIR")
        os.environ["NUMBA_CACHE_DIR"] = kept
        try:
            yield commands.search("first on cpu", "few", "cpu", 1)
            for what in ("first on cuda, those of the host compiled", "second"):
                yield commands.search(what, "few", "cuda", 1)
        finally:
            os.environ.pop("NUMBA_CACHE_DIR")
            if former is not None:
                os.environ["NUMBA_CACHE_DIR"] = former


def measure(fasta: str, models: str, parts: list[str], copies: int, threads: int,
            images: Path | None = None) -> Iterator[Timing]:
    generator, texts = np.random.default_rng(1), records(fasta)
    if "filters" in parts:
        yield from filters(models_of(models), shuffled_copies(texts, min(copies, _VOLUME_COPIES), generator), threads)
    if "lengths" in parts:
        yield from lengths(shuffled_copies(texts, min(copies, _VOLUME_COPIES), generator), threads, images)
    if {"filters", "lengths"} >= set(parts):
        return
    with tempfile.TemporaryDirectory() as name:
        commands = Commands(Path(name), models)
        commands.create("few", shuffled_copies(texts, 1, generator))
        if "compile" in parts:
            yield from compiling(commands)
        if {"slots", "command"} & set(parts):
            commands.create("many", shuffled_copies(texts, copies, generator))
        if "slots" in parts:
            yield from slots(commands, "many", threads)
        if "command" in parts:
            for back_end in ("cuda", "cuda", "cuda", "cpu"):
                yield commands.search(f"{copies} copies", "many", back_end, threads)
            yield commands.same("many")
            room = with_room_for(SHARE * copies * sum(map(len, texts)))
            for _ in range(2):
                yield commands.search(f"{copies} copies, {room[1]}", "many", "cuda", threads, *room)
            yield commands.same("many")
        if "core" in parts:
            for _ in range(2):
                yield commands.search("one copy", "few", "cpu", 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fasta")
    parser.add_argument("models")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--copies", type=int, default=60)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--images", type=Path, metavar="FOLDER", help="where the part ``lengths`` draws its chart")
    given = parser.parse_args()
    show(measure(given.fasta, given.models, given.parts, given.copies, given.threads, given.images))


if __name__ == "__main__":
    main()
