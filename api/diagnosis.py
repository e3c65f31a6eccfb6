"""What this machine and this installation can do, and what to do about the rest."""

import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from seqloom.core.classes import dataclass

from .budget import available_bytes
from .core.errors import SeqloomError
from .core.pipeline import compose

NEEDED = ("numpy", "numba", "duckdb", "pyarrow", "pluggy", "typer", "sqlalchemy", "alembic", "isal",
          "zstandard", "tqdm")
PROBE = ("-m", "seqloom.core.kernels.probe")
"""Arguments of Python that compile and run a kernel."""
PROBE_SECONDS = 300
OPTIONAL = {"pandas": "data frames of hits", "polars": "data frames of hits"}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. ``state``: "ok", "note" (works, with something to know), "BAD" (broken)."""

    state: str
    what: str
    fact: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Everything there is to say, in order."""
    yield Finding("ok", "seqloom", f"{version('seqloom')} in {Path(__file__).parent}")
    yield Finding("ok", "Python", f"{platform.python_version()}, {sys.executable}")
    yield from _packages()
    yield from _machine()
    yield _cache()
    yield _kernels()
    yield _store()
    yield from _cuda()
    yield from _plugins()


def _packages() -> Iterator[Finding]:
    there, missing = [], []
    for name in NEEDED:
        try:
            there.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    yield Finding("ok", "packages", ", ".join(there))
    if missing:
        yield Finding("BAD", "packages", f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    for name, use in OPTIONAL.items():
        try:
            yield Finding("ok", name, version(name))
        except PackageNotFoundError:
            yield Finding("note", name, f"not installed ({use})", "pip install 'seqloom[frames]'")


def _machine() -> Iterator[Finding]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Finding("ok", "processors", f"{usable} usable of {os.cpu_count()}, {platform.machine()}, {platform.system()}")
    spare = available_bytes()
    if spare is None:
        yield Finding("note", "memory", "can't be read on this system", "give --memory to searches")
    else:
        yield Finding("ok", "memory", f"{spare / (1 << 30):.1f} GiB for new work (machine, control group, ulimit); "
                                      f"a search without --memory takes {spare * 4 // 5 / (1 << 30):.1f} GiB at most")


def _cache() -> Finding:
    """Where compiled kernels are kept, by the rule of ``core/kernels/cache.py``."""
    from .core.kernels import cache

    source = Path(cache.__file__)
    folder = cache.writable(source)
    if folder is not None:
        return Finding("ok", "kernel cache", str(folder))
    return Finding("BAD", "kernel cache",
                   f"{' and '.join(map(str, cache.folders(source)))} can't be written to: every start compiles anew",
                   "set NUMBA_CACHE_DIR to a folder of yours")


def _kernels() -> Finding:
    """Whether kernels can be compiled and run, tried in a process that may end without a word."""
    what, remedy = "kernels", (
        "install the newest numba and llvmlite (pip install -U numba llvmlite); until then search with "
        "SEQLOOM_SIMD=avx2 or SEQLOOM_SIMD=portable in the environment, or with --backend reference")
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="seqloom-") as folder:  # takes what a process that aborts leaves behind
        try:
            done = subprocess.run([sys.executable, *PROBE], env={**os.environ, "TMPDIR": folder}, capture_output=True,
                                  text=True, errors="replace", timeout=PROBE_SECONDS)
        except subprocess.TimeoutExpired:
            return Finding("BAD", what, f"a small one isn't compiled after {PROBE_SECONDS} s", remedy)
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    if done.returncode:
        how = _signal_name(-done.returncode) if done.returncode < 0 else f"exit status {done.returncode}"
        why = f": {said[-1]}" if said else ""
        return Finding("BAD", what, f"a small one can't be compiled and run here ({how}{why})", remedy)
    fact = f"{done.stdout.strip()}; a small one compiled and run in {time.perf_counter() - begin:.1f} s"
    return Finding("note", what, fact, said[-1]) if said else Finding("ok", what, fact)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _store() -> Finding:
    """The results store that searches started here would use."""
    path = Path(os.environ.get("SEQLOOM_RESULTS") or "seqloom.duckdb").resolve()
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return Finding("note", "results store", f"{path} can't be written to",
                       "use --results FILE, SEQLOOM_RESULTS or --no-store")
    return Finding("ok", "results store", f"{path}{'' if path.exists() else ' (made by the first search)'}")


def _cuda() -> Iterator[Finding]:
    install = "pip install 'seqloom[cuda]'"
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        yield Finding("note", "CUDA", "simulated by numba (NUMBA_ENABLE_CUDASIM=1): right answers, very slowly",
                      "unset NUMBA_ENABLE_CUDASIM to use a real device")
        return
    if not any(os.path.exists(p) for p in ("/dev/nvidiactl", "/dev/dxg")):
        yield Finding("note", "CUDA", "no NVIDIA driver in sight; back ends cpu and reference work",
                      "with a device in the machine: install its driver; in a container: pass it through (--gpus all)")
        return
    try:
        version("numba-cuda")
    except PackageNotFoundError:
        yield Finding("note", "CUDA", "a driver is there, numba-cuda isn't installed", install)
        return
    try:
        from numba import cuda

        if not cuda.is_available():
            raise RuntimeError("numba.cuda finds no usable device")
        context = cuda.current_context()
        device = context.device
        free, total = context.get_memory_info()
        capability = ".".join(map(str, device.compute_capability))
        name = device.name.decode() if isinstance(device.name, bytes) else device.name
        toolkit = ".".join(map(str, cuda.runtime.get_version()))
        yield Finding("ok", "CUDA", f"{name}, compute capability {capability}, {free >> 20:,} of {total >> 20:,} MiB "
                                    f"free, numba-cuda {version('numba-cuda')}, toolkit {toolkit}")
    except Exception as error:  # drivers and toolkits fail in many ways; all are reported alike
        yield Finding("BAD", "CUDA", f"a driver is there and can't be used: {' '.join(str(error).split())}",
                      f"compare the driver (nvidia-smi) with the installed cuda-toolkit; {install} again")


def _plugins() -> Iterator[Finding]:
    from .installed import registry

    plugins = registry()
    yield Finding("ok", "plugins", f"{len(plugins.plugins)} loaded: {', '.join(plugins.plugins)}")
    for name, reason in plugins.problems.items():
        yield Finding("BAD", f"plugin '{name}'", reason, "mend or uninstall the package that provides it")
    slow = []
    for pipeline in plugins.pipelines():
        try:
            if compose(plugins, pipeline).slow:
                slow.append(pipeline.name)
        except SeqloomError as error:
            yield Finding("BAD", f"pipeline '{pipeline.name}'", str(error), "mend the package that brings it")
    if slow:
        yield Finding("note", "pipelines", f"on the reference back end only: {', '.join(slow)}",
                      "they run, and may take long")
