"""The commands that change files, and what must hold after a fault in any of them."""

import gzip
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests import taxa
from tests.kills.harness import Outcome, Scenario

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "api" / "sample"
STORE = "seqloom.duckdb"
Run = Callable[..., Outcome]


def records(name: str) -> list[str]:
    return [f">{record.strip()}\n" for record in ("\n" + (SAMPLE / name).read_text()).split("\n>")[1:]]


def bases(name: str, length: int) -> str:
    """The beginning of a genome."""
    return "".join(records(name)[0].split("\n")[1:])[:length]


def facts_of(run: Run, database: str) -> list[Any]:
    """What a database holds, which is whole."""
    run("db", "check", database)
    facts = json.loads(run("db", "info", database, "--format", "json").out)
    facts = facts[0] if isinstance(facts, list) else facts
    return [facts["fingerprint"], facts["models" if "models" in facts else "sequences"]]


def models(count: int) -> list[str]:
    """Models of a few names."""
    text = (SAMPLE / "globins4.hmm").read_text()
    return [re.sub(r"(?m)^NAME .*", f"NAME  globins{n}", text) for n in range(count)]


def digest(name: str) -> str | None:
    return hashlib.sha256(Path(name).read_bytes()).hexdigest() if Path(name).exists() else None


# ---- sequence databases


class Create(Scenario):
    name = "create"
    words = ("db", "create", "new.duckdb", "a.fasta")

    def prepare(self, run: Run) -> None:
        Path("a.fasta").write_text("".join(records("proteins.fasta")[:40]))

    def expect(self, run: Run) -> Any:
        return facts_of(run, "new.duckdb")

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        if Path("new.duckdb").exists():
            if facts_of(run, "new.duckdb") != wanted:
                yield "a half-made database has the name"
        elif outcome.status == 0:
            yield "there is no database, and the exit status is 0"
        if outcome.status == 1 and Path("new.duckdb").exists():
            yield "the command says that it failed, and the database is there"
        if not Path("new.duckdb").exists():
            run(*self.words)
            if facts_of(run, "new.duckdb") != wanted:
                yield "the repeated command makes another database"
        elif len(os.listdir(".")) > 3:
            run(*self.words, check=False)  # is refused, and may tidy up


class Append(Scenario):
    name = "append"
    words = ("db", "append", "p.duckdb", "more.fasta")

    def prepare(self, run: Run) -> Any:
        found = records("proteins.fasta")[:40]
        Path("a.fasta").write_text("".join(found[:30]))
        Path("more.fasta").write_text("".join(found[30:]))
        run("db", "create", "p.duckdb", "a.fasta")
        return facts_of(run, "p.duckdb")

    def expect(self, run: Run) -> Any:
        return facts_of(run, "p.duckdb")

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        found = facts_of(run, "p.duckdb")
        if found not in (self.facts, wanted):
            yield "the database is neither what it was nor what it shall be"
        if (outcome.status == 0) != (found == wanted) and outcome.status >= 0:
            yield f"exit status {outcome.status}, and the sequences are {'' if found == wanted else 'not '}there"
        again = run(*self.words, check=False)
        if found == self.facts and again.status:
            yield f"the repeated command fails: {again.err}"
        if found == wanted and again.status != 1:
            yield "sequences were appended twice"
        if facts_of(run, "p.duckdb") != wanted:
            yield "the repeated command gives another database"


class CreateModels(Create):
    """The same of models."""

    name = "create-models"
    words = ("db", "create", "new.duckdb", "--models", "a.hmm")

    def prepare(self, run: Run) -> None:
        Path("a.hmm").write_text("".join(models(20)))


class AppendModels(Append):
    name = "append-models"
    words = ("db", "append", "p.duckdb", "more.hmm")

    def prepare(self, run: Run) -> Any:
        found = models(20)
        Path("a.hmm").write_text("".join(found[:15]))
        Path("more.hmm").write_text("".join(found[15:]))
        run("db", "create", "p.duckdb", "--models", "a.hmm")
        return facts_of(run, "p.duckdb")


