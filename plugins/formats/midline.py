"""What stands between both rows of an alignment: where residues are equal, and where they are similar."""

from typing import Any

import numpy as np

from ...core.alphabet import PROTEIN
from ...core.ports import Report
from .lines import Lines, alphabet_of

_LOWER = np.frombuffer(bytes(range(256)).lower(), np.uint8)


def similar_pairs(report: Report) -> np.ndarray | None:
    """bool[a, a] over codes: pairs of unequal residues that score above zero; None for nucleotides."""
    if alphabet_of(report.run) is not PROTEIN:
        return None
    from ..common.matrices import protein_matrix  # its tables aren't needed before there is something to write
    from ..common.matrix_file import whole_matrix

    options = report.run.get("options") or {}
    own = options.get("mxfile")
    similar = (whole_matrix(own, PROTEIN) if own else protein_matrix(options.get("matrix") or "BLOSUM62")) > 0
    j = PROTEIN.letters.index("J")  # which isn't in the matrix that BLAST marks similar residues by
    similar[j] = similar[:, j] = False
    return similar


def midline(lines: Lines, upper: bytes, lower: bytes, similar: np.ndarray | None) -> str:
    """The line between both rows: residues or bars where they are equal, ``+`` where they are similar."""
    above, below = np.frombuffer(upper, np.uint8), np.frombuffer(lower, np.uint8)
    marks = np.full(len(above), ord(" "), np.uint8)
    if similar is None:
        marks[above == below] = ord("|")
        return marks.tobytes().decode()
    codes = lines.alphabet.codes
    paired = (above != ord("-")) & (below != ord("-"))
    marks[paired] = np.where(similar[codes[above[paired]], codes[below[paired]]], ord("+"), ord(" "))
    marks[above == below] = above[above == below]
    return marks.tobytes().decode()


def with_masks(row: bytes, start: int, stretches: np.ndarray, unknown: str = "") -> bytes:
    """A query's row with masked residues in lower case, or as ``unknown``.

    Args:
        row: its residues with gaps, along the forward strand.
        start: query residues before the row.
        stretches: i4[m, 2] of the query, apart and in order.
    """
    letters = np.frombuffer(row, np.uint8).copy()
    places = np.flatnonzero(letters != ord("-"))
    for first, last in (np.clip(stretches - start, 0, len(places))).tolist():
        hidden = places[first:last]
        letters[hidden] = ord(unknown) if unknown else _LOWER[letters[hidden]]
    return letters.tobytes()


def model_rows(lines: Lines, row: int, upper: bytes, lower: bytes) -> tuple[tuple[bytes, bytes], str]:
    """Both rows, with the model's consensus above, and the line between them.

    The line has the consensus letter where the residue is that one, ``+`` where it is likelier than by chance, as
    HMMER's. Of a model without a consensus the row stays as it is, and the line is blank.
    """
    model: Any = lines.block.models[0] if lines.block.models else None
    above, below = np.frombuffer(upper, np.uint8).copy(), np.frombuffer(lower, np.uint8)
    marks = np.full(len(above), ord(" "), np.uint8)
    consensus = getattr(model, "consensus", "")
    if consensus and hasattr(model, "favours"):
        states = np.flatnonzero(above != ord("-"))
        first = int(lines.rows["query_start"][row])
        above[states] = np.frombuffer(consensus.encode("ascii", "replace"), np.uint8)[first : first + len(states)]
        paired = below[states] != ord("-")
        places, positions = states[paired], first + np.flatnonzero(paired)
        likely = model.favours(positions, lines.alphabet.codes[below[places]])
        marks[places] = np.where(likely, ord("+"), ord(" "))
        same = places[(above[places] & 0xDF) == (below[places] & 0xDF)]
        marks[same] = above[same]
    return (above.tobytes(), lower), marks.tobytes().decode()
