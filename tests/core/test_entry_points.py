"""Entry points that are remembered: the same as Python finds, and found anew when anything has changed."""

import json
import os
import sys
from importlib import metadata
from pathlib import Path

import pytest
from seqloom.core import entry_points
from seqloom.core.entry_points import Entry, entries, versions

LONG_AGO = 1_000_000_000_000_000_000


def settle(*paths: Path) -> None:
    """Let them have been changed long ago, each at another time."""
    for path in paths:
        settle.now = getattr(settle, "now", LONG_AGO) + 1_000_000_000
        os.utime(path, ns=(settle.now, settle.now))


def package(folder: Path, name: str, points: str, version: str = "1.0") -> Path:
    info = folder / f"{name}-{version}.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(f"[toys]\n{points}\n")
    settle(info / "METADATA", info / "entry_points.txt", info, folder)
    return info


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the path, and a cache of its own."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(folder)])
    return folder


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gets the group each time that packages are looked through."""
    found, calls = entry_points._found, []
    monkeypatch.setattr(entry_points, "_found", lambda group: calls.append(group) or found(group))
    return calls


def test_they_are_found_once(site: Path, searched: list[str]) -> None:
    package(site, "first", "a = os.path:join")
    for _ in range(3):
        assert entries("toys") == [Entry("a", "os.path:join", "first", "1.0")]
    assert searched == ["toys"]
    assert entries("toys")[0].load() is os.path.join
    assert entries("others") == []


def test_changes_are_seen(site: Path, searched: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = package(site, "first", "a = os")
    assert [e.name for e in entries("toys")] == ["a"]
    package(site, "second", "b = sys")
    assert sorted(e.name for e in entries("toys")) == ["a", "b"]
    (first / "entry_points.txt").write_text("[toys]\nc = os\n")
    settle(first / "entry_points.txt")
    assert sorted(e.name for e in entries("toys")) == ["b", "c"]
    (first / "METADATA").write_text("Metadata-Version: 2.1\nName: first\nVersion: 1.1\n")
    settle(first / "METADATA")
    assert sorted(e.version for e in entries("toys")) == ["1.0", "1.1"]
    (first / "entry_points.txt").unlink()
    assert [e.name for e in entries("toys")] == ["b"]
    assert len(searched) == 5
    more = tmp_path / "more"
    more.mkdir()
    package(more, "third", "d = os")
    monkeypatch.setattr(sys, "path", [str(site), str(more)])
    assert sorted(e.name for e in entries("toys")) == ["b", "d"]


def test_other_files_change_nothing(site: Path, searched: list[str], tmp_path: Path, monkeypatch) -> None:
    package(site, "first", "a = os")
    (results := tmp_path / "results").mkdir()
    monkeypatch.setattr(sys, "path", [str(results), str(site)])
    for n in range(3):
        (results / f"{n}.tsv").touch()
        assert len(entries("toys")) == 1
    assert searched == ["toys"]


def test_each_path_has_its_own(site: Path, searched: list[str], tmp_path: Path, monkeypatch) -> None:
    package(site, "first", "a = os")
    folders = [tmp_path / str(n) for n in range(entry_points._PATHS + 1)]
    for folder in folders:
        folder.mkdir()
        settle(folder)

    def on(folder: Path) -> int:
        monkeypatch.setattr(sys, "path", [str(folder), str(site)])
        assert len(entries("toys")) == 1
        return len(searched)

    assert [on(folders[n]) for n in (0, 1, 0, 1)] == [1, 2, 2, 2]
    assert [on(folder) for folder in folders[2:]] == list(range(3, len(folders) + 1))
    assert on(folders[1]) == len(folders) and on(folders[0]) == len(folders) + 1


def test_what_changed_just_now_is_not_remembered(site: Path, searched: list[str]) -> None:
    os.utime(package(site, "first", "a = os") / "METADATA")
    assert len(entries("toys")) == len(entries("toys")) == 1
    assert len(searched) == 2


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", "3", "[3]", json.dumps([{"paths": 1}])])
def test_a_damaged_file_is_made_anew(site: Path, searched: list[str], content: str) -> None:
    package(site, "first", "a = os")
    entries("toys")
    (place,) = (site.parent / "cache" / "seqloom").iterdir()
    place.write_text(content)
    assert [e.name for e in entries("toys")] == [e.name for e in entries("toys")] == ["a"]
    assert len(searched) == 2


def test_without_a_cache_they_are_found_each_time(site: Path, searched: list[str]) -> None:
    package(site, "first", "a = os")
    (site.parent / "cache").write_text("not a folder")
    assert len(entries("toys")) == len(entries("toys")) == 1
    assert len(searched) == 2


def test_finders_of_others_are_asked_each_time(site: Path, searched: list[str], monkeypatch) -> None:
    class Finder:
        def find_distributions(self, context: object = None) -> list:
            return []

        def find_spec(self, *_: object) -> None:
            return None

    package(site, "first", "a = os")
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert len(entries("toys")) == len(entries("toys")) == 1
    assert len(searched) == 2


def test_our_own_are_those_that_python_finds() -> None:
    found = [(e.name, e.value, e.dist.name) for e in metadata.entry_points(group="seqloom") if e.dist]
    assert sorted(e[:3] for e in entries("seqloom")) == sorted(found)


def test_versions_are_those_that_python_finds(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package(site, "toy_box", "", "1.2.post3")
    later = tmp_path / "later"
    later.mkdir()
    package(later, "toy_box", "", "9.9")
    (package(later, "bare", "") / "METADATA").write_text("Metadata-Version: 2.1\nName: bare\n\nVersion: 7\n")
    (later / "old.egg-info").mkdir()
    (later / "old.egg-info" / "PKG-INFO").write_text("Metadata-Version: 1.0\nName: old\nVersion: 0.3\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "gone"), str(site), str(later)])
    (tmp_path / "METADATA").write_text("Metadata-Version: 2.1\nName: nowhere\nVersion: 5\n")
    monkeypatch.chdir(tmp_path)
    names = ["toy-box", "toy_box", "Toy.Box", "old"]
    assert versions(*names) == {name: metadata.version(name) for name in names} == dict(zip(names, [*3 * ["1.2.post3"],
                                                                                                     "0.3"]))
    with pytest.raises(metadata.PackageNotFoundError):
        versions("toy_box", "nowhere")
    monkeypatch.setattr(sys, "path", [str(later)])
    assert versions("toy_box") == {"toy_box": "9.9"}


def test_versions_of_our_own_packages() -> None:
    assert versions("seqloom", "numpy") == {name: metadata.version(name) for name in ("seqloom", "numpy")}
