"""Tables of hits in memory, as the writers print them."""

import io

from seqloom.core.engine.memory import MemorySource

from tests.reports import HeldReport


class Report(HeldReport):
    """A report on hits in memory."""

    run, method = {}, None

    def __init__(self, queries, targets, hits):
        self.queries_batch, self.source, self.hits = queries, MemorySource(targets), hits


def table(writer, queries, targets, hits):
    stream = io.StringIO()
    writer().write(Report(queries, targets, hits), stream, [])
    return stream.getvalue().splitlines()
