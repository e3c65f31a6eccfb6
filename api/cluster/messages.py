"""What goes between a caller and the workers of a cluster: plain data as JSON, then arrays, as bytes.

Nothing of it is code: what a database or a run file holds is never unpickled anywhere.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core.alphabet import alphabet
from ..core.context import Queries
from ..core.ports import SlotStats, Trace, Unit, UnitResult
from ..core.registry import Registry
from ..core.sequences import Intervals, ModelBatch, SequenceBatch
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


def from_batch(batch: Queries, names: bool = True) -> bytes:
    """Queries or a volume of targets; models as the texts that they come from.

    Args:
        names: send names and descriptions as well.
    """
    if isinstance(batch, ModelBatch):
        return packed({"kind": "model", "text": "".join(batch.sources)}, ordinals=batch.ordinals)
    facts: dict[str, Any] = {"kind": batch.alphabet.name}
    if names:
        facts |= {"names": list(batch.names), "descriptions": list(batch.descriptions)}
    return packed(facts, residues=batch.residues, offsets=batch.offsets, ordinals=batch.ordinals,
                  sequence=batch.lower.sequence, start=batch.lower.start, end=batch.lower.end)


def to_batch(data: bytes, registry: Registry) -> Any:
    """The batch that ``from_batch`` was given."""
    facts, arrays = unpacked(data)
    if facts["kind"] == "model":
        return models_of(facts["text"], registry).renumbered(arrays["ordinals"])
    lower = Intervals(arrays["sequence"], arrays["start"], arrays["end"])
    return SequenceBatch(alphabet(facts["kind"]), arrays["residues"], arrays["offsets"], arrays["ordinals"], lower,
                         names=facts.get("names", ()), descriptions=facts.get("descriptions", ()))


def from_result(result: UnitResult, indexes: Mapping[str, SlotStats], trace: Trace, **facts: float) -> bytes:
    """How a unit ended at a worker.

    Args:
        indexes: what index slots did since the worker last told.
        trace: of this unit.
        facts: further numbers.
    """
    assert result.records is not None
    told = {"stats": _plain(result.stats), "indexes": _plain(indexes),
            "seen": [[*key, slots] for key, slots in trace.seen.items()],
            "lost": [[*key, slot] for key, slot in trace.lost.items()], **facts}
    return packed(told, records=np.frombuffer(to_bytes(result.records), np.uint8))


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
