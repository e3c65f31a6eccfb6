"""The server of ``seqloom serve``: over HTTP, in a browser, under fuzzed requests, killed."""
