"""Where records are: transfers (in numba's simulator of CUDA) and producers of unknown amounts."""

import ctypes
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from seqloom.core import backends
from seqloom.core.backends import to_device, with_capacity
from seqloom.core.errors import BackendError
from seqloom.core.records import Pairs

from tests.simulator import simulated


def pairs() -> Pairs:
    return Pairs({"query": [1, 2], "target": [3, 4], "score": [5, 6]})


def test_records_that_are_there_already_are_not_copied() -> None:
    records = pairs()
    assert to_device(records, "host") is records
    assert to_device(None, "cuda") is None


def test_no_device_is_said_in_one_line(monkeypatch) -> None:
    monkeypatch.setattr(backends, "cuda_available", lambda: False)
    with pytest.raises(BackendError, match="no CUDA device can be used; --backend cpu or reference"):
        to_device(pairs(), "cuda")


def test_only_one_thread_at_a_time_opens_the_driver(monkeypatch) -> None:
    numba = pytest.importorskip("numba")
    opening = threading.Lock()

    class Devices:
        def __len__(self) -> int:
            assert opening.acquire(blocking=False), "two threads at a time"
            time.sleep(0.01)
            opening.release()
            return 3

    monkeypatch.setattr(numba, "cuda", SimpleNamespace(gpus=Devices()), raising=False)
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: backends.device_count.__wrapped__(), range(4))) == [3] * 4


@pytest.mark.parametrize(("capacity", "launches"), [(10, [10]), (7, [7]), (6, [6, 7]), (0, [0, 7])])
def test_a_producer_is_launched_again_with_the_capacity_it_asked_for(capacity: int, launches: list[int]) -> None:
    tried = []

    def launch(room: int):
        tried.append(room)
        return 7, list(range(min(room, 7)))

    assert with_capacity(launch, capacity) == list(range(7))
    assert tried == launches


def test_a_producer_of_more_than_memory_holds_says_what_helps() -> None:
    assert with_capacity(lambda room: (7, room), 1, largest=7) == 7
    with pytest.raises(BackendError, match=r"makes 7,000 records at once and memory holds 6,999; use smaller volumes"):
        with_capacity(lambda room: (7000, room), 1, largest=6999)


@pytest.mark.parametrize("check", ["check_arguments_of_kernels", "check_round_trip", "check_records_made_on_the_device",
                                   "check_a_run_over_devices"])
def test_in_the_simulator_of_cuda(check: str) -> None:
    done = simulated("-c", f"from tests.core import on_device\non_device.{check}()")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("code", "devices", "opened"), [(0, 1, 1), (0, 9, 2), (100, 1, 0)])
def test_the_driver_is_opened_ahead(monkeypatch: pytest.MonkeyPatch, code: int, devices: int, opened: int) -> None:
    """Of a host with two devices."""
    called = []

    class Driver:
        def __init__(self, name: str) -> None:
            called.append(name)

        def __getattr__(self, name: str) -> object:
            return lambda *arguments: called.append(name) or code

        def cuDeviceGetCount(self, count: object) -> int:
            ctypes.cast(count, ctypes.POINTER(ctypes.c_int))[0] = 2
            return 0

    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16")
    if code:
        del os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]
    monkeypatch.setattr(backends, "_driver_in_sight", lambda: True)
    monkeypatch.setattr(backends.ctypes, "CDLL", Driver)
    monkeypatch.setattr(backends, "_opens", [])
    backends.open_ahead(devices)
    backends.open_ahead()  # which has been done
    backends.wait_for_opening()
    assert os.environ["CUDA_DEVICE_MAX_CONNECTIONS"] == ("32" if code else "16")
    assert called == ["libcuda.so.1", "cuInit", *["cuDeviceGet", "cuDevicePrimaryCtxRetain"] * opened]