class Taxonomy(Scenario):
    """The names and the tree of all organisms in the place of others."""

    name = "taxonomy"
    words = ("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp", "merged.dmp")

    def prepare(self, run: Run) -> Any:
        taxa.dump(Path())
        Path("a.fasta").write_text("".join(records("proteins.fasta")[:5]))
        run("db", "create", "p.duckdb", "a.fasta", "--taxid", "9606")
        run("db", "taxonomy", "p.duckdb", "nodes.dmp", "names.dmp")
        return self.facts_of(run)

    def facts_of(self, run: Run) -> list[Any]:
        run("db", "check", "p.duckdb")
        facts = json.loads(run("db", "info", "p.duckdb", "--format", "json").out)
        facts = facts[0] if isinstance(facts, list) else facts
        return [facts["fingerprint"], facts["taxa"], facts["with taxid"]]

    def expect(self, run: Run) -> Any:
        return self.facts_of(run)

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        found = self.facts_of(run)
        if found not in (self.facts, wanted):
            yield "the taxonomy is neither what it was nor what it shall be"
        if (outcome.status == 0) != (found == wanted) and outcome.status >= 0:
            yield f"exit status {outcome.status}, and the taxonomy is {'' if found == wanted else 'not '}there"
        run(*self.words)
        if self.facts_of(run) != wanted:
            yield "the repeated command gives another taxonomy"


class IndexBuild(Scenario):
    name = "index-build"
    words = ("index", "build", "g.duckdb", "--map", "--backend", "reference", "--quiet")
    search = ("exact", "-q", "reads.fasta", "-d", "g.duckdb", "--no-store", "--backend", "reference")

    def prepare(self, run: Run) -> Any:
        human, orang = (bases(f"mito_{name}.fasta", 1500) for name in ("human", "orang"))
        Path("g.fasta").write_text(f">human\n{human}\n>orang\n{orang}\n")
        Path("reads.fasta").write_text("".join(f">r{n}\n{human[n : n + 40]}\n" for n in range(0, 1400, 200)))
        run("db", "create", "g.duckdb", "g.fasta")
        return facts_of(run, "g.duckdb")

    def expect(self, run: Run) -> Any:
        return run(*self.search).out

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        if facts_of(run, "g.duckdb") != self.facts:
            yield "the database is no longer what it was"
        if run(*self.search).out != wanted:
            yield "a search gives other rows"
        run(*self.words)
        if run(*self.search).out != wanted or facts_of(run, "g.duckdb") != self.facts:
            yield "a search gives other rows after the repeated command"
        yield from self.at_the_end(run)

    def at_the_end(self, run: Run) -> Iterator[str]:
        found = json.loads(run("index", "list", "g.duckdb", "--format", "json").out)
        if [(index["state"], index["mapped"]) for index in found] != [("ready", "yes")]:
            yield f"the index is {found}"


class IndexDrop(IndexBuild):
    name = "index-drop"
    words = ("index", "drop", "g.duckdb", "--all")

    def prepare(self, run: Run) -> Any:
        found = super().prepare(run)
        run(*IndexBuild.words)
        return found

    def at_the_end(self, run: Run) -> Iterator[str]:
        if json.loads(run("index", "list", "g.duckdb", "--format", "json").out):
            yield "the index is still there"


class MigrateSequences(Scenario):
    """A database of the first revision is brought to the present one by the first command that changes it."""

    name = "migrate-sequences"
    words = ("db", "append", "old.duckdb", "more.fasta")

    def prepare(self, run: Run) -> Any:
        data = ROOT / "tests" / "storage" / "data" / "sequences_0001.duckdb.gz"
        Path("old.duckdb").write_bytes(gzip.decompress(data.read_bytes()))
        kind = json.loads(run("db", "info", "old.duckdb", "--format", "json").out)
        kind = kind[0] if isinstance(kind, list) else kind
        Path("more.fasta").write_text(f">a_new_one\n{'MKVLAAGIT' if kind['type'] == 'protein' else 'ACGTACGT'}\n")
        return self.names(run)

    def names(self, run: Run) -> Any:
        return sorted(run("db", "list-sequences", "old.duckdb").out.splitlines())

    def expect(self, run: Run) -> Any:
        return self.names(run)

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        found = self.names(run)
        if found not in (self.facts, wanted):
            yield "the sequences are neither what they were nor what they shall be"
        if found == self.facts:
            run(*self.words)
        if self.names(run) != wanted:
            yield "the repeated command gives other sequences"
        run("db", "check", "old.duckdb")


