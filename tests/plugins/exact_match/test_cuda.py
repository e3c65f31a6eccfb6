"""Whole queries on CUDA against the CPU: in numba's simulator, which is slow, on a few of them."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

SCRIPT = """
import numpy as np
np.seterr(over="ignore")
from seqloom.core.alphabet import NUCLEOTIDE, PROTEIN
from seqloom.core.context import Context
from seqloom.core.sequences import SequenceBatch
from seqloom.plugins.exact_match.fm_index_cpu import FmIndexCpu
from seqloom.plugins.exact_match.fm_index_reference import FmIndexOptions
from seqloom.plugins.exact_match.options import ProteinQueryOptions, StrandOptions
from seqloom.plugins.exact_match.whole_seed_cpu import WholeQueriesCpu
from seqloom.plugins.exact_match.whole_seed_cuda import WholeQueriesCuda
from seqloom.testing import assert_same_records

rng = np.random.default_rng({seed})
letters, alphabet = {letters}, {alphabet}
targets = ["".join(rng.choice(list(letters), n)) for n in (300, 1, 90)]
targets += [targets[0][100:180] * 2]
queries = [targets[0][n : n + 12] for n in range(0, 250, 40)] + [targets[3][70:95], "", letters[0], targets[2][::-1]]
queries += ["".join(rng.choice(list(letters), 4)) for _ in range(6)]
queries, targets = (SequenceBatch.of(alphabet, texts) for texts in (queries, targets))
for bucket, sample in ((32, 1), (64, 5)):
    index = FmIndexCpu(FmIndexOptions(bucket=bucket, sample=sample)).run(Context(), targets)
    context = Context(queries=queries, targets=targets, indexes={{"index.references": index}}, options={options})
    wanted = WholeQueriesCpu().run(context, None)
    assert len(wanted) > 10
    assert_same_records(wanted, WholeQueriesCuda().run(context, None))
print("equal")
"""
CASES = {
    "nucleotides": ("ACGT", "NUCLEOTIDE", "StrandOptions(both=True)"),
    "ambiguous": ("ACGTNR", "NUCLEOTIDE", "StrandOptions()"),
    "proteins": ("ACDEFGX*", "PROTEIN", "ProteinQueryOptions()"),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_queries_are_those_of_the_cpu(case: str) -> None:
    letters, alphabet, options = CASES[case]
    script = SCRIPT.format(seed=len(case), letters=repr(letters), alphabet=alphabet, options=options)
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script],
                          env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0 and done.stdout.strip() == "equal", done.stderr[-3000:]
