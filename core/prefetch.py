"""Asking for memory before it is needed: kernels that jump about in large arrays wait less if they say where to."""

from typing import Any

from .jit import Operation

prefetch: Any = Operation("prefetch")
"""``prefetch(array, index)`` starts to fetch an element, of a one-dimensional array, into the cache."""
