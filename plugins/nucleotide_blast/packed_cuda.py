"""Targets on CUDA devices, two bits a base: sent there while the volume before is searched.

Where a device has no room for a volume, word hits are found part by part, and alignments have the bases that they can
reach (``reached_cuda.py``).
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import numpy as np
from seqloom.core.backends import device_count
from seqloom.core.classes import dataclass
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, Shape
from seqloom.plugins.common.resident_cuda import (
    VOLUME_RESIDUES,
    Upload,
    Volume,
    VolumeSize,
    device_memory,
    on_devices,
)
from seqloom.plugins.common.resident_index_cuda import wait_quietly
from seqloom.plugins.nucleotide_blast.index_cpu import NucleotideBasesCpu
from seqloom.plugins.nucleotide_blast.packed_cpu import BITS, SPARE, packed_bases, packed_of

_WHOLE, _PART = 1, 0.25
"""Volumes of which so many find room are there whole; of others, so much of a device's memory is for bases at least."""
SCANNED, REACHED = 0.8, 0.2
"""Of it what a part takes in which words are looked for, with all that this needs, and beside it what alignments take,
with the bases that they can reach."""


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

    @property
    def nbytes(self) -> int:
        """On a device."""
        return VolumeSize.of(len(self.bits), 1).nbytes

    @contextmanager
    def on_device(self, budget: int | None) -> Iterator[Volume]:
        """The bases on the current device, as ``DeviceMemory.volume``."""
        with device_memory().volume(cast(SequenceBatch, self), budget) as volume:
            volume.arrived([0])
            yield volume

    def bring(self, budget: int | None) -> Upload:
        return device_memory().bring(cast(SequenceBatch, self), budget)

    def part(self, low: int, high: int) -> tuple[PackedTargets, int]:
        """Bytes that have bases ``low`` … ``high`` − 1, with what is read behind them; and the first base there."""
        return PackedTargets(self.bits[low // 4 : -(-high // 4) + SPARE]), low // 4 * 4


def packed_size(bases: int) -> VolumeSize:
    """Of so many bases on a device."""
    return VolumeSize.of(bases // 4 + 1 + SPARE, 1)


def _come_in_parts(bases: int, budget: int | None) -> bool:
    volume = min(bases, 4 * VOLUME_RESIDUES)
    return budget is not None and _WHOLE * packed_size(volume).nbytes > budget


def bases_in_parts(context: Context) -> bool:
    """Whether devices have no room for the volumes of a search, so that stages have bases come part by part."""
    return _come_in_parts(context.space.total_residues, context.device_memory)


def shape_of_part(shape: Shape) -> Shape | None:
    """What a stage has on a device at a time of units of that shape, at least; None where it is the whole volume."""
    if shape.device_memory is None or not _come_in_parts(max(shape.database_residues, shape.target_residues),
                                                         shape.device_memory):
        return None
    return replace(shape, target_residues=min(shape.target_residues, int(4 * _PART * shape.device_memory)))


def packed_targets(context: Context) -> PackedTargets:
    """Those of the volume, whichever back end has made its index."""
    return PackedTargets(packed_bases(context).whole_bytes)


class NucleotideBasesCuda(NucleotideBasesCpu):
    __doc__ = NucleotideBasesCpu.__doc__
    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        host = super().footprint(shape)
        device = 0 if shape_of_part(shape) else packed_size(shape.target_residues).nbytes
        return Footprint(host=host.host, stays=host.kept, device=device)

    def run(self, context: Context, batch: SequenceBatch) -> Index:
        packed = packed_of(batch)
        index = self._of(packed._replace(bits=packed.whole_bytes, first=0), batch)
        targets = PackedTargets(index[BITS])

        def send(device: int) -> None:
            # Bases that nobody has used may go when the index goes.
            weakref.finalize(index, wait_quietly, targets.bring(context.device_memory))

        if bases_in_parts(context):
            return index
        devices = range(device_count())
        with short_switch_interval():
            on_devices(send, devices, devices)
        return index
