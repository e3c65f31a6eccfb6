-- Generated from storage/models/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE database (
	title VARCHAR NOT NULL,
	alphabet VARCHAR NOT NULL,
	reader VARCHAR NOT NULL,
	packing INTEGER NOT NULL,
	models BIGINT NOT NULL,
	positions BIGINT NOT NULL,
	longest BIGINT NOT NULL,
	shortest BIGINT NOT NULL,
	fingerprint VARCHAR NOT NULL,
	created TIMESTAMP NOT NULL
);

CREATE TABLE models (
	ordinal BIGINT NOT NULL,
	name VARCHAR NOT NULL,
	accession VARCHAR NOT NULL,
	description VARCHAR NOT NULL,
	length INTEGER NOT NULL,
	chunk INTEGER NOT NULL,
	head_start BIGINT NOT NULL,
	head_bytes BIGINT NOT NULL,
	head_checksum BIGINT NOT NULL,
	body_start BIGINT NOT NULL,
	body_bytes BIGINT NOT NULL,
	body_checksum BIGINT NOT NULL,
	text_start BIGINT NOT NULL,
	text_bytes BIGINT NOT NULL,
	text_checksum BIGINT NOT NULL,
	digest BLOB NOT NULL
);

CREATE TABLE seqloom_file (
	kind VARCHAR NOT NULL,
	schema_revision VARCHAR NOT NULL,
	created_by VARCHAR NOT NULL
);

CREATE TABLE alembic_version (
	version_num VARCHAR NOT NULL
);
