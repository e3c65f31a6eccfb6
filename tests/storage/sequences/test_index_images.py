"""Images of stored indexes: mapped as they were written, and only where all that is said of them agrees."""

import errno
import os
from pathlib import Path
from weakref import WeakSet

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqloom.storage.sequences import index_images
from seqloom.storage.sequences.index_images import clear, image

CONTENT = bytes(range(256)) * 20


@given(about=st.text(max_size=5000), content=st.binary(max_size=9000), parts=st.integers(1, 500))
def test_what_is_mapped_is_what_was_written(tmp_path_factory, about, content, parts):
    made = image(tmp_path_factory.mktemp("made") / "some.duckdb", 3, 1, about, len(content))
    assert made.open() == (None, "")
    made.write(content[place : place + parts] for place in range(0, len(content), parts))
    mapped, why = made.open()
    assert mapped.tobytes() == content and not why
    assert mapped.ctypes.data % index_images.PAGE == 0 and mapped.flags.writeable
    assert sorted(os.listdir(made.path.parent)) == ["index_3_1.image", "index_3_1.image.sound"]


@given(content=st.binary(min_size=1, max_size=5000), data=st.data())
def test_a_file_that_is_cut_or_longer_is_not_mapped(tmp_path_factory, content, data):
    made = image(tmp_path_factory.mktemp("made") / "some.duckdb", 0, 0, "all", len(content))
    made.write([content])
    whole = made.path.read_bytes()
    size = data.draw(st.integers(0, len(whole) + 5).filter(lambda size: size != len(whole)))
    made.path.write_bytes((whole + bytes(5))[:size])
    mapped, why = made.open()
    assert mapped is None
    assert why == f"some.duckdb.indexes/index_0_0.image has {size:,} bytes instead of {len(whole):,}"


@pytest.mark.parametrize("change", ["fingerprint a, number 2", "fingerprint b, number 1", "", "x" * 5000])
def test_one_of_another_index_is_not_mapped(tmp_path, change):
    database = tmp_path / "some.duckdb"
    image(database, 0, 0, "fingerprint a, number 1", len(CONTENT)).write([CONTENT])
    mapped, why = image(database, 0, 0, change, len(CONTENT)).open()
    assert mapped is None and why == "some.duckdb.indexes/index_0_0.image is of another index"


def test_what_is_written_to_memory_stays_out_of_the_file(tmp_path):
    made = image(tmp_path / "some.duckdb", 0, 0, "", len(CONTENT))
    made.write([CONTENT])
    first, _ = made.open()
    first[:] = 0
    assert made.open()[0].tobytes() == CONTENT
    clear(tmp_path / "some.duckdb")
    assert not first.any()  # still there for who has it mapped


def test_it_stands_beside_the_file_that_a_link_leads_to(tmp_path):
    (tmp_path / "some.duckdb").touch()
    (tmp_path / "link.duckdb").symlink_to("some.duckdb")
    assert image(tmp_path / "link.duckdb", 0, 0, "", 1) == image(tmp_path / "some.duckdb", 0, 0, "", 1)


def test_what_is_not_kept_is_cleared_away(tmp_path):
    database = tmp_path / "some.duckdb"
    clear(database)  # there is nothing
    images = [image(database, 0, piece, "", len(CONTENT)) for piece in range(3)]
    for made in images:
        made.write([CONTENT])
    folder = images[0].path.parent
    (folder / "index_0_7.image.part").touch()
    (folder / "notes.txt").touch()
    clear(database, [images[1].path])
    assert sorted(os.listdir(folder)) == ["index_0_1.image", "index_0_1.image.sound", "notes.txt"]
    (folder / "notes.txt").unlink()
    clear(database)
    assert not folder.exists()


@pytest.mark.parametrize("step", ["fsync", "replace", "mkdir", "parts"])
def test_one_that_can_not_be_written_leaves_what_was_there(tmp_path, monkeypatch, step):
    made = image(tmp_path / "some.duckdb", 0, 0, "", len(CONTENT))
    made.write([CONTENT])

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def parts():
        yield CONTENT[:100]
        if step == "parts":
            fail()
        yield bytes(len(CONTENT) - 100)

    if step != "parts":
        monkeypatch.setattr(Path if step == "mkdir" else os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        made.write(parts())
    monkeypatch.undo()
    assert made.open()[0].tobytes() == CONTENT
    assert sorted(os.listdir(made.path.parent)) == ["index_0_0.image", "index_0_0.image.sound"]


def test_one_that_can_not_be_read_says_why(tmp_path):
    made = image(tmp_path / "some.duckdb", 0, 0, "", 1)
    made.path.mkdir(parents=True)
    assert made.open() == (None, "some.duckdb.indexes/index_0_0.image: Is a directory")


def test_so_many_are_mapped_at_a_time(tmp_path, monkeypatch):
    made = [image(tmp_path / "some.duckdb", 0, piece, "", len(CONTENT)) for piece in range(4)]
    for each in made:
        each.write([CONTENT])
    monkeypatch.setattr(index_images, "MOST", 3)
    monkeypatch.setattr(index_images, "_mapped", WeakSet())
    mapped = [each.open() for each in made]
    assert [content is not None for content, _ in mapped] == [True, True, True, False] and mapped[3] == (None, "")
    del mapped[0]
    assert made[3].open()[0] is not None


@pytest.mark.parametrize("place", [index_images.PAGE, index_images.PAGE + 3000, -1, -6])
@pytest.mark.parametrize("marked", [True, False])
def test_a_flipped_bit_is_found_before_anything_is_mapped(tmp_path, monkeypatch, place, marked):
    monkeypatch.setattr(index_images, "BLOCK", 1000)
    monkeypatch.setattr(index_images, "_sound", set())
    made = image(tmp_path / "some.duckdb", 0, 0, "", len(CONTENT))
    made.write([CONTENT])
    assert made.open()[0].tobytes() == CONTENT
    whole = bytearray(made.path.read_bytes())
    whole[place] ^= 2
    made.path.write_bytes(whole)
    if not marked:
        made.mark.unlink()
    assert made.open() == (None, "some.duckdb.indexes/index_0_0.image is damaged")
    assert made.open(verified=False)[0] is not None


def test_checksums_are_compared_once_for_a_file(tmp_path, monkeypatch):
    made = image(tmp_path / "some.duckdb", 0, 0, "", len(CONTENT))
    made.write([CONTENT])
    times = []
    matches = index_images._matches
    monkeypatch.setattr(index_images, "_matches", lambda *words: times.append(1) or matches(*words))
    for _ in range(2):
        monkeypatch.setattr(index_images, "_sound", set())  # as another process
        made.open()
    assert not times  # whoever wrote it knows what is in it
    os.replace(made.path, tmp_path / "kept")
    (tmp_path / "copy").write_bytes((tmp_path / "kept").read_bytes())
    os.replace(tmp_path / "copy", made.path)
    for _ in range(3):
        monkeypatch.setattr(index_images, "_sound", set())
        assert made.open()[0] is not None
    assert len(times) == 1  # a copy is another file, and is marked likewise
    made.mark.unlink()
    made.mark.mkdir()  # nothing can be written there
    for _ in range(2):
        assert made.open()[0] is not None
    assert len(times) == 1
    monkeypatch.setattr(index_images, "_sound", set())
    assert made.open()[0] is not None and len(times) == 2
