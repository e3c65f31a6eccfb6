"""The command line."""

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from . import process, standby
from .standby import INTERRUPTED

leave: Callable[[int], NoReturn] = os._exit
"""Ends the process when a command line has been carried out."""


def run() -> None:
    """Entry point: carry out the command line, here or by the standby process, and exit with its status."""
    for name, value in standby.EARLY.items():
        os.environ.setdefault(name, value)
    gc.set_threshold(100_000)  # what is imported stays: looking through it again and again takes 0.05 s
    try:
        if standby.in_sight():
            from .standby.client import hand_over

            hand_over()
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    carry_out()


def carry_out() -> None:
    """Carry out the command line in this process and exit with its status."""
    process.alone = True
    try:
        from .streams import set_up

        set_up()
        from .main import main

        status = main(sys.argv[1:])
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))  # nothing is left that could be tidied up
        atexit._run_exitfuncs()
    except KeyboardInterrupt:  # before anybody could wait for it, or once more while it was handled
        os._exit(INTERRUPTED)
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # what can't be written has been told
            stream.flush()
    leave(status)  # taking the interpreter apart, object by object, takes 0.1 s
