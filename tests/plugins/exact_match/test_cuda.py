"""Whole queries on CUDA against the CPU: in numba's simulator, which is slow, on a few of them."""

import re
from pathlib import Path

import numpy as np
import pytest

from tests.simulator import simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

SCRIPT = """
import numpy as np
np.seterr(over="ignore")
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
from seqloom.plugins.exact_match.options import ProteinQueryOptions, StrandOptions
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda
from seqloom.testing import assert_same_records

rng = np.random.default_rng({seed})
residues, alphabet = {residues}, {alphabet}
targets = ["".join(rng.choice(list(residues), n)) for n in (300, 1, 90)]
targets += [targets[0][100:180] * 2]
queries = [targets[0][n : n + 12] for n in range(0, 250, 40)] + [targets[3][70:95], "", residues[0], targets[2][::-1]]
queries += ["".join(rng.choice(list(residues), 4)) for _ in range(6)]
queries, targets = (SequenceBatch.of(alphabet, texts) for texts in (queries, targets))
for bucket, sample in ((32, 1), (64, 5)):
    index = FmIndexCpu(FmIndexOptions(bucket=bucket, sample=sample)).run(Context(), targets)
    context = Context(queries=queries, targets=targets, indexes={{"fm-index": index}}, options={options})
    wanted = WholeQueriesCpu().run(context, None)
    assert len(wanted) > 10
    assert_same_records(wanted, WholeQueriesCuda().run(context, None))
    on_host = WholeQueriesCuda(WholeQueriesCuda.Options(places="host"))
    assert_same_records(wanted, on_host.run(context, None))
print("equal")
"""
CASES = {
    "nucleotides": ("ACGT", "NUCLEOTIDE", "StrandOptions(both=True)"),
    "ambiguous": ("ACGTNR", "NUCLEOTIDE", "StrandOptions()"),
    "proteins": ("ACDEFGX*", "PROTEIN", "ProteinQueryOptions()"),
}

