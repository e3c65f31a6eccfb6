-- Generated from storage/models/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE chunks_0 (
	chunk INTEGER NOT NULL,
	heads BLOB USING COMPRESSION uncompressed NOT NULL,
	bodies BLOB USING COMPRESSION uncompressed NOT NULL,
	texts BLOB USING COMPRESSION uncompressed NOT NULL
);

