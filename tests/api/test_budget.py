"""Memory that new work may take: machine, control groups of both versions, own limit."""

import resource
from pathlib import Path

import pytest
from seqloom import budget

GIB = 1 << 30


def system(root: Path, files: dict[str, str]) -> Path:
    for name, text in {"proc/meminfo": f"MemTotal: 99 kB\nMemAvailable: {64 * GIB >> 10} kB\n", **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(("files", "gib"), [
    ({}, 64),
    # Version 2: a container, whose own group is at the top.
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{8 * GIB}\n",
      "sys/fs/cgroup/memory.current": f"{3 * GIB}\n"}, 5),
    # A job of a queue, whose limit stands above the step that it runs in; files that were read don't count.
    ({"proc/self/cgroup": "0::/slurm/job_1/step_0\n", "sys/fs/cgroup/slurm/job_1/step_0/memory.max": "max\n",
      "sys/fs/cgroup/slurm/job_1/step_0/memory.current": "0\n",
      "sys/fs/cgroup/slurm/job_1/memory.max": f"{16 * GIB}\n", "sys/fs/cgroup/slurm/job_1/memory.current": f"{6 * GIB}",
      "sys/fs/cgroup/slurm/job_1/memory.stat": f"anon 5\ninactive_file {4 * GIB}\n"}, 14),
    # The innermost limit is the smallest.
    ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": f"{9 * GIB}",
      "sys/fs/cgroup/a/memory.current": "0",
      "sys/fs/cgroup/a/b/memory.max": f"{2 * GIB}", "sys/fs/cgroup/a/b/memory.current": f"{GIB}"}, 1),
    # Version 1, beside an empty version 2; a number near the end of 64 bits is no limit.
    ({"proc/self/cgroup": "12:cpu,cpuacct:/x\n7:memory:/docker/1\n0::/\n",
      "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
      "sys/fs/cgroup/memory/memory.usage_in_bytes": "0\n",
      "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": f"{4 * GIB}\n",
      "sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes": f"{3 * GIB}\n",
      "sys/fs/cgroup/memory/docker/1/memory.stat": f"total_inactive_file {GIB}\n"}, 2),
    # The path is the host's, and only the container's own group can be seen.
    ({"proc/self/cgroup": "0::/kubepods/pod1/2\n", "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
      "sys/fs/cgroup/memory.current": "0\n"}, 2),
    # More is used than there may be.
    ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{GIB}", "sys/fs/cgroup/memory.current": f"{2 * GIB}"},
     0),
])
def test_the_smallest_limit_counts(tmp_path: Path, files: dict[str, str], gib: int) -> None:
    assert budget.available_bytes(system(tmp_path, files)) == gib * GIB


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert budget.available_bytes(tmp_path) is None


def test_the_limit_of_the_process_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = system(tmp_path, {"proc/self/statm": "1000 5 5 5 0 5 0\n"})
    monkeypatch.setattr(resource, "getrlimit", lambda what: (GIB, resource.RLIM_INFINITY))
    assert budget.available_bytes(root) == GIB - 1000 * resource.getpagesize()
