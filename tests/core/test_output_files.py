"""The door for outputs: files appear only when whole, in the place of nothing that is read, packed if asked for."""

import errno
import fcntl
import gzip
import os
import random
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from seqloom.core import output_files
from seqloom.core.errors import StoreError, UsageError


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture(params=["nameless", "hidden"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How a file is written before it has its name: file systems that know no nameless files give it a hidden one."""
    if request.param == "hidden":
        monkeypatch.setattr(output_files._Place, "_nameless", lambda self: None)
    return request.param


def test_large_files_begin_to_go_to_the_disk_before_they_are_whole(tmp_path: Path,
                                                                  monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[int, int]] = []
    advise = os.posix_fadvise

    def noted(file: int, first: int, size: int, advice: int) -> None:
        sent.append((first, size))
        advise(file, first, size, advice)

    monkeypatch.setattr(os, "posix_fadvise", noted)
    data = random.Random(1).randbytes(1 << 20)
    with output_files.binary(tmp_path / "out") as stream:
        for _ in range(20):
            stream.write(data)
    assert (tmp_path / "out").read_bytes() == 20 * data
    assert [first for first, _ in sent] == [sum(size for _, size in sent[:n]) for n in range(len(sent))]
    assert sum(size for _, size in sent) == 16 << 20


def test_a_file_appears_only_when_whole(tmp_path: Path, way: str) -> None:
    path = tmp_path / "hits.tsv"
    with output_files.text(path) as stream:
        stream.write("one\n")
        stream.flush()
        assert not path.exists()
        assert len(names(tmp_path)) == (way == "hidden")
    assert path.read_text() == "one\n"
    assert names(tmp_path) == ["hits.tsv"]
    with output_files.text(path) as stream:
        stream.write("two\n")
    assert path.read_text() == "two\n" and names(tmp_path) == ["hits.tsv"]


def test_what_was_there_stays_when_writing_fails(tmp_path: Path, way: str) -> None:
    path = tmp_path / "hits.tsv"
    path.write_text("old\n")
    with pytest.raises(ZeroDivisionError), output_files.text(path) as stream:
        stream.write("half of the new" * 100_000)
        raise ZeroDivisionError
    assert path.read_text() == "old\n" and names(tmp_path) == ["hits.tsv"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_is_left_when_a_signal_ends_the_process(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "out.txt").write_text("before")
    code = f"""
import os, signal
if {number} == signal.SIGHUP:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
from seqloom.core import output_files
with output_files.text("out.txt") as stream:
    stream.write("half" * 1_000_000)
    os.kill(os.getpid(), {number})
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path).returncode == -number
    assert names(tmp_path) == ["out.txt"] and (tmp_path / "out.txt").read_text() == "before"


def test_what_a_killed_process_left_is_removed_by_the_next_and_what_a_living_one_has_is_not(tmp_path: Path) -> None:
    dead, alive, other = (tmp_path / f".{n}.1-00000000.seqloom.tmp" for n in ("dead", "alive", "other"))
    dead.touch()
    other.symlink_to(tmp_path / "precious")
    (tmp_path / "precious").touch()
    with open(alive, "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with output_files.text(tmp_path / "new"):
            pass
        assert names(tmp_path) == sorted([alive.name, other.name, "new", "precious"])


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o751])
def test_a_file_that_was_there_keeps_its_permissions(tmp_path: Path, way: str, mode: int) -> None:
    path = tmp_path / "hits.tsv"
    path.touch()
    path.chmod(mode)
    with output_files.text(path) as stream:
        stream.write("new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_permissions_that_the_user_gives_new_files(tmp_path: Path, way: str) -> None:
    former = os.umask(0o027)
    try:
        with output_files.text(tmp_path / "new"):
            pass
    finally:
        os.umask(former)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_a_link_is_followed(tmp_path: Path, way: str) -> None:
    real, link, dangling = tmp_path / "real", tmp_path / "link", tmp_path / "dangling"
    real.write_text("old")
    link.symlink_to(real)
    dangling.symlink_to(tmp_path / "there")
    for path in (link, dangling):
        with output_files.text(path) as stream:
            stream.write("new")
        assert path.is_symlink() and path.read_text() == "new"


def test_the_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, way: str,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it might be there and empty after a power cut."""
    done: list[str] = []
    for name in ("fsync", "link", "replace"):
        def noted(*args: object, name: str = name, real: object = getattr(os, name), **more: object) -> None:
            folder = name == "fsync" and stat.S_ISDIR(os.fstat(args[0]).st_mode)
            done.append("fsync folder" if folder else name)
            real(*args, **more)

        monkeypatch.setattr(os, name, noted)
    (tmp_path / "old").touch()
    for path in ("new", "old"):
        done.clear()
        with output_files.text(tmp_path / path) as stream:
            stream.write("x")
        assert done[0] == "fsync" and done[-1] == "fsync folder" and {"link", "replace"} & set(done[1:-1]), done


def test_devices_and_pipes_are_written_to_directly(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    output_files.check_place(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with output_files.text(pipe) as stream:
        stream.write("through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with output_files.text(os.devnull) as stream:
        stream.write("away")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_an_open_file_is_written_to_where_it_is(tmp_path: Path) -> None:
    """As `-o /dev/stdout >> file` does."""
    path = tmp_path / "log"
    path.write_text("before ")
    code = ("import sys; from seqloom.core import output_files\nprint('first', end=' ')\n"
            "with output_files.text('/dev/stdout') as stream: stream.write('then ')\nprint('last', end='')")
    with open(path, "a") as log:
        assert subprocess.run([sys.executable, "-c", code], stdout=log).returncode == 0
    assert path.read_text() == "before first then last" and names(tmp_path) == ["log"]


@pytest.mark.parametrize("suffix, unpacked", [
    (".gz", gzip.decompress), (".zst", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data))])
def test_a_name_that_ends_so_has_the_file_packed(tmp_path: Path, suffix: str, unpacked) -> None:
    path = tmp_path / f"hits.tsv{suffix}"
    lines = "é\n" * 100_000
    for door, data in ((output_files.text, lines), (output_files.binary, lines.encode())):
        with door(path) as stream:
            stream.write(data)
        assert unpacked(path.read_bytes()) == lines.encode() and path.stat().st_size < 10_000


def test_bytes_of_file_names_that_are_no_text_come_out_as_they_were(tmp_path: Path) -> None:
    with output_files.text(tmp_path / "x") as stream:
        stream.write(os.fsdecode(b"/data/\xe9.fasta"))
    assert (tmp_path / "x").read_bytes() == b"/data/\xe9.fasta"


@pytest.mark.parametrize("number, words", [
    (errno.ENOSPC, " can't be written: the disk is full; free some space or choose another place"),
    (errno.EDQUOT, " can't be written: the disk is full"), (errno.EIO, ": the disk or the way to it fails")])
def test_a_file_that_can_not_be_written_is_named(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch, number: int,
                                                 words: str) -> None:
    path = tmp_path / "hits.tsv"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=f"hits.tsv{words}"), output_files.text(path) as stream:
        stream.write("new")
    assert path.read_text() == "old" and names(tmp_path) == ["hits.tsv"]


def test_a_full_device_is_named() -> None:
    with pytest.raises(StoreError, match="/dev/full can't be written: the disk is full"), \
            output_files.text("/dev/full") as stream:
        stream.write("x")


def test_places_are_checked_before_work(tmp_path: Path) -> None:
    output_files.check_outputs([None, tmp_path / "new"])
    with pytest.raises(StoreError, match="is a folder"):
        output_files.check_outputs([tmp_path])
    with pytest.raises(StoreError, match="there is no folder"):
        output_files.check_outputs([tmp_path / "none" / "new"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_may_not_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="permission denied"):
        output_files.check_place(tmp_path / "new")


def test_what_is_read_keeps_its_place_by_whatever_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    read = tmp_path / "read.fasta"
    read.write_text(">a\n")
    (tmp_path / "link").symlink_to(read)
    (tmp_path / "folder" / "hard").hardlink_to(read)
    (tmp_path / "way").symlink_to(tmp_path / "folder")
    for name in ("read.fasta", "./read.fasta", "folder/../read.fasta", str(read), "link", "way/hard"):
        with pytest.raises(UsageError, match="is a file that is read here"):
            output_files.check_outputs([name], ["other", "read.fasta"])
        with pytest.raises(UsageError, match="is a file that is read here"), output_files.text(name, [read]):
            pass
    (tmp_path / "later").symlink_to(tmp_path / "store.duckdb")
    for name in ("store.duckdb", "later", "store.duckdb.wal", "store.duckdb.runs/x", "store.duckdb.indexes/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with pytest.raises(UsageError, match="is a file that is read here"):
            output_files.check_outputs([name], ["store.duckdb"])
    output_files.check_outputs(["new", "/dev/null"], ["/dev/null", None])
    assert read.read_text() == ">a\n"


def test_what_comes_to_be_read_meanwhile_keeps_its_place_too(tmp_path: Path) -> None:
    read, path = tmp_path / "read", tmp_path / "out"
    read.write_text("precious")
    with pytest.raises(UsageError, match="is a file that is read here"), output_files.text(path, [read]):
        path.symlink_to(read)
    assert read.read_text() == "precious"


def test_no_output_takes_the_place_of_a_database(tmp_path: Path) -> None:
    path = tmp_path / "some.name"
    path.write_bytes(b"checksumDUCK" + bytes(100))
    with pytest.raises(UsageError, match="is a database, whose place no output takes"):
        output_files.check_outputs([path])
    assert path.stat().st_size == 112


def test_two_outputs_have_two_places(tmp_path: Path) -> None:
    (tmp_path / "b").touch()
    (tmp_path / "a").hardlink_to(tmp_path / "b")
    for pair in (["x", "./x"], ["a", "b"], ["x", tmp_path / ".." / tmp_path.name / "x"]):
        with pytest.raises(UsageError, match="would be written twice"):
            output_files.check_outputs([tmp_path / name for name in pair])
    output_files.check_outputs(["/dev/null", "/dev/null", tmp_path / "a"])


def test_standard_input_is_read_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.fasta").write_text(">a\nMK\n")
    code = "from seqloom.core import output_files; output_files.check_outputs(['a.fasta'], ['-'])"
    with open(tmp_path / "a.fasta") as source:
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdin=source, capture_output=True, text=True)
    assert "UsageError: a.fasta is a file that is read here" in done.stderr