# ---- searches and their results


class Search(Scenario):
    """A search of several units in a folder without a store: nothing of its results is lost, none is there twice."""

    name = "blastp"
    pipeline: tuple[str, ...] = ("blastp", "--evalue", "10")
    query, target = "q.fasta", "t.fasta"
    cut: tuple[str, ...] = ("--volume-residues", "2500", "--batch-queries", "2")
    outputs: tuple[str, ...] = ("out.txt",)
    again: tuple[str, ...] = ()
    former = 0
    """Runs that are in the store before."""

    @property
    def search(self) -> tuple[str, ...]:
        return (*self.pipeline, "-q", self.query, "-d", "p.duckdb", "-o", "out.txt", "--quiet", *self.cut)

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.search

    def prepare(self, run: Run) -> Any:
        self.files()
        run("db", "create", "p.duckdb", self.target)
        Path("out.txt").write_text("what was there before\n")

    def files(self) -> None:
        found = records("proteins.fasta")
        Path("q.fasta").write_text("".join(found[:3]))
        Path("t.fasta").write_text("".join(found[:24]))

    def rows(self, run: Run, number: int) -> str:
        return run("sql", "SELECT * EXCLUDE (run) FROM hsps WHERE run = "
                   f"{number} ORDER BY qnumber, rank, number", "--format", "tsv").out

    def runs(self, run: Run) -> list[dict[str, Any]]:
        return json.loads(run("runs", "list", "--format", "json").out)

    def expect(self, run: Run) -> Any:
        found = self.rows(run, self.former + 1)
        assert found.count("\n") > 2, found
        return {"rows": found, "out": digest("out.txt"), "runs": len(self.runs(run))}

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        runs = self.runs(run)
        if len({r["id"] for r in runs}) != len(runs):
            yield "a run is listed twice"
        for found in runs:
            if found["state"] in ("running", "unreadable"):
                yield f"a run is {found['state']}"
            if found["state"] == "incomplete":
                resumed = self.resumed(run, found["id"])
                if resumed.status:
                    yield f"a run can't be resumed: {resumed.err}"
                elif digest("out.txt") != wanted["out"]:
                    yield "a resumed run writes another output"
        run("runs", "merge")
        if len(self.runs(run)) == self.former:
            if outcome.status == 0:
                yield "the run is lost, and the exit status is 0"
            yield from self.repeat(run)
        runs = self.runs(run)
        if [r["state"] for r in runs] != ["complete"] * wanted["runs"]:
            yield f"runs in the end: {', '.join(r['state'] for r in runs)}, not {wanted['runs']} that are complete"
        for found in runs:
            if (found["run"] or 0) > self.older and self.rows(run, found["run"]) != wanted["rows"]:
                yield "rows of a run differ"
        if runs and digest("out.txt") != wanted["out"]:  # the process ended between its run and its output
            run("runs", "write", "last", "-o", "out.txt")
            if digest("out.txt") != wanted["out"]:
                yield "the output of the stored run differs"
        yield from self.aged(run, runs)

    def resumed(self, run: Run, identifier: str) -> Outcome:
        return run("runs", "resume", identifier, "-o", "out.txt", *self.again, "--quiet", check=False)

    older = 0
    """Runs of these numbers are of another search."""

    def repeat(self, run: Run) -> Iterator[str]:
        again = run(*self.search, check=False)
        if again.status:
            yield f"the repeated command fails: {again.err}"

    def aged(self, run: Run, runs: list[dict[str, Any]]) -> Iterator[str]:
        """An hour later files of processes that were killed before they had begun go with the next command."""
        for path in Path(".").rglob("*"):
            if ".runs" in str(path) and path.is_file():
                os.utime(path, (1, 1))
        run("runs", "merge")
        if [r["id"] for r in self.runs(run)] != [r["id"] for r in runs]:
            yield "tidying up changed the runs"