PARTS = """
import sys
import numpy as np
np.seterr(over="ignore")
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.errors import BudgetError
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda, partition_cuda, whole_seed_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.options import StrandOptions
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda
from seqloom.testing import assert_same_records

partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES = 1000, 100
rng = np.random.default_rng(7)
genome = "".join(rng.choice(list("ACGTN"), 2500, p=[0.249] * 4 + [0.004]))
targets = SequenceBatch.of(NUCLEOTIDE, [genome, genome[100:500] * 2, "A" * 40, genome[:90]])
reads = [genome[n : n + 30] for n in range(0, 2470, 300)] + ["", "A" * 9, genome[5:8], genome[::-1][:12]]
queries = SequenceBatch.of(NUCLEOTIDE, reads)
index = FmIndexCpu().run(Context(), targets)
splits = set()


def run(stage, **more):
    counters = Counter()
    context = Context(slot="seed.queries", queries=queries, targets=targets, indexes={"fm-index": index},
                      options=StrandOptions(both=True), counters=counters, **more)
    return stage.run(context, None), counters


wanted, _ = run(WholeQueriesCpu())
assert len(wanted) > 50
texts, text_of = [], partition_cuda.target_text
partition_cuda.target_text = lambda *given, **named: texts.append(given) or text_of(*given, **named)
for count in (1, 3):
    fm_search_cuda.device_count = lambda: count
    for memory in (None, 7500, 7000, 5500, 4500):
        for costs in ("1,0.001", "0.001,1"):
            found, counters = run(WholeQueriesCuda(WholeQueriesCuda.Options(costs=costs)), device_memory=memory)
            assert_same_records(wanted, found)
            assert counters["measured_us"] > 0 and counters["predicted_us"] >= 0 and counters["splits"] == 1
            splits.add((count, counters["index_parts"] > 1, counters["query_parts"] > 2))
    fm_search_cuda.forget()
assert {(1, False, False), (1, False, True), (1, True, True), (3, False, True), (3, True, True)} <= splits, splits
assert len(texts) == 1, "kept as long as the index"
# Units side by side: one cuts the index, for all of them.
fm_search_cuda.device_count = lambda: 1
index = FmIndexCpu().run(Context(), targets)
cut, cuts = partition_cuda.Partition._cut, []
partition_cuda.Partition._cut = lambda *given: (cuts.append(given[-1]), cut(*given))[1]
with ThreadPoolExecutor(3) as pool:
    stage = WholeQueriesCuda(WholeQueriesCuda.Options(costs="0.001,1"))
    for found, _ in pool.map(lambda memory: run(stage, device_memory=memory), (4500, 4500, 5000)):
        assert_same_records(wanted, found)
assert len(cuts) == 1, cuts
partition_cuda.Partition._cut = cut
fm_search_cuda.forget()
# One sends the index, too, and what they work with stays, where that is little of the memory.
sent, tables = [], fm_search_cuda._sent_tables
fm_search_cuda._sent_tables = lambda *given: (sent.append(given), tables(*given))[1]
partition_cuda._idle.clear()
with ThreadPoolExecutor(3) as pool:
    for found, _ in pool.map(lambda _: run(WholeQueriesCuda()), range(3)):
        assert_same_records(wanted, found)
assert len(sent) == 1 and 1 <= len(partition_cuda._idle[0]) <= 3, (len(sent), partition_cuda._idle)
run(WholeQueriesCuda(), device_memory=7500)
assert not partition_cuda._idle[0], "nothing stays that a search with less memory has no room for"
fm_search_cuda._sent_tables = tables
# Parts of queries one after the other: none is sent before the one in front of it has been looked up.
begin, look_up, steps = partition_cuda.Lane.begin, whole_seed_cuda._Search.look_up, []
partition_cuda.Lane.begin = lambda *given: (steps.append("sent"), begin(*given))[1]
whole_seed_cuda._Search.look_up = lambda *given: (look_up(*given), steps.append("found"))[0]
fm_search_cuda.device_count = lambda: 1
for partition_cuda._BUFFERS in (1, 2):
    steps.clear()
    assert_same_records(wanted, run(WholeQueriesCuda(WholeQueriesCuda.Options(costs="1,0.001")), device_memory=4500)[0])
    alternating = [step for n, step in enumerate(steps) if n == 0 or step == "sent" or steps[n - 1] == "sent"]
    assert steps.count("sent") > 2 and (steps[:2] == ["sent", "sent"]) == (partition_cuda._BUFFERS > 1), steps
    assert partition_cuda._BUFFERS > 1 or alternating == ["sent", "found"] * (len(alternating) // 2), steps
partition_cuda.Lane.begin, whole_seed_cuda._Search.look_up = begin, look_up
fm_search_cuda.forget()
try:
    run(WholeQueriesCuda(), device_memory=2500)
    raise AssertionError("did without memory")
except BudgetError as error:
    assert "raise device_memory" in str(error)
rows = []


class Counted(whole_seed_cuda._Search):
    def _places(self, lane, there, lows, sizes):
        rows.append(int(sizes.sum()))
        return super()._places(lane, there, lows, sizes)


partition_cuda.SIMULATED = False  # before the work kernels are loaded, by a look-up of few rows
WholeQueriesCuda.search = lambda self: Counted
fm_search_cuda.device_count = lambda: 1
assert_same_records(wanted, run(WholeQueriesCuda())[0])
assert 1 <= rows[0] <= 3 and len(rows) > 1, rows
print("equal")
"""
MATCH_PARTS = """
import numpy as np
np.seterr(over="ignore")
from collections import Counter
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda, fm_seed_cuda, partition_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.fm_seed_cuda import FmMatchesCuda
from seqloom.plugins.exact_match.options import MatchOptions
from seqloom.testing import assert_same_records

partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES, fm_seed_cuda.OVERLAP = 1000, 100, 32
rng = np.random.default_rng(7)
genome = "".join(rng.choice(list("ACGTN"), 900, p=[0.249] * 4 + [0.004]))
targets = SequenceBatch.of(NUCLEOTIDE, [genome, genome[100:220] * 2, genome[:90]])
queries = SequenceBatch.of(NUCLEOTIDE, [genome[30:90], "", genome[200:330], genome[440:400:-1], "A" * 9])
index = FmIndexCpu().run(Context(), targets)
splits = set()
for devices, memory, mode in ((1, None, "mum"), (1, 4300, "mum"), (3, 4300, "maxmatch")):
    fm_search_cuda.device_count = lambda: devices
    counters = Counter()
    context = Context(queries=queries, targets=targets, indexes={"fm-index": index}, counters=counters,
                      options=MatchOptions(length=12, both=devices == 1, **{mode: True}), device_memory=memory)
    wanted = FmMatchesCpu().run(context, None)
    counters.clear()
    found = FmMatchesCuda(FmMatchesCuda.Options(costs="1,0.001")).run(context, None)
    assert_same_records(wanted, found)
    splits.add((counters["index_parts"] > 1, counters["query_parts"] > 1))
    parts = counters["index_parts"]
    fm_search_cuda.forget()
    counters.clear()
    found = FmMatchesCuda(FmMatchesCuda.Options(costs="1,0.001", places="host")).run(context, None)
    assert_same_records(wanted, found)
    assert parts == 1 or counters["index_parts"] < parts, (parts, counters)
    fm_search_cuda.forget()
assert splits == {(False, False), (True, True)}, splits
print("equal")
"""
COMMAND = """
import numpy as np
np.seterr(over="ignore")
from seqloom.plugins.exact_match import partition_cuda
partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES = 1000, 100
from seqloom.cli import run
run()
"""

