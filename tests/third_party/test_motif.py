"""A plugin in a package of its own, built from ``docs/plugins.md``, used by name through every door of the program."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, environment, run, write_files

PAGE = ROOT / "docs" / "plugins.md"
SEARCH = ["seqloom", "search", "motif", "-q", "query.fasta", "-d", "targets.fasta", "--backend", "reference"]


class Installed:
    """A folder with the page's files, and the package of the page installed where only programs run here see it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.site = folder / "package", folder / "site"
        self.folder.mkdir()
        self.site.mkdir()
        write_files(PAGE, self.folder)
        self.variables = environment(self.site)
        self("pip", "install", ".")

    def __call__(self, *command: str, status: int = 0, folder: Path | None = None, site: bool = True):
        variables = dict(self.variables) if site else {k: v for k, v in self.variables.items() if k != "PYTHONPATH"}
        program = [sys.executable, "-m", "pip", *command[1:]] if command[0] == "pip" else list(command)
        done = run(program, folder or self.folder, variables)
        assert done.returncode == status, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def python(self, code: str, folder: Path | None = None) -> str:
        return self(sys.executable, "-c", code, folder=folder).stdout

    def sql(self, query: str, results: Path) -> list[dict]:
        code = ("import json, sys\nfrom seqloom.results import Results\n"
                "print(json.dumps(Results(sys.argv[1]).sql(sys.argv[2]).to_pylist(), default=str))")
        return json.loads(self(sys.executable, "-c", code, str(results), query).stdout)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    return Installed(tmp_path_factory.mktemp("third_party"))


@pytest.fixture(scope="module")
def results(installed, tmp_path_factory) -> Path:
    """A results store with one run of the preset and one with an option set."""
    path = tmp_path_factory.mktemp("results") / "results.duckdb"
    installed(*SEARCH, "--results", str(path))
    installed(*SEARCH, "--results", str(path), "--set", "seed.motif.equal=5", "--set",
              "index.motif.pattern=G-x(4)-G-K-S")
    return path


def test_the_package_is_installed_beside_and_not_in_this_installation(installed) -> None:
    assert (installed.site / "seqloom_motif" / "plugin.py").exists()
    done = installed("seqloom", "search", "motif", "--help", site=False, status=2)
    assert "unknown pipeline 'motif'" in done.stderr or "motif" in done.stderr


def test_it_is_listed(installed) -> None:
    plugins = installed("seqloom", "plugins", "list").stdout
    assert "motif-seeds" in plugins
    assert "seqloom-motif 0.1.0" in plugins
    assert "motif" in installed("seqloom", "pipelines", "list").stdout
    slots = installed("seqloom", "pipelines", "show", "motif").stdout
    for name in ("index.motif", "motif-places", "seed.motif", "motif-seeds", "score.motif", "motif-columns"):
        assert name in slots


def test_it_is_in_the_help(installed) -> None:
    assert "motif" in installed("seqloom", "search", "--help").stdout
    text = " ".join(installed("seqloom", "search", "motif", "--help").stdout.split())
    assert "protein search that starts where query and target share a motif" in text
    assert "motif in PROSITE's notation" in text
    assert "residues that the two motifs must have in common" in text
    assert "--evalue" in text


