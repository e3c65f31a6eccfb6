"""The processor that kernels are compiled for, and what of it vectors depend on.

``SEQLOOM_SIMD`` chooses narrower vectors than the CPU has ("avx2", "portable"), for tests and comparisons. It must be
set before the first kernel is imported.

What LLVM says of the processor is kept (``cache.py``), since its library takes longer to load than many a search.
"""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

import llvmlite
import numpy as np

from ..classes import NamedTuple
from . import cache as kept

SIMD_LEVELS = {"avx512": "", "avx2": "x86-64-v3", "portable": "x86-64"}
"""LLVM's name of the CPU that each level compiles for; "" is the host."""

level = os.environ.get("SEQLOOM_SIMD", "")
if level and level not in SIMD_LEVELS:
    raise ImportError(f"SEQLOOM_SIMD must be one of {', '.join(SIMD_LEVELS)}, not '{level}'")


class Host(NamedTuple):
    """This machine by LLVM's names: system, processor, and what that can do."""

    system: str
    cpu: str
    features: tuple[str, ...]


_ABOUT = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""What tells processors apart in Linux's list of them."""
_LISTED = 1 << 14
"""Bytes of that list that have the first processor."""


def _processor() -> tuple[str, ...]:
    """What the system says of the processor; nothing where that doesn't tell it from others."""
    with suppress(OSError), Path("/proc/cpuinfo").open() as listed:
        first = dict(line.split("\t", 1) for line in listed.read(_LISTED).partition("\n\n")[0].splitlines()
                     if "\t" in line)
        about = tuple(first.get(name, "") for name in _ABOUT)
        return about if all(about) else ()
    return ()


@cache
def _host() -> Host:
    source, about = Path(__file__), (_processor(), llvmlite.__version__)
    name = f"{source.stem}.{kept.digest(repr(about))}.host"
    if all(about) and (parts := kept.read(source, name, about)):
        return Host(*parts)
    from llvmlite import binding

    features = sorted(name for name, there in binding.get_host_cpu_features().items() if there)
    host = Host(binding.get_process_triple(), binding.get_host_cpu_name(), tuple(features))
    if all(about):
        kept.keep(source, name, about, host)
    return host


def host_system() -> str:
    """LLVM's name of the kind of processor and the system."""
    return _host().system


def host_features() -> frozenset[str]:
    """What the CPU that is compiled for can do, by LLVM's names; of a narrower level what matters to vectors."""
    if SIMD_LEVELS.get(level):
        return frozenset({"avx2": ("avx2", "ssse3"), "portable": ()}[level])
    return frozenset(_host().features)


def host_cpu() -> str:
    """LLVM's name of the CPU that is compiled for."""
    return SIMD_LEVELS.get(level) or _host().cpu


_FEATURES = host_features()
HAS_BYTE_PERMUTE = {"avx512vbmi", "avx512bw"} <= _FEATURES
HAS_AVX2 = "avx2" in _FEATURES
HAS_SSSE3 = "ssse3" in _FEATURES
HAS_BIT_EXTRACT = "bmi2" in _FEATURES and host_cpu() not in ("znver1", "znver2")
"""Whether one quick operation picks bits out of a word: the first Zens have it in name only."""
BYTE_LANES: int = 64 if HAS_BYTE_PERMUTE else 32 if HAS_AVX2 else 16
"""Lanes of 8 bits per vector on this CPU; as many lanes of 16 bits take two registers."""
ALL_LANES = np.uint64(2**BYTE_LANES - 1)
"""The bits of all of ``BYTE_LANES`` lanes, from which ``not_greater_lanes`` starts."""
SATURATES_ON_ONE_PORT: bool = HAS_BYTE_PERMUTE and not host_cpu().startswith("znver")
"""Whether a cycle takes one of those operations on whole registers that saturate or choose the greater, but two sums
that wrap around, and a comparison beside them: so it is with AVX-512 of Intel, not of AMD."""
WORKS_BY_HALVES: bool = HAS_BYTE_PERMUTE and host_cpu() == "znver4"
"""Whether an operation on a whole register takes its port for two cycles, as AVX-512 does on Zen 4: one load or look-up
a cycle, and one sum that saturates."""
