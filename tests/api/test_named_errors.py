"""Whoever is told of a full disk or of too little memory is told which file was being worked on."""

import errno
import gzip

import pytest
import seqloom
from seqloom import inputs, sorting
from seqloom.core.errors import OutOfMemoryError
from seqloom.core.output_files import explained
from seqloom.installed import registry
from seqloom.storage.duck.connection import translated


@pytest.fixture
def path(tmp_path):
    (tmp_path / "p.fa").write_text(">a\nMKVLAW\n")
    return str(tmp_path / "p.fa")


def out_of_memory(*_, **__):
    raise MemoryError("Unable to allocate 512 MiB")


def test_memory_of_a_sort(path, monkeypatch):
    monkeypatch.setattr(sorting._Work, "sorted", out_of_memory)
    with pytest.raises(OutOfMemoryError, match=f"^{path} got no more memory: Unable to allocate 512 MiB; "):
        sorting.sort_file(path, lambda data: None, registry().sorter("msd-radix", "reference"))


@pytest.mark.parametrize("packed", [False, True])
def test_memory_of_reading_sequences(path, monkeypatch, packed):
    if packed:
        with open(path, "rb") as plain, gzip.open(f"{path}.gz", "wb") as file:
            file.write(plain.read())
        path += ".gz"
        monkeypatch.setattr(inputs._Parts, "read", out_of_memory)
    else:
        monkeypatch.setattr(inputs.Ids, "filtered", out_of_memory)
    with pytest.raises(OutOfMemoryError, match=f"^{path} got no more memory"):
        seqloom.Database.create(f"{path}.duckdb", path)


def test_memory_and_full_disks_of_a_database(path):
    with pytest.raises(OutOfMemoryError, match=f"^{path} got no more memory"), translated(path):
        out_of_memory()
    with pytest.raises(OSError, match="No space left") as error, translated(path):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert explained(error.value) == (f"{path} can't be written: the disk is full; free some space or choose another "
                                      "place")
    with pytest.raises(OSError, match="other") as error, translated(path):
        raise OSError(errno.ENOSPC, "No space left on device", "other")
    assert error.value.filename == "other"
