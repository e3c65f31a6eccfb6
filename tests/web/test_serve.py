"""Searches over HTTP: begun by forms and programs, cancelled, resumed, downloaded, asked by SQL; what is refused."""

import gzip
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from seqloom.core.errors import UsageError

from ..html_pages import parsed
from ..integration.commands import seqloom
from .loaded import pages_meanwhile, table
from .served import HOSTILE, Client, Served, fill_folder, first_query, served

pytest.importorskip("starlette", reason="needs the extra web")
pytest.importorskip("uvicorn", reason="needs the extra web")
QUERY = f">mine {HOSTILE}\nMKVLAAGIVGL\n>other\nPHSQLPQGSHYREPQA\n"
PAGES = ("/", "/new/blastp", "/runs", "/sql", "/login", "/new/nothing", "/runs/../../etc/passwd")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    fill_folder(made)
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Served]:
    with served(folder, "--upload", "200K", "--timeout", "2", "--searches", "2") as running:
        yield running


@pytest.fixture
def program(server: Served) -> Client:
    return server.client()


@pytest.fixture
def browser(server: Served) -> Client:
    return server.client(browser=True)


@pytest.fixture(scope="module")
def done(server: Served) -> str:
    """Address of a run that is complete."""
    client = server.client()
    path = client.search(QUERY)
    client.until(path)
    return path


def test_a_form_leads_to_hits(browser: Client, program: Client) -> None:
    page = browser.get("/new/exact-protein").page
    assert [one.attributes["value"] for one in page.all("input", name="database")] == ["small", "proteins"]
    given = browser.fill("/searches", {"pipeline": "exact-protein", "database": "small", "query": QUERY,
                                       "title": "a <b>title</b>"})
    assert given.status == 303
    run = program.until(given.headers["location"])
    assert (run["hits"], run["queries"], run["title"]) == (2, 2, "a <b>title</b>")
    assert run["command"] == "seqloom exact-protein -q query.fasta -d small"
    report = browser.get(given.headers["location"])
    table = report.page.one("table", class_="hits").rows()
    assert [row["Target"] for row in table] == ["evil"]
    assert "<script>window" not in report.text and "\x1b" not in report.text
    assert "&lt;script&gt;window.hit=1" in report.text
    links = [link.attributes["href"] for link in report.page.one("nav", class_="site").all("a")]
    assert f"{run['links']['files']}" in links
    listed = browser.get("/runs")
    assert "a &lt;b&gt;title&lt;/b&gt;" in listed.text


def test_queries_are_uploaded_too(browser: Client, program: Client) -> None:
    given = browser.fill("/searches", {"pipeline": "exact-protein", "database": "small"},
                         files={"file": gzip.compress(QUERY.encode())})
    assert given.status == 303, given.text
    assert program.until(given.headers["location"])["hits"] == 2


def test_what_is_wrong_with_a_form_is_said_on_it(browser: Client) -> None:
    for fields, said in (({"query": ""}, "there are no queries"), ({"query": QUERY, "database": "other"}, "unknown"),
                         ({"query": QUERY, "o-evalue": "many"}, "evalue needs a value of type float")):
        given = browser.fill("/searches", {"pipeline": "blastp", "database": "small", **fields})
        assert given.status == 400
        assert said in given.page.one("p", class_="problem").text
        assert given.page.one("textarea").text.strip("\n") == fields["query"].replace("\x1b", "\\x1b").replace(
            "\x07", "\\x07").strip("\n")


def test_programs_send_json_or_bare_queries(program: Client) -> None:
    bare = program.ask("POST", "/searches?pipeline=exact-protein&database=small&title=bare", QUERY,
                       Content_Type="text/x-fasta")
    assert bare.status == 201 and bare.headers["location"] == bare.json["links"]["self"]
    assert program.until(bare.json["links"]["self"])["hits"] == 2
    assert bare.json["id"] in [run["id"] for run in program.get("/runs").json["runs"]]


@pytest.mark.parametrize("asked, said", [
    ({"pipeline": "blast"}, "unknown pipeline 'blast'"), ({"databases": []}, "no database is chosen"),
    ({"databases": ["../small.fasta"]}, "unknown database"), ({"databases": [1]}, "by their names"),
    ({"options": {"matrix": "/etc/passwd"}}, "must be one of"), ({"options": {"mxfile": "m"}}, "unknown option"),
    ({"options": {"seg": "/etc/passwd"}}, "can't be"), ({"options": {"gapopen": [1]}}, "needs a text or a number"),
    ({"query": 1}, "a search has a query"), ({"query": "\0"}, "plain text"),
    ({"options": {"threshold": "1e999"}}, "threshold")])
