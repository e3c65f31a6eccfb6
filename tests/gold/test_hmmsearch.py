"""Agreement with hmmsearch of HMMER 3.3.2: every printed column, rows in the printed order.

Gold tables were made against 20,000 proteins. Here a few targets of each query are searched, with the number of targets
and of reported targets set to those of the whole run; every row of these targets must come out as printed there.
"""

import io
import shutil
import subprocess

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.hmmfile import read_models
from seqloom.plugins.profile_hmm.msv_reference import msv_scores, ssv_scores
from seqloom.plugins.profile_hmm.profile import search_profile
from seqloom.plugins.profile_hmm.reader import model_batch
from seqloom.plugins.profile_hmm.writers import DomainTable, TargetTable
from seqloom.testing import run_pipeline

from tests.plugins.profile_hmm.tables import table
from tests.shared import SHARED, needs_shared, read_fasta, read_text

pytestmark = needs_shared
gold = pytest.mark.gold
needs_hmmsearch = pytest.mark.skipif(not shutil.which("hmmsearch"), reason="hmmsearch is not installed")


def models(path):
    return [model for model, _ in read_models(io.StringIO(read_text(path)), str(path))]


def sequences(path):
    names, residues = read_fasta(path)
    return list(zip(names, residues, strict=True))


def targets_of(rows):
    return SequenceBatch.of(PROTEIN, [residues for _, residues in rows], [name for name, _ in rows])


def our_tables(queries, targets, options):
    """Words of the rows of tblout and domtblout, without descriptions."""
    hits = run_pipeline("hmmsearch", queries, targets, options)
    printed = (table(writer, queries, targets, hits) for writer in (TargetTable, DomainTable))
    return [words(lines, columns) for lines, columns in zip(printed, (18, 22), strict=True)]


def words(lines, columns):
    return [line.split()[:columns] for line in lines if not line.startswith("#")]


# --- gold tables


def gold_tables(stem):
    texts = (read_text(f"gold/hmmsearch.{stem}.{kind}.gz") for kind in ("tbl", "domtbl"))
    return [words(text.splitlines(), columns) for text, columns in zip(texts, (18, 22), strict=True)]


