"""Tables of hits in memory, as the writers print them."""

import io

import numpy as np
from seqloom.core.engine.memory import MemorySource
from seqloom.core.ports import QueryReport


class Report:
    """A report on hits in memory."""

    run, method = {}, None

    def __init__(self, queries, targets, hits):
        self._queries, self._source, self._hits = queries, MemorySource(targets), hits

    def queries(self, residues=False):
        for n in range(len(self._queries)):
            hits = self._hits.take(self._hits.query == n)
            yield QueryReport(
                number=n, name=self._queries.names[n], description=self._queries.descriptions[n],
                length=int(self._queries.lengths[n]), residues=None, hits=hits,
                targets=self._source.info(np.unique(hits.target)), accession=self._queries.accessions[n],
            )  # fmt: skip


def table(writer, queries, targets, hits):
    stream = io.StringIO()
    writer().write(Report(queries, targets, hits), stream, [])
    return stream.getvalue().splitlines()
