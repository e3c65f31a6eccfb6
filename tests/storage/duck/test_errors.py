"""What DuckDB says of its failures, in our words."""

import duckdb
import pytest
from seqloom.storage.duck.connection import as_ours

INVALIDATED = ("FATAL Error: Failed: database has been invalidated because of a previous fatal error. The database "
               "must be restarted prior to being used again.\nOriginal error: \"{}\"")


@pytest.mark.parametrize(("original", "said"), [
    ("fsync failed!", "can't be written or read: input/output error, the disk fails (fsync failed!)"),
    ('Could not write file "b": No space left on device',
     "can't be written: the disk is full; free some space or choose another place"),
    ('Could not "do" it', 'is damaged (Could not "do" it); make it anew or restore it from a copy'),
])
def test_what_made_duckdb_give_up_on_a_file_is_said(original, said):
    assert str(as_ours(duckdb.FatalException(INVALIDATED.format(original)), "a.duckdb")) == f"a.duckdb {said}"
