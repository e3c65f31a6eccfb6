"""Model databases: libraries of profiles in DuckDB files."""
