"""NCBI's taxonomy in a sequence database: names and tree of all organisms, and which sequences are of which."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import InputError, StoreError
from ...core.ports import TaxaFound
from ..duck.literals import literal
from .chunk_tables import BEFORE_TAXA, BEFORE_TAXIDS

if TYPE_CHECKING:
    from .database import SequenceDatabase

KINGDOMS = ("superkingdom", "domain", "acellular root")
"""Ranks of what BLAST calls superkingdoms: until 2025, and since then."""
MERGED = "merged"
"""Rank of a former taxid, which is a child of the one that it was merged into."""

_INHERITED = f"""
CREATE OR REPLACE TEMP TABLE new_taxa AS
WITH RECURSIVE named AS (
    SELECT taxid, min(name) FILTER (class = 'scientific name') AS name,
        min(name) FILTER (class = 'genbank common name') AS common_name,
        min(name) FILTER (class = 'blast name') AS blast_name
    FROM new_names GROUP BY taxid
), whole AS (
    SELECT n.taxid, n.parent, n.rank, w.name, w.common_name, w.blast_name,
        CASE WHEN n.rank IN ({", ".join(map(literal, KINGDOMS))}) THEN w.name END AS kingdom
    FROM new_nodes n LEFT JOIN named w ON w.taxid = n.taxid
), tree AS (
    SELECT * FROM whole WHERE taxid = parent
    UNION ALL
    SELECT n.taxid, n.parent, n.rank, n.name, n.common_name, coalesce(n.blast_name, t.blast_name),
        coalesce(n.kingdom, t.kingdom)
    FROM whole n JOIN tree t ON t.taxid = n.parent WHERE n.taxid <> n.parent
)
SELECT * FROM tree
"""
"""From the root down, each with the BLAST name and the superkingdom of what it belongs to."""

_DESCENDANTS = """
WITH RECURSIVE below AS (
    SELECT unnest({taxids}) AS taxid
    UNION
    SELECT t.taxid FROM taxa t JOIN below b ON t.parent = b.taxid
)
"""


def store(database: "SequenceDatabase", tables: Mapping[str, Any]) -> None:
    """Keep a taxonomy in the place of the one that is there; all of it or nothing.

    Args:
        tables: Arrow tables by the names of NCBI's files: ``nodes.dmp`` (taxid, parent, rank), ``names.dmp`` (taxid,
            name, class) and perhaps ``merged.dmp`` (taxid, parent: the new one).

    Raises:
        StoreError: the database is open for reading, or the disk is full.
        InputError: what is in the tables is no tree of named taxa.
    """
    from ..duck.native import complete, duckdb

    if database.read_only:
        raise StoreError(f"{database.path} is open for reading; open it for writing to store a taxonomy")
    complete()
    with database._lock:
        names = {"new_nodes": "nodes.dmp", "new_names": "names.dmp", "new_merged": "merged.dmp"}
        given = {name: tables[file] for name, file in names.items() if file in tables}
        try:
            for name, table in given.items():
                database._connection.register(name, table)
            database._run("BEGIN")
            _check_nodes(database)
            database._run(_INHERITED)
            _check_tree(database)
            database._run("DELETE FROM taxa")
            database._run("INSERT INTO taxa SELECT * FROM new_taxa ORDER BY taxid")
            if "new_merged" in given:
                database._run("INSERT INTO taxa SELECT DISTINCT m.taxid, m.parent, " + literal(MERGED) + ", t.name, "
                              "t.common_name, t.blast_name, t.kingdom FROM new_merged m JOIN new_taxa t ON "
                              "t.taxid = m.parent WHERE m.taxid NOT IN (SELECT taxid FROM new_taxa)")
            database._run("COMMIT")
        except BaseException:
            database._rollback()
            raise
        finally:
            with suppress(duckdb.Error, StoreError):  # behind a failure there may be no database to clean
                for name in given:
                    database._connection.unregister(name)
                database._run("DROP TABLE IF EXISTS temp.new_taxa")
        database.forget_taxa()
        database.bring_in("names and tree of the taxonomy were stored")


def _check_nodes(database: "SequenceDatabase") -> None:
    """Refuse taxa that are there twice, which would double all that belong to them, and several roots."""
    [(roots,)] = database._run("SELECT count(*) FROM new_nodes WHERE taxid = parent")
    twice = database._run("SELECT taxid FROM new_nodes GROUP BY taxid HAVING count(*) > 1 ORDER BY taxid LIMIT 1")
    if twice:
        raise InputError(f"nodes.dmp: taxid {twice[0][0]} is there twice; give NCBI's file as it is")
    if roots != 1:
        raise InputError(f"nodes.dmp: {roots:,} taxa are their own parents, and the root alone should be; give NCBI's "
                         "file as it is")


def _check_tree(database: "SequenceDatabase") -> None:
    """Refuse taxa that the root isn't above, and those without a name."""
    [(nodes, placed)] = database._run("SELECT (SELECT count(*) FROM new_nodes), (SELECT count(*) FROM new_taxa)")
    if placed != nodes:
        [(taxid, parent)] = database._run("SELECT taxid, parent FROM new_nodes WHERE taxid NOT IN (SELECT taxid FROM "
                                          "new_taxa) ORDER BY taxid LIMIT 1")
        raise InputError(f"nodes.dmp: taxid {taxid} doesn't hang together with the root (its parent is {parent}); give "
                         "NCBI's file whole")
    nameless = database._run("SELECT taxid FROM new_taxa WHERE name IS NULL ORDER BY taxid LIMIT 1")
    if nameless:
        raise InputError(f"names.dmp: taxid {nameless[0][0]} of nodes.dmp has no scientific name; give both files of "
                         "one day, whole")