def test_what_programs_get_wrong_is_said(program: Client, asked: dict, said: str) -> None:
    given = program.send("/searches", {"pipeline": "blastp", "databases": ["small"], "query": QUERY, **asked})
    assert given.status == 400
    assert said in given.json["error"]


def test_errors_of_searches_name_no_places(program: Client, folder: Path) -> None:
    path = program.search(">a\nMK1\n")
    run = program.until(path, "failed")
    assert "query" in run["error"] and str(folder) not in run["error"]
    assert program.send(f"{path}/resume", {}).json["state"] in ("queued", "running")
    program.until(path, "failed")
    assert program.send(f"{path}/delete", {}).status == 204
    assert program.get(path).status == 404


def test_a_search_is_cancelled_and_resumed(server: Served, program: Client, browser: Client) -> None:
    path = program.search(first_query() * 40, "sw", "proteins")
    program.until(path, "running")
    while not (run := program.get(path).json)["progress"]["done"]:
        time.sleep(0.05)
    assert "done" in run["status"]
    page = browser.get(path).page
    assert page.one("progress") and page.one("p", role="status").attributes["data-run"] == path
    form = page.one("input", name="form").attributes["value"]
    assert browser.fill(f"{path}/cancel", {}, form=form).status == 303
    run = program.until(path, "cancelled")
    assert "resume" in run["links"] and "resume" in browser.get(path).text.lower()
    assert program.send(f"{path}/cancel", {}).json["state"] == "cancelled"
    assert program.send(f"{path}/resume", {}).json["state"] in ("queued", "running")
    program.until(path, "running")
    assert program.get(f"{path}/files/6.tsv").status == 409
    program.send(f"{path}/cancel", {})
    program.until(path, "cancelled")


def test_every_format_can_be_downloaded(program: Client, done: str, folder: Path) -> None:
    names = [one["name"] for one in program.get(f"{done}/files").json["files"]]
    assert {"6.tsv", "0.txt", "5.xml", "hsps.parquet", "hits.jsonl", "html.html", "mummer.mums"} <= set(names)
    given = program.get(f"{done}/files/6.tsv?fields=qseqid+sseqid")
    assert given.text == "mine\tevil\nother\tsp|Q8AWH3|SX17A_XENTR\n"
    assert "attachment" in given.headers["content-disposition"]
    assert "sandbox" in given.headers["content-security-policy"]
    written = seqloom(folder, "runs", "write", done.rpartition("/")[2], "-f", "10").stdout
    assert program.get(f"{done}/files/10.csv").text == written
    assert program.get(f"{done}/files/hits.parquet").content[:4] == b"PAR1"
    assert program.get(f"{done}/files/nothing.txt").status == 404
    assert program.get(f"{done}/files/6.tsv?fields=/etc/passwd").status == 400


def test_the_page_of_a_run_is_its_report(browser: Client, done: str, folder: Path) -> None:
    path = folder / "report.html"
    seqloom(folder, "report", done.rpartition("/")[2], "-o", path)
    shown, wanted = browser.get(done).page, parsed(path.read_text())
    for tag, words in (("table", {"class_": "hits"}), ("article", {}), ("figure", {})):
        assert [one.text for one in shown.all(tag, **words)] == [one.text for one in wanted.all(tag, **words)] != []


@pytest.mark.gold
def test_all_formats_are_written(program: Client, done: str) -> None:
    for one in program.get(f"{done}/files").json["files"]:
        given = program.get(one["address"])
        assert given.status == 200 or "draw" in given.json["error"] or "has no" in given.json["error"], one


def test_runs_of_the_command_line_are_there_as_well(program: Client, browser: Client, folder: Path) -> None:
    (folder / "q.fasta").write_text(QUERY)
    seqloom(folder, "exact-protein", "-q", "q.fasta", "-d", "small.fasta", "-o", "hits.tsv")
    end = time.monotonic() + 30
    while not (found := [run for run in program.get("/runs").json["runs"] if "hits.tsv" in run["command"]]):
        assert time.monotonic() < end
        time.sleep(0.3)
    assert browser.get(found[0]["links"]["self"]).page.one("table", class_="hits").rows()


