"""The interface for programs as OpenAPI describes it, with the pipelines, options and databases of this very server."""

from typing import Any

from ..core.options import OptionInfo
from .choices import Catalogue, Program
from .settings import Settings

TYPES = {int: "integer", float: "number", str: "string", bool: "boolean"}
JSON = "application/json"


def description(catalogue: Catalogue, settings: Settings) -> dict[str, Any]:
    """OpenAPI 3.1."""
    id = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
    run = _answer("a run", {"$ref": "#/components/schemas/Run"})
    missing = {"404": _answer("there is no such run", _ERROR)}
    programs = catalogue.programs
    return {
        "openapi": "3.1.0",
        "info": {"title": "seqloom", "version": "1", "description": "Sequence searches. Answers are JSON unless the "
                 "request accepts text/html. A run has the address that its search is given."},
        "security": [{"token": []}] if settings.token else [],
        "paths": {
            "/searches": {"post": {
                "summary": "Begin a search", "operationId": "beginSearch",
                "description": "As JSON; or the bare queries with the rest in the address.",
                "parameters": [_query("pipeline", {"type": "string"}), _query("title", {"type": "string"}),
                               _query("database", {"type": "array", "items": {"type": "string"}})],
                "requestBody": {"required": True, "content": {
                    JSON: {"schema": {"$ref": "#/components/schemas/Search"}},
                    "text/x-fasta": {"schema": {"type": "string", "description": "FASTA, FASTQ or models, plain or "
                                                "gzip"}}}},
                "responses": {"201": run, "400": _answer("what is wrong with it", _ERROR),
                              "413": {"description": "it is too large"}, "503": _answer("too many wait", _ERROR)}}},
            "/runs": {"get": {"summary": "Runs, newest first, 500 at once", "operationId": "listRuns", "parameters": [
                _query("before", {"type": "string", "format": "uuid"})], "responses": {
                "200": _answer("runs", {"type": "object", "properties": {
                    "count": {"type": "integer", "description": "of all that there are"},
                    "more": {"type": ["string", "null"], "description": "address of those that are older"},
                    "runs": {"type": "array", "items": {"$ref": "#/components/schemas/Run"}}}})}}},
            "/runs/{id}": {"parameters": [id], "get": {
                "summary": "How far a run has come", "operationId": "getRun", "responses": {"200": run, **missing}}},
            **{f"/runs/{{id}}/{verb}": {"parameters": [id], "post": {
                "summary": what, "operationId": f"{verb}Run", "requestBody": {"content": {JSON: {"schema": {}}}},
                "responses": {"204" if verb == "delete" else "200": {"description": "deleted"}
                              if verb == "delete" else run, **missing}}}
               for verb, what in (("cancel", "Stop it; what is done is kept"), ("resume", "Go on with it"),
                                  ("delete", "Delete it with all its rows"))},
            "/runs/{id}/files": {"parameters": [id], "get": {
                "summary": "What can be downloaded of it", "operationId": "listFiles",
                "responses": {"200": {"description": "names and addresses"}, **missing}}},
            "/runs/{id}/files/{name}": {"parameters": [
                id, {"name": "name", "in": "path", "required": True,
                     "schema": {"type": "string", "enum": list(catalogue.formats)}},
                _query("fields", {"type": "string", "examples": ["qseqid sseqid evalue"]})], "get": {
                    "summary": "The run in an output format, as a table or as a figure", "operationId": "getFile",
                    "responses": {"200": {"description": "the file"}, **missing,
                                  "409": _answer("the run isn't complete", _ERROR)}}},
            "/compare": {"get": {
                "summary": "What one of two runs has that the other hasn't", "operationId": "compareRuns",
                "description": "Hits are the same where the names of query and target are.",
                "parameters": [_query("run", {"type": "array", "minItems": 2, "maxItems": 2,
                                              "items": {"type": "string", "format": "uuid"}})],
                "responses": {"200": _answer("their hits", _COMPARISON), **missing,
                              "400": _answer("these aren't two runs", _ERROR),
                              "409": _answer("one isn't complete", _ERROR)}}},
            "/sql": {"post": {
                "summary": "Ask the store", "operationId": "sql",
                "description": f"Stopped after {settings.sql_seconds:g} seconds; {settings.sql_rows:,} rows at most.",
                "requestBody": {"required": True, "content": {JSON: {"schema": {
                    "type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}}}}},
                "responses": {"200": _answer("rows", {"type": "object", "properties": {
                    "columns": {"type": "array", "items": {"type": "string"}},
                    "rows": {"type": "array", "items": {"type": "array", "items": {}}},
                    "more": {"type": "boolean", "description": "whether there are further rows"},
                    "seconds": {"type": "number"}}}), "400": _answer("what is wrong with it", _ERROR)}}},
            "/databases": {"get": {"summary": "What can be searched", "operationId": "listDatabases",
                                   "responses": {"200": {"description": "databases"}}}},
            "/pipelines": {"get": {"summary": "How it can be searched, with all options",
                                   "operationId": "listPipelines",
                                   "responses": {"200": {"description": "pipelines"}}}},
        },
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Search": {"oneOf": [_search(one) for one in programs.values()]}, "Run": _RUN},
        },
    }


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": schema}


def _answer(text: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": text, "content": {JSON: {"schema": schema}}}


def _search(program: Program) -> dict[str, Any]:
    """What is sent to search by a pipeline."""
    return {"title": program.name, "description": program.help, "type": "object",
            "required": ["pipeline", "databases", "query"], "properties": {
                "pipeline": {"const": program.name},
                "databases": {"type": "array", "minItems": 1,
                              "items": {"enum": [base.name for base in program.bases]}},
                "query": {"type": "string", "description": f"{program.query}s as text"},
                "title": {"type": "string", "maxLength": 200},
                "options": {"type": "object", "additionalProperties": False, "properties": {
                    info.name: _option(info, program.default(info)) for info in program.options}}}}


def _option(info: OptionInfo, default: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": TYPES[info.type], "description": info.help, "default": default}
    if info.nullable:
        schema["type"] = [schema["type"], "null"]
    bounds = {"enum": list(info.choices), "minimum": info.minimum, "maximum": info.maximum}
    return {**schema, **{name: bound for name, bound in bounds.items() if bound not in (None, [])}}


_ERROR: dict[str, Any] = {"type": "object", "properties": {"error": {"type": "string"}}}
_FOUND: dict[str, Any] = {"type": "object", "properties": {
    "rank": {"type": "integer"}, "score": {"type": "number"}, "bits": {"type": ["number", "null"]},
    "evalue": {"type": ["number", "null"]}}}
_LINES: dict[str, Any] = {"type": "array", "items": {"type": "object", "properties": {
    "query": {"type": "string"}, "target": {"type": "string"}, "first": _FOUND, "second": _FOUND}}}
_COMPARISON: dict[str, Any] = {"type": "object", "properties": {
    "runs": {"type": "array", "items": {"type": "string", "format": "uuid"}},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "first": {**_LINES, "description": "hits that the first run alone has, best first"},
    "second": {**_LINES, "description": "hits that the second run alone has"},
    "both": {**_LINES, "description": "hits of both, with rank, score and E-value in either"}}}
_RUN: dict[str, Any] = {"type": "object", "properties": {
    "id": {"type": "string", "format": "uuid"},
    "state": {"enum": ["queued", "running", "stopping", "complete", "pending", "failed", "cancelled", "stopped",
                       "incomplete", "unreadable"], "description": "stopped: by the time limit of the server"},
    "status": {"type": "string", "description": "the same for people"},
    "pipeline": {"type": "string"}, "databases": {"type": "array", "items": {"type": "string"}},
    "options": {"type": "object"}, "title": {"type": "string"},
    "command": {"type": "string", "description": "the command line that does the same"},
    "asked": {"type": "string", "description": "when, UTC"}, "ended": {"type": ["string", "null"]},
    "queries": {"type": ["integer", "null"]}, "hits": {"type": ["integer", "null"]},
    "seconds": {"type": ["number", "null"]}, "error": {"type": ["string", "null"]},
    "place": {"type": "integer", "description": "in the queue; 0 for one that doesn't wait"},
    "progress": {"type": "object", "properties": {
        "done": {"type": ["number", "null"], "description": "share of the work"},
        "left": {"type": ["number", "null"], "description": "seconds, about"}}},
    "links": {"type": "object", "description": "addresses of what else there is and can be done"}}}
