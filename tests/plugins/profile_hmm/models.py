"""Profile HMMs for tests: random ones, and those of the reference data."""

import io

import numpy as np
from seqloom.core.alphabet import PROTEIN
from seqloom.core.sequences import ModelBatch, SequenceBatch
from seqloom.plugins.profile_hmm.hmmfile import ProfileHmm, read_models
from seqloom.plugins.profile_hmm.reader import model_batch
from seqloom.plugins.profile_hmm.residues import BACKGROUND, MODEL_RESIDUES

from tests.shared import read_text


def shared_model(name: str) -> ProfileHmm:
    """The model in hmms/NAME.hmm of the reference data."""
    return next(read_models(io.StringIO(read_text(f"data/hmms/{name}.hmm")), name))[0]


def random_model(length: int, seed: int) -> ProfileHmm:
    """A model with random probabilities, some transitions missing, and plausible statistics."""
    random = np.random.default_rng(seed)
    match = np.zeros((length + 1, 20), np.float32)
    match[1:] = random.dirichlet(BACKGROUND.astype(float) * 8, length)
    transitions = np.zeros((length + 1, 7), np.float32)
    transitions[:, :3] = random.dirichlet([20, 1, 1], length + 1)
    transitions[:, 3:5] = random.dirichlet([3, 1], length + 1)
    transitions[:, 5:] = random.dirichlet([3, 1], length + 1)
    transitions[0, 5:] = (1, 0)
    transitions[length] = (0.9, 0.1, 0, 0.7, 0.3, 1, 0)
    transitions[random.integers(1, length + 1, max(1, length // 20)), 4] = 0.0
    return ProfileHmm(
        name=f"random{seed}", accession="", description="", length=length, match=match, transitions=transitions,
        composition=match[1:].mean(axis=0), msv_mu=-8.0, msv_lambda=0.7, viterbi_mu=-9.0, viterbi_lambda=0.7,
        forward_tau=-4.0, forward_lambda=0.7, gathering=None, trusted=None, noise=None,
        consensus="".join(MODEL_RESIDUES[n] for n in match[1:].argmax(axis=1)),
    )  # fmt: skip


def random_target(length: int, seed: int, model: ProfileHmm | None = None) -> np.ndarray:
    """u8 codes of a random protein with a few odd residues; with a model, a noisy copy of its consensus is in it."""
    random = np.random.default_rng(seed)
    residues = list(random.choice(list(MODEL_RESIDUES), length, p=BACKGROUND / BACKGROUND.sum()))
    if model is not None:
        copy = [c if random.random() < 0.7 else str(random.choice(list(MODEL_RESIDUES))) for c in model.consensus]
        start = int(random.integers(0, max(1, length - len(copy))))
        residues[start : start + len(copy)] = copy[: max(0, length - start)]
    for place in random.integers(0, length, length // 30):
        residues[place] = str(random.choice(list("XBZJUO*")))
    return PROTEIN.encode("".join(residues))


def consensus_targets(model: ProfileHmm, seed: int) -> SequenceBatch:
    """A few targets with one, two and no copies of a model's consensus."""
    parts = [random_target(60, seed + n) for n in range(4)]
    copy = PROTEIN.encode(model.consensus)
    rows = [
        parts[0],
        np.concatenate([parts[1], copy]),
        np.concatenate([copy, parts[2], copy]),
        parts[3],
        copy[: len(copy) // 2],
    ]
    return SequenceBatch.of(PROTEIN, rows, ["none", "one", "two", "other", "half"])


def batch(*models: ProfileHmm) -> ModelBatch:
    return model_batch(list(models))
