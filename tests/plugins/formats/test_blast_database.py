"""BLAST databases: what makeblastdb makes, what blastdbcmd says of it, and files that are damaged."""

import random
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.errors import InputError, SeqloomError
from seqloom.inputs import load_sequences
from seqloom.installed import registry

from tests.integration.commands import seqloom
from tests.plugins.formats.blast_databases import written

needs_blast = pytest.mark.skipif(not shutil.which("makeblastdb"), reason="makeblastdb (ncbi-blast+) is not installed")
PROTEINS = (">sp|P53508|CSSA1_ECOLX CS6 fimbrial OS=x\nMKVLAERTGXUOBZJ\n>tr|K7GL98|K7GL98_PIG one > two\nMK\n"
            ">plain\nMKVLW\n>gb|AAB1.2| e\nMKA\n>pdb|1ABC|A t\nMKC\n>pir|A1234|XX t\nMK\n>gnl|mydb|77 t\nMMM\n"
            ">prf||12345 t\nMKA\n>pat|US|123|1 t\nMKE\n>bbs|123 t\nMKD\n>emb|CAA1.1|NAME t\nMK\n>lcl|own t\nMKY\n")
BASES = (">q1 ambiguous\nACGTNNNNACGTRYACGTACGT" + "N" * 5000 + "ACG\n>gb|AB123.1| x y\nACG\n>q3\nNNNN\n>q4\nACGTA\n"
         ">q5\nACGTACGT\n>q6\nKMSWBDHV\n")


def made(folder: Path, text: str, kind: str, *words: str) -> str:
    (folder / "t.fa").write_text(text)
    base = str(folder / "base")
    subprocess.run(["makeblastdb", "-in", str(folder / "t.fa"), "-dbtype", kind, "-out", base, *words], check=True,
                   stdout=subprocess.DEVNULL)
    return base


def of_peer(base: str, format: str) -> list[str]:
    done = subprocess.run(["blastdbcmd", "-db", base, "-entry", "all", "-outfmt", format], check=True,
                          capture_output=True)
    return done.stdout.decode("utf-8", "replace").splitlines()


@needs_blast
@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("words", [[], ["-parse_seqids"]], ids=["titles", "ids"])
@pytest.mark.parametrize(("kind", "text"), [("prot", PROTEINS), ("nucl", BASES)])
def test_names_and_residues_are_those_that_blastdbcmd_says(tmp_path: Path, kind: str, text: str, words: list[str],
                                                           version: str) -> None:
    base = made(tmp_path, text, kind, "-blastdb_version", version, *words)
    batch = load_sequences(base, registry())
    assert [batch.text(n).upper() for n in range(len(batch))] == of_peer(base, "%s")
    if words:
        assert [name if "|" in name else f"lcl|{name}" for name in batch.names] == of_peer(base, "%i")
        assert [*batch.descriptions] == of_peer(base, "%t")
    else:
        assert [f"{n} {d}".strip() for n, d in zip(batch.names, batch.descriptions, strict=True)] == of_peer(base, "%t")


@needs_blast
def test_volumes_alias_files_and_batches(tmp_path: Path) -> None:
    rng = random.Random(1)
    text = "".join(f">p{n} of many\n{''.join(rng.choices('ACDEFGHIKLMNPQRSTVWY', k=4000))}\n" for n in range(600))
    base = made(tmp_path, text, "prot", "-max_file_sz", "1MB", "-blastdb_version", "4")
    assert len([*tmp_path.glob("base.*.pin")]) > 1
    whole = load_sequences(base, registry())
    assert "".join(f">{whole.names[n]} of many\n{whole.text(n)}\n" for n in range(len(whole))) == text
    (tmp_path / "some.pal").write_text("TITLE x\nDBLIST base.00 \"base.01\"\n")
    assert 0 < len(load_sequences(str(tmp_path / "some"), registry())) < 600
    (tmp_path / "ids.pal").write_text("DBLIST base\nSEQIDLIST ids.txt\n")
    with pytest.raises(InputError, match="takes a part of its database"):
        load_sequences(str(tmp_path / "ids"), registry())
    (tmp_path / "loop.pal").write_text("DBLIST other\n")
    (tmp_path / "other.pal").write_text("DBLIST loop\n")
    with pytest.raises(InputError, match="without end"):
        load_sequences(str(tmp_path / "loop"), registry())
    (tmp_path / "gone.pal").write_text("DBLIST base.00 nowhere\n")
    with pytest.raises(InputError, match="names nowhere"):
        load_sequences(str(tmp_path / "gone"), registry())


@needs_blast
def test_a_search_takes_one_for_a_database(tmp_path: Path) -> None:
    base = made(tmp_path, ">a\nMKVLAERTGQWYHDCNMKVLAERTGQWYHDCN\n>b\nMKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ\n", "prot")
    for database in base, f"{base} {base}x":
        for file in tmp_path.glob("base.*"):
            shutil.copy(file, tmp_path / file.name.replace("base", "basex"))
        done = seqloom(tmp_path, "sw", "-q", "t.fa", "-d", database, "--no-store", "--backend", "reference")
        assert done.stdout.startswith("a\ta\t100.000")
    done = seqloom(tmp_path, "sw", "-q", "t.fa", "-d", f"{base}.pin", "--no-store", check=False)
    assert done.returncode == 1 and "give the database by its name" in done.stderr


def test_short_words_for_ambiguous_bases(tmp_path: Path) -> None:
    words = struct.pack(">II", 1, 0xF << 28 | 1 << 24 | 1)
    batch = load_sequences(written(tmp_path, words=words), registry())
    assert (batch.text(0), [*batch.names]) == ("ANNTA", ["name"])


def test_every_residue_has_its_byte(tmp_path: Path) -> None:
    batch = load_sequences(written(tmp_path, "p", bases=bytes([*range(1, 28), 0])), registry())
    assert batch.text(0) == "ABCDEFGHIKLMNPQRSTVWXYZU*OJ"


@pytest.mark.parametrize("kind", ["p", "n"])
def test_damage_is_one_error_and_never_another_one(tmp_path: Path, kind: str) -> None:
    base = written(tmp_path, kind, bases=b"\x1b\x01" if kind == "n" else b"\x0c\x01\0")
    alphabet = PROTEIN if kind == "p" else NUCLEOTIDE
    assert len(load_sequences(base, registry(), alphabet)) == 1
    rng, refused = random.Random(kind), 0
    for _ in range(400):
        file = tmp_path / f"db.{kind}{rng.choice(['in', 'sq', 'hr'])}"
        whole = file.read_bytes()
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        file.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            load_sequences(base, registry(), alphabet)
        except SeqloomError as error:
            refused += 1
            assert str(error).startswith(str(tmp_path)) and "\n" not in str(error)
        file.write_bytes(whole)
    assert refused > 100
