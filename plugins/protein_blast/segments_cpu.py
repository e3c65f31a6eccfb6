"""Searches without gaps on the CPU: the reference's numpy; the few segments that are left take no time."""

from seqloom.plugins.protein_blast.segments_reference import SegmentAlignments


class SegmentAlignmentsCpu(SegmentAlignments):
    __doc__ = SegmentAlignments.__doc__
    backend = "cpu"
