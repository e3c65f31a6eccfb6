"""Checks of exact and near matches on CUDA: in the simulator on little, on a device on more.

``python -m tests.plugins.exact_match.on_cuda CHECK…`` runs some of them, or all; ``NUMBA_ENABLE_CUDASIM=1`` simulates.
``--residues N`` goes on with random cases until the targets had so many residues.
"""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN, Alphabet
from seqloom.core.context import Context
from seqloom.core.errors import BudgetError
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Records
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda, fm_seed_cuda, near_seed_cuda, partition_cuda, whole_seed_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.fm_seed_cuda import FmMatchesCuda
from seqloom.plugins.exact_match.near_seed_cpu import NearQueriesCpu
from seqloom.plugins.exact_match.near_seed_cuda import NearQueriesCuda
from seqloom.plugins.exact_match.near_seed_reference import NearQueries
from seqloom.plugins.exact_match.options import MatchOptions, ProteinMatchOptions, ProteinQueryOptions, StrandOptions
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda
from seqloom.testing import assert_same_records

from ..checks import carry_out

partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES, fm_seed_cuda.OVERLAP = 1000, 100, 32
if SIMULATED:
    near_seed_cuda._STRETCH = 5
    np.seterr(over="ignore")  # unsigned words are meant to wrap round
INDEX_DEAR, QUERIES_DEAR = "1,0.001", "0.001,1"
"""Costs of an index and of queries, of which what is dear is cut as little as can be."""


def text(generator: np.random.Generator, residues: str, length: int, **how: Any) -> str:
    return "".join(generator.choice(list(residues), length, **how))


def genome(generator: np.random.Generator, length: int) -> str:
    """Random bases, few of them unknown."""
    return text(generator, "ACGTN", length, p=[0.249] * 4 + [0.004])


def batches(alphabet: Alphabet, *texts: list[str]) -> Iterator[SequenceBatch]:
    return (SequenceBatch.of(alphabet, some) for some in texts)


def indexed(queries: SequenceBatch, targets: SequenceBatch, options: Any, index: Any = None, **more: Any) -> Context:
    """A context with an FM-index of the targets."""
    return Context(slot="seed.queries", queries=queries, targets=targets, options=options, counters=Counter(),
                   indexes={"fm-index": index or FmIndexCpu().run(Context(), targets)}, **more)


@contextmanager
def devices(count: int) -> Iterator[None]:
    """So many devices, which are the same one; what they keep is forgotten."""
    with mock.patch.object(fm_search_cuda, "device_count", lambda: count):
        try:
            yield
        finally:
            fm_search_cuda.forget()


def check_whole() -> None:
    """Places of whole queries, of indexes with all places and with some, found on the device and on the host."""
    for seed, (residues, alphabet, options) in enumerate((
            ("ACGT", NUCLEOTIDE, StrandOptions(both=True)), ("ACGTNR", NUCLEOTIDE, StrandOptions()),
            ("ACDEFGX*", PROTEIN, ProteinQueryOptions()))):
        generator = np.random.default_rng(seed)
        found = [text(generator, residues, n) for n in (300, 1, 90)]
        found += [found[0][100:180] * 2]
        asked = [found[0][n : n + 12] for n in range(0, 250, 40)]
        asked += [found[3][70:95], "", residues[0], found[2][::-1], *(text(generator, residues, 4) for _ in range(6))]
        queries, targets = batches(alphabet, asked, found)
        for bucket, sample in ((32, 1), (64, 5)):
            index = FmIndexCpu(FmIndexOptions(bucket=bucket, sample=sample)).run(Context(), targets)
            context = indexed(queries, targets, options, index)
            wanted = WholeQueriesCpu().run(context, None)
            assert len(wanted) > 10
            for places in ("device", "host"):
                stage = WholeQueriesCuda(WholeQueriesCuda.Options(places=places))
                assert_same_records(wanted, stage.run(context, None))


