"""``--all-scores``: every score once, however the work is cut, interrupted and resumed; whole or not at all."""

import pytest
import seqloom
from pyarrow import parquet
from seqloom.core.alphabet import PROTEIN
from seqloom.core.errors import Cancelled, OptionError, ResumeError, StoreError, UsageError
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.smith_waterman.matrices import printed_matrix
from seqloom.plugins.smith_waterman.recurrence_reference import Packed
from seqloom.plugins.smith_waterman.scoring import SmithWatermanScoring
from seqloom.plugins.smith_waterman.seed_reference import best_scores
from seqloom.searches import resume

from tests.plugins.smith_waterman.kernels import AMINO_ACIDS
from tests.stopping import StopAtPart

QUERIES = {"a": AMINO_ACIDS, "b": "WWW", "c": AMINO_ACIDS[::-1] * 2}
TARGETS = {"one": "W", "two": AMINO_ACIDS[3:14] * 3, "none": "", "three": "WWWAAAW", "four": AMINO_ACIDS * 2}


@pytest.fixture
def targets():
    return SequenceBatch.of(PROTEIN, list(TARGETS.values()), list(TARGETS))


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def wanted() -> list[tuple[str, str, int]]:
    scoring = SmithWatermanScoring(printed_matrix("BLOSUM62"), 11, 1)
    packed = Packed.of([PROTEIN.encode(text) for text in TARGETS.values()], scoring)
    return sorted((query, target, score) for query, text in QUERIES.items()
                  for target, score in zip(TARGETS, best_scores(PROTEIN.encode(text), packed).tolist(), strict=True))


def found(path="scores.parquet") -> list[tuple[str, str, int]]:
    return sorted(tuple(row.values()) for row in parquet.read_table(path).to_pylist())


@pytest.mark.parametrize("backend", ["reference", "cpu"])
@pytest.mark.parametrize("cut", [{}, {"volume_residues": 20, "batch_queries": 2, "threads": 2}])
def test_every_score_is_there_once_however_work_is_cut(targets, tmp_path, backend, cut):
    options = {"min_score": 50, "max_target_seqs": 1, "score_only": True}
    run = seqloom.search("sw", QUERIES, targets, all_scores="scores.parquet", backend=backend, store=False, **options,
                         **cut)
    assert found() == wanted()
    assert [path.name for path in tmp_path.iterdir()] == ["scores.parquet"]
    without = seqloom.search("sw", QUERIES, targets, backend=backend, store=False, **options, **cut)
    assert run.arrow().to_pylist() == without.arrow().to_pylist()


def test_an_interrupted_search_goes_on_with_the_scores_it_has(tmp_path):
    (tmp_path / "targets.fasta").write_text("".join(f">{name}\n{text}\n" for name, text in TARGETS.items() if text))
    with pytest.raises(Cancelled):
        seqloom.search("sw", QUERIES, "targets.fasta", all_scores="scores.parquet", backend="cpu", volume_residues=20,
                       progress=StopAtPart(1))
    assert list(tmp_path.glob("scores.parquet.parts/*.parquet")) and not (tmp_path / "scores.parquet").exists()
    with pytest.raises(StoreError, match=r"scores\.parquet\.parts holds scores of another search.*resume"):
        seqloom.search("sw", QUERIES, "targets.fasta", all_scores="scores.parquet", backend="cpu")
    with pytest.raises(ResumeError, match=r"say so again: seqloom runs resume \S+ --all-scores scores\.parquet"):
        resume("last")
    with pytest.raises(UsageError, match="is a file that is read here"):
        resume("last", all_scores="targets.fasta")
    resume("last", all_scores="scores.parquet")
    assert found() == [row for row in wanted() if row[1] != "none"]


@pytest.mark.parametrize("done", [False, True])
def test_of_a_search_that_can_not_be_resumed_nothing_is_left(tmp_path, done):
    (tmp_path / "targets.fasta").write_text("".join(f">{name}\n{text}\n" for name, text in TARGETS.items() if text))
    before = set(tmp_path.iterdir())

    def search(**more):
        seqloom.search("sw", QUERIES, "targets.fasta", all_scores="scores.parquet", backend="cpu", store=False, **more)

    with pytest.raises(Cancelled):
        search(volume_residues=20, progress=StopAtPart(int(done)))
    assert set(tmp_path.iterdir()) == before
    (tmp_path / "scores.parquet.parts").mkdir()
    (tmp_path / "scores.parquet.parts" / "of_another.parquet").touch()
    with pytest.raises(StoreError, match="holds scores of another search"):
        search()
    assert (tmp_path / "scores.parquet.parts" / "of_another.parquet").exists()


def test_where_nothing_can_be_written_the_search_is_refused(targets, tmp_path):
    for name, message in (("nowhere/scores.parquet", "there is no folder"), (".", "is a folder")):
        with pytest.raises(StoreError, match=message):
            seqloom.search("sw", QUERIES, targets, all_scores=name, backend="cpu", store=False)
    assert not list(tmp_path.iterdir())


def test_the_scores_take_the_place_of_nothing_that_is_read(tmp_path):
    (tmp_path / "targets.fasta").write_text("".join(f">{name}\n{text}\n" for name, text in TARGETS.items() if text))
    (tmp_path / "q.fasta").write_text(f">q\n{AMINO_ACIDS}\n")
    (tmp_path / "link").symlink_to("targets.fasta")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("targets.fasta", "q.fasta", "link", "seqloom.duckdb"):
        with pytest.raises(UsageError, match=f"{name} is a file that is read here"):
            seqloom.search("sw", "q.fasta", "targets.fasta", all_scores=name, backend="cpu")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("line", ['all_scores = "victim"', '"all-scores" = "victim"'])
def test_a_pipeline_file_names_no_file_to_write(targets, tmp_path, line):
    """It may be somebody else's."""
    (tmp_path / "theirs.toml").write_text(f'base = "sw"\n[defaults]\n{line}\n')
    (tmp_path / "victim").write_text("precious")
    with pytest.raises(OptionError, match="pipeline 'sw' sets --all-scores, which names a file to write"):
        seqloom.search("theirs.toml", QUERIES, targets, backend="cpu", store=False)
    assert (tmp_path / "victim").read_text() == "precious"
