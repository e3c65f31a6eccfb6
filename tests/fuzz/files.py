"""Targets: damaged and tampered databases, results stores, run files, images of indexes, caches."""

import io
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from tests.fuzz.mutation import damaged, mutated
from tests.fuzz.target import Target, Wrong
from tests.fuzz.texts import PROTEIN, SAMPLE


def searched(pipeline: str, query: str, path: Any, **options: Any) -> str:
    """Rows of a search that isn't stored."""
    import seqloom

    out = io.StringIO()
    seqloom.search(pipeline, query, path, store=False, **options).write(out, "6 std stitle sseq")
    return out.getvalue()


class Damaged(Target):
    """A DuckDB file, damaged: the answers are right, or there are none.

    Attributes:
        path: the file.
        good: its bytes.
        wanted: the right answers.
    """

    seconds = 60
    path: str
    good: bytes
    wanted: tuple[Any, ...]

    def database(self, name: str) -> str:
        """A small database of proteins; makes also ``query``."""
        from seqloom.database import Database

        records = (SAMPLE / "proteins.fasta").read_bytes().split(b"\n>")
        sequences = self.put("sequences.fasta", b"\n>".join(records[:40]) + b"\n")
        self.query = self.put("query.fasta", records[0][:200] + b"\n")
        Database.create(self.folder / name, sequences).close()
        return str(self.folder / name)

    def answers(self) -> tuple[Any, ...]:
        """What the file says."""
        raise NotImplementedError

    def ready(self) -> None:
        """Keep what the whole file is and says."""
        self.good = Path(self.path).read_bytes()
        self.wanted = self.answers()

    def fresh(self) -> None:
        """Remove what stands beside the file."""
        for path in self.folder.glob(f"{Path(self.path).name}?*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def spoil(self, rng: random.Random) -> None:
        Path(self.path).write_bytes(damaged(rng, self.good))

    def case(self, rng: random.Random) -> None:
        self.fresh()
        self.spoil(rng)
        differ = [n for n, (a, b) in enumerate(zip(self.answers(), self.wanted, strict=True), 1) if a != b]
        if differ:
            raise Wrong(f"other answers: {differ}")


class SequenceFile(Damaged):
    """A sequence database: facts, list, search."""

    name, share = "database", 3

    def prepare(self) -> None:
        self.path = self.database("p.duckdb")
        self.ready()

    def answers(self) -> tuple[Any, ...]:
        from seqloom.database import Database

        with Database.open(self.path) as opened:
            facts = {key: value for key, value in opened.info().items() if key != "path"}
            listed = [tuple(row.values()) for row in opened.sequences("")]
            return facts, listed, searched("sw", self.query, opened, backend="reference")

    def problems(self) -> list[str]:
        """What ``db check`` finds."""
        from seqloom.database import Database

        with Database.open(self.path) as opened:
            return opened.check()


class ModelFile(Damaged):
    """A model database: facts, list, texts, hmmscan."""

    name = "model-database"

    def prepare(self) -> None:
        from seqloom.models import ModelDatabase

        text = (SAMPLE / "globins4.hmm").read_bytes()
        models = self.put("models.hmm", text + text.replace(b"globins4", b"others", 1))
        self.query = self.put("query.fasta", (SAMPLE / "query.fasta").read_bytes())
        self.path = str(self.folder / "m.duckdb")
        ModelDatabase.create(self.path, models).close()
        self.ready()

    def answers(self) -> tuple[Any, ...]:
        import seqloom
        from seqloom.models import ModelDatabase

        out = io.StringIO()
        with ModelDatabase.open(self.path) as opened:
            facts = {key: value for key, value in opened.info().items() if key != "path"}
            listed, texts = [tuple(row.values()) for row in opened.models("")], [*opened.extract()]
        seqloom.search("hmmscan", self.query, self.path, store=False, backend="cpu").write(out, "domtblout")
        rows = [line for line in out.getvalue().splitlines() if line[:1] != "#"]
        return facts, listed, texts, rows


class TamperedFile(SequenceFile):
    """A sequence database, changed with DuckDB itself, so that its checksums are right: no crash, no internal error."""

    name = "tampered-database"
    changes: ClassVar[tuple[str, ...]] = (
        "UPDATE {table} SET {column} = {value}",
        "UPDATE {table} SET {column} = NULL",
        "UPDATE {table} SET {column} = {value} WHERE rowid = {row}",
        "DELETE FROM {table}",
        "DELETE FROM {table} WHERE rowid = {row}",
        "INSERT INTO {table} SELECT * FROM {table} WHERE rowid = {row}",
        "DROP TABLE {table}",
        "ALTER TABLE {table} DROP COLUMN {column}",
        "ALTER TABLE {table} RENAME COLUMN {column} TO other",
        "ALTER TABLE {table} ALTER COLUMN {column} TYPE VARCHAR",
        "CREATE TABLE copied AS FROM {table}; DROP TABLE {table}; CREATE VIEW {table} AS FROM copied",
        "CREATE TABLE copied AS SELECT * REPLACE ({value} AS {column}) FROM {table}; DROP TABLE {table}; "
        "ALTER TABLE copied RENAME TO {table}",
    )
    values = (
        "0",
        "-1",
        "1",
        "2",
        "1000000",
        "2147483648",
        "1::BIGINT << 60",
        "''",
        "'x'",
        "'protein'",
        "'nucleotide'",
        "'\\xFF\\x00'::BLOB",
        "NULL",
        "1e308",
        "'nan'::DOUBLE",
        "repeat('a', 100000)",
    )

    def spoil(self, rng: random.Random) -> None:
        import duckdb

        Path(self.path).write_bytes(self.good)
        connection = duckdb.connect(self.path)
        try:
            tables = connection.execute(
                "SELECT table_name, column_name FROM information_schema.columns ORDER BY ALL"
            ).fetchall()
            for _ in range(rng.choice((1, 1, 2))):
                table, column = rng.choice(tables)
                change = rng.choice(self.changes).format(
                    table=f'"{table}"',
                    column=f'"{column}"',
                    row=rng.choice((0, 0, 1, 2)),
                    value=rng.choice(self.values),
                )
                try:
                    connection.execute(change)
                except duckdb.Error:
                    continue
        finally:
            connection.close()

    def case(self, rng: random.Random) -> None:
        from seqloom.core.errors import SeqloomError

        try:
            super().case(rng)
        except Wrong:
            _, listed, _ = self.answers()
            titles = [row[:2] + row[3:] for row in listed] == [row[:2] + row[3:] for row in self.wanted[1]]
            if not self.problems() and not titles:  # descriptions and titles are in no checksum
                raise
        except SeqloomError:
            self.problems()
            raise


class DatabaseLog(SequenceFile):
    """The log of a sequence database, or what a checkpoint that is under way has put aside: mutated."""

    name = "database-log"

    def prepare(self) -> None:
        from unittest import mock

        from seqloom.core.errors import StoreError
        from seqloom.database import Database
        from seqloom.storage.duck import durable

        def stopped(connection: Any, path: Any, database: str = "") -> None:
            self.undo = durable.undo_of(path)
            durable._write(self.undo, durable._kept(connection, path, database))
            self.parts = {file: file.read_bytes() for file in (durable.log_of(path), self.undo)}
            self.good = Path(path).read_bytes()
            raise StoreError("stopped")

        self.path = self.database("p.duckdb")
        self.former = self.answers()
        more = self.put("more.fasta", b">more\n" + PROTEIN + b"\n")
        with mock.patch.object(durable, "checkpoint", stopped), Database.open(self.path) as opened:
            opened.append(more)
        self.wanted = self.answers()
        if self.wanted == self.former:
            raise RuntimeError("nothing was appended")

    def case(self, rng: random.Random) -> None:
        from seqloom.core.errors import SeqloomError

        self.fresh()
        Path(self.path).write_bytes(self.good)
        spoiled = rng.choice(sorted(self.parts))
        for file, data in self.parts.items():
            file.write_bytes((mutated if rng.random() < 0.5 else damaged)(rng, data) if file == spoiled else data)
        try:
            found = self.answers()
        except SeqloomError as error:
            if spoiled == self.undo:
                raise Wrong("refused, though the file and its log are whole") from error
            raise
        # DuckDB takes a log that ends too early for one that was cut off in its last transaction.
        if found != self.wanted and (spoiled == self.undo or found != self.former):
            raise Wrong("other answers")


class Store(Damaged):
    """A results store: list, show, SQL."""

    name, share = "results", 2

    def prepare(self) -> None:
        import seqloom

        self.path, self.targets = str(self.folder / "s.duckdb"), self.database("t.duckdb")
        for evalue in (10, 1e-3):
            seqloom.search("sw", self.query, self.targets, results=self.path, evalue=evalue, backend="reference")
        self.ready()

    def answers(self) -> tuple[Any, ...]:
        from seqloom.results import Results

        kept = Results(self.path)
        runs = [(run["id"], run["state"], run["pipeline"]) for run in kept.runs()]
        shown = {key: value for key, value in kept.show(1).items() if key != "file"}
        return runs, repr(shown), repr(kept.sql("SELECT * FROM hsps ORDER BY ALL").to_pylist())


class StoreForWriting(Store):
    """A results store that a search writes into."""

    name = "results-written"

    def case(self, rng: random.Random) -> None:
        import seqloom

        self.fresh()
        self.spoil(rng)
        run = seqloom.search("sw", self.query, self.targets, results=self.path, backend="reference")
        run.write(io.StringIO(), "6")


class RunFile(Store):
    """The damaged file or log of an interrupted run: listed, resumed."""

    name = "run-file"

    def prepare(self) -> None:
        import seqloom
        from seqloom.core.errors import Cancelled
        from seqloom.core.progress import Progress

        class Stopping(Progress):
            """Stops the work when a part of it is kept."""

            def add(self, amount: int) -> None:
                super().add(amount)
                if self.parts_kept:
                    self.cancellation.cancel()

        super().prepare()
        self.wanted_rows = searched("sw", self.query, self.targets, backend="reference")
        self.place = self.folder / "interrupted.duckdb"
        with suppress(Cancelled):
            seqloom.search("sw", self.query, self.targets, results=str(self.place), progress=Stopping(),
                           backend="reference", volume_residues=2000, batch_queries=1)
        folder = Path(f"{self.place}.runs")
        self.parts = {path.name: path.read_bytes() for path in folder.iterdir()} if folder.is_dir() else {}
        if not self.parts:
            raise RuntimeError("the run wasn't interrupted")

    def case(self, rng: random.Random) -> None:
        from seqloom.results import Results
        from seqloom.searches import resume

        for path in self.folder.glob("interrupted.duckdb*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        runs = Path(f"{self.place}.runs")
        runs.mkdir()
        spoiled = rng.choice(sorted(self.parts))
        for name, data in self.parts.items():
            if name == spoiled and data:
                data = damaged(rng, data) if len(data) > 12288 else mutated(rng, data)
            (runs / name).write_bytes(data)
        known = Results(self.place).runs()
        if not known:
            return
        run = resume(known[0]["id"], self.place)
        out = io.StringIO()
        run.write(out, "6 std stitle sseq")
        if out.getvalue() != self.wanted_rows:
            raise Wrong("other rows when resumed")


class StoredIndex(Damaged):
    """A database with a stored index: searched."""

    name, share = "stored-index", 2
    build: ClassVar[tuple[str, ...]] = ()

    def prepare(self) -> None:
        from seqloom.cli.main import main

        self.path = str(self.folder / "g.duckdb")
        genome = (SAMPLE / "mito_human.fasta").read_bytes()
        residues = b"".join(genome.split(b"\n")[1:])
        reads = [b">r%d\n%s\n" % (n, residues[n : n + 60]) for n in range(0, 16000, 800)]
        self.reads = self.put("reads.fasta", b"".join(reads))
        sequences = self.put("genome.fasta", genome + b">more\n" + residues[::-1] + b"\n")
        for words in (["db", "create", self.path, sequences], ["index", "build", self.path, *self.build]):
            if main(words):
                raise RuntimeError(f"{words} failed")
        self.ready()

    def answers(self) -> tuple[Any, ...]:
        return (searched("exact", self.reads, self.path),)


class Images(StoredIndex):
    """Images of a stored index, damaged behind their header."""

    name, share = "index-images", 3
    build = ("--map",)

    def ready(self) -> None:
        super().ready()
        self.images = {path: path.read_bytes() for path in sorted(Path(f"{self.path}.indexes").glob("*.image"))}
        if not self.images:
            raise RuntimeError("there is no image of the index")

    def case(self, rng: random.Random) -> None:
        for path, whole in self.images.items():
            path.write_bytes(whole)
        path = rng.choice([*self.images])
        data = bytearray(self.images[path])
        at, length = rng.randrange(rng.choice((200, len(data)))), rng.choice((1, 8, 64, 4096))
        kind = rng.randrange(4)
        if kind == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[at : at + length] = bytes(len(data[at : at + length]))
        elif kind == 2:
            data[at : at + length] = rng.randbytes(len(data[at : at + length]))
        else:
            del data[at:]
        path.write_bytes(data)
        if self.answers() != self.wanted:
            raise Wrong("other rows")


class Caches(Target):
    """The caches of entry points and kernels, damaged: a search goes on without them."""

    name, seconds, share = "caches", 120, 2

    def prepare(self) -> None:
        records = (SAMPLE / "proteins.fasta").read_bytes().split(b"\n>")
        self.sequences = self.put("p.fasta", b"\n>".join(records[:20]) + b"\n")
        self.cache = self.folder / "cache"
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.cache), "NUMBA_CACHE_DIR": ""}
        self.wanted = self.search()
        self.search()
        self.files = sorted(path for path in self.cache.rglob("*") if path.is_file())
        self.good = {path: path.read_bytes() for path in self.files}

    def search(self) -> str:
        words = [sys.executable, "-c", "from seqloom.cli import run; run()", "sort", self.sequences, "--by", "header"]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise Wrong(f"status {done.returncode}: {done.stderr.strip()[-150:]}")
        return done.stdout

    def case(self, rng: random.Random) -> None:
        for path in self.cache.rglob("*"):
            if path.is_file() and path not in self.good:
                path.unlink()
        for path, data in self.good.items():
            path.write_bytes(data)
        path = rng.choice(self.files)
        path.write_bytes(mutated(rng, self.good[path]))
        if self.search() != self.wanted:
            raise Wrong("another output")


FILES = (SequenceFile, ModelFile, TamperedFile, DatabaseLog, Store, StoreForWriting, RunFile, StoredIndex, Images,
         Caches)
