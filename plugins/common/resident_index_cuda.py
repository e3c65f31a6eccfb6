"""Targets on CUDA devices: the residues of a volume are sent there while the volume before is searched."""

import weakref
from contextlib import suppress
from dataclasses import replace
from typing import Any, ClassVar

from seqloom.core.backends import device_count
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.errors import BackendError
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape, Stage

from .resident_cuda import (
    VOLUME_RESIDUES,
    Upload,
    VolumeSize,
    comes_in_parts,
    device_memory,
    devices_for,
    in_parts,
    on_devices,
    prepare_devices,
)
from .target_order_cuda import BYTES_PER_STRETCH_HERE

KIND = "resident-targets"
_NO_LANES = {"lanes": 0}


def wait_quietly(sending: Upload) -> None:
    with suppress(BackendError):  # whoever uses the device will be told
        sending.wait()


def shape_in_parts(shape: Shape) -> bool:
    """As ``in_parts``, when a run is planned."""
    return comes_in_parts(max(shape.database_residues, shape.target_residues),
                          max(shape.database_targets, shape.targets), shape.device_memory)


def brought_whole(shape: Shape) -> int:
    """Bytes on a device of a volume that a stage wants there whole, where the index below leaves it to the stages."""
    return VolumeSize.of(shape.target_residues, shape.targets).nbytes if shape_in_parts(shape) else 0


class OnDevices(Stage):
    """What stages that scan resident volumes have in common; to be named before what they do on the CPU."""

    backend = "cuda"
    records_on = "host"
    least_cells = 1 << 36  # some ms of a device
    volume_residues = VOLUME_RESIDUES

    def begin(self, options: object) -> None:
        super().begin(options)
        prepare_devices()

    def finish(self, options: object) -> None:
        super().finish(options)
        on_devices(lambda device: device_memory().release_idle(), range(device_count()), range(device_count()))


class ResidentTargets(IndexStage):
    """Sends targets to devices; its index holds no arrays."""

    backend = "cuda"

    def footprint(self, shape: Shape) -> Footprint:
        return Footprint(host=BYTES_PER_STRETCH_HERE * (shape.targets + 1),
                         device=VolumeSize.of(shape.target_residues, shape.targets).nbytes)

    def run(self, context: Context, batch: SequenceBatch) -> Any:
        index = Index(self.provides, "target", parameters=_NO_LANES)

        def send(device: int) -> None:
            # Residues that nobody has used may go when the index goes.
            weakref.finalize(index, wait_quietly, device_memory().bring(batch, context.device_memory))

        devices = devices_for(context)
        with short_switch_interval():
            on_devices(send, devices, devices)
        return index


class TargetsOnDevices(ResidentTargets):
    """The targets of a volume, sent to CUDA devices while the volume before is searched.

    Where devices have little memory for such volumes, it sends nothing: stages have what they need come part by part.
    """

    name: ClassVar[str] = KIND
    side = "target"
    provides: ClassVar[str] = KIND

    def footprint(self, shape: Shape) -> Footprint:
        footprint = super().footprint(shape)
        return replace(footprint, device=0) if shape_in_parts(shape) else footprint

    def run(self, context: Context, batch: SequenceBatch) -> Any:
        if in_parts(context):
            return Index(self.provides, "target", parameters=_NO_LANES)
        return super().run(context, batch)