def test_sql_gives_rows_and_reaches_nothing_else(program: Client, browser: Client, done: str) -> None:
    given = program.send("/sql", {"query": "SELECT qseqid, sseqid FROM hits ORDER BY 1 DESC LIMIT 1"})
    assert given.json["rows"] == [["other", "sp|Q8AWH3|SX17A_XENTR"]]
    given = program.send("/sql", {"query": "SELECT * FROM range(1000000000000)"}).json
    assert len(given["rows"]) == 1000 and given["more"]
    for query in ("SELECT * FROM read_text('/etc/passwd')", "SET enable_external_access = true"):
        assert program.send("/sql", {"query": query}).status == 400, query
    begin = time.monotonic()
    given = program.send("/sql", {"query": "SELECT count(*) FROM range(1000000000) a, range(1000000000) b"})
    assert "stopped after 2 seconds" in given.json["error"] and time.monotonic() - begin < 10
    page = browser.fill("/sql", {"query": "SELECT '<i>' || chr(27) AS \"<b>\", NULL, 1.5"}, page="/sql").page
    assert page.one("table").rows() == [{"<b>": "<i>\\x1b", "NULL": "", "1.5": "1.5"}]


def test_two_runs_are_compared(browser: Client, program: Client, done: str, folder: Path) -> None:
    other = program.search(QUERY.replace("PHSQLPQGSHYREPQA", "PHSQLPQGSHYREPQ") + ">third\nMKVLAAG\n")
    program.until(other)
    ids = [path.rpartition("/")[2] for path in (done, other)]
    address = f"/compare?run={ids[0]}&run={ids[1]}"
    given = program.get(address).json
    rows = program.send("/sql", {"query": f"""
        SELECT id::VARCHAR, qseqid, sseqid, rank, score FROM hits JOIN runs USING (run)
        WHERE id IN ('{ids[0]}', '{ids[1]}')"""}).json["rows"]
    ours, theirs = ({(query, target): {"rank": rank, "score": score, "bits": None, "evalue": None}
                     for id, query, target, rank, score in rows if id == wanted} for wanted in ids)
    assert given["runs"] == ids and given["counts"] == {"first": 0, "second": 1, "both": 2}
    assert {(one["query"], one["target"]): one["second"] for one in given["second"]} == {
        pair: found for pair, found in theirs.items() if pair not in ours}
    assert {(one["query"], one["target"]): (one["first"], one["second"]) for one in given["both"]} == {
        pair: (found, theirs[pair]) for pair, found in ours.items()}
    page = browser.get(address).page
    seqloom(folder, "report", *ids, "-o", folder / "two.html")
    wanted = parsed((folder / "two.html").read_text())
    for tag, words in (("section", {"id": "comparison"}), ("table", {"class_": "hits"}), ("article", {})):
        assert [one.text for one in page.all(tag, **words)] == [one.text for one in wanted.all(tag, **words)] != []
    links = [link.attributes["href"] for link in page.one("nav", class_="site").all("a")]
    assert set(links) >= {done, other, "/runs"}
    listed = browser.get("/runs").page
    assert listed.one("form", action="/compare") and set(ids) <= {
        box.attributes["value"] for box in listed.all("input", name="run")}
    for wrong, status in ((ids[:1], 400), (ids[:1] * 2, 400), ([*ids, ids[0]], 400), ([ids[0], "1"], 404),
                          ([ids[0], ids[0][:-1] + "01"[ids[0][-1] == "0"]], 404)):
        assert browser.get("/compare?" + "&".join(f"run={id}" for id in wrong)).status == status


def test_numbers_of_a_list_are_those_in_the_store(program: Client, browser: Client, done: str) -> None:
    listed = {run["id"]: run for run in program.get("/runs").json["runs"]}
    rows = program.send("/sql", {"query": """
        SELECT id::VARCHAR, pipeline, (SELECT count(*) FROM queries q WHERE q.run = r.run),
            (SELECT count(*) FROM hits h WHERE h.run = r.run), seconds FROM runs r"""}).json["rows"]
    assert rows
    for id, pipeline, queries, hits, seconds in rows:
        run = listed[id]
        assert (run["pipeline"], run["queries"]) == (pipeline, queries)
        assert run["hits"] in (hits, None)  # None of runs that the command line began
        assert abs(run["seconds"] - seconds) < 5
    shown = {row["Run"]: row for row in browser.get("/runs").page.one("table").rows()}
    assert len(shown) == len(listed)
    row, run = shown[done.rpartition("/")[2][:13]], listed[done.rpartition("/")[2]]
    assert (int(row["Queries"]), int(row["Hits"])) == (run["queries"], run["hits"]) == (2, 2)


