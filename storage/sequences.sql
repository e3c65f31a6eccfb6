-- Generated from storage/sequence_schema.py by: python -m seqloom.storage.ddl

CREATE TABLE database (
	title VARCHAR NOT NULL,
	alphabet VARCHAR NOT NULL,
	chunk_letters BIGINT NOT NULL,
	sequences BIGINT NOT NULL,
	letters BIGINT NOT NULL,
	longest BIGINT NOT NULL,
	shortest BIGINT NOT NULL,
	fingerprint VARCHAR NOT NULL,
	created TIMESTAMP WITHOUT TIME ZONE NOT NULL
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
	digest BYTEA NOT NULL
);

CREATE TABLE masks (
	kind VARCHAR NOT NULL,
	sequence BIGINT NOT NULL,
	start INTEGER NOT NULL,
	"end" INTEGER NOT NULL
);

CREATE TABLE models (
	ordinal BIGINT NOT NULL,
	name VARCHAR NOT NULL,
	accession VARCHAR NOT NULL,
	description VARCHAR NOT NULL,
	length INTEGER NOT NULL,
	source VARCHAR NOT NULL
);

CREATE TABLE indexes (
	number INTEGER NOT NULL,
	plugin VARCHAR NOT NULL,
	version INTEGER NOT NULL,
	options JSON NOT NULL,
	depends JSON NOT NULL,
	fingerprint VARCHAR NOT NULL,
	created TIMESTAMP WITHOUT TIME ZONE NOT NULL,
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
