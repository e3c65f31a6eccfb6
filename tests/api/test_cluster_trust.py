"""Whom a cluster trusts: who may join, and what is taken for code."""

import ast
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from seqloom.cluster import connection, messages

distributed = pytest.importorskip("distributed", reason="Dask isn't installed: pip install 'seqloom[cluster]'")
ROOT = Path(__file__).parents[2]
UNPICKLING = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}
RUNNING = ("eval", "exec")
WORDS = (*UNPICKLING, *RUNNING, "allow_pickle")
OF_THIS_MACHINE = ("core/kernels/", "cli/standby/", "api/testing.py")
"""Compiled kernels in the cache of a user and the socket of a standby process, which only that user can get at, and the
kit that tries plugins."""


def test_workers_of_this_machine_listen_to_it_alone_and_to_certificates_of_the_call() -> None:
    with connection.connected("local:1", 1) as (client, own):
        assert own == 1
        addresses = [client.scheduler.address, *client.scheduler_info()["workers"]]
        assert len(addresses) == 2 and all(address.startswith("tls://127.0.0.1:") for address in addresses)
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        listening = [found.laddr.ip for process in processes for found in process.net_connections("tcp")
                     if found.status == psutil.CONN_LISTEN]
        assert len(listening) > 1 and {*listening} <= {"127.0.0.1", "::1"}
        with pytest.raises((OSError, ValueError)):
            distributed.Client(client.scheduler.address.replace("tls", "tcp"), timeout=2, set_as_default=False)


def test_nothing_that_is_read_of_databases_runs_or_workers_is_code() -> None:
    found, seen = [], 0
    for folder in ("api", "cli", "core", "storage", "plugins", "migrations"):
        for path in (ROOT / folder).rglob("*.py"):
            seen += 1
            name, text = path.relative_to(ROOT).as_posix(), path.read_text()
            if name.startswith(OF_THIS_MACHINE) or not any(word in text for word in WORDS):
                continue
            for node in ast.walk(ast.parse(text)):
                modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import) else [])
                called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
                pickled = any(word.arg == "allow_pickle" for word in node.keywords) if isinstance(node, ast.Call) else 0
                if {module.split(".")[0] for module in modules} & UNPICKLING or called in RUNNING or pickled:
                    found.append(f"{name}:{getattr(node, 'lineno', 0)}")
    assert not found and seen > 100


def test_a_message_holds_numbers_alone() -> None:
    data = messages.packed({"a": 1}, column=np.arange(3))
    assert messages.unpacked(data)[0] == {"a": 1}
    with pytest.raises(ValueError):
        messages.unpacked(data.replace(b'"<i8"', b'"|O8"'))
    strange = SimpleNamespace(code="import os")
    with pytest.raises(TypeError):
        messages.packed({"a": strange})
