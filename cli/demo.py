"""``seqloom demo``: what a first session looks like, on real sequences that come with the package."""

import os
import shlex
import shutil
import tempfile
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from .helping import FileName, command, group, option
from .output import say

app = group("")
FOLDER = FileName("DIR", "folder")

SAMPLE = ("proteins.fasta", "query.fasta", "globins4.hmm", "mito_human.fasta", "mito_orang.fasta")
QUESTION = """SELECT qseqid, count(*) AS hits, max(bitscore) AS best_bits, min(evalue) AS best_evalue,
  round(avg(pident), 1) AS mean_identity FROM hsps GROUP BY qseqid ORDER BY best_bits DESC"""
SESSION = (
    ("Load 300 real proteins into a database:",
     ["db", "create", "proteins.duckdb", "proteins.fasta"]),
    ("Search it with two proteins; the hits go to the screen and into seqloom.duckdb:",
     ["blastp", "-q", "query.fasta", "-d", "proteins.duckdb", "--evalue", "1e-5", "--max-target-seqs", "5",
      "--outfmt", "6 qseqid sseqid pident length evalue bitscore"]),
    ("Search it with the profile of a family:",
     ["hmmsearch", "-q", "globins4.hmm", "-d", "proteins.duckdb", "-E", "1e-60", "--outfmt",
      "6 qseqid sseqid evalue bitscore"]),
    ("Every hit is a row. Ask the stored results by SQL:",
     ["sql", QUESTION]),
    ("What was run, and how long it took:",
     ["runs", "list"]),
)


@command(app, "demo", "demo --files .")
def demo(
    files: Annotated[str | None, option("--files", metavar=FOLDER, help="only copy the sample files there")] = None,
    folder: Annotated[str | None, option("--folder", metavar=FOLDER, help="work there, and keep it")] = None,
) -> None:
    """Build a small database of real sequences, search it, and query the hits by SQL, in a temporary folder."""
    if files is not None:
        copy_sample(Path(files))
        return
    if folder is not None:
        _session(Path(folder))
        return
    with tempfile.TemporaryDirectory(prefix="seqloom-demo-") as temporary:
        _session(Path(temporary))
    print("The folder is gone again; 'seqloom demo --files .' gives you the files to try for yourself.")


def copy_sample(folder: Path) -> None:
    """Copy the sample files into a folder. Files of the same name that are there stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SAMPLE:
        if (folder / name).exists():
            say(f"{folder / name} is there already and stays as it is")
            continue
        with resources.as_file(resources.files("seqloom") / "sample" / name) as path:
            shutil.copyfile(path, folder / name)


def _session(folder: Path) -> None:
    """Carry out the commands one after the other in ``folder``, showing each."""
    from .main import main

    copy_sample(folder)
    former, store = Path.cwd(), os.environ.pop("SEQLOOM_RESULTS", None)
    os.chdir(folder)
    try:
        for text, words in SESSION:
            print(f"{text}\n$ seqloom {shlex.join(words)}", flush=True)
            status = main(words)
            if status:
                raise typer.Exit(status)
            print(flush=True)
    finally:
        os.chdir(former)
        if store is not None:
            os.environ["SEQLOOM_RESULTS"] = store
