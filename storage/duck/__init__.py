"""DuckDB: connections, bulk transfer, literals, migrations."""
