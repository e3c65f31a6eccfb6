"""DuckDB's extension module without its package, and the way round it."""

import subprocess
import sys

from ...integration.commands import environment
from ...integration.samples import SAMPLE

MOVED = """
import sys
class Moved:
    asked = 0
    def find_spec(self, name, *_):
        if name == "_duckdb" and not Moved.asked:
            Moved.asked += 1
            raise ImportError("_duckdb is not there")
sys.meta_path.insert(0, Moved())
"""
RUN = "from seqloom.cli import run; run()"


def test_the_package_does_where_the_module_is_not_found(tmp_path) -> None:
    code = f"{MOVED}\nfrom seqloom.storage.duck.native import duckdb\nprint(duckdb.__name__, Moved.asked)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "duckdb 1\n"
    given = []
    for name, before in ("plain", ""), ("moved", MOVED):
        folder = tmp_path / name
        folder.mkdir()
        for words in (["db", "create", "p.duckdb", str(SAMPLE / "query.fasta")], ["db", "list-sequences", "p.duckdb"],
                      ["db", "check", "p.duckdb"]):
            done = subprocess.run([sys.executable, "-c", f"{before}\n{RUN}", *words], cwd=folder, env=environment(),
                                  capture_output=True, text=True, check=True)
            given.append(done.stdout)
    assert given[:3] == given[3:] and given[1]
