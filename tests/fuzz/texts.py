"""Targets: sequences, compressed data, lists of ids, models, TOML pipelines, options, sorting."""

import contextlib
import io
import json
import random
import re
import struct
from pathlib import Path
from typing import Any

from tests.fuzz import oracles
from tests.fuzz.mutation import TOKENS, mutated
from tests.fuzz.target import Target, Wrong
from tests.plugins.formats.blast_databases import written

SAMPLE = Path(__file__).parents[2] / "api" / "sample"
PROTEIN = b"MKVLAERTGQWYHDCNMKVLAERTGQWYHDCN"
BASES = b"ACGTTGCAACGGTACCATTGACCAGTACGATTACAGGACT"


class Sequences(Target):
    """Files of sequences against an obvious reader, read in blocks of any size."""

    share = 3
    kind: str
    oracle: Any

    def prepare(self) -> None:
        from seqloom import inputs
        from seqloom.core.alphabet import alphabet
        from seqloom.installed import registry
        from seqloom.plugins.formats import fasta

        self.fasta, self.inputs, self.registry, self.alphabet = fasta, inputs, registry(), alphabet(self.kind)
        table = fasta.reading_table(self.alphabet)
        self.good = bytes(code for code in range(256) if table[code] != 255)
        self.blocks = fasta.SMALL_BLOCK, fasta.BLOCK
        self.seeds = self.files()

    def files(self) -> list[bytes]:
        raise NotImplementedError

    def read(self, path: str, query: bool, batch: int) -> list[oracles.Record]:
        found = []
        for some in self.inputs.read_sequences(path, self.registry, self.alphabet, residues=batch, queries=query):
            found += [(some.names[n], some.text(n).encode()) for n in range(len(some))]
        return found

    def case(self, rng: random.Random) -> None:
        from seqloom.core.errors import AlphabetError, InputError

        data, query = mutated(rng, rng.choice(self.seeds)), rng.random() < 0.3
        path = self.put("sequences", data)
        wanted = self.oracle(data, self.good, query)
        if wanted:
            wanted = [(name, self.residues(residues)) for name, residues in wanted]
        self.fasta.SMALL_BLOCK, self.fasta.BLOCK = (
            (rng.choice((7, 64, 1000)),) * 2 if rng.random() < 0.5 else self.blocks
        )
        try:
            found = self.read(path, query, rng.choice((1, 100, 1 << 22)))
        except AlphabetError:
            raise
        except InputError as error:
            if wanted and "neither fasta" not in str(error) and "is not read" not in str(error):
                raise Wrong(f"refused what is in order: {str(error)[:120]}") from error
            raise
        finally:
            self.fasta.SMALL_BLOCK, self.fasta.BLOCK = self.blocks
        if wanted is None:
            if self.other(data):
                return
            raise Wrong("accepted what isn't in order")
        if found != wanted:
            raise Wrong("names differ" if [r[1] for r in found] == [r[1] for r in wanted] else "residues differ")

    def residues(self, residues: bytes) -> bytes:
        """As they are given back: old residues by the ones in use."""
        codes = self.alphabet.encode(residues.decode("latin-1"))
        text = self.alphabet.decode(codes)
        return "".join(t.lower() if chr(c).islower() else t for t, c in zip(text, residues, strict=True)).encode()

    def other(self, data: bytes) -> bool:
        """Whether the file has become one of another format."""
        return False


class Fasta(Sequences):
    name, kind, oracle = "fasta", "protein", staticmethod(oracles.fasta)

    def files(self) -> list[bytes]:
        records = (SAMPLE / "proteins.fasta").read_bytes().split(b"\n>")[1:]
        return [
            b">" + b"\n>".join(records[:1]) + b"\n",
            b">" + b"\n>".join(records[1:12]) + b"\n",
            b">a b\r\nMKVLAE\r\n\r\n>c  d \r\nmkvLAE*X\r\n",
            ">é ü\u2003x\nMKV\n>y\x85\nMKA\n".encode(),
            b";c\n>a\x1cb\nMK\n!d\nV\n>b\rMKL\r",
            b"MKVLAERT\nMK\n>b\nMKL\n",
            b">q\nMK--V\n> x\nMKV\n",
        ]

    def other(self, data: bytes) -> bool:
        return data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"@"


