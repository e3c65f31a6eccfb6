"""The sorters on CUDA against Python's own stable sort: in numba's simulator, with small tiles to keep it quick."""

import pytest

from tests.simulator import simulated

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

SCRIPT = """
import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.common import sort_words_cpu
from seqloom.plugins.common import radix_cuda
from seqloom.plugins.sorting import keys_cuda, threads_cpu
from seqloom.plugins.sorting.{module} import {sorter}

radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD, radix_cuda.LEAST_PART, keys_cuda.LEAST = 5, 2, 60, {least}
sort_words_cpu._SAMPLE = 50
threads_cpu.LEAST = 20
sorter = {sorter}()
sorter.threads = {threads}
rng = np.random.default_rng({seed})


def strings(characters, lengths):
    return [rng.choice(np.frombuffer(characters, np.uint8), n).tobytes() for n in lengths]


for rows in {rows}:
    keys = Ragged.of([np.frombuffer(b"zz", np.uint8), *(np.frombuffer(s, np.uint8) for s in rows)], np.uint8)
    order = sorter.order(Ragged(keys.offsets[1:], keys.values))
    wanted = sorted(range(len(rows)), key=rows.__getitem__)
    assert order.dtype == np.int32 and order.tolist() == wanted, (rows[:9], order[:9], wanted[:9])
apart = np.repeat(np.frombuffer(b"CABCADACAB" * 20, np.uint8), 2)[::2]  # not side by side in memory
assert sorter.order(Ragged(np.arange(101) * 2, apart)).tolist() == sorted(range(100), key=lambda n: bytes(
    apart[2 * n : 2 * n + 2]))
print("equal")
"""
ROUNDS = """
import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.common import sort_words_cpu
from seqloom.plugins.common import radix_cuda
from seqloom.plugins.sorting import keys_cuda, threads_cpu
from seqloom.plugins.sorting.msd_radix_cuda import MsdRadixCuda
from seqloom.plugins.sorting.segment_radix_cuda import SegmentRadixCuda

radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD, threads_cpu.LEAST, sort_words_cpu._SAMPLE = 5, 2, 20, 40
rng = np.random.default_rng(4)


def strings(characters, lengths):
    return [rng.choice(np.frombuffer(characters, np.uint8), n).tobytes() for n in lengths]


long = strings(b"ACGT", [3] * 8)
kinds = {
    "any": strings(b"ACGT", rng.integers(0, 9, 14)) + [b"", b"A" * 12, b"A" * 11, b"A" * 12],
    "twice": long + long[::-1],
    "begun alike, with others at the end": [b"A" * 5 + s for s in long] + [b"A" * 5 + bytes(range(190, 202))],
    "one": [b"A" * 40] * 6,
}
chopped = []
chop = keys_cuda.KeySource._chop
keys_cuda.KeySource._chop = lambda self, *given: chopped.append(chop(self, *given)) or chopped[-1]
for sorter, name, prefix, look, least in (
        (MsdRadixCuda(), "begun alike, with others at the end", 0, 0, 1),
        (MsdRadixCuda(), "one", 16, 20, 1), (MsdRadixCuda(), "twice", 3, 99, 10**6),
        (SegmentRadixCuda(), "any", 8, 0, 1), (SegmentRadixCuda(), "begun alike, with others at the end", 0, 99, 1)):
    rows = kinds[name]
    sorter.prefix, keys_cuda._LOOK = prefix, look
    keys = Ragged.of([np.frombuffer(s, np.uint8) for s in rows], np.uint8)
    keys_cuda.many, keys_cuda.LEAST = lambda keys: True, least
    chopped.clear()
    order = sorter.order(keys)
    wanted = sorted(range(len(rows)), key=rows.__getitem__)
    assert order.dtype == np.int32 and order.tolist() == wanted, (name, prefix, look, order, wanted)
    assert bool(chopped) == (look < 99), (name, chopped)
    assert look or "others" not in name or not all(chopped)
print("equal")
"""
CASES = {
    "one width": '[strings(b"ACGT", [4] * 130), strings(b"ab", [3] * 130), [b"same"] * 9]',
    "not as the first": '[strings(b"ab", [3] * 70) + [b"abc"], strings(b"ab", [3] * 70) + [b"ab", b"abba"]]',
    "any width": '[strings(b"ACGT", rng.integers(0, 7, 110)), [b"", b"\\0", b"", b"\\0\\0"] * 5, [b""] * 9, []]',
    "several words": '[strings(b"ACGT", rng.integers(0, 25, 60)) + [bytes(range(190, 214))]]',
}


