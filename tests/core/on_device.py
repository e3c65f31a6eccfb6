"""Checks of records and stages on a CUDA device, or on tiny inputs in its simulator (``NUMBA_ENABLE_CUDASIM=1``)."""

from typing import Any

import numpy as np
from numba import cuda as _cuda
from numba import int32
from seqloom.core import backends
from seqloom.core.backends import to_device
from seqloom.core.cuda.jit import kernel
from seqloom.core.cuda.quick_launch import LARGE_BLOCK
from seqloom.core.engine import runner
from seqloom.core.hookspecs import hookimpl
from seqloom.core.kernels.packed16 import SIMULATED
from seqloom.core.records import Alignments, Column, Hits, Ragged, Seeds
from seqloom.testing import assert_same_hits, assert_same_records, run_pipeline

from tests.core import toy

cuda: Any = _cuda  # numba's types don't know what code on the device may do


@kernel()
def sum_all(a, b, c, small, large, single, double, flag, sums):
    shared = cuda.shared.array(0, int32)
    n = cuda.threadIdx.x
    shared[n] = a[n] + b[n] * small
    cuda.syncthreads()
    n = cuda.grid(1)
    sums[n] = shared[cuda.blockDim.x - 1 - cuda.threadIdx.x] + c[n] * large + single + double + (1000 if flag else 0)


@cuda.jit
def long_enough(scores, least, kept):
    n = cuda.grid(1)
    if n < scores.size:
        kept[n] = scores[n] >= least


def check_arguments_of_kernels() -> None:
    """Numbers and arrays of all kinds, tables larger than usual in shared memory, and a view of an array."""
    threads, blocks = (4, 2) if SIMULATED else (128, 40)
    rng, count = np.random.default_rng(1), blocks * threads
    for types in ((np.int32, np.uint8, np.int64), (np.int16, np.uint32, np.float64), (np.int8, np.bool_, np.float32)):
        a, b, c = (rng.integers(0, 2, count).astype(kind) for kind in types)
        small, large, single, double = np.int16(-3), 1 << 33, np.float32(0.25), 0.5
        there = cuda.device_array(2 * count, np.float64)
        for flag in (True, np.bool_(False)):
            for shared in (4 * threads, LARGE_BLOCK + 4 * threads):
                given = [cuda.to_device(array) for array in (a, b, c)]
                sum_all[blocks, threads, 0, shared](*given, small, large, single, double, flag, there[count:])
                rows = np.arange(count) % threads
                near = a[rows].astype(np.int32) + b[rows].astype(np.int32) * small
                wanted = (near.reshape(-1, threads)[:, ::-1].ravel() + c * np.float64(large) + 0.75
                          + (1000 if flag else 0))
                assert (there[count:].copy_to_host() == wanted).all()


def check_round_trip() -> None:
    assert backends.cuda_available()
    extra = (Column("word", "str", "text"), Column("mark", "bool", "flag"), Column("p", "f8", "probability"))
    names = ("score", "query_start", "query_end", "target_start", "target_end", "query_frame", "target_frame")
    for count in (0, 1, 5):
        numbers = np.arange(count)
        made = Alignments({"query": numbers, "target": numbers, **dict.fromkeys(names, numbers),
                           "word": np.array([f"w{n}" for n in numbers], object), "mark": numbers % 2 == 0,
                           "p": numbers / 7, "path": Ragged.of([[n] * n for n in numbers])}, extra)
        there = to_device(made, "cuda")
        assert there.device == "cuda"
        assert not isinstance(there.score, np.ndarray)
        assert there.extra == made.extra
        assert len(there) == count
        assert to_device(there, "cuda") is there
        assert_same_records(made, to_device(there, "host"))
        hits = Hits({n: made.data[n] for n in ("query", "target", "score")}, alignments=made)
        assert_same_hits(hits, to_device(to_device(hits, "cuda"), "host"))


def check_records_made_on_the_device() -> None:
    """A kernel gives only some columns; nullable ones are filled in."""
    columns = {n: cuda.to_device(np.arange(3, dtype=np.int32)) for n in ("query_pos", "target_pos", "length")}
    columns |= {n: cuda.to_device(np.ones(3, np.int8)) for n in ("query_frame", "target_frame")}
    columns |= {"query": cuda.to_device(np.zeros(3, np.int32)), "target": cuda.to_device(np.arange(3))}
    host = to_device(Seeds(columns, device="cuda"), "host")
    assert host.score.tolist() == [-1, -1, -1]
    assert host.target.tolist() == [0, 1, 2]
    assert to_device(to_device(host, "cuda"), "host").rows() == host.rows()


def check_a_run_over_devices() -> None:
    """A stage on the device between two on the host: transfers stand where neighbours differ, results are the same."""
    class OnDevice(toy.ScoreLength):
        backend = "cuda"

        def run(self, context, records):
            assert context.device == records.device == "cuda"
            assert not isinstance(records.score, np.ndarray)
            kept = cuda.device_array(len(records), np.bool_)
            if len(records):
                long_enough[1, len(records)](records.score, context.options.least, kept)
            host = to_device(records, "host").take(kept.copy_to_host())
            return to_device(host.replace(bit_score=host.score - np.log2(context.space.total_residues)), "cuda")

    class Plugin:
        SEQLOOM_API = toy.SEQLOOM_API

        @hookimpl
        def seqloom_stages(self):
            return [OnDevice]

    registry = toy.registry()
    registry.register(Plugin(), "device")
    moves = []
    original = runner.to_device
    runner.to_device = lambda records, device: (moves.append((getattr(records, "device", None), device)),
                                            original(records, device))[1]
    queries, targets = toy.sequences(3, 20, 1), toy.sequences(6, 20, 2)
    wanted = run_pipeline("toy", queries, targets, registry=toy.registry())
    assert not [m for m in moves if "cuda" in m]
    found = run_pipeline("toy", queries, targets, settings=["score.length.backend=cuda"], registry=registry)
    assert [m for m in moves if m[0] and m[0] != m[1]] == [("host", "cuda"), ("cuda", "host")]
    assert_same_hits(wanted, found)
    assert len(wanted)