class SearchStored(Search):
    """The same with a run in the store."""

    name = "blastp-stored"
    former = 1

    def prepare(self, run: Run) -> Any:
        super().prepare(run)
        run(*self.search)
        Path("out.txt").write_text("what was there before\n")


class Sw(Search):
    name = "sw"
    pipeline = ("sw", "--max-target-seqs", "5")


class AllScores(Search):
    """Every score is in the Parquet file once, whatever happens in between."""

    name = "all-scores"
    pipeline = ("sw", "--max-target-seqs", "5", "--all-scores", "s.parquet")
    again = ("--all-scores", "s.parquet")

    def scores(self) -> list[str]:
        from pyarrow import parquet

        return sorted(map(repr, parquet.read_table("s.parquet").to_pylist()))

    def expect(self, run: Run) -> Any:
        return {**super().expect(run), "scores": self.scores()}

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        if Path("s.parquet").exists() and self.scores() != wanted["scores"]:
            yield "the scores are there and wrong"
        if not self.runs(run) and Path("s.parquet.parts").exists():
            left = run(*self.search, check=False)
            if left.status == 0 or "delete the folder" not in left.err:
                yield f"parts of a search that nobody can resume aren't told of: {left.err}"
            for path in Path("s.parquet.parts").iterdir():
                path.unlink()
            Path("s.parquet.parts").rmdir()
        yield from super().examine(run, wanted, outcome)
        if not Path("s.parquet").exists():
            yield "there are no scores in the end"
        elif self.scores() != wanted["scores"]:
            yield "the scores are wrong in the end"


class Blastn(Search):
    name = "megablast"
    pipeline = ("megablast",)
    query, target = "q.fasta", "g.fasta"
    cut = ("--volume-residues", "1600", "--batch-queries", "2")

    def files(self) -> None:
        human, orang = (bases(f"mito_{name}.fasta", 3000) for name in ("human", "orang"))
        Path("g.fasta").write_text("".join(f">{n}\n{text}\n" for n, text in (
            ("h1", human[:1500]), ("h2", human[1500:]), ("o1", orang[:1500]), ("o2", orang[1500:]))))
        Path("q.fasta").write_text("".join(f">q{n}\n{human[n : n + 200]}\n" for n in range(0, 2800, 900)))


class Mum(Blastn):
    name = "mum"
    pipeline = ("mum", "--maxmatch")


class Hmmsearch(Search):
    name = "hmmsearch"
    pipeline = ("hmmsearch",)
    query = "globins4.hmm"
    cut = ("--volume-residues", "600")

    def files(self) -> None:
        Path("globins4.hmm").write_bytes((SAMPLE / "globins4.hmm").read_bytes())
        found = [r for r in records("proteins.fasta") if re.search("globin", r.split("\n")[0], re.IGNORECASE)][:5]
        Path("t.fasta").write_text("".join(found))


class Resume(Search):
    """A resumption is disturbed."""

    name = "resume"
    units = 3
    """That are kept before."""

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("runs", "resume", "-o", "out.txt", "--quiet", *self.again)

    def prepare(self, run: Run) -> Any:
        super().prepare(run)
        pid = os.fork()
        if pid == 0:
            from seqloom.storage.results.run_file import RunFile

            commit, seen = RunFile.commit_unit, []

            def killed(self: Any, *unit: Any) -> None:
                commit(self, *unit)
                seen.append(unit)
                if len(seen) == self.units:
                    os.kill(os.getpid(), signal.SIGKILL)

            RunFile.commit_unit = killed  # type: ignore[method-assign]
            run(*self.search, check=False)
            os._exit(0)
        os.waitpid(pid, 0)
        assert [r["state"] for r in self.runs(run)] == ["incomplete"]


