-- Generated from storage/sequences/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE index_0_0 (
	chunk INTEGER NOT NULL,
	data BLOB USING COMPRESSION uncompressed NOT NULL,
	checksum BIGINT NOT NULL
);

