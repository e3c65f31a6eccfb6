"""How sure each column of an alignment is: its posterior probability as one character, as HMMER prints it."""

from __future__ import annotations

from .domains import Path
from .forward_reference import DpMatrix
from .profile import unstripe

SURE, NONE = "*", "."
"""From probability 0.95 on, and for a skipped node, where no residue is."""


def labels(posterior: DpMatrix, path: Path, length: int) -> str:
    """One character a state of ``path``: 0 for up to 5 %, 1 for up to 15 %, …, 9, then ``SURE``; ``NONE`` for D.

    Args:
        posterior: of the envelope, from ``decode``.
        length: nodes of the model.
    """
    match, insert = unstripe(posterior.match, length), unstripe(posterior.insert, length)
    i, k = path.start, path.model_start
    text = []
    for state in path.states:
        if state == "D":
            text.append(NONE)
        else:
            # An inserted residue stands behind node k - 1, where k is the next one to be used.
            raised = float(match[i, k - 1] if state == "M" else insert[i, k - 2]) + 0.05
            text.append(SURE if raised >= 1.0 else str(int(raised * 10.0)))
        i += state != "D"
        k += state != "I"
    return "".join(text)
