"""The lines of a domain's alignment: annotation of the model, model, match, target and posterior probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from seqloom.core.classes import dataclass
from seqloom.core.records import DELETE, INSERT, MATCH

from .hmmfile import ProfileHmm
from .match_scores import match_scores

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_COLUMNS = 40
"""Columns of an alignment per line, at least, however long names are."""


@dataclass(frozen=True)
class DomainText:
    """Lines of one alignment, all of one length; annotation that the model lacks is "".

    Attributes:
        structure, reference: of the model, "." at inserted residues.
        model: consensus, "." at inserted residues.
        match: the consensus residue where the target has it, "+" where its residue is likelier than by chance.
        target: residues, in lower case where they are inserted, "-" where a node is skipped.
        posterior: see ``labels_reference``.
        model_start, target_start: first node and residue, from 1 on.
    """

    structure: str
    reference: str
    model: str
    match: str
    target: str
    posterior: str
    model_start: int
    target_start: int

    def blocks(self, model_name: str, target_name: str, width: int) -> Iterator[str]:
        """Text in lines of ``width`` characters; 0 for one block, however long."""
        columns = len(self.model)
        names = max(len(model_name), len(target_name))
        numbers = len(str(max(self.model_start + columns - self.model.count(".") - 1,
                              self.target_start + columns - self.target.count("-") - 1)))
        room = width - names - 2 * numbers - 5 if width else columns
        room = max(room, min(LEAST_COLUMNS, columns), 1)
        node, residue = self.model_start, self.target_start
        for begin in range(0, columns, room):
            part = slice(begin, begin + room)
            nodes = len(self.model[part]) - self.model[part].count(".")
            residues = len(self.target[part]) - self.target[part].count("-")
            first, last = (residue, residue + residues - 1) if residues else ("-", "-")
            blank = " " * (names + numbers + 4)
            lines = [f"{blank}{line[part]} {name}" for line, name in ((self.structure, "CS"), (self.reference, "RF"))
                     if line]
            lines.append(f"  {model_name:>{names}} {node:>{numbers}} {self.model[part]} {node + nodes - 1:<{numbers}}")
            lines.append(f"{blank}{self.match[part]}")
            end = f"{last:<{numbers}}" if residues else f"{last:>{numbers}}"
            lines.append(f"  {target_name:>{names}} {first:>{numbers}} {self.target[part]} {end}")
            lines.append(f"{blank}{self.posterior[part]} PP")
            yield "\n".join(lines) + "\n"
            node, residue = node + nodes, residue + residues


class ModelText:
    """Writes alignments of one model."""

    def __init__(self, model: ProfileHmm) -> None:
        self._annotation = {name: np.frombuffer(text.encode("latin-1", "replace"), np.uint8)
                            for name in ("structure", "reference", "consensus") if (text := getattr(model, name))}
        self._model = model
        self._likely = match_scores(model.match) > 0.0

    def domain(self, path: NDArray[np.uint32], posterior: str, nodes: int, residues: NDArray[np.uint8],
               target_start: int) -> DomainText:
        """Lines of a domain.

        Args:
            path: edit operations, ``length << 4 | operation``.
            posterior: a character a column.
            nodes: index of its first node, from 0 on.
            residues: u8 codes of the target.
            target_start: index of its first residue, from 0 on.
        """
        operations = np.repeat(path & 15, path >> 4)
        inserted, skipped = operations == DELETE, operations == INSERT
        node = nodes + np.cumsum(~inserted) - ~inserted
        place = target_start + np.cumsum(~skipped) - ~skipped
        node, place = np.where(inserted, 0, node), np.where(skipped, 0, place)
        codes = residues[place]
        letters = self._model.letters(codes) | (inserted * np.uint8(0x20))
        consensus = self._annotation["consensus"][node]
        match = np.where(self._likely[codes, node + 1], ord("+"), ord(" "))
        match = np.where(operations == MATCH, consensus, np.where(inserted | skipped, ord(" "), match))

        def text(values: NDArray[np.uint8], absent: NDArray[np.bool_], filler: str) -> str:
            return np.where(absent, ord(filler), values).astype(np.uint8).tobytes().decode("latin-1")

        def annotation(name: str) -> str:
            return text(self._annotation[name][node], inserted, ".") if name in self._annotation else ""

        return DomainText(annotation("structure"), annotation("reference"), text(consensus, inserted, "."),
                          text(match, skipped, " "), text(letters, skipped, "-"), posterior, nodes + 1,
                          target_start + 1)