def test_it_conforms(installed) -> None:
    installed(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_motif.py")


def test_bad_options_are_refused_in_one_line_before_any_work(installed, tmp_path) -> None:
    store = ("--results", str(tmp_path / "none.duckdb"))
    for setting, message in (("seed.motif.equal=-1", "seed.motif.equal must be at least 0"),
                             ("seed.motif.eqal=1", "did you mean 'equal'"),
                             ("index.motif.pattern=[AG]+", "is no element of a PROSITE pattern")):
        error = installed(*SEARCH, *store, "--set", setting, status=2).stderr
        assert message in error
        assert "Traceback" not in error
    error = installed(*SEARCH, *store, "--set", "index.motif.enabled=false", status=2).stderr
    assert "slot 'seed.motif' ('motif-seeds') reads an index of kind 'motif-places'" in error
    assert not list(tmp_path.iterdir()), "nothing is left behind"


def test_its_columns_are_in_sql(installed, results) -> None:
    rows = installed.sql("SELECT qseqid, sseqid, motifs, motif_residues FROM hsps ORDER BY run, sseqid", results)
    assert {tuple(r.values()) for r in rows} == {("HRAS", "RAB1A", 1, "GDSGVGKS")}
    assert len(rows) == 2
    extra = installed.sql("SELECT level, name, type, doc FROM extra_columns WHERE run = 1 ORDER BY name", results)
    assert [(r["level"], r["name"], r["type"]) for r in extra] == [
        ("alignment", "adjustment", "i1"), ("alignment", "motif_residues", "str"), ("alignment", "motifs", "i4")]
    assert extra[-1]["doc"] == "motifs of the target that lie inside the alignment"


def test_its_options_and_counters_are_in_the_provenance(installed, results) -> None:
    rows = installed.sql("SELECT slot, plugin, backend, options, counters FROM run_slots "
                         "WHERE slot IN ('index.motif', 'seed.motif') ORDER BY run, position", results)
    assert [(r["slot"], r["plugin"], r["backend"]) for r in rows] == 2 * [
        ("index.motif", "motif-places", "reference"), ("seed.motif", "motif-seeds", "reference")]
    assert [json.loads(r["options"]) for r in rows] == [
        {"pattern": "[AG]-x(4)-G-K-[ST]"}, {"equal": 3}, {"pattern": "G-x(4)-G-K-S"}, {"equal": 5}]
    assert json.loads(rows[0]["counters"]) == {"motifs": 1}
    shown = installed("seqloom", "runs", "show", "1", "--results", str(results)).stdout
    assert "motif-places" in shown
    assert "[AG]-x(4)-G-K-[ST]" in shown


def test_its_columns_are_in_output_formats_and_exports(installed, results, tmp_path) -> None:
    table = installed(*SEARCH, "--no-store", "--outfmt", "6 sseqid motifs motif_residues sstart send").stdout
    assert table.split("\t")[:3] == ["RAB1A", "1", "GDSGVGKS"]
    out = tmp_path / "hits.jsonl"
    installed("seqloom", "export", "last", "--results", str(results), "--format", "jsonl", "-o", str(out))
    assert out.exists()


def test_python_sees_the_same(installed, results) -> None:
    text = installed.python(
        "import json, seqloom\n"
        "run = seqloom.search('motif', 'query.fasta', 'targets.fasta', backend='reference', store=False,\n"
        "                     settings=['seed.motif.equal=4'], evalue=1e-3)\n"
        "print(json.dumps([run.alignments.select(['sseqid', 'motifs', 'motif_residues']).to_pylist(),\n"
        "                  run.plan.provenance()['slots'][1]]))")
    rows, slot = json.loads(text)
    assert rows == [{"sseqid": "RAB1A", "motifs": 1, "motif_residues": "GDSGVGKS"}]
    assert slot == {"slot": "seed.motif", "plugin": "motif-seeds", "backend": "reference", "scope": "unit",
                    "options": {"equal": 4}}


def test_its_stages_can_be_used_in_a_pipeline_file_over_a_database(installed, tmp_path) -> None:
    (tmp_path / "mine.toml").write_text('base = "motif"\nname = "mine"\n[set]\nseed.motif.equal = 2\n'
                                        '[defaults]\nevalue = 1e-6\n')
    installed("seqloom", "db", "create", str(tmp_path / "targets.duckdb"), "targets.fasta")
    done = installed("seqloom", "search", str(tmp_path / "mine.toml"), "-q", "query.fasta", "-d",
                     str(tmp_path / "targets.duckdb"), "--backend", "reference", "--results",
                     str(tmp_path / "results.duckdb"), "--outfmt", "6 sseqid motif_residues", "--volume-residues", "1")
    assert done.stdout == "RAB1A\tGDSGVGKS\n"


def test_the_auto_back_end_says_that_there_are_no_fast_kernels(installed) -> None:
    command = [w for w in SEARCH if w not in ("--backend", "reference")]
    variables = {k: v for k, v in installed.variables.items() if k != "SEQLOOM_BACKEND"}
    done = run([*command, "--no-store"], installed.folder, variables)
    assert done.returncode == 0 and done.stdout
    assert "no fast kernels" in done.stderr


def test_results_stay_readable_without_the_plugin(installed, results) -> None:
    done = installed("seqloom", "sql", "SELECT motif_residues FROM hsps LIMIT 1", "--results", str(results), site=False)
    assert "GDSGVGKS" in done.stdout
    again = installed("seqloom", "runs", "write", "1", "--results", str(results), site=False, status=1)
    assert again.stderr.startswith("seqloom: the run wants motif (seqloom-motif 0.1.0)")
    assert again.stderr.endswith("not installed (unknown stage 'motif-places'); install them again\n")


def test_a_broken_plugin_is_named_and_the_rest_works(installed, tmp_path) -> None:
    """A package whose module fails when imported stands beside the good one."""
    info = tmp_path / "seqloom_broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: seqloom-broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[seqloom]\nbroken = seqloom_broken\n")
    (tmp_path / "seqloom_broken.py").write_text("raise OSError('no such library')\n")
    variables = {**installed.variables, "PYTHONPATH": f"{tmp_path}{os.pathsep}{installed.site}"}
    done = run([*SEARCH, "--no-store", "--outfmt", "6 sseqid"], installed.folder, variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "RAB1A\n"
    assert "plugin 'broken' could not be loaded" in done.stderr
    assert "OSError: no such library (seqloom_broken, seqloom-broken 1.0)" in done.stderr