def test_older_runs_are_behind_newer_ones(program: Client, browser: Client, done: str) -> None:
    ids = [run["id"] for run in program.get("/runs").json["runs"]]
    assert ids == sorted(ids, reverse=True) and program.get("/runs").json["more"] is None
    given = program.get(f"/runs?before={ids[0]}").json
    assert [run["id"] for run in given["runs"]] == ids[1:] and given["count"] == len(ids)
    assert browser.get(f"/runs?before={ids[-1]}").status == 200


@pytest.mark.parametrize("path", PAGES)
def test_headers_say_what_a_page_may_do(browser: Client, path: str) -> None:
    headers = browser.get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"


def test_pages_are_as_screen_readers_need_them(browser: Client, done: str) -> None:
    for path in ("/", "/new/blastp", "/runs", "/sql", "/login", f"{done}/files"):
        page = browser.get(path).page
        labels = {label.attributes.get("for") for label in page.all("label")}
        wrapped = [one for label in page.all("label") for one in label.all()]
        for tag in ("input", "textarea", "select"):
            for one in page.all(tag):
                hidden = one.attributes.get("type") == "hidden" or "hidden" in one.attributes
                assert hidden or one.attributes.get("id") in labels or one in wrapped, (path, one)
        ids = [one.attributes["id"] for one in page.all() if "id" in one.attributes]
        assert len(ids) == len(set(ids))
        assert all(one.attributes.get("aria-describedby", ids[0] if ids else "") in ids for one in page.all("input"))
        assert len(page.all("h1")) == len(page.all("main")) == 1 and page.one("html").attributes["lang"] == "en"
        assert all(button.text.strip() for button in page.all("button"))


