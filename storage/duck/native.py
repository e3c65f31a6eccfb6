"""DuckDB's extension module, as ``duckdb``.

The package around it makes a database of its own and reads the metadata of packages when it is imported, which takes
longer (25 ms) than many a search. It isn't needed, but that DuckDB 2 takes and gives Arrow with it only
(``allow_arrow``).
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:
        import duckdb
    else:
        if not duckdb.__version__.startswith(("1.", "2.")):
            import duckdb


def allow_arrow() -> None:
    """Import what DuckDB needs before a query reads an Arrow stream or table, or its rows are taken as one."""
    if not duckdb.__version__.startswith("1."):
        import_module("duckdb")


__all__ = ["allow_arrow", "duckdb"]
