"""Registration of the maskers that serve several families."""

from __future__ import annotations

from seqloom.core.hookspecs import hookimpl
from seqloom.plugins.common.lower_case import LowerCase
from seqloom.plugins.common.seg import Seg

SEQLOOM_API = 1


@hookimpl
def seqloom_maskers():
    return [LowerCase, Seg]
