"""Registers the string sorters."""

from seqloom.core.hookspecs import hookimpl
from seqloom.core.stages import Sorter
from seqloom.plugins.sorting.lsd_radix_reference import LsdRadix
from seqloom.plugins.sorting.msd_radix_reference import MsdRadix
from seqloom.plugins.sorting.multikey_quicksort_reference import MultikeyQuicksort

SEQLOOM_API = 1


@hookimpl
def seqloom_sorters() -> list[type[Sorter]]:
    return [MsdRadix, MultikeyQuicksort, LsdRadix]
