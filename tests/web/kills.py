"""A server that is killed at random moments, started again, and killed again: ``python -m tests.web.kills --times 50``.

Searches are posted all the while. In the end each that was accepted is complete, with the hits that it has to have, and
in the store once.
"""

import argparse
import random
import sys
import tempfile
import time
from http.client import HTTPException
from pathlib import Path

from .served import Served, fill_folder, first_query

QUERY = ">mine\nMKVLAAGIVGL\n>other\nPHSQLPQGSHYREPQA\n"
HITS = {"exact-protein": 2, "blastp": 1}


def killed(folder: Path, times: int, seed: int, longest: float = 3.0) -> tuple[list[str], int]:
    """Kill a server so many times; gives what was wrong, and how many searches were accepted."""
    chance = random.Random(seed)
    fill_folder(folder)
    accepted: dict[str, str] = {}
    for _ in range(times):
        server = Served(folder, "--searches", "2")
        end = time.monotonic() + chance.uniform(0, longest)
        client = server.client()
        try:
            for _ in range(chance.randrange(1, 3)):
                pipeline = chance.choice(list(HITS))
                query = QUERY if pipeline == "exact-protein" else first_query()
                accepted[client.search(query, pipeline, evalue=1e-40) if pipeline == "blastp" else
                         client.search(query, pipeline)] = pipeline
            time.sleep(max(0.0, end - time.monotonic()))
        finally:
            server.kill()
    server = Served(folder, "--searches", "2")
    problems = []
    try:
        client = server.client()
        for path, pipeline in accepted.items():
            try:
                run = client.until(path, seconds=600)
            except (AssertionError, KeyError, HTTPException) as error:
                problems.append(f"{pipeline} {path}: {error}")
                continue
            if run["hits"] != HITS[pipeline]:
                problems.append(f"{pipeline} {path} has {run['hits']} hits")
        rows = client.send("/sql", {"query": "SELECT id::VARCHAR, count(*) FROM runs GROUP BY 1"}).json["rows"]
        stored = {f"/runs/{id}": count for id, count in rows}
        problems += [f"{path} is in the store {count} times" for path, count in stored.items() if count != 1]
        listed = {run["links"]["self"] for run in client.get("/runs").json["runs"]}
        problems += [f"{path} isn't listed" for path in accepted if path not in listed]
        problems += [f"{path} was never asked for" for path in stored if path not in accepted]
    finally:
        server.stop()
    return problems, len(accepted)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.web.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=5, help="that the server is killed")
    parser.add_argument("--seed", type=int, default=1)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seqloom-kills-") as name:
        problems, count = killed(Path(name), wanted.times, wanted.seed)
    print(f"{wanted.times:,} kills, {count:,} searches accepted")
    print("\n".join(problems) or "each is complete, and in the store once")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