class FastaNucleotide(Fasta):
    name, kind = "fasta-nucleotide", "nucleotide"

    def files(self) -> list[bytes]:
        return [
            (SAMPLE / "mito_human.fasta").read_bytes()[:900] + b"\n",
            b">a\nACGTNRYK\n>b\nacgtuu\n>c d\nNNNN\n",
            b">a\r\nACGT\r\n>b x\r\nAC GT\r\n",
            b"ACGTACGT\n",
        ]


class Fastq(Sequences):
    name, kind, oracle = "fastq", "nucleotide", staticmethod(oracles.fastq)
    share = 2

    def files(self) -> list[bytes]:
        rng, reads = random.Random(1), []
        for number in range(30):
            residues = bytes(rng.choices(b"ACGTN", k=rng.choice((1, 30, 75))))
            reads.append(
                b"@r%d x/1\n%s\n+\n%s\n" % (number, residues, bytes(rng.choices(range(33, 74), k=len(residues))))
            )
        return [b"".join(reads[:n]) for n in (1, 4, 30)] + [
            b"@a\r\nACGT\r\n+\r\nIIII\r\n@b x\r\nacgn\r\n+b x\r\nIIII\r\n",
            "@é\u2003x\nAC\n+\nII\n\n\n".encode(),
        ]

    def other(self, data: bytes) -> bool:
        return (
            data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b">", b";", b"#", b"!") or data.lstrip()[:1] != b"@"
        )


class BlastDatabase(Target):
    """Databases of makeblastdb: any of their files may be damaged."""

    name = "blastdb"

    def prepare(self) -> None:
        from seqloom import inputs
        from seqloom.installed import registry

        self.inputs, self.registry = inputs, registry()
        self.bases = []
        for kind, words, bases in (("p", b"", b"\x0c\x01\x19\x0a\0"), ("n", b"", b"\x1b\x1b\x1b\x02"),
                                   ("n", struct.pack(">II", 1, 0xF << 28 | 1 << 24 | 1), b"\x1b\x01"),
                                   ("n", struct.pack(">III", 1 << 31 | 2, 5 << 28 | 1 << 16, 1), b"\x1b\x01")):
            folder = self.folder / f"database{len(self.bases)}"
            folder.mkdir(exist_ok=True)
            written(folder, kind, words=words, bases=bases)
            (folder / f"all.{kind}al").write_text('TITLE all\nDBLIST db "db"\n')
            self.bases.append((folder, {file.name: file.read_bytes() for file in folder.iterdir()}))

    def case(self, rng: random.Random) -> None:
        folder, files = rng.choice(self.bases)
        changed = rng.sample(sorted(files), rng.choice((1, 1, 1, 2)))
        for name in changed:
            (folder / name).write_bytes(mutated(rng, files[name]))
        try:
            self.inputs.load_sequences(str(folder / rng.choice(("db", "all"))), self.registry)
        finally:
            for name in changed:
                (folder / name).write_bytes(files[name])


