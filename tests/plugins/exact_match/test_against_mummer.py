"""Every option of ``mum`` against fresh runs of mummer, on all routes, however the work is cut."""

import numpy as np
import pytest

from tests.plugins.exact_match.mummer import MODES, mummer_lines, needs_mummer, seqloom_lines

pytestmark = needs_mummer
ROUTES = {
    "minimizers": (),
    "FM-index": ("index.references=fm-index", "seed.matches=fm-matches"),
    "suffix array": ("index.references=suffix-array", "seed.matches=maximal-matches"),
}
COMPLEMENT = str.maketrans("ACGTRYKMBVDH", "TGCAYRMKVBHD")


def genomes(rng: np.random.Generator) -> tuple[dict[str, str], dict[str, str]]:
    """References with repeats, runs of N, IUPAC residues and lower case; queries that are pieces and copies of them."""
    def text(size: int, residues: str = "ACGT") -> str:
        return "".join(rng.choice(list(residues), size))

    def changed(piece: str, share: float) -> str:
        residues = np.array(list(piece))
        where = rng.random(len(residues)) < share
        residues[where] = rng.choice(list("ACGTacgtNRYSWKMBDHV"), int(where.sum()))
        return "".join(residues)

    base = text(3000)
    references = {"whole": base, "repeats": base[100:400] * 3 + text(200) + "ACACAC" * 30,
                  "unknown": changed(base[1500:2500], 0.01) + "N" * 150 + text(300, "ACGTRYN"), "short": text(8)}
    queries = {
        "same": base, "copy": changed(base, 0.02), "reverse": changed(base[500:1800], 0.01)[::-1].translate(COMPLEMENT),
        "mixed": text(200) + "N" * 130 + references["repeats"][250:700] + text(50, "acgtry"), "tiny": text(5),
        "unknown": references["unknown"][900:1200],
    }
    kept = rng.choice(list(references), rng.integers(1, 5), replace=False).tolist()
    asked = rng.choice(list(queries), rng.integers(1, 5), replace=False).tolist()
    return {name: references[name] for name in kept}, {name: queries[name] for name in asked}


@pytest.mark.parametrize("seed", range(24))
def test_lines_are_mummers_on_every_route(seed, tmp_path):
    rng = np.random.default_rng(seed)
    references, queries = genomes(rng)
    strand = [{}, {"both": True}, {"reverse": True}][rng.integers(3)]
    options = {MODES[seed % 3]: True, "length": int(rng.choice([10, 13, 20, 35, 60, 100])), **strand,
               "acgt_only": bool(seed // 3 % 2)}
    flags = " ".join(flag for flag in ("cFLs" if strand else "FLs") if rng.random() < 0.5)
    wanted = mummer_lines(tmp_path, references, queries, options, flags)
    for route, stages in ROUTES.items():
        cut = {"volume_residues": int(rng.choice([10**6, 900, 1])), "batch_queries": int(rng.choice([1, 2, 1000])),
               "threads": int(rng.choice([1, 2]))}
        found = seqloom_lines(references, queries, options, flags, stages=stages, backend="cpu", **cut)
        assert found == wanted, (route, cut, options, flags)


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("mode", MODES)
def test_identical_sequences_match_as_a_whole(route, mode, tmp_path):
    rng = np.random.default_rng(50)
    genome = "".join(rng.choice(list("ACGT"), 4000))
    options = {mode: True, "length": 20, "both": True}
    wanted = mummer_lines(tmp_path, {"one": genome}, {"one": genome}, options)
    assert seqloom_lines({"one": genome}, {"one": genome}, options, stages=ROUTES[route], backend="cpu") == wanted
    assert "4000\n" in wanted
