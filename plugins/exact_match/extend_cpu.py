"""``matches`` on the CPU: the reference's numpy."""

from .extend_reference import MatchesAsTheyAre


class MatchesAsTheyAreCpu(MatchesAsTheyAre):
    __doc__ = MatchesAsTheyAre.__doc__
    backend = "cpu"
