"""Stamps of kernels: all that machine code depends on, of any module, and nothing that changes by itself."""

import subprocess
import sys
import threading
from types import FunctionType
from typing import NamedTuple

import numpy as np
import pytest
from seqloom.core.kernels.jit import kernel
from seqloom.core.kernels.stamps import loaded_globals, stamp
from seqloom.plugins.common import lane_tiles, sort_words_cpu
from seqloom.plugins.smith_waterman import trace_cpu
from seqloom.plugins.sorting import msd_radix_cpu


@pytest.mark.parametrize("user, module, name, value", [
    (msd_radix_cpu._each_bucket, sort_words_cpu, "sort_strings", lambda *_: None),
    (trace_cpu._find_ends, lane_tiles, "TILE", lane_tiles.TILE + 1),
    (trace_cpu._follow_back, lane_tiles, "TILE", lane_tiles.TILE + 1),
], ids=["_each_bucket", "_find_ends", "_follow_back"])
def test_kernels_depend_on_what_they_use_of_other_modules(user, module, name, value, monkeypatch) -> None:
    before = stamp(user.py_func)
    assert before and stamp(user.py_func) == before
    for other in list(sys.modules.values()):  # whoever imported it by name
        if (other is not module and getattr(other, "__name__", "").startswith("seqloom.")
                and vars(other).get(name) is getattr(module, name)):
            monkeypatch.setattr(other, name, value)
    monkeypatch.setattr(module, name, value)
    assert stamp(user.py_func) != before


class Row(NamedTuple):
    first: int
    second: int


TABLE, LOCK, SCALE, ROW = np.arange(3), threading.Lock(), 2, Row(1, 2)


def uses(text: str, **known: object) -> FunctionType:
    """A function of x with this body, and some globals."""
    made: dict[str, object] = dict(known)
    exec(f"def function(x):\n    return {text}", made)
    function = made["function"]
    assert isinstance(function, FunctionType)
    return function


@pytest.mark.parametrize("text, one, other", [
    ("x + a", 1, 2), ("x + a", 1, 1.0), ("x + a", 1, True), ("x + a", 0.0, -0.0), ("x + a", None, ()),
    ("a[x]", np.arange(3), np.arange(3) + 1), ("a[x]", np.arange(3), np.arange(3.0)), ("a[x]", (1, 2), (1, 3)),
    ("a(x)", uses("x"), uses("x + 1")), ("a(x)", uses("x * b", b=1), uses("x * b", b=2)),
    ("a(x)", kernel(uses("x")), kernel(uses("x + 1"))), ("a + x", np.int8(1), np.int16(1)), ("a.first", ROW, Row(2, 2)),
    ("a(x)", np.sin, np.cos), ("a(x)", len, abs), ("a(x)", Row, int),
], ids=lambda value: value if isinstance(value, str) else type(value).__name__)
def test_values_of_what_is_used_are_told_apart(text: str, one: object, other: object) -> None:
    stamps = [stamp(uses(text, a=value, unused=number)) for number, value in enumerate((one, other, one))]
    assert None not in stamps and stamps[0] == stamps[2] != stamps[1]


def test_functions_that_call_one_another_have_a_stamp() -> None:
    known: dict[str, object] = {}
    exec("def f(x):\n    return g(x)\ndef g(x):\n    return f(x) if x else 1", known)
    assert stamp(known["f"]) != stamp(known["g"]) != None  # type: ignore[arg-type]  # noqa: E711


def test_what_cant_be_compared_over_processes_has_no_stamp() -> None:
    assert stamp(uses("a", a=LOCK)) is None
    assert stamp(uses("x.a", a=LOCK)) is not None  # an attribute, nothing of the module's


def test_many_names_are_all_seen() -> None:
    names = {f"name_{n}" for n in range(400)}
    assert loaded_globals(uses("+".join(sorted(names))).__code__) == names


def test_stamps_are_the_same_in_every_process() -> None:
    program = ("import zlib; from seqloom.core.kernels.stamps import stamp; from seqloom.plugins.smith_waterman import "
               "trace_cpu as t; print(zlib.crc32(stamp(t._follow_back.py_func)), 'numba' in __import__('sys').modules)")
    said = {subprocess.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}, capture_output=True,
                           text=True, check=True).stdout for seed in ("1", "2")}
    assert len(said) == 1 and "False" in said.pop()
