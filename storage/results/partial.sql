-- Generated from storage/results/schema.py by: python -m seqloom.storage.ddl

CREATE TABLE partial_0_0 (
	records BLOB USING COMPRESSION uncompressed NOT NULL
);

