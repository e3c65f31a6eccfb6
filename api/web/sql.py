"""SQL over the store, from a page and from programs."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from .children import TaskError
from .reading import check_form, content_type, json_of, wants_page
from .site import Site, status_of

LONGEST = 100_000
"""Characters of a query."""


class Sql:
    """Answers queries, which can't change the store and beside which they can read nothing."""

    def __init__(self, site: Site) -> None:
        self.site = site

    def routes(self) -> list[Route]:
        return [Route("/sql", self.sql, methods=["GET", "POST"])]

    async def sql(self, request: Request) -> Response:
        """The form of a query, or the rows of one."""
        site = self.site
        if request.method in ("GET", "HEAD"):
            return site.pages.answer(request, "sql.html", query=request.query_params.get("query", ""), table=None,
                                     message="", limits=site.settings)
        if content_type(request) == "application/json":
            query = (await json_of(request)).get("query")
        else:
            form = await request.form(max_files=0, max_fields=20, max_part_size=1 << 20)
            check_form(site.keys, request, form)
            query = form.get("query")
        if not isinstance(query, str) or not query.strip() or len(query) > LONGEST:
            raise HTTPException(400, f"give a query in SQL, of {LONGEST:,} characters at most")
        table, message, status = None, "", 200
        try:
            table = await self._rows(query)
        except TaskError as error:
            message, status = site.without_paths(str(error)), status_of(error)
            if error.kind in ("Gone", "TimeoutError"):
                message, status = "stopped: the query takes too much time or memory", 400
        if wants_page(request):
            return await site.pages.answer_large(
                request, "sql.html", status, query=query, table=table, message=message, limits=site.settings)
        return JSONResponse(table if table else {"error": message}, status)

    async def _rows(self, query: str) -> Any:
        use = self.site.settings
        if "\0" in query:
            raise TaskError("StoreError", "SQL has no zero bytes", 2)
        query = query.encode("utf-8", "replace").decode()
        return await self.site.asking.ask({
            "do": "sql", "results": self.site.results, "query": query, "rows": use.sql_rows,
            "timeout": use.sql_seconds, "memory": use.sql_memory}, use.sql_seconds + 15)
