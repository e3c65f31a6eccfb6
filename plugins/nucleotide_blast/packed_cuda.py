"""Targets on CUDA devices, two bits a base: sent there while the volume before is searched."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.context import Context
from seqloom.core.engine.threads import run_tasks, short_switch_interval
from seqloom.core.index import Index
from seqloom.core.kernels.jit import kernel
from seqloom.core.sequences import SequenceBatch, offsets_of
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.grouping import even_parts
from seqloom.plugins.common.resident_cuda import Volume, VolumeSize, device_memory, on_devices
from seqloom.plugins.common.resident_index_cuda import wait_quietly
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu
from seqloom.plugins.nucleotide_blast.index_reference import BASES

IN_WORD = 16
"""Bases of a word of 32 bits."""
PACKED = "packed"


@kernel
def _pack(bases, offsets, begins, first, last, words):
    """Fill words ``first`` … ``last`` − 1. offsets, begins: i8[k + 1], of targets in ``bases`` and in ``words``."""
    target = np.searchsorted(begins, first, "right") - 1
    for number in range(first, last):
        while begins[target + 1] <= number:
            target += 1
        place = offsets[target] + 16 * (number - begins[target])
        count = min(np.int64(16), offsets[target + 1] - place)
        word = np.uint32(0)
        for k in range(count):
            word = word << np.uint32(2) | np.uint32(bases[place + k] & 3)
        words[number] = word << np.uint32(2 * (16 - count))


@dataclass(frozen=True, eq=False)
class PackedTargets:
    """Targets as ``DeviceMemory`` takes them: 16 bases a word, the first one highest; each begins with a word.

    Attributes:
        searched_bytes: u1, the words as bytes: what is kept on devices goes by this array.
        begins: i8[k + 1], the first word of each target.
    """

    searched_bytes: np.ndarray
    begins: np.ndarray

    @classmethod
    def of(cls, bases: np.ndarray, offsets: np.ndarray, threads: int) -> PackedTargets:
        """Of u1 ``bases`` (0 … 3) of targets that begin at i8[k + 1] ``offsets``."""
        begins = offsets_of(words_of(np.diff(offsets)))
        packed = np.empty(4 * int(begins[-1]), np.uint8)
        words = packed.view(np.uint32)
        run_tasks(threads, lambda part: _pack(bases, offsets, begins, *part, words), even_parts(len(words), threads))
        return cls(packed, begins)

    def searched(self) -> np.ndarray:
        return self.searched_bytes

    @property
    def offsets(self) -> np.ndarray:
        return self.begins

    @cached_property
    def lengths(self) -> np.ndarray:
        return np.diff(self.begins)

    def __len__(self) -> int:
        return len(self.begins) - 1

    @contextmanager
    def on_device(self, budget: int | None) -> Iterator[Volume]:
        """The targets on the current device, as ``DeviceMemory.volume``."""
        with device_memory().volume(cast(SequenceBatch, self), budget) as volume:
            volume.arrived([0])
            yield volume

    def bring(self, budget: int | None) -> Any:
        return device_memory().bring(cast(SequenceBatch, self), budget)


def words_of(lengths: np.ndarray) -> np.ndarray:
    """Words that so many bases take."""
    return -(-lengths // IN_WORD)


def packed_size(shape: Shape) -> VolumeSize:
    """Of a volume of that shape on a device."""
    return VolumeSize.of(4 * (shape.target_residues // IN_WORD + shape.targets), shape.targets)


def packed_targets(context: Context) -> PackedTargets:
    """Those of the volume, as its index has them, or packed now where another back end has made that."""
    index = context.index(BASES)
    packed: PackedTargets | None = index.objects.get(PACKED)
    return packed or PackedTargets.of(index["bases"], context.targets.offsets, context.threads)


class NucleotideBasesCuda(NucleotideBasesCpu):
    __doc__ = NucleotideBasesCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        host, packed = super().footprint(shape), packed_size(shape).nbytes
        return Footprint(host=host.host + packed, stays=host.kept + packed, device=packed)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        index = super().run(context, batch)
        packed = PackedTargets.of(index["bases"], batch.offsets, context.threads)
        made = Index(index.kind, index.side, index.arrays, index.parameters, {PACKED: packed})

        def send(device: int) -> None:
            # Bases that nobody has used may go when the index goes.
            weakref.finalize(made, wait_quietly, packed.bring(context.device_memory))

        devices = range(device_count())
        with short_switch_interval():
            on_devices(send, devices, devices)
        return made
