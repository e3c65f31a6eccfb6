"""``seqloom doctor``: what this machine can do, and what to do about the rest."""

import typer

from .helping import command, group

app = group("")


@command(app, "doctor", "doctor")
def doctor() -> None:
    """Report on Python, packages, processors, compiled kernels, CUDA and plugins. Status 1 when something is broken."""
    from seqloom.diagnosis import examine

    broken = False
    for finding in examine():
        print(f"{finding.state:5} {finding.what}: {finding.fact}")
        if finding.remedy:
            print(f"      {finding.remedy}")
        broken = broken or finding.state == "BAD"
    if broken:
        raise typer.Exit(1)