class Packed(Target):
    """Compressed data against the standard library and zstandard."""

    name, share = "packed", 3

    def prepare(self) -> None:
        import bz2
        import gzip
        import lzma

        import zstandard
        from seqloom import inputs

        self.inputs = inputs
        rng = random.Random(2)
        self.data = [
            b">a\nMKVLAERT\n",
            b">a\n" + bytes(rng.choices(b"MKVLAERT", k=3000)) + b"\n",
            b">a\n" + b"A" * 200_000,
        ]
        checked = zstandard.ZstdCompressor(write_checksum=True)
        self.packs = {
            "gzip": gzip.compress,
            "bzip2": bz2.compress,
            "xz": lzma.compress,
            "zstd": zstandard.compress,
            "zstd checked": checked.compress,
        }
        self.seeds = [(pack(data), pack(data[:100])) for pack in self.packs.values() for data in self.data]

    def case(self, rng: random.Random) -> None:
        from seqloom.core.errors import InputError

        one, other = rng.choice(self.seeds)
        data = mutated(rng, one if rng.random() < 0.7 else one + other)
        path = self.put("packed", data)
        wanted = self.unpacked(data)
        try:
            with self.inputs.opened(path, may_be_empty=True) as stream:
                found = b"".join(iter(lambda: stream.read(rng.choice((1000, 1 << 16))), b""))
        except InputError as error:
            if wanted is not None and "window of" not in str(error):
                raise Wrong(f"refused what the library reads: {str(error)[-120:]}") from error
            raise
        whole = {part + other for part in self.data for other in (b"", *(data[:100] for data in self.data))}
        if found != wanted and (wanted is not None or found not in whole):  # what holds no data may be damaged
            raise Wrong("accepted what the library refuses" if wanted is None else "other bytes than the library's")

    def unpacked(self, data: bytes) -> bytes | None:
        """What is in the data, or the data where they are not compressed; None where they are damaged."""
        import bz2
        import lzma
        import zlib

        import zstandard

        if data[:2] == b"\x1f\x8b":
            kind, magic = lambda: zlib.decompressobj(31), b"\x1f\x8b"
        elif data[:3] == b"BZh":
            kind, magic = bz2.BZ2Decompressor, b"BZh"
        elif data[:6] == b"\xfd7zXZ\0":
            kind, magic = lzma.LZMADecompressor, b"\xfd7zXZ\0"
        elif data[:4] == b"\x28\xb5\x2f\xfd" or (data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5):
            kind, magic = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj, b""
        else:
            return None if data[:4] in (b"PK\x03\x04", b"7z\xbc\xaf") or data[:2] == b"\x1f\x9d" else data
        found = b""
        try:
            while data:
                if not magic and data[1:4] == b"\x2a\x4d\x18" and data[0] >> 4 == 5:
                    size = int.from_bytes(data[4:8], "little")
                    if len(data) < 8 + size:
                        return None
                    data = data[8 + size :]
                    continue
                if not data.startswith(magic):
                    return None
                part = kind()
                found += part.decompress(data)
                if not part.eof:
                    return None
                data = part.unused_data.lstrip(b"\0") if magic else part.unused_data
        except Exception:  # each library has its own
            return None
        return found


class IdList(Target):
    """Lists of ids, plain or compressed."""

    name = "ids"

    def prepare(self) -> None:
        from seqloom.cli.values import read_names

        self.read = read_names
        text = (SAMPLE / "proteins.fasta").read_text()
        self.names = [line[1:].split()[0] for line in text.splitlines() if line.startswith(">")]

    def case(self, rng: random.Random) -> None:
        data = mutated(rng, "\n".join(rng.sample(self.names, rng.choice((1, 3, 20)))).encode() + b"\n")
        path = self.put("ids", data)
        found = self.read(path)
        if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
            return
        wanted = [words[0] for line in data.decode().split("\n") if (words := line.split())]
        if found != wanted:
            raise Wrong("other names")


class TaxidMap(Target):
    """Names with taxids, plain or compressed."""

    name = "taxid-map"

    def prepare(self) -> None:
        from seqloom.taxonomy import LARGEST, _read_map

        self.read, self.largest = _read_map, LARGEST

    def case(self, rng: random.Random) -> None:
        lines = [f"{rng.choice(('sp|P1.2|X', 'a', 'NP_1.3'))}{rng.randrange(9)}\t{rng.randrange(10**6)}\n"
                 for _ in range(rng.choice((1, 4, 30)))]
        data = mutated(rng, "".join(lines).encode())
        path = self.put("map", data)
        found = self.read(path)
        if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
            return
        wanted = {}
        for line in data.decode().split("\n"):
            if words := line.split():
                name, taxid = words
                wanted[name] = int(taxid)
        if {name: found.get(name) for name in wanted} != wanted or max(found.values(), default=0) > self.largest:
            raise Wrong("other taxids")


