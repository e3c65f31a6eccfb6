"""Stored indexes with right checksums and wrong values: a search says so or gives the right rows, and never crashes."""

import json
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import duckdb
import numpy as np
import pytest
import seqloom
from seqloom.core.errors import DamagedError
from seqloom.indexes import build_index

MUM = ({"length": 20, "maxmatch": True}, {"length": 20, "mum": True})
SUFFIXES = ("index.references=suffix-array", "seed.matches=maximal-matches")
PSI = "index.references=compressed-suffix-array"
USERS = {
    "fm-index": [("exact", {}), *(("mum", options) for options in MUM)],
    "minimizer-index": [("mum", options) for options in MUM],
    "suffix-array": [("mum", {**options, "stages": SUFFIXES}) for options in MUM],
    "compressed-suffix-array": [("exact", {"stages": (PSI, "seed.queries=compressed-queries")}), *(
        ("mum", {**options, "stages": (PSI, "seed.matches=compressed-matches")}) for options in MUM)],
}
KINDS = [(plugin, letters) for plugin in USERS for letters in ("ACGT", "ACDEFGHIKLMNPQRSTVWY")]
UNKNOWN = {"text", "odd_rows", "marks", "place", "sieve"}
"""Arrays whose wrong values may stay unknown where they are places and symbols that could be: other matches are found
then, none of them outside of the targets."""
CASES = 20


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]} {len(kind[1])}")
def stored(request, tmp_path) -> tuple[str, Path]:
    plugin, letters = request.param
    rng = np.random.default_rng(2)
    residues = "".join(rng.choice([*letters], 3000))
    other = residues[500:900] + ("ACNNNNT" if letters == "ACGT" else "AXXXT") + residues[2950:]
    (tmp_path / "g.fa").write_text(f">a\n{residues}\n>b\n{other}\n>c\n{residues[:300]}\n")
    cuts = "".join(f">r{n}\n{residues[n : n + 60]}\n" for n in range(0, 2900, 97))
    (tmp_path / "query.fa").write_text(f">q\n{residues[400:2000]}\n>n\n{other[380:]}\n{cuts}")
    seqloom.Database.create(tmp_path / "g.duckdb", tmp_path / "g.fa",
                            type="nucleotide" if letters == "ACGT" else "protein").close()
    build_index(tmp_path / "g.duckdb", plugin)
    return plugin, tmp_path


def rows(pipeline: str, options: dict, folder: Path, kind: str) -> list[tuple]:
    name = pipeline if kind == "nucleotide" else f"{pipeline}-protein"
    run = seqloom.search(name, folder / "query.fa", folder / "g.duckdb", store=False, **options)
    return run.relation().project("qseqid, sseqid, qstart, qend, sstart, send").order("ALL").fetchall()


def piece(path: Path) -> tuple[list[tuple[str, np.dtype, int, int]], bytes]:
    """Name, type, place and bytes of each array, and all bytes."""
    with duckdb.connect(str(path)) as connection:
        [(described,)] = connection.execute("SELECT arrays FROM index_pieces").fetchall()
        [(data,)] = connection.execute("SELECT data FROM index_0_0").fetchall()
    arrays, place = [], 0
    for name, dtype, shape in json.loads(described):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        arrays.append((name, np.dtype(dtype), place, size))
        place += -(-size // 64) * 64
    return [array for array in arrays if array[3]], data


def put(path: Path, data: bytes) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("UPDATE index_0_0 SET data = ?, checksum = ?", [data, zlib.crc32(data)])


def spoilt(rng: np.random.Generator, array: np.ndarray) -> None:
    """Change some values: to anything, to something near, to one of the others, or to the greatest."""
    at = rng.integers(0, len(array), rng.choice([1, 1, 3, len(array)]))
    way = rng.integers(0, 5)
    if way == 0:
        array[at] = np.frombuffer(rng.bytes(len(at) * array.itemsize), array.dtype)
    elif way == 1:
        array[at] += rng.integers(-3, 4, len(at)).astype(array.dtype)
    elif way == 2:
        array[at] = array[rng.integers(0, len(array), len(at))]
    elif way == 3:
        array[at] = np.iinfo(array.dtype).max
    else:
        array[at] ^= (1 << rng.integers(0, 8 * array.itemsize - 1, len(at))).astype(array.dtype)


def draw(plugin: str, folder: str, kind: str, cases: int) -> None:
    """Spoil arrays of the stored index, and search with it each time; a wrong answer ends the process."""
    path = Path(folder) / "g.duckdb"
    whole = path.with_name("whole.duckdb")
    shutil.copy(path, whole)
    wanted = [rows(*user, Path(folder), kind) for user in USERS[plugin]]
    assert all(wanted)
    arrays, data = piece(whole)
    refused = 0
    for case in range(cases):
        rng = np.random.default_rng(case)
        name, dtype, place, size = arrays[case % len(arrays)]
        changed = bytearray(data)
        spoilt(rng, np.frombuffer(changed, dtype, size // dtype.itemsize, place))
        shutil.copy(whole, path)
        put(path, bytes(changed))
        for (pipeline, options), right in zip(USERS[plugin], wanted, strict=True):
            try:
                found = rows(pipeline, options, Path(folder), kind)
            except DamagedError as error:
                assert "\n" not in str(error) and "index drop" in str(error)
                refused += 1
            else:
                assert found == right or name in UNKNOWN, (case, name, pipeline, options)
    assert refused > cases / 2
    print("done")


def test_wrong_values_never_crash_a_search(stored):
    plugin, folder = stored
    with seqloom.Database.open(folder / "g.duckdb") as database:
        kind = database.info()["type"]
    code = f"from {__name__} import draw; draw({plugin!r}, {str(folder)!r}, {kind!r}, {CASES})"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                           cwd=Path(__file__).parents[3])
    assert (child.returncode, child.stdout) == (0, "done\n"), child.stderr[-3000:]