class Streamed(Mum):
    """Queries of a file, in portions of four."""

    name = "streamed"
    cut = ("--volume-residues", "1600", "--batch-queries", "1")
    queries = 10

    def files(self) -> None:
        super().files()
        human = bases("mito_human.fasta", 3000)
        text = "".join(f">q{n}\n{human[(begin := 290 * n) : begin + 120]}\n" for n in range(self.queries))
        Path("q.fasta").write_text(text)

    def prepare(self, run: Run) -> Any:
        from seqloom.core.stages import BATCH_RESIDUES
        from seqloom.query_stream import QueryFiles, QueryStream

        super().prepare(run)
        stream = QueryStream(QueryFiles.of("nucleotide", ["q.fasta"], "error", BATCH_RESIDUES, 1, None))
        first = stream.first()
        assert first is not None and len(first) == 4 and stream.more

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        yield from super().examine(run, wanted, outcome)
        if [found["queries"] for found in self.runs(run)] != [self.queries]:
            yield "queries of the run are lost or there twice"


class Piped(Streamed):
    """The same through a pipe: a run that hadn't read all queries asks for them."""

    name = "piped"
    query = "-"
    piped = "q.fasta"
    again = ("--query", "q.fasta")

    def resumed(self, run: Run, identifier: str) -> Outcome:
        alone = run("runs", "resume", identifier, "-o", "out.txt", "--quiet", check=False)
        if alone.status == 0 or "give them again" not in alone.err:
            return alone
        return super().resumed(run, identifier)

    def repeat(self, run: Run) -> Iterator[str]:
        run(*("q.fasta" if word == "-" else word for word in self.search))
        yield from ()


class Unkept(Streamed):
    """What isn't kept is written while the search goes on: the output is there when it is whole."""

    name = "streamed-unkept"

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return (*self.search, "--no-store")

    def expect(self, run: Run) -> Any:
        return digest("out.txt")

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        run(*self.words)
        if digest("out.txt") != wanted:
            yield "the repeated command writes another output"


class ResumeStreamed(Resume, Streamed):
    """A resumption in the middle of the queries is disturbed: two units of the second portion are kept."""

    name = "resume-streamed"
    units = 10


class ResumePiped(Resume, Piped):
    """The same of queries that are given again."""

    name = "resume-piped"
    units = 10

    def prepare(self, run: Run) -> Any:
        self.files()
        with open("q.fasta", "rb") as file:
            os.dup2(file.fileno(), 0)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        return super().prepare(run)


class Merge(Search):
    """Finished runs are brought into the store; there are three before and after."""

    name = "merge"
    former = 2

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("runs", "merge")

    def prepare(self, run: Run) -> Any:
        super().prepare(run)
        run(*self.search)
        code = f"import duckdb, sys; c = duckdb.connect({STORE!r}); print(flush=True); sys.stdin.read()"
        holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdout and holder.stdout.readline()
        for _ in range(2):
            run(*self.search)
        holder.communicate()
        states = [r["state"] for r in self.runs(run)]
        assert states == ["complete", "pending", "pending"], states

    def expect(self, run: Run) -> Any:
        return {"rows": self.rows(run, 1), "out": digest("out.txt"), "runs": 3}

    def repeat(self, run: Run) -> Iterator[str]:
        yield from ()


