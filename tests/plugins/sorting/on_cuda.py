"""Holds the sorters on a CUDA device to those of the CPU: ``python -m tests.plugins.sorting.on_cuda [MOST]``.

Sorts of up to so many keys, 30 million when left out; a line is printed for each kind of keys. Where there are several
devices they share the keys, too; and keys are sorted in ranges, as if devices had less memory.
"""

import os
import sys
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.records import Ragged
from seqloom.core.stages import row_type
from seqloom.installed import registry
from seqloom.plugins.sorting import keys_cuda, ranges_cuda

DNA, BYTES = np.frombuffer(b"ACGT", np.uint8), np.arange(256, dtype=np.uint8)
PROTEIN = np.frombuffer(b"ACDEFGHIKLMNPQRSTVWY", np.uint8)
MANY = 3 * keys_cuda.LEAST // 2


def even(characters: np.ndarray, width: int, count: int) -> Ragged:
    return Ragged.even(characters[np.random.default_rng(width).integers(0, len(characters), (count, width), np.uint8)])


def uneven(characters: np.ndarray, lengths: np.ndarray) -> Ragged:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Ragged(offsets, characters[np.random.default_rng(1).integers(0, len(characters), offsets[-1], np.uint8)])


def lengths(most: int, count: int) -> np.ndarray:
    return np.random.default_rng(most).integers(0, most, count, endpoint=True)


def skewed(count: int) -> Ragged:
    """Most are short, and most of their characters alike."""
    rng = np.random.default_rng(5)
    offsets = np.concatenate([[0], np.cumsum(np.minimum(rng.zipf(1.4, count), 200))])
    return Ragged(offsets, rng.choice(np.array([0, 65, 66], np.uint8), offsets[-1], p=[0.02, 0.9, 0.08]))


def late(keys: Ragged) -> Ragged:
    """The same, with characters in the last ones that no other has."""
    keys.values[-7:-1] = [0, 255, ord("N"), ord("a"), ord("A") + 32, ord("A") + 128]
    return keys


def inner(keys: Ragged) -> Ragged:
    """All but the first and the last, of the same array."""
    return Ragged(keys.offsets[1:-1], keys.values)


def twice(keys: Ragged) -> Ragged:
    rows = keys.values.reshape(len(keys), -1)
    return Ragged.even(np.concatenate([rows, rows[::-1]]))


def begun_alike(keys: Ragged, count: int) -> Ragged:
    """The same, with the first characters of all those of the first one."""
    keys.values[keys.offsets[:-1, None] + np.arange(count)] = keys.values[:count]
    return keys