@pytest.mark.parametrize("sorter", ["lsd_radix_cuda.LsdRadixCuda", "msd_radix_cuda.MsdRadixCuda"])
def test_order_is_that_of_python(sorter: str) -> None:
    module, _, name = sorter.partition(".")
    check(*(SCRIPT.format(module=module, sorter=name, rows=rows, seed=1, least=1, threads=2)
            for rows in CASES.values()))


SUMS = """
import numpy as np
from numba import cuda
from seqloom.plugins.common import radix_cuda


@cuda.jit
def both(values, out):
    n = cuda.threadIdx.x
    out[0, n], out[1, n] = radix_cuda.shuffled_sum(values[n]), radix_cuda.sum_before(values[n])


values, out = np.random.default_rng(1).integers(0, 99, 96).astype(np.int32), np.zeros((2, 96), np.int32)
both[1, 96](values, out)
assert (out == np.cumsum(values) - values).all(), out
print("equal")
"""


def test_sums_over_a_block() -> None:
    check(SUMS)


def test_long_and_skewed_keys_are_sorted_in_rounds() -> None:
    check(ROUNDS)


def test_too_little_device_memory_sorts_on_the_host() -> None:
    check("""
import numpy as np
from seqloom.core.records import Ragged
from seqloom.plugins.sorting import keys_cuda
from seqloom.plugins.sorting.lsd_radix_cuda import LsdRadixCuda
from seqloom.plugins.sorting.msd_radix_cuda import MsdRadixCuda

keys_cuda.LEAST = 1
keys = Ragged.even(np.random.default_rng(1).integers(65, 69, (50, 4), np.uint8))
for sorter in (LsdRadixCuda(), MsdRadixCuda()):
    asked = []
    sorter._on_device = lambda keys, room, threads: asked.append(len(keys)) or np.arange(len(keys))
    for memory, on_device in ((None, True), (100 * len(keys), True), (len(keys), False)):
        asked.clear()
        sorter.device_memory = memory
        order = sorter.order(keys)
        assert asked == [len(keys)] * on_device, (memory, asked)
        assert on_device or order.tolist() == sorted(range(50), key=lambda n: keys[n].tobytes())
print("equal")
""")


