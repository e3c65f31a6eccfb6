"""DuckDB's extension module, as ``duckdb``.

The package around it makes a database of its own and reads the metadata of packages when it is imported, which takes
longer (25 ms) than many a search. Where its parts are arranged in another way, it is the package.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:
        import duckdb

__all__ = ["duckdb"]
