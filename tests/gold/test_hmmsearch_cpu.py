"""Agreement with hmmsearch of HMMER 3.3.2 on the CPU: whole tables, every row and printed column, in order."""

import numpy as np
import pytest
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.profile_hmm.reader import model_batch
from seqloom.plugins.profile_hmm.writers import DomainTable, TargetTable
from seqloom.testing import run_pipeline

from tests.gold.test_hmmsearch import gold_tables, models, sequences, words
from tests.plugins.profile_hmm.tables import table
from tests.shared import needs_shared

pytestmark = [needs_shared, pytest.mark.gold]

MAIN, SMALL = "data/proteins/main.fasta.gz", "data/proteins/small.fasta"


@pytest.mark.parametrize(("stem", "model_file", "database", "options"), [
    ("globins4.main.default", "globins4.hmm", MAIN, {}),
    ("fn3.main.default", "fn3.hmm", MAIN, {}),
    ("Pkinase.main.default", "Pkinase.hmm", MAIN, {}),
    ("multi50.main.default", "multi50.hmm.gz", MAIN, {}),
    ("multi50.small.nobias", "multi50.hmm.gz", SMALL, {"nobias": True}),
    ("multi50.small.nonull2", "multi50.hmm.gz", SMALL, {"nonull2": True}),
])
def test_whole_tables(stem: str, model_file: str, database: str, options: dict) -> None:
    rows = sequences(database)
    targets = SequenceBatch.of(PROTEIN, [residues for _, residues in rows], [name for name, _ in rows])
    queries = model_batch(models(f"data/hmms/{model_file}"))
    hits = run_pipeline("hmmsearch", queries, targets, options, backend="cpu")
    expected = gold_tables(stem)
    # Blocks of queries follow one another in the order of the file.
    order = {model.name: n for n, model in enumerate(queries.models)}
    assert np.all(np.diff([order[row[2]] for row in expected[0]]) >= 0)
    found = [words(table(writer, queries, targets, hits), columns)
             for writer, columns in ((TargetTable, 18), (DomainTable, 22))]
    assert found == expected