MATCHES = """
import numpy as np
np.seterr(over="ignore")
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
from seqloom.plugins.exact_match.fm_seed_cpu import FmMatchesCpu
from seqloom.plugins.exact_match.fm_seed_cuda import FmMatchesCuda
from seqloom.plugins.exact_match.options import MatchOptions, ProteinMatchOptions
from seqloom.testing import assert_same_records

rng = np.random.default_rng(3)
found = 0
for residues, alphabet, options in (("ACGT", NUCLEOTIDE, dict(both=True)), ("ACGTNR", NUCLEOTIDE, dict(acgt_only=True)),
                                   ("A", NUCLEOTIDE, dict(reverse=True)),
                                   ("ACDEFX*", PROTEIN, dict())):
    targets = ["".join(rng.choice(list(residues), n)) for n in (90, 1, 40)]
    targets.append(targets[0][50:80] * 2)
    queries = [targets[0][20:80] + targets[2], targets[3][10:50], "", residues[0], targets[2][::-1]]
    queries, targets = (SequenceBatch.of(alphabet, texts) for texts in (queries, targets))
    index = FmIndexCpu(FmIndexOptions(bucket=32, sample=3)).run(Context(), targets)
    for mode, lengths in (({}, (3,)), ({"mum": True}, (10,)), ({"maxmatch": True}, (4, 9))):
        for length in lengths:
            if residues == "A" and mode.get("maxmatch"):
                continue  # too many for the simulator
            chosen = (ProteinMatchOptions if alphabet is PROTEIN else MatchOptions)(length=length, **mode, **options)
            context = Context(queries=queries, targets=targets, indexes={"fm-index": index}, options=chosen)
            wanted = FmMatchesCpu().run(context, None)
            assert_same_records(wanted, FmMatchesCuda().run(context, None))
            on_host = FmMatchesCuda(FmMatchesCuda.Options(places="host"))
            assert_same_records(wanted, on_host.run(context, None))
            found += len(wanted)
assert found > 300, found
print("equal")
"""