def pieces(width: int, count: int) -> Ragged:
    """From places of a text that are few enough for several keys to begin at each."""
    generator = np.random.default_rng(width)
    text = DNA[generator.integers(0, 4, count // 4 + width)]
    return Ragged.even(text[generator.integers(0, count // 4, count)[:, None] + np.arange(width)])


CASES: dict[str, Callable[[int], Ragged]] = {
    "20-mers": lambda n: even(DNA, 20, n),
    "20-mers, with others at the end": lambda n: late(even(DNA, 20, n)),
    "20-mers of a longer array": lambda n: inner(even(DNA, 20, n)),
    "20-mers with N": lambda n: even(np.frombuffer(b"ACGTN", np.uint8), 20, n),
    "20-mers, all equal": lambda n: even(DNA[:1], 20, n),
    "two characters, 20": lambda n: even(DNA[:2], 20, n),
    "three characters": lambda n: even(DNA, 3, n),
    "proteins, 12 characters": lambda n: even(PROTEIN, 12, n),
    "eight bytes": lambda n: even(BYTES, 8, n),
    "nine bytes": lambda n: even(BYTES, 9, n),
    "0 to 30 characters": lambda n: uneven(DNA, lengths(30, n)),
    "0 to 30 characters, with others at the end": lambda n: late(uneven(DNA, lengths(30, n))),
    "0 to 30 bytes": lambda n: uneven(BYTES, lengths(30, n)),
    "0 and 1 characters": lambda n: uneven(DNA, lengths(1, n)),
    "no characters but one": lambda n: uneven(DNA, (np.arange(n) == n // 2).astype(np.int64)),
}
FEWER: dict[str, Callable[[int], Ragged]] = {
    "40 characters": lambda n: even(DNA, 40, n),
    "100 characters": lambda n: even(DNA, 100, n),
    "100 characters, with others at the end": lambda n: late(even(DNA, 100, n)),
    "100 characters, all equal": lambda n: even(DNA[:1], 100, n),
    "0 to 100 characters": lambda n: uneven(DNA, lengths(100, n)),
    "a, aa, aaa, …": lambda n: uneven(DNA[:1], np.arange(n) % 700),
    "skewed": skewed,
    "300 characters": lambda n: even(DNA, 300, n),
    "300 characters, with others at the end": lambda n: late(even(DNA, 300, n)),
    "100 characters, every key twice": lambda n: twice(even(DNA, 100, n // 2)),
    "the same 70 characters, then 30": lambda n: begun_alike(even(DNA, 100, n), 70),
    "the same 250 characters, then 0 to 50 bytes": lambda n: begun_alike(uneven(BYTES, 250 + lengths(50, n)), 250),
    "300 characters of pieces of a genome": lambda n: pieces(300, n),
    "40 bytes": lambda n: even(BYTES, 40, n),
}
"""Of which a million are sorted at most."""


def check(name: str, keys: Ragged) -> None:
    """All sorters, twice: the second one finds memory and threads that the first one left; and with a short prefix."""
    on_host = registry().sorter("msd-radix", "cpu")
    on_host.threads = os.cpu_count() or 1
    wanted = on_host.order(keys)
    for sorter_name, prefix in (("msd-radix", 0), ("lsd-radix", 0), ("segment-radix", 0), ("msd-radix", 7)):
        on_device = registry().sorter(sorter_name, "cuda")
        on_device.threads, on_device.prefix = on_host.threads, prefix
        for _ in range(2):
            order = on_device.order(keys)
            assert order.dtype == row_type(len(keys)), (name, sorter_name, order.dtype)
            assert np.array_equal(order, wanted), (name, sorter_name, np.flatnonzero(order != wanted)[:9])
    assert keys_cuda.many(keys), f"{name}: sorted on the host"
    print(f"{len(keys):,} keys, {name}: equal", flush=True)


def mostly_equal(keys: Ragged) -> Ragged:
    """The same, of which four in five are the first one."""
    rows = keys.values.reshape(len(keys), -1)
    rows[np.random.default_rng(6).random(len(keys)) < 0.8] = rows[0]
    return keys


SHARED: dict[str, Callable[[int], Ragged]] = {
    **{name: CASES[name] for name in ("20-mers", "20-mers, all equal", "0 to 30 characters")},
    **{name: FEWER[name] for name in ("100 characters", "skewed", "100 characters, every key twice")},
    "100 characters, most of them equal": lambda n: mostly_equal(even(DNA, 100, n)),
    "12 bytes, most of them equal": lambda n: mostly_equal(even(BYTES, 12, n)),
}


def check_ranges(name: str, keys: Ragged, memory: int | None) -> None:
    """By all devices that there are, each of which may take so many bytes."""
    on_host = registry().sorter("msd-radix", "cpu")
    on_host.threads = os.cpu_count() or 1
    wanted = on_host.order(keys)
    for sorter_name in ("msd-radix", "lsd-radix", "segment-radix"):
        on_devices = registry().sorter(sorter_name, "cuda")
        on_devices.threads, on_devices.device_memory = on_host.threads, memory
        for _ in range(2):
            order = on_devices.order(keys)
            assert np.array_equal(order, wanted), (name, sorter_name, memory, np.flatnonzero(order != wanted)[:9])
    print(f"{len(keys):,} keys, {name}, {device_count()} devices, memory {memory}: equal", flush=True)


def check_shared(count: int) -> None:
    """Keys that all devices share, and keys that exceed the memory of each."""
    with patch.object(ranges_cuda, "LEAST_RANGES", device_count()):
        for name, make in SHARED.items():
            keys = make(count)
            if device_count() > 1:
                check_ranges(name, keys, None)
            check_ranges(name, keys, 64 * count // 5)


def main(most: int) -> None:
    if most >= 1_000_003:
        check_shared(1_000_003)
    for count in (MANY, 1_000_003, 10_000_000, 30_000_001):
        if count <= most:
            cases = CASES if count < 10_000_000 else dict(list(CASES.items())[: 2 if count > 10_000_000 else 3])
            for name, make in {**cases, **(FEWER if count <= 1_000_003 else {})}.items():
                check(name, make(count))


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 30_000_001)
