"""Registers the string sorters."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl

SEQLOOM_API = 1


@hookimpl
def seqloom_sorters() -> list[Deferred]:
    return deferred(__package__, {
        "msd-radix reference": "msd_radix_reference.MsdRadix",
        "msd-radix cpu": "msd_radix_cpu.MsdRadixCpu",
        "msd-radix cuda": "msd_radix_cuda.MsdRadixCuda",
        "multikey-quicksort reference": "multikey_quicksort_reference.MultikeyQuicksort",
        "multikey-quicksort cpu": "multikey_quicksort_cpu.MultikeyQuicksortCpu",
        "lsd-radix reference": "lsd_radix_reference.LsdRadix",
        "lsd-radix cpu": "lsd_radix_cpu.LsdRadixCpu",
        "lsd-radix cuda": "lsd_radix_cuda.LsdRadixCuda",
        "segment-radix reference": "segment_radix_reference.SegmentRadix",
        "segment-radix cuda": "segment_radix_cuda.SegmentRadixCuda",
    })
