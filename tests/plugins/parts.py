"""Volumes that go through devices in parts of at most two targets, for checks of CUDA stages."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from seqloom.plugins.common import chosen_cuda, diagonal_scan_cuda, resident_cuda

ROOM = 1 << 29
"""Device memory with which volumes go in parts then."""


@contextmanager
def small_parts() -> Iterator[list[resident_cuda.PartSize]]:
    """Gives the sizes of parts that stages and the planner ask for."""
    asked = list[resident_cuda.PartSize]()

    def size(residues: int, targets: int, longest: int, rooms: object, beside: object) -> resident_cuda.PartSize:
        asked.append(resident_cuda.PartSize(longest, 2))
        return asked[-1]

    with ExitStack() as stack:
        stack.enter_context(patch.object(resident_cuda, "_WHOLE", 1 << 40))
        for module in (chosen_cuda, diagonal_scan_cuda):
            stack.enter_context(patch.object(module, "part_size", size))
        yield asked
