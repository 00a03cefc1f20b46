"""A file of rows that a search is resumed from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tilewise._files import write_whole


class Log:
    """A file of JSON Lines that rows are appended to as they come; the first line says whose they are."""

    def __init__(self, path: Path, search: Mapping[str, Any]) -> None:
        self._path = path
        self._head = json.dumps({"schema": 1, "search": dict(search)}, sort_keys=True, default=str)

    def read(self) -> list[dict[str, Any]]:
        """The rows that are there. A line that was cut off is removed.

        Raises:
            ValueError: the file is another search's.
        """
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            content = b""
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.decode(errors="replace").splitlines()
        if lines and lines[0] != self._head:
            raise ValueError(f"{self._path} has the rows of another search: {lines[0][:300]}")
        if not lines:
            write_whole(self._path, self._head.encode() + b"\n")
        elif len(whole) != len(content):
            write_whole(self._path, whole)
        return [json.loads(line) for line in lines[1:]]

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        with open(self._path, "ab") as file:
            for row in rows:
                file.write(json.dumps(row, default=str).encode() + b"\n")
