"""Views over the tables of results, for people: BLAST's names, coordinates 1-based and inclusive.

``hits``                  one row per query and target of a run
``hsps``                  one row per alignment; a match with the other strand has sstart > send
``best_hits``             the hit of rank 1 of every query
``reciprocal_best_hits``  pairs that are each other's best hit, in two runs or within one run of a set against itself
``coverage``              how much of query and target the alignments of a hit cover together
``last_hits``, ``last_hsps``  the same of the run that came into the store last

Columns that plugins added follow behind the ones below. The views are made anew when such a column comes in. A change
here comes with a revision in ``migrations/results``, so that older files get it. What is in a file is for other
programs: seqloom itself doesn't read the views of a file that may be somebody else's, but its own (``shadow``).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import SchemaError
from ..duck.connection import own_functions
from ..duck.literals import identifier, literal
from .sql_columns import TAXA, base_names, sql_name

if TYPE_CHECKING:
    import duckdb

TABLES = ("runs", "run_databases", "run_slots", "passed", "queries", "targets", "hit", "alignment", "extra_columns")
"""Tables whose rows belong to a run; the others hold progress and stay in run files."""
VIEWS = ("last_hits", "last_hsps", "reciprocal_best_hits", "best_hits", "coverage", "hsps", "hits")

HITS = """
CREATE OR REPLACE VIEW hits AS
SELECT h.run, q.name AS qseqid, t.name AS sseqid, h.rank, h.score, h.bit_score AS bitscore, h.evalue,
    (SELECT count(*) FROM alignment a WHERE a.run = h.run AND a.query = h.query AND a.target = h.target) AS hsps,
    q.length AS qlen, t.length AS slen, concat_ws(' ', t.name, nullif(t.description, '')) AS stitle,
    h.query AS qnumber, h.target AS snumber, {taxa}{extra}
FROM hit h
JOIN queries q ON q.run = h.run AND q.query = h.query
JOIN targets t ON t.run = h.run AND t.target = h.target
"""

HSPS = """
CREATE OR REPLACE VIEW hsps AS
SELECT a.run, q.name AS qseqid, t.name AS sseqid, round(a.identities / a.length * 100, 3) AS pident, a.length,
    a.mismatches AS mismatch, a.gap_opens AS gapopen, a.query_start + 1 AS qstart, a.query_end AS qend,
    if(a.query_frame * a.target_frame < 0, a.target_end, a.target_start + 1) AS sstart,
    if(a.query_frame * a.target_frame < 0, a.target_start + 1, a.target_end) AS send,
    a.evalue, a.bit_score AS bitscore, a.score, a.identities AS nident, a.positives AS positive,
    round(a.positives / a.length * 100, 2) AS ppos, a.gaps, sign(a.query_frame) * a.query_frame AS qframe,
    sign(a.query_frame) * a.target_frame AS sframe,
    if(a.query_frame * a.target_frame < 0, 'minus', 'plus') AS sstrand, q.length AS qlen, t.length AS slen,
    floor(100.0 * (a.query_end - a.query_start) / q.length
        + if(100.0 * (a.query_end - a.query_start) / q.length < 99, 0.5, 0))::INTEGER AS qcovhsp,
    concat_ws(' ', t.name, nullif(t.description, '')) AS stitle,
    array_to_string(list_transform(if(a.query_frame < 0, list_reverse(a.path), a.path),
        lambda op: (op >> 4) || substr('MIDNSHP=X', (op & 15) + 1, 1)), '') AS cigar,
    h.rank, a.number, a.query AS qnumber, a.target AS snumber, {taxa}{extra}
FROM alignment a
JOIN hit h ON h.run = a.run AND h.query = a.query AND h.target = a.target
JOIN queries q ON q.run = a.run AND q.query = a.query
JOIN targets t ON t.run = a.run AND t.target = a.target
"""

BEST_HITS = """
CREATE OR REPLACE VIEW best_hits AS SELECT * FROM hits WHERE rank = 1
"""

RECIPROCAL_BEST_HITS = """
CREATE OR REPLACE VIEW reciprocal_best_hits AS
WITH other_best AS (
    SELECT * FROM hits WHERE qseqid <> sseqid QUALIFY rank = min(rank) OVER (PARTITION BY run, qnumber)
)
SELECT a.run, b.run AS reverse_run, a.qseqid, a.sseqid, a.score, b.score AS reverse_score, a.bitscore,
    b.bitscore AS reverse_bitscore, a.evalue, b.evalue AS reverse_evalue
FROM best_hits a JOIN best_hits b ON b.qseqid = a.sseqid AND b.sseqid = a.qseqid
WHERE a.run < b.run
UNION ALL
SELECT a.run, b.run AS reverse_run, a.qseqid, a.sseqid, a.score, b.score AS reverse_score, a.bitscore,
    b.bitscore AS reverse_bitscore, a.evalue, b.evalue AS reverse_evalue
