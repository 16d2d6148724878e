"""JSON that is small and that git can compare.

Numbers have five digits, whole ones all of theirs.  A list in a document has a
line for each of its entries; where these are all flat, the names of their
columns stand once:

    {"date": "2026-11-25",
     "choices": {"columns": ["memory", "seconds"],
      "rows": [
       [16384, 1.2346e-05],
       [32768]]}}

What an entry does not have is null there, or missing at the end; it is None
when it is read.
"""

from __future__ import annotations

import json
import os
from itertools import zip_longest
from pathlib import Path
from typing import Any, Mapping, Sequence

DIGITS = 5
#: A list that is shorter is written as it is.
LEAST_ROWS = 8


def rounded(value: Any) -> Any:
    """
    >>> rounded({"a": [1234.56789, 136347648.0, 12345.6, 7, None, True]})
    {'a': [1234.6, 136347648, 12346, 7, None, True]}
    """
    if isinstance(value, float):
        if not value.is_integer():
            value = float(f"{value:.{DIGITS - 1}e}")
        return int(value) if value.is_integer() else value
    if isinstance(value, Mapping):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    return value


def is_flat(rows: Sequence[Any]) -> bool:
    return len(rows) >= LEAST_ROWS and all(
        isinstance(row, Mapping) and not any(
            isinstance(value, (Mapping, list, tuple))
            for value in row.values()) for row in rows)


def packed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = []
    for row in rows:
        line = [row.get(name) for name in columns]
        while line and line[-1] is None:
            line.pop()
        lines.append(line)
    return {"columns": columns, "rows": lines}


def unpacked(value: Any) -> Any:
    """
    >>> unpacked({"columns": ["a", "b"], "rows": [[1, 2], [None, 3], [4]]})
    [{'a': 1, 'b': 2}, {'a': None, 'b': 3}, {'a': 4, 'b': None}]
    """
    if not (isinstance(value, dict) and set(value) == {"columns", "rows"}):
        return value
    return [dict(zip_longest(value["columns"], row)) for row in
            value["rows"]]


def _lines(rows: Sequence[Any], indent: str) -> str:
    return "[" + ",".join(f"\n{indent}{json.dumps(row, allow_nan=False)}"
                          for row in rows) + "]"


def text(document: Mapping[str, Any]) -> str:
    """
    >>> print(text({"a": 0.123456789, "b": [{"c": 1}]}), end="")
    {"a": 0.12346,
     "b": [
      {"c": 1}]}
    """
    parts = []
    for name, value in rounded(document).items():
        if isinstance(value, list) and is_flat(value):
            table = packed(value)
            body = (f'{{"columns": {json.dumps(table["columns"])},\n  "rows": '
                    + _lines(table["rows"], "   ") + "}")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            body = _lines(value, "  ")
        else:
            body = json.dumps(value, allow_nan=False)
        parts.append(f"{json.dumps(name)}: {body}")
    return "{" + ",\n ".join(parts) + "}\n"


def parse(words: str) -> dict[str, Any]:
    return {name: unpacked(value) for name, value in json.loads(words).items()}


def load(path: Path) -> dict[str, Any]:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, AttributeError) as error:
        raise ValueError(f"{path.name}: expects a JSON document, but {error}"
                         ) from None


def save(document: Mapping[str, Any], path: Path) -> None:
    """A reader never sees half of it."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text(document), encoding="utf-8")
    os.replace(partial, path)
