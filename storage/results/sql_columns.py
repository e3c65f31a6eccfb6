"""Columns of the tables and views of results as SQL has them: names and types. Nothing here needs the records' classes,
so that to ask a store takes neither them nor numpy."""

from functools import cache

from ...core.errors import SchemaError
from ..duck.connection import made_columns

TAXA = {"staxid": "taxid", "ssciname": "scientific_name", "scomname": "common_name", "sblastname": "blast_name",
        "sskingdom": "kingdom"}
"""Columns of ``hits`` and ``hsps`` that say which organism a target is of, and those of ``targets`` that they show."""
HIT_VIEW = ("run", "qseqid", "sseqid", "rank", "score", "bitscore", "evalue", "hsps", "qlen", "slen", "stitle",
            "qnumber", "snumber", *TAXA)
HSP_VIEW = ("run", "qseqid", "sseqid", "pident", "length", "mismatch", "gapopen", "qstart", "qend", "sstart", "send",
            "evalue", "bitscore", "score", "nident", "positive", "ppos", "gaps", "qframe", "sframe", "sstrand", "qlen",
            "slen", "qcovhsp", "stitle", "cigar", "rank", "number", "qnumber", "snumber", *TAXA)
_WIDER = {("TINYINT", "INTEGER"): "INTEGER", ("TINYINT", "BIGINT"): "BIGINT", ("INTEGER", "BIGINT"): "BIGINT",
          ("TINYINT", "FLOAT"): "FLOAT", ("TINYINT", "DOUBLE"): "DOUBLE", ("INTEGER", "FLOAT"): "DOUBLE",
          ("INTEGER", "DOUBLE"): "DOUBLE", ("FLOAT", "DOUBLE"): "DOUBLE"}


@cache
def base_names(level: str) -> frozenset[str]:
    """Columns of the records of a level ("hit", "alignment") that its table has in every file."""
    return frozenset(column for table, column in made_columns("results") if table == level) - {"run", "rank", "number"}


@cache
def _reserved() -> frozenset[str]:
    return base_names("hit") | base_names("alignment") | {*HIT_VIEW, *HSP_VIEW}


def sql_name(name: str) -> str:
    """Name of an extra column in tables and views: with ``_`` behind it where the views use the name otherwise."""
    return name + "_" if name in _reserved() else name


def wider(stored: str, new: str, name: str) -> str:
    """The SQL type that holds values of both; raises ``SchemaError`` for types that don't go together."""
    if stored == new:
        return stored
    both = _WIDER.get((stored, new)) or _WIDER.get((new, stored))
    if not both:
        raise SchemaError(f"column '{name}' is of type {stored} in this results store, and the run has it as {new}; "
                          "keep the run in another store (--results), or rename the plugin's column")
    return both