class Reads:
    """Reads of a genome, and the places that the CPU finds for them, to be held against those of other ways."""

    def __init__(self) -> None:
        bases = genome(np.random.default_rng(7), 2500)
        found = [bases, bases[100:500] * 2, "A" * 40, bases[:90]]
        reads = [bases[n : n + 30] for n in range(0, 2470, 300)] + ["", "A" * 9, bases[5:8], bases[::-1][:12]]
        self.queries, self.targets = batches(NUCLEOTIDE, reads, found)
        self.build()
        self.wanted = self.run(WholeQueriesCpu())[0]
        assert len(self.wanted) > 50

    def build(self) -> None:
        self.index = FmIndexCpu().run(Context(), self.targets)

    def run(self, stage: Any, **more: Any) -> tuple[Records, Counter[str]]:
        context = indexed(self.queries, self.targets, StrandOptions(both=True), self.index, **more)
        return stage.run(context, None), context.counters

    def same(self, memory: int | None = None, **options: Any) -> Counter[str]:
        """What is counted of a stage on the device that finds the same."""
        found, counters = self.run(WholeQueriesCuda(WholeQueriesCuda.Options(**options)), device_memory=memory)
        assert_same_records(self.wanted, found)
        return counters


def check_parts() -> None:
    """Index and queries in parts, by one device and three, as the memory and the costs of both have it."""
    reads, splits, made = Reads(), set(), mock.Mock(side_effect=partition_cuda.target_text)
    with mock.patch.object(partition_cuda, "target_text", made):
        for count in (1, 3):
            with devices(count):
                for memory in (None, 7500, 7000, 5500, 4500):
                    for costs in (INDEX_DEAR, QUERIES_DEAR):
                        counters = reads.same(memory, costs=costs)
                        assert counters["measured_us"] > 0 and counters["predicted_us"] >= 0
                        assert counters["splits"] == 1
                        splits.add((count, counters["index_parts"] > 1, counters["query_parts"] > 2))
    wanted = {(1, False, False), (1, False, True), (1, True, True), (3, False, True), (3, True, True)}
    assert wanted <= splits, splits
    assert made.call_count == 1, "kept as long as the index"
    with devices(1):
        try:
            reads.same(2500)
            raise AssertionError("did without memory")
        except BudgetError as error:
            assert "raise device_memory" in str(error)


def check_units() -> None:
    """Of units side by side one cuts the index, and one sends it, for all of them."""
    reads, cut, sent = Reads(), partition_cuda.Partition._cut, fm_search_cuda._sent_tables
    cuts, tables = mock.Mock(side_effect=cut), mock.Mock(side_effect=sent)
    reads.build()
    with devices(1), ThreadPoolExecutor(3) as pool:
        with mock.patch.object(partition_cuda.Partition, "_cut", lambda *given: cuts(*given)):
            list(pool.map(lambda memory: reads.same(memory, costs=QUERIES_DEAR), (4500, 4500, 5000)))
        assert cuts.call_count == 1
    with devices(1), ThreadPoolExecutor(3) as pool:
        partition_cuda._idle.clear()
        with mock.patch.object(fm_search_cuda, "_sent_tables", tables):
            list(pool.map(lambda _: reads.same(), range(3)))
        assert tables.call_count == 1 and 1 <= len(partition_cuda._idle[0]) <= 3
        reads.same(7500)
        assert not partition_cuda._idle[0], "nothing stays that a search with less memory has no room for"


