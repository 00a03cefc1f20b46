"""Files anywhere that fsspec reaches: found, read, and replaced as a whole."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from tilewise._base.files import write_whole

Options = Mapping[str, Any]

_FINAL = re.compile(r"\.hlo(\.txt)?(\.gz)?$|[._](after_optimizations|after_codegen)\.txt(\.gz)?$")
_FINAL_PROTO = re.compile(r"(\.hlo|[._]after_optimizations\.hlo)\.pb$")
_MAGIC = re.compile(r"[*?\[]")
# Stores' names of the mark of a file's content, the most exact first.
_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "generation", "mtime", "LastModified", "last_modified", "updated")


@dataclass(frozen=True)
class Input:
    url: str
    job: str
    # Differs after the file has changed.
    version: str
    bytes: int


def find_programs(paths: Iterable[str | os.PathLike[str]], options: Options) -> list[Input]:
    """The files that paths, URLs, folders and patterns name, by job and name, each once.

    Of a folder only files count that are named as final programs: `*.hlo`, `*after_optimizations.txt`.
    """
    found: dict[str, Input] = {}
    for path in paths:
        files, path = url_to_fs(os.fspath(path), **options)
        if _MAGIC.search(path):
            root = _MAGIC.split(path, maxsplit=1)[0].rpartition("/")[0]
            infos = [info for info in files.glob(path, detail=True).values() if info["type"] == "file"]
        elif files.isdir(path):
            root, infos = path, _final(files.find(path, detail=True))
        else:
            root, infos = posixpath.dirname(path), [files.info(path)]
        if not infos:
            raise FileNotFoundError(f"no programs in {files.unstrip_protocol(path)}")
        for info in infos:
            entry = _input(files, info, root)
            found.setdefault(entry.url, entry)
    return sorted(found.values(), key=lambda entry: (entry.job, entry.url))


def _final(infos: Mapping[str, Any]) -> list[Any]:
    """Those that hold final programs: text, or a proto where there is no text of the program."""
    texts = [name for name in infos if _FINAL.search(name)]
    stems = {re.sub(r"\.(hlo|txt)(\.txt)?(\.gz)?$", "", name) for name in texts}
    protos = [name for name in infos if _FINAL_PROTO.search(name) and name.removesuffix(".hlo.pb") not in stems]
    return [infos[name] for name in (*texts, *protos)]


def _input(files: Any, info: Mapping[str, Any], root: str) -> Input:
    name, size = info["name"], int(info["size"] or 0)
    first, inside, _ = posixpath.relpath(name, root or ".").partition("/")
    job = first if inside else posixpath.basename(posixpath.dirname(name))
    mark = next((info[key] for key in _MARKS if info.get(key) is not None), "")
    url = name if isinstance(files, LocalFileSystem) else files.unstrip_protocol(name)
    return Input(url=url, job=job or "default", version=f"{size}-{mark}", bytes=size)


def read(url: str, options: Options) -> bytes:
    """A file's bytes."""
    files, path = url_to_fs(url, **options)
    return bytes(files.cat_file(path))


def replace(url: str, data: bytes | memoryview, options: Options) -> None:
    """Writes a file that others see as a whole or not at all."""
    files, path = url_to_fs(url, **options)
    if isinstance(files, LocalFileSystem):
        write_whole(Path(path), data, shared=True)
    else:
        # Stores of objects show an object once all of it is there.
        files.pipe_file(path, bytes(data))
