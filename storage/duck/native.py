"""DuckDB's extension module, as ``duckdb``.

The package around it makes a database of its own and reads the metadata of packages when it is imported, which takes
longer (25 ms) than many a search. That of DuckDB 1 isn't needed; from DuckDB 2 on the extension does with it only.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:
        import duckdb
    else:
        if not duckdb.__version__.startswith("1."):
            import duckdb

__all__ = ["duckdb"]
