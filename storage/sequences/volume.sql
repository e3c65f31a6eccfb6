-- Generated from storage/sequences/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE volume_0 (
	chunk INTEGER NOT NULL,
	letters BIGINT NOT NULL,
	data BLOB USING COMPRESSION uncompressed NOT NULL,
	ambiguities BLOB USING COMPRESSION uncompressed NOT NULL,
	checksum BIGINT NOT NULL,
	digests BLOB NOT NULL
);

