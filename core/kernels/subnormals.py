"""Arithmetic in which numbers smaller than the smallest normal one are 0, as programs choose that want no time lost to
them: where answers are to be theirs, so must be what becomes of such numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

from .jit import kernel
from .simd import set_flushing


@kernel
def _set(wanted):
    return set_flushing(wanted)


@contextmanager
def flushed() -> Iterator[None]:
    """Results of this thread that are smaller than any normal number (of f32 2**-126) become 0, of kernels and of
    numpy alike; also a decorator. On x86-64; elsewhere nothing is changed."""
    former = _set(True)
    try:
        yield
    finally:
        _set(former)
