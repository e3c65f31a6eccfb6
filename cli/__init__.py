"""The command line."""

import atexit
import gc
import os
import sys
from contextlib import suppress


def run() -> None:
    """Entry point: carry out the command line and exit with its status."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # no matrices are multiplied, and its threads spin for 0.1 s
    gc.set_threshold(100_000)  # what is imported stays: looking through it again and again takes 0.05 s
    from .main import main

    status = main(sys.argv[1:])
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):  # a closed pipe has been told of
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)  # taking the interpreter apart, object by object, takes 0.1 s
