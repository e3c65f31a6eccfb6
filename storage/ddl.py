"""Writes the .sql files from the schemas: ``python -m seqloom.storage.ddl``."""

from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.schema import CreateSequence, CreateTable

from .duck.dialect import Dialect

HEADER = "-- Generated from storage/{module}.py by: python -m seqloom.storage.ddl\n\n"
VERSION_TABLE = "CREATE TABLE alembic_version (\n\tversion_num VARCHAR NOT NULL\n);\n"


def statements(metadata: sa.MetaData, module: str) -> str:
    """SQL text that makes all sequences and tables of ``metadata``."""
    dialect = Dialect()
    parts = [str(CreateSequence(s).compile(dialect=dialect)).strip() for s in metadata._sequences.values()]
    parts += [str(CreateTable(t).compile(dialect=dialect)).strip() for t in metadata.tables.values()]
    text = "".join("\n".join(line.rstrip() for line in p.splitlines()) + ";\n\n" for p in parts)
    return HEADER.format(module=module) + text


def render() -> dict[str, str]:
    """Text of each .sql file by its path in this folder."""
    from .models import schema as model_schema
    from .results import schema as result_schema
    from .sequences import schema as sequence_schema

    return {
        "sequences/sequences.sql": (statements(sequence_schema.metadata, "sequences/schema") + VERSION_TABLE + "\n"
                                    + sequence_schema.LINEAGES.strip() + ";\n"),
        "sequences/volume.sql": statements(sequence_schema.volume_metadata, "sequences/schema"),
        "sequences/index_chunks.sql": statements(sequence_schema.index_chunk_metadata, "sequences/schema"),
        "models/models.sql": statements(model_schema.metadata, "models/schema") + VERSION_TABLE,
        "models/chunks.sql": statements(model_schema.chunk_metadata, "models/schema"),
        "results/partial.sql": statements(result_schema.partial_metadata, "results/schema"),
        "results/results.sql": statements(result_schema.metadata, "results/schema") + VERSION_TABLE,
    }


if __name__ == "__main__":
    for name, text in render().items():
        (Path(__file__).parent / name).write_text(text, encoding="utf-8")