class TaxonomyDump(Target):
    """NCBI's dump: parsed as an obvious reader parses it, or refused with the line."""

    name = "taxonomy"

    def prepare(self) -> None:
        from seqloom import taxonomy

        from tests import taxa

        self.read = taxonomy.read_dump
        self.seeds = [path.read_bytes() for path in taxa.dump(self.folder)]

    def case(self, rng: random.Random) -> None:
        which = rng.randrange(3)
        seeds = [data if place != which else mutated(rng, data, (*TOKENS, b"\t|\t", b"\t|\n"))
                 for place, data in enumerate(self.seeds)]
        paths = [self.put(name, data) for name, data in zip(("nodes", "names", "merged"), seeds, strict=True)]
        tables = self.read(paths)
        for table, data, columns in zip(tables.values(), seeds, ((0, 2, 4), (0, 2, 6), (0, 2)), strict=True):
            if data[:2] == b"\x1f\x8b" or data[:4] == b"\x28\xb5\x2f\xfd":
                return
            lines = data.decode("utf-8", "replace").split("\n")
            rows = [line.rstrip("\r").split("\t") for line in lines if line.strip()]
            wanted = [tuple(row[n] for n in columns) for row in rows]
            if columns == (0, 2, 6):
                wanted = [row for row in wanted if row[2] in ("scientific name", "genbank common name", "blast name")]
            names = [name for name in table.column_names if name != "unique"]
            found = [tuple(str(row[name]) for name in names) for row in table.to_pylist()]
            if len(found) != len(wanted):
                raise Wrong("other rows")


class Models(Target):
    """HMMER models: read."""

    name, share = "models", 3

    def prepare(self) -> None:
        from seqloom import inputs
        from seqloom.installed import registry

        from tests.plugins.profile_hmm.model_text import model_text

        self.inputs, self.registry = inputs, registry()
        texts = [model_text(version) for version in "abcdef"]
        self.seeds = [text.encode() for text in [*texts, texts[0] + texts[5], model_text("f", 30, extra="GA 1 2;\n")]]
        self.seeds.append((SAMPLE / "globins4.hmm").read_bytes())
        self.tokens = (
            *TOKENS,
            b"*",
            b"-0.1",
            b"1e999",
            b"-0.00000",
            b"1_0",
            b"LENG  7\n",
            b"//\n",
            b"COMPO",
            "²".encode(),
        )

    def case(self, rng: random.Random) -> None:
        self.models(rng)

    def models(self, rng: random.Random) -> str:
        import warnings

        path = self.put("models", mutated(rng, rng.choice(self.seeds), self.tokens))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.inputs.load_models(path, self.registry)
        return path


class ModelSearch(Models):
    """HMMER models: read, searched with, and searched."""

    name, seconds, share = "model-search", 60, 4

    def prepare(self) -> None:
        super().prepare()
        self.seeds = self.seeds[:8]
        records = (SAMPLE / "proteins.fasta").read_bytes().split(b"\n>")
        self.targets = self.put("targets.fasta", b"\n>".join(records[:4]) + b"\n")

    def case(self, rng: random.Random) -> None:
        import warnings

        import seqloom

        path = self.models(rng)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            backend = rng.choice(("reference", "cpu"))
            given = (path, self.targets) if rng.random() < 0.5 else (self.targets, path)
            pipeline = "hmmsearch" if given[0] is path else "hmmscan"
            run = seqloom.search(pipeline, *given, backend=backend, store=False)
            text = io.StringIO()
            run.write(text, "6")
        if re.search(r"\bnan\b", text.getvalue(), re.IGNORECASE):
            raise Wrong("not a number in the output")


