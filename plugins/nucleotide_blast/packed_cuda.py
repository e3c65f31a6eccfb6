"""Targets on CUDA devices, two bits a base: sent there while the volume before is searched."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import Upload, Volume, VolumeSize, device_memory, on_devices
from seqloom.plugins.common.resident_index_cuda import wait_quietly
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu
from seqloom.plugins.nucleotide_blast.packed_cpu import BITS, SPARE, packed_bases, packed_of


@dataclass(frozen=True, eq=False)
class PackedTargets:
    """All bases of a volume as ``DeviceMemory`` takes a batch: bytes, as if they were those of a single sequence.

    bits: u1, of ``PackedBases``; devices keep it for as long as it lives.
    """

    bits: np.ndarray

    def __len__(self) -> int:
        return 1

    def searched(self) -> np.ndarray:
        return self.bits

    @property
    def offsets(self) -> np.ndarray:
        return np.array([0, len(self.bits)], np.int64)

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(self.bits)], np.int64)

    @contextmanager
    def on_device(self, budget: int | None) -> Iterator[Volume]:
        """The bases on the current device, as ``DeviceMemory.volume``."""
        with device_memory().volume(cast(SequenceBatch, self), budget) as volume:
            volume.arrived([0])
            yield volume

    def bring(self, budget: int | None) -> Upload:
        return device_memory().bring(cast(SequenceBatch, self), budget)


def packed_size(shape: Shape) -> VolumeSize:
    """Of a volume of that shape on a device."""
    return VolumeSize.of(shape.target_residues // 4 + 1 + SPARE, 1)


def packed_targets(context: Context) -> PackedTargets:
    """Those of the volume, whichever back end has made its index."""
    return PackedTargets(packed_bases(context).whole_bytes)


class NucleotideBasesCuda(NucleotideBasesCpu):
    __doc__ = NucleotideBasesCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        host = super().footprint(shape)
        return Footprint(host=host.host, stays=host.kept, device=packed_size(shape).nbytes)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        packed = packed_of(batch)
        index = self._of(packed._replace(bits=packed.whole_bytes, first=0), batch)
        targets = PackedTargets(index[BITS])

        def send(device: int) -> None:
            # Bases that nobody has used may go when the index goes.
            weakref.finalize(index, wait_quietly, targets.bring(context.device_memory))

        devices = range(device_count())
        with short_switch_interval():
            on_devices(send, devices, devices)
        return index
