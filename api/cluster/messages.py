"""What goes between a caller and the workers of a cluster: plain data as JSON, then arrays, as bytes.

Nothing of it is code: what a database or a run file holds is never unpickled anywhere.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.alphabet import alphabet
from ..core.context import Queries
from ..core.errors import ClusterError
from ..core.ports import SlotStats, Trace, Unit, UnitResult
from ..core.registry import Registry
from ..core.sequences import Intervals, ModelBatch, SequenceBatch
from ..installed import registry as installed
from ..storage.results.record_bytes import from_bytes, to_bytes
from ..storage.results.run_file import models_of

_LENGTH = 8
"""Bytes of the length of the JSON, which comes first."""


def packed(facts: Mapping[str, Any], **arrays: np.ndarray) -> bytes:
    """Plain data and one-dimensional arrays as bytes."""
    parts = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    sizes = [[name, array.dtype.str, len(array)] for name, array in parts.items()]
    head = json.dumps([facts, sizes]).encode()
    tail = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in parts.values()]
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *tail])


def unpacked(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What ``packed`` was given; the arrays can be written to."""
    place = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    (facts, sizes), arrays = json.loads(bytes(data[_LENGTH:place])), {}
    for name, kind, count in sizes:
        array = np.frombuffer(data, np.dtype(kind).newbyteorder("<"), count, place)
        arrays[name] = array.astype(array.dtype.newbyteorder("="))
        place += array.nbytes
    return facts, arrays


_KINDS, _STRETCH = ("lower", "soft", "hard"), ("sequence", "start", "end")
"""Kinds of stretches of a batch, in their order there, and what each is made of."""


def from_batch(batch: Queries, names: bool = True) -> bytes:
    """Queries or a volume of targets; models as the texts that they come from, or where there are none, packed.

    Args:
        names: send names and descriptions of sequences as well.

    Raises:
        ClusterError: they are models that no plugin packs.
    """
    if isinstance(batch, ModelBatch) and batch.sources:
        return packed({"kind": "model", "text": "".join(batch.sources)}, ordinals=batch.ordinals)
    if isinstance(batch, ModelBatch):
        return _from_models(batch)
    facts: dict[str, Any] = {"kind": batch.alphabet.name}
    if names:
        facts |= {"names": list(batch.names), "descriptions": list(batch.descriptions)}
    stretches = {f"{kind}_{name}": getattr(getattr(batch, kind), name) for kind in _KINDS for name in _STRETCH}
    return packed(facts, residues=batch.residues, offsets=batch.offsets, ordinals=batch.ordinals, **stretches)


def _from_models(batch: ModelBatch) -> bytes:
    models = [*batch.models]
    reader = next((made for kind in installed().readers() if (made := kind()).packing and all(map(made.packs, models))),
                  None)
    if reader is None:
        raise ClusterError("no plugin packs these models, which workers of the cluster don't see; put their file where "
                           "workers see it")
    parts = [part for model in models for part in reader.pack(model)]
    facts = {"kind": "packed models", "reader": reader.name, "alphabet": batch.alphabet.name, "names": [*batch.names],
             "accessions": [*batch.accessions], "descriptions": [*batch.descriptions]}
    return packed(facts, sizes=np.array([*map(len, parts)], np.int64), ordinals=batch.ordinals, lengths=batch.lengths,
                  parts=np.frombuffer(b"".join(parts), np.uint8))


def _to_models(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray], registry: Registry) -> ModelBatch:
    [reader] = [made for kind in registry.readers() if (made := kind()).name == facts["reader"]]
    data, ends = arrays["parts"].tobytes(), np.cumsum(arrays["sizes"]).tolist()
    parts = [data[end - size : end] for end, size in zip(ends, arrays["sizes"].tolist(), strict=True)]
    models = [reader.unpack(head, lambda make, body=body: make(body))  # type: ignore[misc]
              for head, body in zip(parts[::2], parts[1::2], strict=True)]
    return ModelBatch(alphabet(facts["alphabet"]), models, arrays["lengths"], arrays["ordinals"], facts["names"],
                      facts["accessions"], facts["descriptions"])


def to_batch(data: bytes, registry: Registry) -> Any:
    """The batch that ``from_batch`` was given."""
    facts, arrays = unpacked(data)
    if facts["kind"] == "model":
        return models_of(facts["text"], registry).renumbered(arrays["ordinals"])
    if facts["kind"] == "packed models":
        return _to_models(facts, arrays, registry)
    lower, soft, hard = (Intervals(*(arrays[f"{kind}_{name}"] for name in _STRETCH)) for kind in _KINDS)
    return SequenceBatch(alphabet(facts["kind"]), arrays["residues"], arrays["offsets"], arrays["ordinals"], lower,
                         soft, hard, names=facts.get("names", ()), descriptions=facts.get("descriptions", ()))


def from_result(result: UnitResult, indexes: Mapping[str, SlotStats], trace: Trace,
                files: Mapping[tuple[str, str], bytes], **facts: float) -> bytes:
    """How a unit ended at a worker.

    Args:
        indexes: what index slots did since the worker last told.
        trace: of this unit.
        files: what it left for the end of the run, by slot and name.
        facts: further numbers.
    """
    assert result.records is not None
    told = {"stats": _plain(result.stats), "indexes": _plain(indexes),
            "seen": [[*key, slots] for key, slots in trace.seen.items()],
            "lost": [[*key, slot] for key, slot in trace.lost.items()], **facts}
    return packed({**told, "files": [*files]}, records=np.frombuffer(to_bytes(result.records), np.uint8),
                  **{f"file {n}": np.frombuffer(data, np.uint8) for n, data in enumerate(files.values())})


def to_files(facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[tuple[str, str], bytes]:
    """The files that ``from_result`` was given."""
    return {(slot, name): arrays[f"file {n}"].tobytes() for n, (slot, name) in enumerate(facts["files"])}


def to_result(unit: Unit, facts: Mapping[str, Any], records: np.ndarray) -> tuple[UnitResult, Trace]:
    """The result that ``from_result`` was given, from what ``unpacked`` gives, and its trace."""
    trace = Trace({(batch, target): slots for batch, target, slots in facts["seen"]},
                  {(batch, target): slot for batch, target, slot in facts["lost"]})
    return UnitResult(unit, from_bytes(records.tobytes()), to_stats(facts["stats"])), trace


def _plain(stats: Mapping[str, SlotStats]) -> dict[str, list[Any]]:
    return {name: [s.seconds, s.records_in, s.records_out, s.counters, [*s.passed.items()]]
            for name, s in stats.items()}


def to_stats(plain: Mapping[str, Any]) -> dict[str, SlotStats]:
    """Statistics of slots, as ``from_result`` sends them."""
    return {name: SlotStats(seconds, into, out, counters, dict(passed))
            for name, (seconds, into, out, counters, passed) in plain.items()}
