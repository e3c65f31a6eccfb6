"""Tables of columns for other programs: Parquet, and Arrow's own file format."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any

from ...core.engine.threads import in_turn
from ...core.errors import OptionError, UnknownNameError
from ...core.ports import Report
from ...core.stages import Writer

if TYPE_CHECKING:
    import pyarrow

    from .parquet_parts import Part


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
            # Threads that make columns are others than those that encode them, which so have rows of many blocks.
            some = tables(report.blocks(), level, report.threads)
            self._write(sink, in_turn(report.threads, self._encoded, some, "tables"))
        except BaseException:
            sink.ended = True
            raise

    @abstractmethod
    def _encoded(self, tables: "Sequence[pyarrow.Table]") -> Any:
        """Tables one behind the other as they are written; several threads do this at a time."""

    @abstractmethod
    def _write(self, sink: "_Sink", encoded: Iterator[Any]) -> None:
        """Write a file of what ``_encoded`` gives, which is one at least."""


class Parquet(_Table):
    """Parquet: a row for each alignment with the columns of 'seqloom export'; "parquet hits" has one for each hit."""

    name = "parquet"

    def _encoded(self, tables: "Sequence[pyarrow.Table]") -> "Part":
        import pyarrow
        from pyarrow import parquet

        from .arrow_columns import joined
        from .parquet_parts import part_of

        table, encoded = joined(tables), pyarrow.BufferOutputStream()
        # Without Arrow's own schema, dictionaries are read as the texts that they stand for.
        repeated = [name for name in table.schema.names if name not in SELDOM_TWICE]
        bounded = [name for name in table.schema.names if name in BOUNDED]
        with parquet.ParquetWriter(encoded, table.schema, store_schema=False, use_dictionary=repeated,
                                   write_statistics=bounded) as writer:
            writer.write_table(table)
        return part_of(memoryview(encoded.getvalue()))

    def _write(self, sink: "_Sink", encoded: "Iterator[Part]") -> None:
        from .parquet_parts import Joining

        joining = Joining()
        for part in encoded:
            for data in joining.add(part):
                sink.write(data)
        sink.write(joining.end())


class ArrowFile(_Table):
    """The same as a file of Arrow (IPC, Feather), which other programs map into memory; "arrow hits" likewise."""

    name = "arrow"

    def _encoded(self, tables: "Sequence[pyarrow.Table]") -> "pyarrow.Table":
        from .arrow_columns import joined, plain

        table = joined(tables)
        return table.cast(plain(table.schema))

    def _write(self, sink: "_Sink", encoded: "Iterator[pyarrow.Table]") -> None:
        from pyarrow import ipc

        writer: Any = None
        for table in encoded:
            writer = writer or ipc.new_file(sink, table.schema)
            writer.write_table(table)
        writer.close()


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
