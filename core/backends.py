"""Where records are: moving them between host and device, and producers that don't know how much they'll make."""

import ctypes
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from glob import glob
from typing import Any

from .errors import BackendError
from .records import Hits, Ragged, Records

_mine = threading.local()
QUEUES = "CUDA_DEVICE_MAX_CONNECTIONS", "32"
"""Variable of the environment, and its value, for queues of a device, which streams are spread over: as many as there
are, in place of eight, so that a kernel doesn't wait for one of another stream. The driver reads it when it is
opened."""
_opens: list[threading.Thread] = []
"""The thread that opens devices ahead, once there is one."""
_opening = threading.Lock()
"""Held by whoever calls the driver first: numba takes it for open as soon as one thread has begun to open it."""


def simulated() -> bool:
    """Whether device code runs in numba's simulator."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def device_in_sight() -> bool:
    """Whether the system shows a CUDA driver, or devices are simulated; nothing is imported."""
    return simulated() or _driver_in_sight()


def _driver_in_sight() -> bool:
    return any(os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/dxg"))


def devices_to_count() -> bool:
    """Whether there may be several devices, as far as the system shows without opening the driver."""
    return simulated() or _devices_in_sight() != 1


@cache
def _devices_in_sight() -> int:
    """Of NVIDIA's, that the system shows: every volume asks."""
    return len(glob("/dev/nvidia[0-9]*"))


def open_ahead(devices: int = 1) -> None:
    """Have a thread open the driver and the contexts of the first devices, while numba's modules for them are imported.

    Both take some 0.3 s. Whoever uses a device gets what is open then; what fails here fails there, and is told.
    """

    def open_devices() -> None:
        with suppress(OSError, AttributeError):
            driver, device, context, count = (ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_void_p(),
                                              ctypes.c_int())
            if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0:
                for number in range(min(devices, count.value)):
                    if driver.cuDeviceGet(ctypes.byref(device), number) == 0:
                        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)

    if not _opens and _driver_in_sight() and not simulated():
        os.environ.setdefault(*QUEUES)
        _opens.append(threading.Thread(target=open_devices, name="open", daemon=True))
        _opens[0].start()


def opens_ahead() -> bool:
    """Whether a thread opens devices, or has done so."""
    return bool(_opens)


def wait_for_opening() -> None:
    """Return when no thread opens devices ahead."""
    for thread in _opens:
        thread.join()


@cache
def cuda_available() -> bool:
    """Whether a CUDA device (or numba's simulator) can be used. Imports numba.cuda only where a driver is in sight."""
    if simulated():
        return True
    if not _driver_in_sight():
        return False
    open_ahead()
    try:
        from numba import cuda
    except ImportError:
        return False
    with _opening:
        return bool(cuda.is_available())


def check_available(backends: Iterable[str]) -> None:
    """Raise ``BackendError`` if one of some back ends can't be used on this machine."""
    if "cuda" in backends and not cuda_available():
        raise BackendError("CUDA was asked for and no CUDA device can be used; --backend cpu or reference")


@cache
def device_count() -> int:
    """CUDA devices of this host that can be used; numba's simulator has one.

    Threads that work on devices ask this first, so that the driver is open when they call it.
    """
    if simulated():
        return 1
    from numba import cuda

    with _opening:
        return len(cuda.gpus)


@contextmanager
def on_device(number: int) -> Iterator[None]:
    """The calling thread works on CUDA device ``number``."""
    if device_count() == 1:
        yield
        return
    from numba import cuda

    before = getattr(_mine, "device", None)
    with cuda.gpus[number]:
        _mine.device = number
        try:
            yield
        finally:
            _mine.device = before


def current_device() -> int:
    """Number of the CUDA device that the calling thread works on, without asking the driver where that can be known."""
    if device_count() == 1:
        return 0
    if (told := getattr(_mine, "device", None)) is not None:
        return int(told)
    from numba import cuda

    return int(cuda.get_current_device().id)


def to_device(records: Records | None, device: str) -> Records | None:
    """``records`` on ``device`` ("host" or "cuda"): themselves when they are there already, else a copy."""
    if records is None or records.device == device:
        return records
    check_available([device])
    move = _array_to_device if device == "cuda" else _array_to_host
    data = {name: _move(values, move) for name, values in records.data.items() if _movable(records, name)}
    rest = {name: values for name, values in records.data.items() if name not in data}
    moved = type(records)({**rest, **data}, records.extra, device)
    if isinstance(records, Hits) and isinstance(moved, Hits):
        moved.alignments = records.alignments
    return moved


def _movable(records: Records, name: str) -> bool:
    return records.schema[name].type != "str"


def _move(values: Any, move: Callable[[Any], Any]) -> Any:
    return Ragged(move(values.offsets), move(values.values)) if isinstance(values, Ragged) else move(values)


def _array_to_device(array: Any) -> Any:
    from numba import cuda

    return cuda.to_device(array)


def _array_to_host(array: Any) -> Any:
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array  # absent values are made on the host


def with_capacity(launch: Callable[[int], tuple[int, Any]], capacity: int, largest: int | None = None) -> Any:
    """Result of a producer that doesn't know beforehand how much it will make.

    Args:
        launch: takes a capacity in records; returns the number of records there are and the result, which is whole only
            if that number is not above the capacity.
        capacity: for the first attempt.
        largest: capacity that memory allows.

    Raises:
        BackendError: more records than ``largest``.
    """
    while True:
        count, result = launch(capacity)
        if count <= capacity:
            return result
        if largest is not None and count > largest:
            raise BackendError(f"a stage makes {count:,} records at once and memory holds {largest:,}; "
                               "use smaller volumes (--volume-residues) or more memory (--memory, --device-memory)")
        capacity = count
