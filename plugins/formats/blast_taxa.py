"""Reads names of organisms from BLAST's taxonomy database: the files taxdb.bti and taxdb.btd.

The former has a header of 24 bytes, with the number of organisms at 4, and then the taxid of each and its place in the
latter, big-endian, by taxid. There stand scientific name, common name, BLAST name and superkingdom, with tabs between.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from seqloom.core.errors import InputError
from seqloom.core.ports import Taxon

_HEADER = 24
_MAGIC = 0x8739
_ABSENT = ("", "-", "N/A")


class BlastTaxa(dict[int, Taxon]):
    """Organisms by taxid; looked up in the files when they are first asked for.

    Args:
        index: path of taxdb.bti.
    """

    def __init__(self, index: Path) -> None:
        super().__init__()
        self._text = index.with_suffix(".btd")
        raw = index.read_bytes()
        head, rows = np.frombuffer(raw[:_HEADER], ">u4"), np.frombuffer(raw[_HEADER : len(raw) // 8 * 8], ">u4")
        if len(head) < 2 or head[0] != _MAGIC or len(rows) != 2 * int(head[1]) or not self._text.is_file():
            raise InputError(f"{index}: no taxonomy database of BLAST's; get taxdb.tar.gz from NCBI again, or take it "
                             "away")
        self._taxids, self._places = rows[::2], rows[1::2].astype(np.int64)
        self._end = self._text.stat().st_size

    def get(self, taxid: int, default: Taxon | None = None) -> Taxon | None:  # type: ignore[override]
        at = int(np.searchsorted(self._taxids, taxid))
        if at == len(self._taxids) or self._taxids[at] != taxid:
            return default
        if taxid not in self:
            last = int(self._places[at + 1]) if at + 1 < len(self._places) else self._end
            with open(self._text, "rb") as stream:
                stream.seek(int(self._places[at]))
                words = stream.read(last - stream.tell()).decode("utf-8", "replace").split("\t")
            name, common, blast, kingdom = [*("" if word in _ABSENT else word for word in words), "", "", "", ""][:4]
            self[taxid] = Taxon(taxid, name, "" if common == name else common, blast, kingdom)
        return self[taxid]


def taxa_beside(folders: Iterable[str]) -> dict[int, Taxon]:
    """Those of the first of some folders that has the files; none where none has."""
    for folder in folders:
        index = Path(folder, "taxdb.bti")
        if os.path.isfile(index):
            return BlastTaxa(index)
    return {}
