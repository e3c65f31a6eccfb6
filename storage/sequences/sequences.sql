-- Generated from storage/sequences/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE database (
	title VARCHAR NOT NULL,
	alphabet VARCHAR NOT NULL,
	chunk_letters BIGINT NOT NULL,
	sequences BIGINT NOT NULL,
	letters BIGINT NOT NULL,
	longest BIGINT NOT NULL,
	shortest BIGINT NOT NULL,
	fingerprint VARCHAR NOT NULL,
	created TIMESTAMP NOT NULL,
	parsed_names BOOLEAN
);

CREATE TABLE sequences (
	ordinal BIGINT NOT NULL,
	name VARCHAR NOT NULL,
	description VARCHAR NOT NULL,
	length INTEGER NOT NULL,
	start BIGINT NOT NULL,
	taxid INTEGER
);

CREATE TABLE row_blocks (
	block INTEGER NOT NULL,
	digest BLOB NOT NULL,
	descriptions BLOB NOT NULL
);

CREATE TABLE masks (
	kind VARCHAR NOT NULL,
	sequence BIGINT NOT NULL,
	start INTEGER NOT NULL,
	"end" INTEGER NOT NULL
);

CREATE TABLE named_masks (
	name VARCHAR NOT NULL,
	source VARCHAR NOT NULL,
	digest BLOB NOT NULL
);

CREATE TABLE taxa (
	taxid INTEGER NOT NULL,
	parent INTEGER NOT NULL,
	rank VARCHAR NOT NULL,
	name VARCHAR NOT NULL,
	common_name VARCHAR,
	blast_name VARCHAR,
	kingdom VARCHAR
);

CREATE TABLE indexes (
	number INTEGER NOT NULL,
	plugin VARCHAR NOT NULL,
	version INTEGER NOT NULL,
	options JSON NOT NULL,
	depends JSON NOT NULL,
	fingerprint VARCHAR NOT NULL,
	created TIMESTAMP NOT NULL,
	created_by VARCHAR NOT NULL
);

CREATE TABLE index_pieces (
	number INTEGER NOT NULL,
	first BIGINT NOT NULL,
	last BIGINT NOT NULL,
	kind VARCHAR NOT NULL,
	parameters JSON NOT NULL,
	arrays JSON NOT NULL,
	chunk INTEGER NOT NULL,
	bytes BIGINT NOT NULL
);

CREATE TABLE seqloom_file (
	kind VARCHAR NOT NULL,
	schema_revision VARCHAR NOT NULL,
	created_by VARCHAR NOT NULL
);

CREATE TABLE alembic_version (
	version_num VARCHAR NOT NULL
);

CREATE OR REPLACE VIEW lineages AS
WITH RECURSIVE line AS (
    SELECT DISTINCT s.taxid, t.taxid AS ancestor, t.parent, 0 AS depth FROM sequences s JOIN taxa t ON t.taxid = s.taxid
    UNION ALL
    SELECT l.taxid, t.taxid, t.parent, l.depth + 1 FROM line l JOIN taxa t ON t.taxid = l.parent
    WHERE l.parent <> l.ancestor
)
SELECT l.taxid, l.depth, l.ancestor, t.rank, t.name FROM line l JOIN taxa t ON t.taxid = l.ancestor;
