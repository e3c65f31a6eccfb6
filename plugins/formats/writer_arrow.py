"""Tables of columns for other programs: Parquet, and Arrow's own file format."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from ...core.errors import OptionError, UnknownNameError
from ...core.ports import Report
from ...core.stages import Writer

if TYPE_CHECKING:
    import pyarrow


SELDOM_TWICE = ("qseqid", "sstart", "send")
"""Columns whose values are written one by one; those of the others are looked up in a dictionary."""
BOUNDED = ("pident", "length", "sstart", "send", "evalue", "bitscore", "score", "qlen", "slen", "qcovhsp")
"""Columns of which the least and the greatest value of many rows are kept, for who looks for some rows by them."""


class _Table(Writer):
    """Rows of a view of the results in a file of columns."""

    binary = True

    def write(self, report: Report, stream: IO[str], fields: Sequence[str]) -> None:
        from .arrow_columns import LEVELS, tables

        level, *more = fields or ("hsps",)
        if level not in LEVELS:
            raise UnknownNameError("level", level, list(LEVELS))
        if more:
            raise OptionError(f"output format '{self.name}' takes one level, not '{more[0]}' as well")
        sink = _Sink(stream)
        try:
            writer: Any = None
            for table in tables(report.blocks(), level, report.threads):
                writer = writer or self._opened(sink, table.schema)
                writer.write_table(self._laid_out(table))
            writer.close()
        except BaseException:
            sink.ended = True
            raise

    @abstractmethod
    def _opened(self, sink: "_Sink", schema: "pyarrow.Schema") -> Any:
        """What writes such tables into ``sink``."""

    def _laid_out(self, table: "pyarrow.Table") -> "pyarrow.Table":
        """A table as it is written."""
        return table


class Parquet(_Table):
    """Parquet: a row for each alignment with the columns of 'seqloom export'; "parquet hits" has one for each hit."""

    name = "parquet"

    def _opened(self, sink: "_Sink", schema: "pyarrow.Schema") -> Any:
        from pyarrow import parquet

        # Without Arrow's own schema, dictionaries are read as the texts that they stand for.
        repeated = [name for name in schema.names if name not in SELDOM_TWICE]
        bounded = [name for name in schema.names if name in BOUNDED]
        return parquet.ParquetWriter(sink, schema, store_schema=False, use_dictionary=repeated,
                                     write_statistics=bounded)


class ArrowFile(_Table):
    """The same as a file of Arrow (IPC, Feather), which other programs map into memory; "arrow hits" likewise."""

    name = "arrow"

    def _opened(self, sink: "_Sink", schema: "pyarrow.Schema") -> Any:
        from pyarrow import ipc

        from .arrow_columns import plain

        return ipc.new_file(sink, plain(schema))

    def _laid_out(self, table: "pyarrow.Table") -> "pyarrow.Table":
        from .arrow_columns import plain

        return table.cast(plain(table.schema))


class _Sink:
    """Takes bytes for a stream until something has failed: what closes a file on its way out would make it look whole.

    Attributes:
        ended: whether no more bytes are taken.
    """

    closed = False

    def __init__(self, stream: IO[str]) -> None:
        self.ended = False
        self._stream: Any = getattr(stream, "buffer", None)
        if self._stream is None:
            raise TypeError("columns are bytes: the stream must have a 'buffer', as files and standard output do")
        stream.flush()

    def write(self, data: Any) -> int:
        if not self.ended:
            self._stream.write(data)
        return len(data)

    def flush(self) -> None:
        """Whoever opened the stream does that."""