FROM other_best a JOIN other_best b ON b.run = a.run AND b.qseqid = a.sseqid AND b.sseqid = a.qseqid
WHERE a.qseqid < a.sseqid
"""

COVERAGE = """
CREATE OR REPLACE VIEW coverage AS
WITH stretches AS (
    SELECT run, query, target, query_start, query_end, target_start, target_end,
        max(query_end) OVER (PARTITION BY run, query, target ORDER BY query_start, query_end
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS query_seen,
        max(target_end) OVER (PARTITION BY run, query, target ORDER BY target_start, target_end
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS target_seen
    FROM alignment
), covered AS (
    SELECT run, query, target, count(*) AS hsps,
        sum(greatest(0, query_end - greatest(query_start, coalesce(query_seen, 0)))) AS query_letters,
        sum(greatest(0, target_end - greatest(target_start, coalesce(target_seen, 0)))) AS target_letters
    FROM stretches GROUP BY run, query, target
)
SELECT c.run, q.name AS qseqid, t.name AS sseqid, c.hsps, c.query_letters::BIGINT AS qcovered,
    c.target_letters::BIGINT AS scovered, round(c.query_letters / q.length * 100, 2) AS qcov,
    round(c.target_letters / t.length * 100, 2) AS scov, q.length AS qlen, t.length AS slen, c.query AS qnumber,
    c.target AS snumber
FROM covered c
JOIN queries q ON q.run = c.run AND q.query = c.query
JOIN targets t ON t.run = c.run AND t.target = c.target
"""


LAST_HITS = """
CREATE OR REPLACE VIEW last_hits AS SELECT * FROM hits WHERE run IN (SELECT max(run) FROM runs)
"""
"""``IN``, since DuckDB 2.0.0 forgets a LIMIT behind a comparison with a subquery."""

LAST_HSPS = """
CREATE OR REPLACE VIEW last_hsps AS SELECT * FROM hsps WHERE run IN (SELECT max(run) FROM runs)
"""


def tables_of(connection: "duckdb.DuckDBPyConnection", database: str = "") -> list[str]:
    """Those of ``TABLES`` that an attached file has, or the only one; one of an earlier revision lacks some."""
    chosen = f"AND database_name = {literal(database)}" if database else ""
    rows = connection.execute(f"SELECT table_name FROM duckdb_tables() WHERE NOT temporary {chosen}").fetchall()
    return [table for table in TABLES if (table,) in rows]


def taxa_are_kept(connection: "duckdb.DuckDBPyConnection") -> bool:
    """Whether the file is of a revision that says which organisms its targets are of."""
    return bool(connection.execute("SELECT 1 FROM pragma_table_info('targets') WHERE name = 'taxid'").fetchall())


def statements(hit_columns: Sequence[str] = (), alignment_columns: Sequence[str] = (), taxa: bool = True) -> str:
    """SQL text that makes all views, with further columns of the tables ``hit`` and ``alignment``.

    Args:
        taxa: whether ``targets`` says which organisms they are of.
    """
    extra = ["".join(f", {alias}.{identifier(name)}" for name in names)
             for alias, names in (("h", hit_columns), ("a", alignment_columns))]
    shown = ", ".join(f"t.{column} AS {name}" if taxa else f"NULL AS {name}" for name, column in TAXA.items())
    views = (HITS.format(extra=extra[0], taxa=shown), HSPS.format(extra=extra[1], taxa=shown), BEST_HITS,
             RECIPROCAL_BEST_HITS, COVERAGE, LAST_HITS, LAST_HSPS)
    return "\n\n".join(f"{view.strip()};" for view in views) + "\n"


def create_views(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make all views anew, with the columns that plugins have added to the tables."""
    connection.execute(_with_extra(connection))


def shadow(connection: "duckdb.DuckDBPyConnection", run: int | None = None) -> None:
    """Have this connection see our own views and DuckDB's own functions, whatever the file says they are.

    A file from somebody else may hold views of other text under our names, and macros under the names of functions. So
    temporary views are made, which come first by name, and functions are looked up among the built-in ones first.

    Args:
        connection: on which a file with results is the current database.
        run: show its rows alone, in all tables and views.

    Raises:
        SchemaError: the file has views in the place of tables.
    """
    database = own_functions(connection)
    found = connection.execute(f"SELECT view_name FROM duckdb_views() WHERE database_name = {literal(database)} AND "
                               f"NOT internal AND view_name IN ({', '.join(map(literal, TABLES))})").fetchall()
    if found:
        raise SchemaError(f"its '{found[0][0]}' is a view where seqloom makes a table; this is no results store of "
                          "seqloom, or somebody has changed it")
    views = _with_extra(connection)
    if run is not None:
        for table in tables_of(connection, database):
            connection.execute(f"CREATE OR REPLACE TEMP VIEW {table} AS SELECT * FROM {identifier(database)}.main."
                               f"{table} WHERE run = {run}")
    connection.execute(views.replace("CREATE OR REPLACE VIEW", "CREATE OR REPLACE TEMP VIEW"))


def _with_extra(connection: "duckdb.DuckDBPyConnection") -> str:
    columns: dict[str, list[str]] = {"hit": [], "alignment": []}
    rows = connection.execute("SELECT level, name, min(run), min(position) FROM extra_columns "
                              "GROUP BY level, name ORDER BY 3, 4").fetchall()
    for level, name, _, _ in rows:
        if level in columns and name not in base_names(level):
            columns[level].append(sql_name(name))
    return statements(columns["hit"], columns["alignment"], taxa_are_kept(connection))


def drop_views(connection: "duckdb.DuckDBPyConnection") -> None:
    """Drop all views, as tables that are to be altered require."""
    connection.execute(";".join(f"DROP VIEW IF EXISTS {name}" for name in VIEWS))