NEAR = """
import numpy as np
np.seterr(over="ignore")
from hypothesis import given, settings
from hypothesis import strategies as st
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import near_seed_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
from seqloom.plugins.exact_match.near_seed_cpu import NearQueriesCpu
from seqloom.plugins.exact_match.near_seed_cuda import NearQueriesCuda
from seqloom.plugins.exact_match.near_seed_reference import NearQueries
from seqloom.plugins.exact_match.options import ProteinQueryOptions, StrandOptions
from seqloom.testing import assert_same_records

near_seed_cuda._STRETCH = 5
found = []


def compare(queries, targets, alphabet, options, most):
    queries, targets = (SequenceBatch.of(alphabet, texts) for texts in (queries, targets))
    index = FmIndexCpu(FmIndexOptions(bucket=32, sample=3)).run(Context(), targets)
    context = Context(queries=queries, targets=targets, indexes={"fm-index": index}, options=options)
    wanted, by_cpu, by_cuda = (stage(stage.Options(mismatches=most)).run(context, None)
                               for stage in (NearQueries, NearQueriesCpu, NearQueriesCuda))
    assert_same_records(wanted, by_cpu)
    assert_same_records(wanted, by_cuda)
    found.append(len(wanted))


texts = st.sampled_from(["A", "ACGT", "ACGTN", "ACGTRYN"]).flatmap(lambda residues: st.tuples(
    st.lists(st.text(residues, max_size=10), min_size=1, max_size=3),
    st.lists(st.text(residues, max_size=24), min_size=1, max_size=3)))
strands = st.sampled_from([{}, {"both": True}, {"reverse": True}])


@settings(max_examples=12, deadline=None, database=None, derandomize=True)
@given(texts, strands, st.booleans(), st.integers(0, 3))
def same(given_, strand, acgt_only, most):
    queries, targets = given_
    compare([*queries, targets[0][3:14]], targets, NUCLEOTIDE, StrandOptions(acgt_only=acgt_only, **strand), most)


same()
rng = np.random.default_rng(4)
protein = "".join(rng.choice(list("ACDEFGX*"), 120))
compare([protein[10:22], protein[40:45] + "W" + protein[46:53], "AC", ""], [protein, protein[30:70] * 2, "A"], PROTEIN,
        ProteinQueryOptions(), 2)
assert sum(found) > 200 and found[-1] > 20, found
print("equal")
"""
NEAR_PARTS = """
import numpy as np
np.seterr(over="ignore")
from collections import Counter
from seqloom.core.alphabet import NUCLEOTIDE
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match import fm_search_cuda, partition_cuda
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.near_seed_cpu import NearQueriesCpu
from seqloom.plugins.exact_match.near_seed_cuda import NearQueriesCuda
from seqloom.plugins.exact_match.options import StrandOptions
from seqloom.testing import assert_same_records

partition_cuda.SLACK, partition_cuda.LEAST_RESIDUES = 1000, 100
rng = np.random.default_rng(7)
genome = "".join(rng.choice(list("ACGTN"), 900, p=[0.249] * 4 + [0.004]))
targets = SequenceBatch.of(NUCLEOTIDE, [genome, genome[100:300] * 2, "A" * 40, genome[:90]])
reads = [genome[n : n + 12] + "C" + genome[n + 13 : n + 30] for n in range(0, 870, 150)] + ["", "A" * 9, "G"]
queries = SequenceBatch.of(NUCLEOTIDE, reads)
index = FmIndexCpu().run(Context(), targets)
splits = set()


def run(stage, **more):
    counters = Counter()
    context = Context(queries=queries, targets=targets, indexes={"fm-index": index}, counters=counters,
                      options=StrandOptions(both=True), **more)
    return stage.run(context, None), counters


wanted, _ = run(NearQueriesCpu(NearQueriesCpu.Options(mismatches=2)))
assert len(wanted) > 1000
for devices, memory, costs in ((1, None, "1,0.001"), (1, 6000, "1,0.001"), (3, 6000, "0.001,1")):
    fm_search_cuda.device_count = lambda: devices
    found, counters = run(NearQueriesCuda(NearQueriesCuda.Options(mismatches=2, costs=costs)), device_memory=memory)
    assert_same_records(wanted, found)
    splits.add((devices, counters["index_parts"] > 1, counters["query_parts"] > 2))
    fm_search_cuda.forget()
assert {(1, False, False), (1, True, True), (3, True, True)} <= splits, splits
partition_cuda.SIMULATED = False  # before the work kernels are loaded, by a look-up of few rows
fm_search_cuda.device_count = lambda: 1
assert_same_records(wanted, run(NearQueriesCuda(NearQueriesCuda.Options(mismatches=2)))[0])
assert partition_cuda._compiled
print("equal")
"""