def check_gold(stem, model_file, most, database="data/proteins/main.fasta.gz", options=None, lengths=(0, 10**9)):
    """Search up to ``most`` targets of each query of a table, evenly spread over it."""
    rows, domain_rows = gold_tables(stem)
    database = dict(sequences(database))
    wanted, compared = {row[2] for row in rows}, 0
    for model in models(model_file):
        mine = [row for row in rows if row[2] == model.name]
        if not lengths[0] <= model.length <= lengths[1]:
            wanted.discard(model.name)
        if not mine or model.name not in wanted:
            continue
        wanted.remove(model.name)
        chosen = {row[0] for row in mine[:: max(1, -(-len(mine) // most))]}
        targets = targets_of([(name, database[name]) for name in sorted(chosen)])
        sizes = {"Z": len(database), "domZ": len(mine)}
        found, found_domains = our_tables(model_batch([model]), targets, {**sizes, **(options or {})})
        assert found == [row for row in mine if row[0] in chosen]
        assert found_domains == [row for row in domain_rows if row[3] == model.name and row[0] in chosen]
        compared += len(found)
    assert compared and not wanted, f"queries of the table that no model has: {wanted}"


def test_globins():
    check_gold("globins4.main.default", "data/hmms/globins4.hmm", most=8)


def test_fibronectin_type_iii():
    check_gold("fn3.main.default", "data/hmms/fn3.hmm", most=3)


@gold
def test_fibronectin_type_iii_more():
    check_gold("fn3.main.default", "data/hmms/fn3.hmm", most=16)


@gold
def test_kinases():
    check_gold("Pkinase.main.default", "data/hmms/Pkinase.hmm", most=12)


@gold
def test_many_models():
    check_gold("multi50.main.default", "data/hmms/multi50.hmm.gz", most=2, lengths=(0, 500))


@gold
def test_without_filters():
    check_gold("globins4.main.max", "data/hmms/globins4.hmm", most=20, options={"max": True})


@gold
@pytest.mark.parametrize("option", ["nobias", "nonull2"])
def test_without_corrections(option):
    small = "data/proteins/small.fasta"
    check_gold(f"multi50.small.{option}", "data/hmms/multi50.hmm.gz", 1, small, {option: True}, lengths=(0, 300))


# --- MSV scores


def check_msv(first_model, every_model, every_target):
    """Scores of some models against some of the first 300 proteins, bit for bit."""
    expected, single = {}, {}
    for line in read_text("gold/msv_ssv.multi50.small_first300.tsv.gz").splitlines()[1:]:
        model, _, name, _, msv, ssv = line.split("\t")
        expected.setdefault(model, {})[name] = np.float32(msv if ssv == "nan" else ssv)
        single.setdefault(model, {})[name] = np.float32(ssv)
    targets = dict(sequences("data/proteins/small.fasta"))
    for model in models("data/hmms/multi50.hmm.gz")[first_model::every_model]:
        names = list(expected[model.name])[::every_target]
        found = msv_scores(search_profile(model).bytes, [PROTEIN.encode(targets[name]) for name in names])
        assert dict(zip(names, found, strict=True)) == {name: expected[model.name][name] for name in names}
        # SSV where the peer leaves it at that; a sequence it asks MSV of may score more by it.
        for name, one, several in zip(names, ssv_scores(search_profile(model).bytes, [
                PROTEIN.encode(targets[name]) for name in names]), found, strict=True):
            assert one <= several and (np.isnan(single[model.name][name]) or one == single[model.name][name])


def test_msv_scores():
    check_msv(first_model=3, every_model=12, every_target=6)


@gold
def test_msv_scores_more():
    check_msv(first_model=0, every_model=1, every_target=4)


# --- fresh runs of the peer


def some_proteins(count, step):
    return sequences("data/proteins/small.fasta")[7::step][:count]


def globins():
    return sequences("data/hmms/globins45.fa")


def sevenless():
    return sequences("data/hmms/7LESS_DROME.fasta")


def odd_globins():
    """Globins in which every seventh residue is an odd one, and sequences of a single residue."""
    odd = [
        (name, "".join("BXZUOJ*"[n // 7 % 7] if n % 7 == 0 else c for n, c in enumerate(s))) for name, s in globins()
    ]
    return [*odd[::5], ("stars", "*" * 30 + "MK"), ("poly-X", "X" * 150), ("poly-A", "A" * 300), ("M", "M")]


INPUTS = {
    "globins": ("globins4", lambda: globins()[::9] + some_proteins(30, 11), {}),
    "repeats": ("fn3", lambda: sevenless() + some_proteins(30, 13), {}),
    "odd residues": ("globins4", odd_globins, {"max": True, "E": 100, "domE": 100}),
    "thresholds by score": ("fn3", sevenless, {"T": 5, "domT": 0, "incT": 20, "incdomT": 10}),
    "sizes and seed": ("fn3", sevenless, {"Z": 1e6, "domZ": 500, "seed": 7}),
    "cutoffs of the model": ("fn3", sevenless, {"cut_ga": True}),
    "loose filters": (
        "fn3",
        lambda: some_proteins(20, 7),
        {"nobias": True, "F1": 0.3, "F2": 0.3, "F3": 0.3, "domE": 100},
    ),
    "kinases": ("Pkinase", lambda: some_proteins(80, 23), {"nonull2": True}),
}


@needs_hmmsearch
@pytest.mark.parametrize("name", [pytest.param(name, marks=gold if n >= 5 else ()) for n, name in enumerate(INPUTS)])
def test_fresh_runs_agree(name, tmp_path):
    model, make, options = INPUTS[name]
    rows = make()
    fasta = tmp_path / "targets.fasta"
    fasta.write_text("".join(f">{n}\n{s}\n" for n, s in rows))
    tables = [tmp_path / "tbl", tmp_path / "domtbl"]
    flags = [word for option, value in options.items() for word in _flag(option, value)]
    command = ["hmmsearch", "--cpu", "0", "--noali", "-o", "/dev/null", "--tblout", tables[0], "--domtblout", tables[1]]
    subprocess.run([*command, *flags, SHARED / f"data/hmms/{model}.hmm", fasta], check=True)
    expected = [words(path.read_text().splitlines(), n) for path, n in zip(tables, (18, 22), strict=True)]
    found = our_tables(model_batch(models(f"data/hmms/{model}.hmm")), targets_of(rows), options)
    assert found == expected


def _flag(option, value):
    flag = f"-{option}" if len(option) == 1 else f"--{option}"
    return [flag] if value is True else [flag, str(value)]