class Matrix(Target):
    """Substitution matrices for phmmer: read, and a protein made into a model with them."""

    name = "matrix"

    def prepare(self) -> None:
        from seqloom.core.options import build_options
        from seqloom.plugins.profile_hmm.hmmer_matrices import RESIDUES
        from seqloom.plugins.profile_hmm.options import PhmmerOptions
        from seqloom.plugins.profile_hmm.query_model import QueryModels

        self.options, self.models, self.build = PhmmerOptions, QueryModels, build_options
        lines = [f"{a} " + " ".join(str(4 if a == b else -1) for b in RESIDUES) for a in RESIDUES]
        head = f"# of residues\n  {' '.join(RESIDUES)}\n"
        self.seeds = [(head + "\n".join(lines)).encode(), (head + "\n".join(line[2:] for line in lines)).encode()]

    def case(self, rng: random.Random) -> None:
        import numpy as np

        path = self.put("matrix", mutated(rng, rng.choice(self.seeds)))
        models = self.models(self.build(self.options, {"mxfile": path}))
        model = models.model(np.arange(1, 24, dtype=np.uint8))
        emitted = model.match[1:].sum(axis=1)
        if not (np.isclose(emitted, 1, atol=1e-3)).all() or not np.isfinite(model.composition).all():
            raise Wrong("no probabilities")


class Toml(Target):
    """TOML pipelines: read and composed."""

    name, share = "toml", 3
    values = (
        b"[]",
        b"{}",
        b"1",
        b"-1",
        b"1e400",
        b"inf",
        b"nan",
        b'""',
        b"true",
        b"[1]",
        b"{a=1}",
        b'"x"',
        b"1979-05-27",
        b"0x7fffffffffffffff",
        b"9" * 20,
        b"9" * 5000,
        b'"\\u0000"',
        b'"a\\nb"',
        b"[" * 1200 + b"]" * 1200,
    )
    lines = (
        b"[[slots]]",
        b"[defaults]",
        b"[set]",
        b"slots = 5",
        b"slots = 'ab'",
        b"defaults = 3",
        b"name = 5",
        b"plugin = []",
        b"scope = {}",
        b"enabled = []",
        b"backend = 7",
        b"options = 5",
        b"family = []",
        b"writer = 3",
        b"stages = 3",
        b"set = 'x'",
        b"base = 5",
        b"base = []",
        b"a." * 1200 + b"b = 1",
        b'"a\\nb" = 1',
    )

    def prepare(self) -> None:
        from seqloom.core.pipeline import Pipeline, compose
        from seqloom.installed import registry

        self.pipeline, self.compose, self.registry = Pipeline, compose, registry()
        self.seeds = [
            self.text(self.registry.pipeline(name).as_dict())
            for name in ("blastp", "sw", "mum", "megablast", "hmmsearch")
        ]
        self.seeds += [
            b'base = "blastp"\nname = "mine"\n[stages]\n"sort.diagonal" = "diagonal-order"\n[set]\n'
            b'"seed.words.threshold" = 12\nseed.scan.enabled = false\n[defaults]\nevalue = 1e-5\n',
            b'base = "sw"\n[set]\nextend.traceback.backend = "cpu"\n[defaults]\nmatrix = "PAM30"\ngapopen = 9\n',
        ]

    @staticmethod
    def text(data: dict[str, Any]) -> bytes:
        def table(name: str, values: dict[str, Any]) -> list[str]:
            return [name, *(f"{key} = {json.dumps(value)}" for key, value in values.items() if value is not None)]

        lines = table("", {key: value for key, value in data.items() if key not in ("defaults", "slots")})
        lines += table("[defaults]", data["defaults"])
        for slot in data["slots"]:
            lines += table("[[slots]]", {key: value for key, value in slot.items() if key != "options"})
            lines += table("[slots.options]", slot.get("options", {}))
        return "\n".join(lines).encode() + b"\n"

    def file(self, rng: random.Random) -> str:
        data = rng.choice(self.seeds)
        if rng.random() < 0.5:
            lines = data.split(b"\n")
            at = rng.randrange(len(lines))
            key, equals, _ = lines[at].partition(b"=")
            lines[at] = key + b"= " + rng.choice(self.values) if equals else rng.choice(self.lines)
            data = b"\n".join(lines)
        else:
            data = mutated(rng, data, (*TOKENS, *self.values, *(line + b"\n" for line in self.lines)))
        return self.put("pipeline.toml", data)

    def case(self, rng: random.Random) -> None:
        pipeline = self.pipeline.from_toml(self.file(rng), self.registry)
        self.compose(self.registry, pipeline, {}, rng.choice(("auto", "reference", "cpu")))


