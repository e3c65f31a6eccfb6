"""``seqloom serve``: searches through a browser, and by programs over HTTP.

Starlette answers, under uvicorn; both are small, and a framework that checks requests by declared types would not
know what plugins declare anyway. The server itself opens no DuckDB file and runs no search: whatever does is a process
of its own (``worker``), which can be stopped, ended or limited, and whose end harms nobody else.
"""
