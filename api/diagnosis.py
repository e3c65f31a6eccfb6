"""What this machine and this installation can do, and what to do about the rest."""

import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

NEEDED = ("numpy", "numba", "duckdb", "pyarrow", "pluggy", "typer", "sqlalchemy", "alembic", "duckdb-sqlalchemy",
          "isal", "zstandard", "dnaio", "tqdm")
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
    try:
        facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
        total, free = (int(facts[key].split()[0]) / (1 << 20) for key in ("MemTotal", "MemAvailable"))
        yield Finding("ok", "memory", f"{free:.1f} GiB available of {total:.1f}")
    except (OSError, KeyError, ValueError):
        yield Finding("note", "memory", "can't be read on this system", "give --memory to searches")


def _cache() -> Finding:
    """Where compiled kernels are kept, by the rule of ``core/jit.py``."""
    from .core import jit

    places = jit.folders(Path(jit.__file__))
    for folder in places:
        place = folder
        while not place.exists() and place != place.parent:
            place = place.parent
        if os.access(place, os.W_OK):
            return Finding("ok", "kernel cache", str(folder))
    return Finding("BAD", "kernel cache",
                   f"{' and '.join(map(str, places))} can't be written to: every start compiles what is new",
                   "set NUMBA_CACHE_DIR to a folder of yours")


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
    from .core.backends import cuda_available
    from .installed import registry

    plugins = registry()
    yield Finding("ok", "plugins", f"{len(plugins.plugins)} loaded: {', '.join(plugins.plugins)}")
    for name, reason in plugins.problems.items():
        yield Finding("BAD", f"plugin '{name}'", reason, "mend or uninstall the package that provides it")
    usable = {"cpu", *(["cuda"] if cuda_available() else [])}
    there: dict[str, set[str]] = {}
    for stage in plugins.stages():
        there.setdefault(stage.name, set()).add(stage.backend)
    slow = [p.name for p in plugins.pipelines() if any(not there.get(s.plugin, set()) & usable for s in p.slots)]
    if slow:
        yield Finding("note", "pipelines", f"on the reference back end only: {', '.join(slow)}",
                      "--backend reference (or SEQLOOM_BACKEND=reference) runs them, slowly")
