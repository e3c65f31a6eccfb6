"""Names that are taken apart: reports show what blastp shows of a database made with -parse_seqids."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

needs_peer = pytest.mark.skipif(not shutil.which("makeblastdb"), reason="makeblastdb (ncbi-blast+) is not installed")
RESIDUES = ("MKWVTFISLLFLFSSAYSRGVFRRDAHKSEVAHRFKDLGEENFKALVLIAFAQYLQQCPFEDHVKLVNEVTEFAKTCVADESAENCDKSLHTLFGDKLCTVA"
            "TLRETYGEMADCCAKQEPERNECFLQHKDDNPNLPRLVRPEVDVMCTAFHDNEETFLKKYLYEIARRHPYFYAPELLFFAKRYKAAFTECC")
NAMES = ("sp|P53508|CSSA1_ECOLX first one", "gi|129295|sp|P01013.2|OVAX_CHICK GENE X", "ref|NP_000468.1| albumin",
         "NP_000469.1 bare", "gnl|mydb|id7 general", "lcl|local1 own", "pdb|1AO6|A chain A", "1AO6_B chain B",
         "bare name", "P02768 of UniProt", "tr|A0A024|A0A024_HUMAN unreviewed", "gb|AAA12346.1|LOCUS x",
         "AAA99999.1 bare", "sp|P53509 <short> & 'so'", "pir||A12345 z", "tpg|DAA12345.1| y", "bbs|123 x", "noTitle",
         "pat|US|1234567|3 patent", "sp|Q11111|NOTI_TLE", "pdb|1AO6|C",
         "sp|P22222|LO_NG " + "a long title, in so many words " * 6 + "end")
FIELDS = "6 qseqid qgi qacc qaccver sseqid sallseqid sgi sallgi sacc saccver sallacc stitle salltitles evalue"


@pytest.fixture
def bases(tmp_path: Path, seqloom: Callable, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p").write_text("".join(f">{name}\n{RESIDUES[: 120 + n]}\n" for n, name in enumerate(NAMES)))
    Path("q").write_text(f">gi|77|ref|NP_111111.2| the query\n{RESIDUES}\n>sp|P1|A_B\n{RESIDUES[50:110]}\n")
    subprocess.run(["makeblastdb", "-in", "p", "-dbtype", "prot", "-parse_seqids", "-out", "v5"], check=True,
                   capture_output=True)
    assert seqloom("db", "create", "p.duckdb", "p", "-parse_seqids").status == 0
    assert seqloom("db", "create", "v.duckdb", "v5").status == 0
    return tmp_path


def of_peer(*words: str) -> str:
    done = subprocess.run(["blastp", "-query", "q", "-evalue", "1e-5", *words], check=True, capture_output=True)
    return without_dates(done.stdout.decode())


def without_dates(text: str) -> str:
    return re.sub(r" \(seqloom [^)]*\)|Posted date:.*|User specified.*", "", text).replace("v5", "p")


@needs_peer
@pytest.mark.parametrize("format", [FIELDS, "0", "0 html", "5", "15", "16"])
def test_what_stands_in_the_place_of_names(bases: Path, seqloom: Callable, format: str) -> None:
    peer = ["-outfmt", format] if format != "0 html" else ["-html"]
    search = ("blastp", "-q", "q", "-evalue", "1e-5", "--backend", "cpu", "-f", format)
    for more in ([], ["-parse_deflines"]):
        wanted = of_peer("-db", "v5", *peer, *more)
        for base in ("p.duckdb", "v.duckdb", "v5"):
            found = without_dates(seqloom(*search, "-d", base, "--no-store", *more).out)
            db = re.escape("p") if base == "p.duckdb" else str(bases / "v5")
            assert re.sub(rf"(db\W+){db}", r"\1p", found) == wanted, (base, more)


@needs_peer
def test_kept_runs_several_databases_and_files(bases: Path, seqloom: Callable) -> None:
    Path("o").write_text(f">sp|P77777|OTHER x\n{RESIDUES}\n")
    search = ("blastp", "-q", "q", "-evalue", "1e-5", "--backend", "cpu", "-f", "6 qseqid saccver")
    assert seqloom(*search, "-d", "o", "-d", "p.duckdb").out.splitlines()[:2] == [
        "gi|77|ref|NP_111111.2|\tsp|P77777|OTHER", "gi|77|ref|NP_111111.2|\tP22222"]
    rows = seqloom("runs", "write", "last", "-f", "6 qaccver saccver").out.splitlines()
    assert rows[0].endswith("sp|P77777|OTHER") and rows[22].endswith("\tP53508")
    assert seqloom(*search, "-d", "o", "-parse_deflines", "--no-store").out.splitlines()[0].endswith("\tP77777")
    assert re.search("parsed ids +True", seqloom("db", "info", "v.duckdb").out)


def test_several_definitions(tmp_path: Path, seqloom: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p").write_text(f">sp|P11111|AA first\x01gi|45|ref|NP_2.1| second\x01lcl|own\n{RESIDUES}\n")
    Path("q").write_text(f">q\n{RESIDUES}\n")
    assert seqloom("db", "create", "p.duckdb", "p", "--parse-seqids").status == 0
    search = ("blastp", "-q", "q", "-d", "p.duckdb", "--backend", "cpu", "--no-store", "-f")
    assert seqloom(*search, "6 sallseqid sallgi sallacc stitle salltitles").out == (
        "sp|P11111|AA;gi|45|ref|NP_2.1|;own\t0;45;0\tP11111;NP_2;own\tfirst\tfirst<>second<>N/A\n")
    assert ">P11111 first\n NP_2.1 second\n own unnamed protein product\nLength" in seqloom(*search, "0").out
    assert seqloom(*search, "15").out.count('"accession"') == 3
    assert "<Hit_def>first &gt;gi|45|ref|NP_2.1| second &gt;own </Hit_def>" in seqloom(*search, "5").out