def check_order() -> None:
    """Of parts of queries one after the other none is sent before the one in front of it has been looked up."""
    reads, steps = Reads(), list[str]()
    begin, look_up = partition_cuda.Lane.begin, whole_seed_cuda._Search.look_up

    def sent(*given: Any) -> Any:
        steps.append("sent")
        return begin(*given)

    def found(*given: Any) -> Any:
        rows = look_up(*given)
        steps.append("found")
        return rows

    for buffers in (1, 2):
        steps.clear()
        with (devices(1), mock.patch.object(partition_cuda, "_BUFFERS", buffers),
              mock.patch.object(partition_cuda.Lane, "begin", sent),
              mock.patch.object(whole_seed_cuda._Search, "look_up", found)):
            reads.same(4500, costs=INDEX_DEAR)
        alternating = [step for n, step in enumerate(steps) if n == 0 or step == "sent" or steps[n - 1] == "sent"]
        assert steps.count("sent") > 2 and (steps[:2] == ["sent", "sent"]) == (buffers > 1), steps
        assert buffers > 1 or alternating == ["sent", "found"] * (len(alternating) // 2), steps


def check_loading() -> None:
    """Before the work kernels are loaded, by a look-up of few rows."""
    reads, rows = Reads(), list[int]()

    class Counted(whole_seed_cuda._Search):
        def _places(self, lane: Any, there: Any, lows: Any, sizes: Any) -> Any:
            rows.append(int(sizes.sum()))
            return super()._places(lane, there, lows, sizes)

    with (devices(1), mock.patch.object(partition_cuda, "SIMULATED", False),
          mock.patch.object(WholeQueriesCuda, "search", lambda self: Counted)):
        partition_cuda._compiled.clear()
        reads.same()
        assert 1 <= rows[0] <= 3 and len(rows) > 1, rows
        near(*near_reads(), 2)
        assert len(partition_cuda._compiled) == 2


def matches_of(context: Context, **options: Any) -> Records:
    return FmMatchesCuda(FmMatchesCuda.Options(**options)).run(context, None)


def check_matches() -> None:
    """Matches of all modes, alphabets and strands."""
    generator, found = np.random.default_rng(3), 0
    for residues, alphabet, options in (
            ("ACGT", NUCLEOTIDE, {"both": True}), ("ACGTNR", NUCLEOTIDE, {"acgt_only": True}),
            ("A", NUCLEOTIDE, {"reverse": True}), ("ACDEFX*", PROTEIN, {})):
        texts = [text(generator, residues, n) for n in (90, 1, 40)]
        texts.append(texts[0][50:80] * 2)
        asked = [texts[0][20:80] + texts[2], texts[3][10:50], "", residues[0], texts[2][::-1]]
        queries, targets = batches(alphabet, asked, texts)
        index = FmIndexCpu(FmIndexOptions(bucket=32, sample=3)).run(Context(), targets)
        modes: tuple[tuple[dict[str, bool], tuple[int, ...]], ...] = (
            ({}, (3,)), ({"mum": True}, (10,)), ({"maxmatch": True}, (4, 9)))
        for mode, lengths in modes:
            if SIMULATED and residues == "A" and mode.get("maxmatch"):
                continue  # too many for the simulator
            for length in lengths:
                kind = ProteinMatchOptions if alphabet is PROTEIN else MatchOptions
                context = indexed(queries, targets, kind(length=length, **mode, **options), index)
                wanted = FmMatchesCpu().run(context, None)
                for places in ("device", "host"):
                    assert_same_records(wanted, matches_of(context, places=places))
                found += len(wanted)
    assert found > 300, found


def check_match_parts() -> None:
    """Index and queries of matches in parts."""
    bases, splits = genome(np.random.default_rng(7), 900), set()
    asked = [bases[30:90], "", bases[200:330], bases[440:400:-1], "A" * 9]
    queries, targets = batches(NUCLEOTIDE, asked, [bases, bases[100:220] * 2, bases[:90]])
    index = FmIndexCpu().run(Context(), targets)
    for count, memory, mode in ((1, None, "mum"), (1, 4300, "mum"), (3, 4300, "maxmatch")):
        options = MatchOptions(length=12, both=count == 1, **{mode: True})
        context = indexed(queries, targets, options, index, device_memory=memory)
        wanted, parts = FmMatchesCpu().run(context, None), 0
        for places in ("device", "host"):
            context.counters.clear()
            with devices(count), mock.patch.multiple(fm_seed_cuda, _LEAST_PART=8, _FIRST=2):
                assert_same_records(wanted, matches_of(context, costs=INDEX_DEAR, places=places))
            now = context.counters["index_parts"]
            if places == "device":
                splits.add((now > 1, context.counters["query_parts"] > 1))
                parts = now
        assert parts == 1 or now < parts, (parts, now)
    assert splits == {(False, False), (True, True)}, splits


def near(queries: SequenceBatch, targets: SequenceBatch, options: Any, most: int, index: Any = None,
         memory: int | None = None, **how: Any) -> tuple[int, Counter[str]]:
    """How many places the CPU and the device find of queries of which so many residues may differ."""
    context = indexed(queries, targets, options, index)
    wanted = NearQueriesCpu(NearQueriesCpu.Options(mismatches=most)).run(context, None)
    context = indexed(queries, targets, options, context.indexes["fm-index"], device_memory=memory)
    assert_same_records(wanted, NearQueriesCuda(NearQueriesCuda.Options(mismatches=most, **how)).run(context, None))
    return len(wanted), context.counters


def near_reads() -> tuple[SequenceBatch, SequenceBatch, StrandOptions]:
    bases = genome(np.random.default_rng(7), 900)
    reads = [bases[n : n + 12] + "C" + bases[n + 13 : n + 30] for n in range(0, 870, 150)] + ["", "A" * 9, "G"]
    return *batches(NUCLEOTIDE, reads, [bases, bases[100:300] * 2, "A" * 40, bases[:90]]), StrandOptions(both=True)


def check_near() -> None:
    """Near queries of all strands and of proteins, also by the reference."""
    found = []
    for seed in range(12 if SIMULATED else 100):
        generator = np.random.default_rng(seed)
        residues = ("A", "ACGT", "ACGTN", "ACGTRYN")[seed % 4]
        texts = [text(generator, residues, int(n)) for n in generator.integers(0, 24, generator.integers(1, 4))]
        asked = [text(generator, residues, int(n)) for n in generator.integers(0, 10, generator.integers(1, 4))]
        queries, targets = batches(NUCLEOTIDE, [*asked, texts[0][3:14]], texts)
        strand = ({}, {"both": True}, {"reverse": True})[int(generator.integers(0, 3))]
        options, most = StrandOptions(acgt_only=seed % 5 == 0, **strand), int(generator.integers(0, 4))
        index = FmIndexCpu(FmIndexOptions(bucket=32, sample=3)).run(Context(), targets)
        context = indexed(queries, targets, options, index)
        assert_same_records(NearQueries(NearQueries.Options(mismatches=most)).run(context, None),
                            NearQueriesCpu(NearQueriesCpu.Options(mismatches=most)).run(context, None))
        found.append(near(queries, targets, options, most, index)[0])
    protein = text(np.random.default_rng(4), "ACDEFGX*", 120)
    asked = [protein[10:22], protein[40:45] + "W" + protein[46:53], "AC", ""]
    queries, targets = batches(PROTEIN, asked, [protein, protein[30:70] * 2, "A"])
    found.append(near(queries, targets, ProteinQueryOptions(), 2)[0])
    assert sum(found) > 200 and found[-1] > 20, found


def check_near_parts() -> None:
    """Index and queries of near queries in parts."""
    reads, splits = near_reads(), set()
    index = FmIndexCpu().run(Context(), reads[1])
    for count, memory, costs in ((1, None, INDEX_DEAR), (1, 6000, INDEX_DEAR), (3, 6000, QUERIES_DEAR)):
        with devices(count):
            rows, counters = near(*reads, 2, index, memory, costs=costs)
        assert rows > 1000
        splits.add((count, counters["index_parts"] > 1, counters["query_parts"] > 2))
    assert {(1, False, False), (1, True, True), (3, True, True)} <= splits, splits


def check_random(residues: int, seed: int = 0) -> None:
    """Random cases, until the targets had so many residues: whole queries, near ones, and matches of all modes."""
    done = 0
    while done < residues:
        generator = np.random.default_rng(seed)
        bases = genome(generator, int(generator.integers(1000, 400_000)))
        places = generator.integers(0, len(bases), 200).tolist()
        asked = [bases[n : n + int(generator.integers(0, 150))] for n in places]
        asked[::2] = ["".join("G" if generator.random() < 0.02 else residue for residue in query)
                      for query in asked[::2]]
        queries, targets = batches(NUCLEOTIDE, asked, [bases, bases[:500] * 3, bases[1000:]])
        index = FmIndexCpu().run(Context(), targets)
        options = StrandOptions(both=True)
        context = indexed(queries, targets, options, index)
        assert_same_records(WholeQueriesCpu().run(context, None), WholeQueriesCuda().run(context, None))
        near(queries, targets, options, seed % 4, index)
        for mode in ({}, {"mum": True}, {"maxmatch": True}):
            context = indexed(queries, targets, MatchOptions(length=int(generator.integers(12, 25)), both=True, **mode),
                              index)
            assert_same_records(FmMatchesCpu().run(context, None), matches_of(context))
        fm_search_cuda.forget()
        done, seed = done + targets.total_residues, seed + 1
    print(f"{done:,} residues of random targets, {seed} cases")


CHECKS = {"whole": check_whole, "parts": check_parts, "units": check_units, "order": check_order,
          "matches": check_matches, "match-parts": check_match_parts, "near": check_near,
          "near-parts": check_near_parts, "loading": check_loading}


if __name__ == "__main__":
    carry_out(__doc__, CHECKS, check_random)