def test_others_have_no_part_in_it(server: Served, browser: Client, program: Client, done: str) -> None:
    assert program.get("/", Host="evil.example").status == 421
    assert program.get("/", Host=f"localhost:{server.port}").status == 200
    form = {"pipeline": "exact-protein", "database": "small", "query": QUERY}
    assert browser.fill("/searches", form, form="0" * 64).status == 403
    stranger = server.client(browser=True)
    own = stranger.get("/").page.one("input", name="form").attributes["value"]
    assert browser.fill("/searches", form, form=own).status == 403
    assert program.send(f"{done}/delete", {}, Origin="http://evil.example").status == 403
    assert program.send(f"{done}/delete", {}, Sec_Fetch_Site="cross-site").status == 403
    assert program.ask("POST", f"{done}/delete", "", Content_Type="text/plain").status == 403
    assert program.ask("POST", "/searches?pipeline=exact-protein&database=small", QUERY).status == 415
    assert program.get(f"{done}/files/0.txt", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors").status == 403
    assert program.get(done, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate").status == 200


def test_what_is_too_large_is_refused(browser: Client, program: Client) -> None:
    assert program.send("/searches", {"query": "M" * 300_000}).status == 413
    form = {"pipeline": "exact-protein", "database": "small"}
    given = browser.fill("/searches", form, files={"file": gzip.compress(b">a\n" + b"M" * 3_000_000)})
    assert given.status == 400 and "unpacked, the queries have more than" in given.text


def test_the_description_is_of_this_server(program: Client) -> None:
    said = program.get("/openapi.json").json
    assert said["openapi"].startswith("3.")
    one = next(one for one in said["components"]["schemas"]["Search"]["oneOf"] if one["title"] == "blastp")
    assert one["properties"]["databases"]["items"]["enum"] == ["small", "proteins"]
    assert "window_masker_db" not in json.dumps(said) and "all_scores" not in json.dumps(said)
    assert {path for path in said["paths"] if "{" not in path} <= {
        "/searches", "/runs", "/compare", "/sql", "/databases", "/pipelines"}
    assert [base["name"] for base in program.get("/databases").json["databases"]] == ["small", "proteins"]
    options = next(one["options"] for one in program.get("/pipelines").json["pipelines"] if one["name"] == "blastp")
    assert "evalue" in [option["name"] for option in options]


@pytest.mark.long
@pytest.mark.gold
def test_pages_come_soon_while_fifty_searches_run_that_were_posted_at_once(tmp_path: Path) -> None:
    """None is lost, and every page comes within 0.2 s meanwhile, times aside when others had the processor."""
    fill_folder(tmp_path)
    with served(tmp_path) as server:
        pages = pages_meanwhile(server, 50, pause=0.05)
    assert max(page.own for page in pages) < 0.2 and max(page.computed for page in pages) < 0.2, table(pages)


def test_a_server_that_is_stopped_or_killed_goes_on_afterwards(tmp_path: Path) -> None:
    fill_folder(tmp_path)
    with served(tmp_path) as server:
        client = server.client()
        long = client.search(first_query() * 40, "sw", "proteins", max_target_seqs=3)
        waiting = client.search(QUERY)
        while not client.get(long).json["progress"]["done"]:
            time.sleep(0.05)
        with pytest.raises(AssertionError, match="another server serves"):
            Served(tmp_path)
        server.kill()
    with served(tmp_path) as server:
        client = server.client()
        assert client.get(long).json["state"] in ("queued", "running")
        assert client.get(waiting).json["state"] in ("queued", "running", "complete")
        client.until(long, "running")
        assert server.stop() in (-signal.SIGTERM, 0)
    with served(tmp_path) as server:
        client = server.client()
        assert client.get(long).json["state"] in ("queued", "running")
        assert client.send(f"{long}/cancel", {}).status == 200
        assert client.until(waiting)["hits"] == 2


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for others, on which a search may run a second at a stretch."""
    folder = tmp_path_factory.mktemp("guarded")
    fill_folder(folder)
    with served(folder, "--token", "a-long-enough-token", "--host", "0.0.0.0", "--search-seconds", "1") as running:
        yield running


def test_a_server_for_others_wants_a_token(guarded: Served) -> None:
    assert guarded.client().get("/runs").status == 401
    assert guarded.client(Authorization="Bearer wrong").get("/runs").status == 401
    assert guarded.client(Authorization="Bearer a-long-enough-token").get("/runs").status == 200
    page = guarded.client(browser=True)
    assert page.get("/").headers["location"] == "/login"
    assert page.ask("POST", "/login", "token=wrong", Content_Type="application/x-www-form-urlencoded").status == 403
    given = page.ask("POST", "/login", "token=a-long-enough-token", Content_Type="application/x-www-form-urlencoded")
    assert given.status == 303 and page.get("/").status == 200


def test_a_search_is_stopped_when_its_time_is_up(guarded: Served) -> None:
    shown = {"Authorization": "Bearer a-long-enough-token"}
    program, browser = guarded.client(**shown), guarded.client(browser=True, **shown)
    path = program.search(first_query() * 40, "sw", "proteins")
    run = program.until(path, "stopped")
    assert "stopped after 1 seconds, for which a search may run here" in run["error"]
    assert "stopped after 1 seconds" in browser.get(path).page.one("p", role="alert").text
    assert program.get(f"{path}/files").status == 409
    resumed = program.send(f"{path}/resume", {}).json
    assert resumed["state"] in ("queued", "running") and resumed["error"] is None
    assert "1 seconds at a stretch" in browser.get(path).text
    program.until(path, "stopped")
    assert program.send(f"{path}/delete", {}).status == 204


def test_what_a_server_is_started_with_is_checked(tmp_path: Path) -> None:
    from seqloom.web.serving import check_open
    from seqloom.web.settings import Settings

    store = tmp_path / "seqloom.duckdb"
    for wrong, said in ((Settings(store, host="0.0.0.0"), "give --token"),
                        (Settings(store, host="192.168.1.2", token="short"), "12 characters")):
        with pytest.raises(UsageError, match=said):
            check_open(wrong)
    done = seqloom(tmp_path, "serve", "-d", "nothing.fasta", check=False)
    assert done.returncode == 1 and "nothing.fasta" in done.stderr
    done = seqloom(tmp_path, "serve", "--search-seconds", "soon", check=False)
    assert done.returncode == 2 and "--search-seconds needs a number of seconds" in done.stderr
