"""Sequence databases: residues, names, masks and stored indexes in one DuckDB file."""
