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