def find(database: "SequenceDatabase", taxids: Sequence[int]) -> TaxaFound:
    """Ordinals of the sequences of these organisms and of all that belong to them.

    Of a former taxid the organism that it was merged into is meant. 0 stands for the sequences without a taxid.
    """
    if database.revision in BEFORE_TAXIDS:
        return TaxaFound(np.empty(0, np.int64), frozenset(), (str(database.path),))
    asked = sorted(set(taxids))
    known = {taxid for (taxid,) in database._run("SELECT DISTINCT taxid FROM sequences WHERE taxid IN "
                                                 f"(SELECT unnest({literal(asked)}))")}
    below = "WITH below AS (SELECT unnest({taxids}) AS taxid)"
    if database.revision not in BEFORE_TAXA:
        rows = database._run(f"SELECT taxid, rank, parent FROM taxa WHERE taxid IN (SELECT unnest({literal(asked)}))")
        known |= {taxid for taxid, *_ in rows}
        asked += [parent for _, rank, parent in rows if rank == MERGED]
        below = _DESCENDANTS
    found = database._columns(below.format(taxids=literal(asked)) + "SELECT ordinal FROM sequences WHERE "
                              "coalesce(taxid, 0) IN (SELECT taxid FROM below) ORDER BY ordinal")["ordinal"]
    bare = () if database._count("*", "taxa", BEFORE_TAXA) else (str(database.path),)
    return TaxaFound(found.astype(np.int64), frozenset(known | {0}), bare)


def problems(database: "SequenceDatabase") -> Iterator[str]:
    """What is wrong with the taxonomy and with the taxids of sequences."""
    if database.revision in BEFORE_TAXA:
        return
    for (taxid, times) in database._run("SELECT taxid, count(*) FROM taxa GROUP BY taxid HAVING count(*) > 1 LIMIT 1"):
        yield f"taxa: taxid {taxid} is there {times} times"
    for taxid, parent in database._run("SELECT taxid, parent FROM taxa WHERE parent NOT IN (SELECT taxid FROM taxa) "
                                       "ORDER BY taxid LIMIT 1"):
        yield f"taxa: taxid {taxid} belongs to {parent}, which isn't there"
    for (count,) in database._run("SELECT count(*) FROM taxa WHERE taxid = parent HAVING count(*) <> "
                                  "(SELECT least(count(*), 1) FROM taxa)"):
        yield f"taxa: {count:,} roots, and one wanted"
    for (ordinal,) in database._run("SELECT ordinal FROM sequences WHERE taxid <= 0 ORDER BY ordinal LIMIT 1"):
        yield f"sequences: sequence {ordinal + 1:,} has a taxid that is none"
