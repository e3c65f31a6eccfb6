"""DuckDB's extension module, as ``duckdb``.

The package around it reads the metadata of packages and much else when it is imported, which takes longer (50 ms) than
many a search. What reading a file takes needs none of it; who hands over or wants tables of Arrow calls ``complete``
before, for which the extension leans on its package from DuckDB 2 on.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    try:
        import _duckdb as duckdb
    except ImportError:
        import duckdb


def complete() -> None:
    """Import the package where connections need it for tables of Arrow."""
    if not duckdb.__version__.startswith("1."):
        import duckdb as _  # noqa: F401


__all__ = ["complete", "duckdb"]