class TomlCommand(Toml):
    """TOML pipelines and ``--set``: by the command line."""

    name, seconds, share = "toml-command", 30, 3

    def prepare(self) -> None:
        from seqloom.cli.main import main

        super().prepare()
        self.main = main
        self.sequences = self.put("q.fasta", b">q\n" + PROTEIN + b"\n")

    def case(self, rng: random.Random) -> None:
        path = self.file(rng)
        words = ["search", path, "-q", self.sequences, "-d", self.sequences, "--no-store", "--backend", "reference"]
        if rng.random() < 0.3:
            value = rng.choice(self.values).decode()
            words += ["--set", f"{rng.choice(('seed.words.threshold', 'sort.rank.sorter', 'x', ''))}={value}"]
        self.command(words)

    def command(self, words: list[str]) -> None:
        """Carry out a command line."""
        from seqloom.core.errors import SeqloomError

        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = self.main(words)
        lines = [line for line in err.getvalue().splitlines() if "compiling kernels" not in line]
        if "internal error" in err.getvalue():
            raise Wrong(re.sub(r"/\S*/", "", lines[0][:200]))
        if status not in (0, 1, 2) or (status and len(lines) != 1):
            raise Wrong(f"status {status} and {len(lines)} lines")
        if status:
            raise SeqloomError(lines[0])


class Options(Target):
    """Options of all pipelines, as text."""

    name, seconds, share = "options", 30, 4
    values = (
        "0",
        "-1",
        "1",
        "2",
        "7",
        "inf",
        "-inf",
        "nan",
        "1e308",
        "1e-308",
        "2147483647",
        "2147483648",
        "-2147483649",
        "9223372036854775807",
        "9223372036854775808",
        "",
        "none",
        "yes",
        "BLOSUM62",
        "x",
        "1.5",
        "1e3",
        "٣",
        "1_000",
        " 5 ",
        "0x10",
        "+5",
        "--5",
        "3 1 2",
        "12 2.2 2.5",
        "0 0 0",
        "a\nb",
    )

    def prepare(self) -> None:
        from seqloom.core.options import option_infos
        from seqloom.installed import registry

        plugins = registry()
        self.pipelines = {}
        for name in (
            "blastp",
            "sw",
            "sw-nucleotide",
            "mum",
            "exact",
            "megablast",
            "blastn",
            "dc-megablast",
            "hmmsearch",
        ):
            family = plugins.family(plugins.pipeline(name).family)
            query, target = (
                (PROTEIN, BASES)[kind == "nucleotide"].decode() for kind in (family.query, family.target)
            )
            self.pipelines[name] = (
                [info.name for info in option_infos(family.Options)],
                query,
                self.put(f"{name}.fasta", f">t\n{target}\n".encode()),
            )
        from tests.plugins.profile_hmm.model_text import model_text

        self.model = self.put("model.hmm", model_text("f", 12).encode())

    def case(self, rng: random.Random) -> None:
        import seqloom

        name = rng.choice(list(self.pipelines))
        options, query, targets = self.pipelines[name]
        chosen = {rng.choice(options): rng.choice(self.values) for _ in range(rng.choice((1, 1, 2, 3)))}
        chosen = {
            key: str(self.folder / "all.parquet") if key == "all_scores" else value for key, value in chosen.items()
        }
        self.put("options.json", json.dumps([name, chosen]).encode())
        run = seqloom.search(
            name,
            self.model if name == "hmmsearch" else {"q": query},
            targets,
            store=False,
            backend="reference",
            **chosen,
        )
        run.write(io.StringIO(), "6")