def test_parts_of_index_and_queries_give_the_same_rows() -> None:
    done = simulated("-c", PARTS)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-3000:]
    assert "seqloom: seed.queries: index in " in done.stderr


def test_parts_give_the_same_matches() -> None:
    done = simulated("-c", MATCH_PARTS)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-3000:]


def test_the_split_is_told_and_kept_with_the_run(tmp_path: Path) -> None:
    residues = "".join(np.random.default_rng(1).choice(list("ACGT"), 3000))
    (tmp_path / "genome.fa").write_text(f">g\n{residues}\n")
    (tmp_path / "reads.fa").write_text("".join(f">{n}\n{residues[n : n + 30]}\n" for n in range(0, 2900, 400)))
    common = ("exact", "-q", "reads.fa", "-d", "genome.fa", "--backend", "auto", "--set", "seed.queries.costs=0.1,0.02",
              "--outfmt", "6 qseqid sstart")
    whole = simulated("-c", COMMAND, *common, "--no-store", cwd=tmp_path)
    assert whole.returncode == 0 and "predicted" not in whole.stderr
    done = simulated("-c", COMMAND, *common, "--device-memory", "5k", "--batch-queries", "3", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == whole.stdout
    assert done.stderr.count("predicted") == 1, done.stderr  # of several batches
    assert re.search(r"index in \d+ \(alpha 0\.\d+\) and queries in \d+ parts, those of the .* stay: .* s predicted",
                     done.stderr)
    assert re.search(r"s predicted; \d such devices would keep all of the index: .* s$", done.stderr, re.MULTILINE)
    query = "SELECT counters FROM run_slots WHERE slot = 'seed.queries'"
    kept = simulated("-c", COMMAND, "sql", query, "--format", "json", cwd=tmp_path)
    for name in ("predicted_us", "measured_us", "index_parts", "query_parts", "alpha_percent"):
        assert name in kept.stdout, kept.stdout + kept.stderr
    small = simulated("-c", COMMAND, *common, "--device-memory", "1k", cwd=tmp_path)
    assert small.returncode == 1 and "raise --device-memory" in small.stderr


@pytest.mark.parametrize("mode", ["-mum", "-mumreference", "-maxmatch"])
def test_the_lines_of_mum_are_those_of_the_cpu(tmp_path: Path, mode: str) -> None:
    residues = "".join(np.random.default_rng(2).choice(list("ACGT"), 240))
    (tmp_path / "genome.fa").write_text(f">g\n{residues[:150]}\n>h\n{residues[150:]}{residues[20:60]}\n")
    (tmp_path / "query.fa").write_text(f">q\n{residues[10:90]}\n>r\n{residues[100:40:-1]}\n")
    common = ("mum", mode, "-l", "9", "-b", "-c", "-q", "query.fa", "-d", "genome.fa", "--no-store", "--backend")
    on_device, on_host = (simulated("-c", COMMAND, *common, backend, cwd=tmp_path) for backend in ("cuda", "cpu"))
    assert on_device.returncode == 0, on_device.stderr[-3000:]
    assert on_device.stdout == on_host.stdout and "  g        11         1        80" in on_host.stdout


def test_matches_are_those_of_the_cpu() -> None:
    done = simulated("-c", MATCHES)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-3000:]


def test_whole_queries_are_those_of_the_cpu() -> None:
    scripts = [SCRIPT.format(seed=len(case), residues=repr(residues), alphabet=alphabet, options=options)
               for case, (residues, alphabet, options) in CASES.items()]
    done = simulated("-c", "\n".join(scripts))  # in one process: to start takes longer than one of them
    assert done.returncode == 0 and done.stdout.split() == ["equal"] * len(scripts), done.stderr[-3000:]


@pytest.mark.parametrize("script", [NEAR, NEAR_PARTS], ids=["whole", "parts"])
def test_near_queries_are_those_of_the_cpu(script: str) -> None:
    done = simulated("-c", script)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-3000:]
