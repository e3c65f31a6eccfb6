"""``seqloom serve``: searches through a browser."""

from typing import Annotated

from .helping import INPUT, MemoryOption, ResultsOption, command, group, option
from .output import say

app = group("")


@command(app, "serve", "serve -d proteins.duckdb")
def serve(
    db: Annotated[list[str] | None, option("-d", "--db", metavar=INPUT, help="a database or a FASTA file to offer; may "
                                           "be repeated  [default: databases of this folder]")] = None,
    results: ResultsOption = None,
    host: Annotated[str, option("--host", metavar="ADDRESS", help="where to listen; others than this machine's own "
                                "need --token")] = "127.0.0.1",
    port: Annotated[str, option("--port", metavar="N", help="0 for any that is free")] = "8642",
    token: Annotated[str | None, option("--token", metavar="TEXT", help="what everybody has to show (env "
                                        "SEQLOOM_TOKEN)")] = None,
    name: Annotated[list[str] | None, option("--name", metavar="HOST", help="a further host name by which it is "
                                             "called, as behind a proxy; may be repeated")] = None,
    searches: Annotated[str, option("--searches", metavar="N", help="that run at a time; others wait")] = "1",
    num_threads: Annotated[str, option("-p", "--num-threads", metavar="N", help="threads of each search")] = "1",
    memory: MemoryOption = None,
    backend: Annotated[str | None, option("--backend", metavar="NAME", help="auto, cpu, cuda or reference")] = None,
    search_seconds: Annotated[str | None, option("--search-seconds", metavar="SECONDS", help="after which a search is "
                                                 "stopped; it can be resumed  [default: never]")] = None,
    upload: Annotated[str, option("--upload", metavar="SIZE", help="of what is sent at once, at most")] = "32M",
    timeout: Annotated[str, option("--timeout", metavar="SECONDS", help="after which SQL is stopped")] = "20",
) -> None:
    """Search through a browser, or over HTTP from programs.

    Only this machine can ask unless --host says otherwise. Searches are kept: whatever happens to the browser they
    go on, and a server that was stopped or killed goes on with them when it starts again. pip install "seqloom[web]"
    """
    import os

    from seqloom.core.errors import MissingPackageError, UsageError
    from seqloom.core.units import parse_bytes
    from seqloom.store_path import results_path

    from .values import number

    try:
        from seqloom.web import serving
        from seqloom.web.settings import Settings
    except ModuleNotFoundError as error:
        raise MissingPackageError(error.name or "starlette", "web") from None
    limit = _seconds(search_seconds, "--search-seconds", 10_000_000) if search_seconds else None
    at = number(port, "--port", 0) or 0
    if at > 65535:
        raise UsageError(f"--port needs a number up to 65,535, not '{port}'")
    settings = Settings(
        results=results_path(results), databases=tuple(db or ()), host=host, port=at, names=tuple(name or ()),
        token=token or os.environ.get("SEQLOOM_TOKEN", ""), searches=number(searches, "--searches") or 1,
        threads=number(num_threads, "--num-threads") or 1, memory=parse_bytes(memory), backend=backend,
        upload=parse_bytes(upload, "--upload") or 0, sql_seconds=_seconds(timeout, "--timeout", 3600),
        search_seconds=limit)
    serving.serve(settings, lambda address: say(f"{address} shows what can be searched; Ctrl-C ends the server"))


def _seconds(given: str, flag: str, most: int) -> float:
    from seqloom.core.errors import UsageError

    try:
        seconds = float(given)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= most:
        raise UsageError(f"{flag} needs a number of seconds up to {most:,}, not '{given}'")
    return seconds