class Formats(Target):
    """Output formats and their fields, as text, against the columns that each field has alone."""

    name = "formats"

    def prepare(self) -> None:
        import seqloom
        from seqloom.installed import registry
        from seqloom.plugins.formats.fields import FIELDS

        records = (SAMPLE / "proteins.fasta").read_bytes().split(b"\n>")
        targets = self.put("targets.fasta", b"\n>".join(records[:8]) + b"\n")
        self.run = seqloom.search("sw", {"q": PROTEIN.decode()}, targets, store=False, backend="reference")
        self.writers = [writer.name for writer in registry().writers()]
        self.fields = [*FIELDS]
        self.columns = {name: self.written(f"6 {name}").splitlines() for name in self.fields}

    def written(self, text: str) -> str:
        out = io.TextIOWrapper(io.BytesIO(), "utf-8", newline="")
        self.run.write(out, text)
        out.flush()
        return out.buffer.getvalue().decode("utf-8", "replace")

    def case(self, rng: random.Random) -> None:
        fields = rng.choices(self.fields, k=rng.choice((0, 1, 2, 5, 20)))
        words = ["6" if rng.random() < 0.5 else rng.choice(self.writers), *fields]
        text = rng.choice((" ", " ", "  ", "\t", "\n")).join(words)
        if rng.random() < 0.7:
            text = mutated(rng, text.encode(), (*TOKENS, b" std", b" delim=@", b" 6")).decode("latin-1")
        self.put("format", text.encode())
        found = self.written(text)
        name, *fields = text.split() or [""]
        if name == "6" and fields and all(field in self.columns for field in fields):
            columns = [self.columns[field] for field in dict.fromkeys(fields)]
            if found.splitlines() != ["\t".join(row) for row in zip(*columns, strict=True)]:
                raise Wrong("other columns than each field has alone")


class Sort(Target):
    """``seqloom sort`` against Python's sort, in blocks of any size."""

    name, seconds, share = "sort", 30, 2

    def prepare(self) -> None:
        from seqloom.installed import registry
        from seqloom.sorting import sort_file

        self.sort = sort_file
        self.sorters = [registry().sorter(name, "cpu") for name in ("msd-radix", "lsd-radix", "multikey-quicksort")]
        self.seeds = [
            b">b x\nMKV\nLA\n>a\nMKA\n>c\n\n>a\nMKA\n",
            b"b\na\n\nc\na",
            b"@b\nAC\n+\nII\n@a\nG\n+\nI\n",
            b"\n".join(b"%d" % (n * 7919 % 101) for n in range(100)) + b"\n",
            b"a\r\nb\r\n\xff\n",
        ]

    def case(self, rng: random.Random) -> None:
        kind, by = rng.choice(("fasta", "fastq", "lines", None)), rng.choice(("sequence", "header", "length"))
        unique, sorter = rng.random() < 0.3, rng.choice(self.sorters)
        data = mutated(rng, rng.choice(self.seeds))
        path = self.put("unsorted", data)
        self.put("options.json", json.dumps([kind, by, unique, sorter.name]).encode())
        one, other = (
            self.sorted(path, sorter, kind, by, unique, block) for block in (None, rng.choice((1, 50, 1000)))
        )
        if isinstance(one, Exception) != isinstance(other, Exception):
            raise Wrong("whether it is refused depends on the block")
        if isinstance(one, Exception):
            raise one
        if one != other:
            raise Wrong("the order depends on the block")
        if kind == "lines" and not unique:
            lines = data.split(b"\n")
            lines = lines[:-1] if lines[-1] == b"" else lines
            wanted = sorted(lines, key=len if by == "length" else None)
            if one != (len(lines), b"".join(line + b"\n" for line in wanted)) and data[:2] not in (b"\x1f\x8b",):
                raise Wrong("not the order of Python's sort")

    def sorted(self, path: str, sorter: Any, kind: str | None, by: str, unique: bool, block: int | None) -> Any:
        from seqloom.core.errors import SeqloomError

        parts: list[bytes] = []
        try:
            count = self.sort(
                path, lambda data: parts.append(bytes(data)), sorter, kind, by, unique, block or 1 << 20
            )
        except SeqloomError as error:
            return error
        return count, b"".join(parts)


TEXTS = (Fasta, FastaNucleotide, Fastq, Packed, BlastDatabase, IdList, TaxidMap, TaxonomyDump, Models, ModelSearch,
         Matrix, Toml, TomlCommand, Options, Formats, Sort)