DEVICES = """
import numpy as np
from contextlib import contextmanager
from seqloom.core.records import Ragged
from seqloom.plugins.common import radix_cuda, resident_cuda
from seqloom.plugins.sorting import keys_cuda, ranges_cuda
from seqloom.plugins.sorting.{module} import {sorter}

radix_cuda.BITS, radix_cuda.WORDS_PER_THREAD, keys_cuda.LEAST = 5, 2, 4
rng = np.random.default_rng(5)
kinds = {{
    "one length": [rng.choice(np.frombuffer(b"ACGT", np.uint8), 3).tobytes() for _ in range(90)],
    "several words": [b"A" * 9 + rng.choice(np.frombuffer(b"ACGTNRYKM", np.uint8), 12).tobytes() for _ in range(70)],
    "any length": [rng.choice(np.frombuffer(b"AB", np.uint8), n).tobytes() for n in rng.integers(0, 5, 60)],
    "most are equal": [b"CC" if common else b"ABCDEFGHIJ"[n % 9 : n % 9 + 2] for n, common in enumerate(
        rng.random(90) < 0.8)],
    "all are equal": [b"same"] * 40,
}}
entered, sizes, devices = [], [], 2


@contextmanager
def on_device(number):
    entered.append(number)
    yield


resident_cuda.on_device, ranges_cuda.device_count = on_device, lambda: devices
sorter = {sorter}()
whole = sorter._on_device
sorter._on_device = lambda some, room, threads: sizes.append(len(some)) or whole(some, room, threads)
sorter.threads = 2


def check(name, ranges, memory, most):
    global entered, sizes
    entered, sizes, rows = [], [], kinds[name]
    ranges_cuda.LEAST_RANGES, sorter.device_memory = ranges, memory
    keys = Ragged.of([np.frombuffer(row, np.uint8) for row in [b"zz", *rows]], np.uint8)
    order = sorter.order(Ragged(keys.offsets[1:], keys.values))
    wanted = sorted(range(len(rows)), key=rows.__getitem__)
    assert order.dtype == np.int32 and order.tolist() == wanted, (name, ranges, memory, order, wanted)
    assert max(sizes, default=0) <= most, (name, sizes)


for name in kinds:
    check(name, 2, None, 70)
    assert set(entered) == {{0, 1}} and len(sizes) <= 2, (name, entered, sizes)
    assert len(sizes) == 2 or "equal" in name, (name, sizes)
    check(name, 1, None, 90)
    assert len(sizes) == 1 and not entered, (name, entered, sizes)  # by one, which has room
for devices in (1, 2):  # of which each has room for so many keys
    check("one length", 1, 40 * 64, 40)
    assert len(sizes) > 2 and set(entered) == set(range(devices)), (sizes, entered)
check("most are equal", 1, 30 * 64, 30)
check("all are equal", 1, 30 * 64, 0)
check("one length", 2, 5 * 64, 0)  # which aren't worth while
keys_cuda._LOOK = 0  # words are chopped off by the host
check("several words", 2, None, 60)
check("any length", 2, None, 50)
assert len(sizes) == 2
print("equal")
"""


@pytest.mark.parametrize("sorter", ["lsd_radix_cuda.LsdRadixCuda", "msd_radix_cuda.MsdRadixCuda",
                                    "segment_radix_cuda.SegmentRadixCuda"])
def test_devices_share_ranges_of_keys(sorter: str) -> None:
    module, _, name = sorter.partition(".")
    check(DEVICES.format(module=module, sorter=name))


@pytest.mark.gold
@pytest.mark.parametrize("sorter", ["lsd_radix_cuda.LsdRadixCuda", "msd_radix_cuda.MsdRadixCuda"])
def test_long_keys(sorter: str) -> None:
    module, _, name = sorter.partition(".")
    rows = """[[b"A" * 40 + s for s in strings(b"ACGT", rng.integers(0, 40, 40))],
               [b"A" * 70 + s for s in strings(b"ACGT", rng.integers(0, 9, 20))],
               strings(bytes(range(256)), [20] * 50), strings(bytes(range(256)), rng.integers(33, 42, 20))]"""
    check(SCRIPT.format(module=module, sorter=name, rows=rows, seed=3, least=1, threads=1))


@pytest.mark.gold
def test_deep_words_of_few_keys_are_sorted_on_the_host() -> None:
    rows = '[strings(b"ACGT", rng.zipf(1.3, 90).clip(1, 400))]'
    check(SCRIPT.format(module="lsd_radix_cuda", sorter="LsdRadixCuda", rows=rows, seed=2, least=40, threads=1))


def check(*scripts: str) -> None:
    """Scripts one after the other in one process, which takes longer to start than one of them."""
    done = simulated("-c", "\n".join(scripts))
    assert done.returncode == 0 and done.stdout.split() == ["equal"] * len(scripts), done.stderr[-3000:]
