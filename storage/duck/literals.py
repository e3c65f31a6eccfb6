"""Values as SQL text, without bound parameters.

With duckdb 1.5 any bound parameter imports pandas and pyarrow where they are installed, 0.2 s in every process. A
search of one query is over in less. So statements on the search path carry their values as text; ``arrow`` appends
whole columns.
"""

from typing import Any


def literal(value: Any) -> str:
    """``value`` (None, bool, int, float, str, bytes, one of numpy's, or a list or array of such) as SQL text."""
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + utf_8(value).replace("'", "''").replace("\0", "�") + "'"
    if isinstance(value, bytes | bytearray | memoryview):
        return f"from_hex('{value.hex()}')"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return f"'{float(value)!r}'::DOUBLE"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(literal, value)) + "]"
    if hasattr(value, "tolist"):  # numpy's, which isn't imported for that
        return literal(value.tolist())
    raise TypeError(f"no SQL literal for {type(value).__name__}")


def identifier(name: str) -> str:
    """``name`` quoted for SQL."""
    return '"' + utf_8(name).replace('"', '""') + '"'


def utf_8(text: str) -> str:
    """``text`` itself: DuckDB 2 says ``std::bad_cast`` of texts that UTF-8 can't hold.

    Raises:
        UnicodeEncodeError: it has surrogates, as words of the command line have that are no text in its locale.
    """
    if not text.isascii():
        text.encode()
    return text
