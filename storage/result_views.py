"""Views over the tables of results, for people: BLAST's names, coordinates 1-based and inclusive.

``hits``                  one row per query and target of a run
``hsps``                  one row per alignment; a match with the other strand has sstart > send
``best_hits``             the hit of rank 1 of every query
``reciprocal_best_hits``  pairs that are each other's best hit, in two runs or within one run of a set against itself
``coverage``              how much of query and target the alignments of a hit cover together

Columns that plugins added follow behind the ones below. The views are made anew when such a column comes in. A change
here comes with a revision in ``migrations/results``, so that older files get it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .literals import identifier
from .result_rows import base_names, sql_name

if TYPE_CHECKING:
    import duckdb

VIEWS = ("reciprocal_best_hits", "best_hits", "coverage", "hsps", "hits")

HITS = """
CREATE OR REPLACE VIEW hits AS
SELECT h.run, q.name AS qseqid, t.name AS sseqid, h.rank, h.score, h.bit_score AS bitscore, h.evalue,
    (SELECT count(*) FROM alignment a WHERE a.run = h.run AND a.query = h.query AND a.target = h.target) AS hsps,
    q.length AS qlen, t.length AS slen, concat_ws(' ', t.name, nullif(t.description, '')) AS stitle,
    h.query AS qnumber, h.target AS snumber{extra}
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
    h.rank, a.number, a.query AS qnumber, a.target AS snumber{extra}
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


def statements(hit_columns: Sequence[str] = (), alignment_columns: Sequence[str] = ()) -> str:
    """SQL text that makes all views, with further columns of the tables ``hit`` and ``alignment``."""
    extra = ["".join(f", {alias}.{identifier(name)}" for name in names)
             for alias, names in (("h", hit_columns), ("a", alignment_columns))]
    views = (HITS.format(extra=extra[0]), HSPS.format(extra=extra[1]), BEST_HITS, RECIPROCAL_BEST_HITS, COVERAGE)
    return "\n\n".join(f"{view.strip()};" for view in views) + "\n"


def create_views(connection: "duckdb.DuckDBPyConnection") -> None:
    """Make all views anew, with the columns that plugins have added to the tables."""
    columns: dict[str, list[str]] = {"hit": [], "alignment": []}
    rows = connection.execute("SELECT level, name, min(run), min(position) FROM extra_columns "
                              "GROUP BY level, name ORDER BY 3, 4").fetchall()
    for level, name, _, _ in rows:
        if name not in base_names(level):
            columns[level].append(sql_name(name))
    connection.execute(statements(columns["hit"], columns["alignment"]))


def drop_views(connection: "duckdb.DuckDBPyConnection") -> None:
    """Drop all views, as tables that are to be altered require."""
    connection.execute(";".join(f"DROP VIEW IF EXISTS {name}" for name in VIEWS))
