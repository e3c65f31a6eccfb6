"""Targets on CUDA devices: the residues of a volume are sent there while the volume before is searched."""

import weakref
from contextlib import suppress
from typing import Any, ClassVar

from seqloom.core.backends import device_count
from seqloom.core.context import Context
from seqloom.core.engine.threads import short_switch_interval
from seqloom.core.errors import BackendError
from seqloom.core.index import Index
from seqloom.core.sequences import SequenceBatch
from seqloom.core.stages import Footprint, IndexStage, Shape, Stage

from .resident_cuda import Upload, VolumeSize, device_memory, devices_for, on_devices, prepare_devices
from .target_order_cuda import BYTES_PER_STRETCH_HERE

KIND = "resident-targets"


def wait_quietly(sending: Upload) -> None:
    with suppress(BackendError):  # whoever uses the device will be told
        sending.wait()


class OnDevices(Stage):
    """What stages that scan resident volumes have in common; to be named before what they do on the CPU."""

    backend = "cuda"
    records_on = "host"
    least_cells = 1 << 36  # some ms of a device
    volume_residues = 256_000_000  # 5 ms of the bus, which the host's own work for a volume hides behind

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
        index = Index(self.provides, "target", parameters={"lanes": 0})

        def send(device: int) -> None:
            # Residues that nobody has used may go when the index goes.
            weakref.finalize(index, wait_quietly, device_memory().bring(batch, context.device_memory))

        devices = devices_for(context)
        with short_switch_interval():
            on_devices(send, devices, devices)
        return index


class TargetsOnDevices(ResidentTargets):
    """The targets of a volume, sent to CUDA devices while the volume before is searched."""

    name: ClassVar[str] = KIND
    side = "target"
    provides: ClassVar[str] = KIND