class Delete(Search):
    name = "delete"

    @property
    def words(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("runs", "delete", "2")

    def prepare(self, run: Run) -> Any:
        super().prepare(run)
        run(*self.search)
        run(*self.search)

    def expect(self, run: Run) -> Any:
        return self.rows(run, 1)

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        found = [r["run"] for r in self.runs(run)]
        if found not in ([1], [1, 2]) or any(self.rows(run, n) != wanted for n in found):
            yield f"runs {found} are left, or their rows differ"
        if outcome.status >= 0 and (outcome.status == 0) != (found == [1]):
            yield f"exit status {outcome.status}, and the run is {'there' if 2 in found else 'gone'}"
        if 2 in found:
            run(*self.words)
        for table in ("hit", "alignment", "queries", "targets", "runs", "run_slots"):
            left = run("sql", f"SELECT count(*) AS n FROM {table} WHERE run = 2", "--format", "tsv").out.split()
            if left != ["n", "0"]:
                yield f"{left[1]} rows of a deleted run are left in {table}"
        if self.rows(run, 1) != wanted:
            yield "the other run is no longer what it was"


class MigrateResults(Search):
    """A store of the first revision is brought to the present one by the first search that is kept in it."""

    name = "migrate-results"
    former = older = 2

    def prepare(self, run: Run) -> Any:
        super().prepare(run)
        data = ROOT / "tests" / "storage" / "data" / "results_0001.duckdb.gz"
        Path(STORE).write_bytes(gzip.decompress(data.read_bytes()))

    def old_rows(self, run: Run) -> str:
        query = "SELECT run, query, target, score FROM hit WHERE run <= 2 ORDER BY ALL"
        return run("sql", query, "--format", "tsv").out

    def expect(self, run: Run) -> Any:
        return {**super().expect(run), "old": self.old_rows(run)}

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        yield from super().examine(run, wanted, outcome)
        if self.old_rows(run) != wanted["old"]:
            yield "rows of the runs from before are no longer what they were"


# ---- files that are written


class Output(Scenario):
    """A command that writes one file, which is there already."""

    extra: Callable[[Run], None] = staticmethod(lambda run: None)

    def prepare(self, run: Run) -> Any:
        found = records("proteins.fasta")[:30]
        Path("t.fasta").write_text("".join(found))
        Path("q.fasta").write_text("".join(found[:2]))
        run("db", "create", "p.duckdb", "t.fasta")
        run("blastp", "-q", "q.fasta", "-d", "p.duckdb", "--backend", "reference", "-o", "rows")
        Path("rows").unlink()
        Path(self.outputs[0]).write_text("what was there before\n")
        return {name: digest(name) for name in ("p.duckdb", "t.fasta", STORE)}

    def expect(self, run: Run) -> Any:
        return digest(self.outputs[0])

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        for name, before in self.facts.items():
            if digest(name) != before and name not in self.outputs:
                yield f"{name} is no longer what it was"
        run(*self.words)
        if digest(self.outputs[0]) != wanted:
            yield "the repeated command writes another file"


def output(name: str, *words: str, out: str = "out.file") -> type[Output]:
    return type(name, (Output,), {"name": name, "words": (*words, "-o", out), "outputs": (out,)})


class Sort(Scenario):
    """A file larger than the memory."""

    name = "sort"
    words = ("sort", "big.txt", "--memory", "8M", "--backend", "reference", "-o", "sorted.txt")
    outputs = ("sorted.txt",)

    def prepare(self, run: Run) -> Any:
        generator = random.Random(5)
        Path("big.txt").write_text("".join(f"{generator.randrange(10**9):09}{'x' * 1000}\n" for _ in range(3000)))
        return digest("big.txt")

    def expect(self, run: Run) -> Any:
        return digest(self.outputs[0])

    def examine(self, run: Run, wanted: Any, outcome: Outcome) -> Iterator[str]:
        if digest("big.txt") not in (self.facts, wanted):
            yield "the file that was sorted is no longer what it was"
        run(*self.words)
        if digest(self.outputs[0]) != wanted:
            yield "the repeated command gives another file"


class SortInPlace(Sort):
    name = "sort-in-place"
    words = ("sort", "big.txt", "--memory", "8M", "--backend", "reference", "-o", "big.txt")
    outputs = ("big.txt",)


SCENARIOS: dict[str, type[Scenario]] = {scenario.name: scenario for scenario in (
    Create, Append, CreateModels, AppendModels, Taxonomy, IndexBuild, IndexDrop, MigrateSequences,
    Search, SearchStored, Sw, AllScores, Blastn, Mum, Hmmsearch, Resume,
    Streamed, Piped, Unkept, ResumeStreamed, ResumePiped, Merge, Delete, MigrateResults,
    Sort, SortInPlace,
    output("export-tsv", "export", "1"), output("export-parquet", "export", "1", "--format", "parquet"),
    output("search-parquet", "blastp", "-q", "q.fasta", "-d", "p.duckdb", "--backend", "reference", "--no-store", "-f",
           "parquet"),
    output("export-packed", "export", "1", "--format", "csv", out="out.csv.gz"), output("sql", "sql", "FROM hsps"),
    output("report", "report", "1", out="out.html"), output("runs-write", "runs", "write", "1", "-f", "0"),
    output("extract", "db", "extract", "p.duckdb", "sp|Q8AWH3|SX17A_XENTR"),
    output("mask", "mask", "t.fasta", "--masker", "seg", "-f", "fasta"),
)}
