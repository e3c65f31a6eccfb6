"""Registers the string sorters."""

from seqloom.core.deferred import Deferred, deferred
from seqloom.core.hookspecs import hookimpl

SEQLOOM_API = 1


@hookimpl
def seqloom_sorters() -> list[Deferred]:
    return deferred(__package__, {
        "msd-radix reference": "msd_radix_reference.MsdRadix",
        "multikey-quicksort reference": "multikey_quicksort_reference.MultikeyQuicksort",
        "lsd-radix reference": "lsd_radix_reference.LsdRadix",
    })
