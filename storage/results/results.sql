-- Generated from storage/results/schema.py by: python -m seqloom.storage.ddl

CREATE SEQUENCE run_numbers;

CREATE TABLE runs (
	run INTEGER NOT NULL,
	id UUID NOT NULL,
	state VARCHAR NOT NULL,
	pipeline VARCHAR NOT NULL,
	family VARCHAR,
	command VARCHAR,
	version VARCHAR,
	host VARCHAR,
	started TIMESTAMP,
	finished TIMESTAMP,
	seconds DOUBLE,
	backend VARCHAR,
	threads INTEGER,
	query_type VARCHAR NOT NULL,
	target_type VARCHAR,
	queries BIGINT,
	letters BIGINT,
	sequences BIGINT,
	options JSON,
	provenance JSON,
	error VARCHAR,
	longest BIGINT
);

CREATE TABLE run_databases (
	run INTEGER NOT NULL,
	number INTEGER NOT NULL,
	path VARCHAR,
	fingerprint VARCHAR,
	title VARCHAR,
	sequences BIGINT,
	letters BIGINT,
	first_target BIGINT
);

CREATE TABLE run_slots (
	run INTEGER NOT NULL,
	position INTEGER NOT NULL,
	slot VARCHAR NOT NULL,
	plugin VARCHAR,
	backend VARCHAR,
	scope VARCHAR,
	options JSON,
	seconds DOUBLE,
	records_in BIGINT,
	records_out BIGINT,
	counters JSON
);

CREATE TABLE passed (
	run INTEGER NOT NULL,
	slot VARCHAR NOT NULL,
	query INTEGER NOT NULL,
	records BIGINT NOT NULL
);

CREATE TABLE queries (
	run INTEGER NOT NULL,
	query INTEGER NOT NULL,
	name VARCHAR NOT NULL,
	accession VARCHAR,
	description VARCHAR,
	length BIGINT,
	residues BLOB,
	lower INTEGER[],
	source VARCHAR
);

CREATE TABLE targets (
	run INTEGER NOT NULL,
	target BIGINT NOT NULL,
	database INTEGER,
	ordinal BIGINT,
	name VARCHAR NOT NULL,
	description VARCHAR,
	length BIGINT,
	taxid INTEGER,
	scientific_name VARCHAR,
	common_name VARCHAR,
	blast_name VARCHAR,
	kingdom VARCHAR
);

CREATE TABLE hit (
	run INTEGER NOT NULL,
	query INTEGER NOT NULL,
	target BIGINT NOT NULL,
	rank INTEGER NOT NULL,
	score DOUBLE,
	bit_score DOUBLE,
	evalue DOUBLE
);

CREATE TABLE alignment (
	run INTEGER NOT NULL,
	query INTEGER NOT NULL,
	target BIGINT NOT NULL,
	number INTEGER NOT NULL,
	score DOUBLE,
	query_start INTEGER NOT NULL,
	query_end INTEGER NOT NULL,
	target_start INTEGER NOT NULL,
	target_end INTEGER NOT NULL,
	query_frame SMALLINT NOT NULL,
	target_frame SMALLINT NOT NULL,
	anchor_query INTEGER,
	anchor_target INTEGER,
	bit_score DOUBLE,
	evalue DOUBLE,
	length INTEGER,
	identities INTEGER,
	positives INTEGER,
	mismatches INTEGER,
	gap_opens INTEGER,
	gaps INTEGER,
	path UINTEGER[]
);

CREATE TABLE extra_columns (
	run INTEGER NOT NULL,
	level VARCHAR NOT NULL,
	position INTEGER NOT NULL,
	name VARCHAR NOT NULL,
	type VARCHAR NOT NULL,
	doc VARCHAR,
	nullable BOOLEAN
);

CREATE TABLE plans (
	run INTEGER NOT NULL,
	plan JSON NOT NULL
);

CREATE TABLE units (
	run INTEGER NOT NULL,
	batch INTEGER NOT NULL,
	volume INTEGER NOT NULL
);

CREATE TABLE batches (
	run INTEGER NOT NULL,
	batch INTEGER NOT NULL
);

CREATE TABLE seqloom_file (
	kind VARCHAR NOT NULL,
	schema_revision VARCHAR NOT NULL,
	created_by VARCHAR NOT NULL
);

CREATE TABLE alembic_version (
	version_num VARCHAR NOT NULL
);

CREATE OR REPLACE VIEW hits AS
SELECT h.run, q.name AS qseqid, t.name AS sseqid, h.rank, h.score, h.bit_score AS bitscore, h.evalue,
    (SELECT count(*) FROM alignment a WHERE a.run = h.run AND a.query = h.query AND a.target = h.target) AS hsps,
    q.length AS qlen, t.length AS slen, concat_ws(' ', t.name, nullif(t.description, '')) AS stitle,
    h.query AS qnumber, h.target AS snumber, t.taxid AS staxid, t.scientific_name AS ssciname, t.common_name AS scomname, t.blast_name AS sblastname, t.kingdom AS sskingdom
FROM hit h
JOIN queries q ON q.run = h.run AND q.query = h.query
JOIN targets t ON t.run = h.run AND t.target = h.target;

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
    h.rank, a.number, a.query AS qnumber, a.target AS snumber, t.taxid AS staxid, t.scientific_name AS ssciname, t.common_name AS scomname, t.blast_name AS sblastname, t.kingdom AS sskingdom
FROM alignment a
JOIN hit h ON h.run = a.run AND h.query = a.query AND h.target = a.target
JOIN queries q ON q.run = a.run AND q.query = a.query
JOIN targets t ON t.run = a.run AND t.target = a.target;

CREATE OR REPLACE VIEW best_hits AS SELECT * FROM hits WHERE rank = 1;

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
WHERE a.qseqid < a.sseqid;

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
JOIN targets t ON t.run = c.run AND t.target = c.target;

CREATE OR REPLACE VIEW last_hits AS SELECT * FROM hits WHERE run IN (SELECT max(run) FROM runs);

CREATE OR REPLACE VIEW last_hsps AS SELECT * FROM hsps WHERE run IN (SELECT max(run) FROM runs);
