"""`audit` of many dumps, into a Parquet dataset."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
from fsspec.core import url_to_fs

from tilewise._audit.audit import audit as audit_program
from tilewise._base.errors import Error, HloError
from tilewise._base.limits import hbm_of
from tilewise._base.progress import counted
from tilewise._tilewise import Report, __version__, generation_name
from tilewise.fleet import _engines, _files
from tilewise.fleet._files import Input

_BATCH_FILES = 32
_BATCH_BYTES = 64 << 20

# A row a program. The sizes are in bytes, in HBM; null for a file with an `error`. The version is null if the error may
# pass: the next run tries again.
PROGRAMS = pa.schema(
    [
        *((name, pa.string()) for name in ("job", "source", "version", "tilewise", "tpu")),
        ("hbm_limit", pa.int64()),
        ("module", pa.string()),
        *((f"{kind}_bytes", pa.int64()) for kind in ("argument", "output", "alias", "constant", "temporary")),
        ("fits", pa.bool_()),
        *((f"{kind}_bytes", pa.int64()) for kind in ("peak", "padding", "peak_live", "peak_padding")),
        ("peak_instruction", pa.string()),
        ("peak_file", pa.string()),
        ("peak_line", pa.int64()),
        *((f"advice_{name}", pa.string()) for name in ("kind", "instruction", "sentence")),
        ("advice_peak_bytes_saved", pa.int64()),
        ("warnings", pa.list_(pa.string())),
        ("error", pa.string()),
    ]
)
# Columns of a row from the report's attributes of the same names.
_REPORTED = tuple(name for name in PROGRAMS.names if hasattr(Report, name) and name not in ("source", "warnings"))
_ADVICE = ("kind", "instruction", "sentence", "peak_bytes_saved")
_ORDER = [("job", "ascending"), ("source", "ascending"), ("module", "ascending")]


def audit(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    engine: Literal["ray", "dask", "threads"] = "threads",
    out: str | os.PathLike[str] | None = None,
    buffers: bool = True,
    tpu: str | None = None,
    hbm_limit: float | str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    progress: bool | None = None,
) -> pa.Table:
    """Audits the programs of many jobs.

    A job is a folder right below one of ``paths``, or below the part of it before its first wildcard; the job of any
    other file is the folder it lies in. A file that can't be read, isn't a program or kills its workers is a row with
    its ``error``.

    Args:
        paths: files, folders, patterns such as ``"s3://dumps/*/*after_optimizations.txt"``, of any file system that
            fsspec knows. Of a folder, the files named as final programs are taken.
        engine: ``"threads"`` of this process; ``"ray"``, on the cluster ``ray.init`` has joined; ``"dask"``, with the
            current ``distributed.Client``. Without a cluster, Ray and Dask start one on this machine.
        out: the folder, local or remote, of two Parquet datasets that are partitioned by job: ``programs`` and
            ``buffers``. Workers write to it, each file as a whole. A program that is there, audited by this version
            for the same ``tpu`` and ``hbm_limit``, and has not changed since is not audited again; a file that could
            not be read is. ``None`` for none.
        buffers: whether to write ``buffers``, a row for each buffer, with the columns of `Report`.
        tpu, hbm_limit: as for `tilewise.audit`.
        storage_options: arguments of the file systems.
        progress: whether to count files on standard error; by default, if that is a terminal.

    Returns:
        A row for each program, old and new, in the order of jobs and names; sizes are in bytes.

    Raises:
        FileNotFoundError: one of ``paths`` names no programs.
        ImportError: the engine is not installed.
        ValueError: there is no such engine.

    Examples:
        >>> from tilewise import fleet
        >>> table = fleet.audit("../examples/*.v5e.hlo")
        >>> table.select(["job", "module", "argument_bytes"]).slice(0, 1).to_pylist()
        [{'job': 'examples', 'module': 'jit_f', 'argument_bytes': 9614336}]
    """
    options = dict(storage_options or {})
    inputs = _files.find_programs([paths] if isinstance(paths, (str, os.PathLike)) else paths, options)
    generation = None if tpu is None else generation_name(tpu)
    limit = hbm_of(hbm_limit, tpu)
    made_by = f"tilewise {__version__}, {generation}, {limit}"
    inputs = [replace(entry, version=f"{entry.version} {made_by}") for entry in inputs]
    if out is not None:
        # For workers, whose working folder may be another.
        files, path = url_to_fs(os.fspath(out), **options)
        out = str(files.unstrip_protocol(path)).rstrip("/")
    work = _Work(out, buffers, generation, limit, options)
    old = work.fragments("programs")
    is_new = not old and not work.fragments("buffers")
    written = pa.concat_tables([PROGRAMS.empty_table(), *(each.to_table(schema=PROGRAMS) for each in old)])
    current = {(entry.url, entry.version) for entry in inputs}
    known = written.filter(pa.array([key in current and is_first for key, is_first in _keys(written)], pa.bool_()))
    audited = {key for key, _ in _keys(known)}
    batches = list(_batches(entry for entry in inputs if (entry.url, entry.version) not in audited))

    total = sum(map(len, batches))
    with counted("audited", total, shown=progress) as count:
        done: dict[int, pa.Table] = {}
        for number, table in _engines.run(engine, partial(_audit_batch, work, False), batches):
            done[number] = table
            count(len(batches[number]))
    # Each file of a batch runs alone, to find the one that took its worker down.
    alone = [[entry] for number, batch in enumerate(batches) if number not in done for entry in batch]
    singles = dict(_engines.run(engine, partial(_audit_batch, work, True), alone))
    lost = [_unlucky(entry, "no worker survived it") for number, (entry,) in enumerate(alone) if number not in singles]
    tables = [known, *done.values(), *singles.values(), work.write("programs", _table(lost))]
    result = pa.concat_tables(tables).sort_by(_ORDER)
    if alone or len(known) != len(written) or (batches and not is_new):
        work.tidy({source: version for (source, version), _ in _keys(result)})
    return result


@dataclass(frozen=True)
class _Work:
    out: str | None
    buffers: bool
    tpu: str | None
    hbm_limit: int | None
    options: dict[str, Any]

    def fragments(self, name: str) -> list[Any]:
        """The files of a dataset."""
        if self.out is None:
            return []
        files, path = url_to_fs(f"{self.out}/{name}", **self.options)
        if not files.exists(path):
            return []
        by_job = pyarrow.dataset.partitioning(pa.schema([("job", pa.string())]), flavor="hive")
        found = pyarrow.dataset.dataset(path, format="parquet", filesystem=files, partitioning=by_job)
        return list(found.get_fragments())

    def write(self, name: str, table: pa.Table) -> pa.Table:
        """Adds the rows to the dataset; the rows."""
        for job in table["job"].unique().to_pylist() if self.out is not None else ():
            rows = table.filter(pc.equal(table["job"], job))
            # A task that runs again writes its rows to the same file.
            keys = [key for key, is_first in _keys(rows) if is_first]
            digest = hashlib.sha256(json.dumps(keys).encode()).hexdigest()[:24]
            _write_parquet(f"{self.out}/{name}/job={quote(job, safe='')}/{digest}.parquet", rows, self.options)
        return table

    def tidy(self, current: Mapping[str, str | None]) -> None:
        """Removes rows of other versions of these sources, and rows that a task wrote again after a lost result."""
        for name in ("buffers", "programs"):
            first: dict[tuple[str, str | None], str] = {}
            for fragment in self.fragments(name):
                keys = [key for key, _ in _keys(fragment.to_table(columns=["source", "version"]))]
                path = fragment.path
                keep = [current.get(key[0], key[1]) == key[1] and first.setdefault(key, path) == path for key in keys]
                if all(keep):
                    continue
                files, _ = url_to_fs(self.out, **self.options)
                if any(keep):
                    rows = pq.read_table(path, filesystem=files, partitioning=None)
                    _write_parquet(files.unstrip_protocol(path), rows.filter(pa.array(keep)), self.options)
                else:
                    files.rm_file(path)


def _keys(table: pa.Table) -> Iterator[tuple[tuple[str, str | None], bool]]:
    """The source and version of each row, and whether no row before has them."""
    seen: set[tuple[str, str | None]] = set()
    for key in zip(table["source"].to_pylist(), table["version"].to_pylist(), strict=True):
        yield key, key not in seen
        seen.add(key)


def _batches(inputs: Iterable[Input]) -> Iterator[list[Input]]:
    batch: list[Input] = []
    for entry in inputs:
        if batch and (len(batch) == _BATCH_FILES or sum(one.bytes for one in batch) + entry.bytes > _BATCH_BYTES):
            yield batch
            batch = []
        batch.append(entry)
    if batch:
        yield batch


def _audit_batch(work: _Work, is_last_try: bool, batch: Sequence[Input]) -> pa.Table:
    audited = [_audit_file(work, is_last_try, entry) for entry in batch]
    buffers = [table for _, table in audited if table is not None]
    if buffers:
        work.write("buffers", pa.concat_tables(buffers))
    # Last: a row here says that the file is done.
    return work.write("programs", _table([row for row, _ in audited]))


def _audit_file(work: _Work, is_last_try: bool, entry: Input) -> tuple[dict[str, Any], pa.Table | None]:
    try:
        report = audit_program(_files.read(entry.url, work.options), tpu=work.tpu, hbm_limit=work.hbm_limit)
        if not report.module:
            raise HloError("this is a part of a program: its `HloModule` line is missing")
        return _row(entry, report), _buffers(entry, report) if work.buffers and work.out is not None else None
    except Error as error:
        return {**_begun(entry), "error": str(error)}, None
    except Exception as error:
        # The engine may try again.
        if not is_last_try:
            raise
        return _unlucky(entry, str(error) or type(error).__name__), None


def _buffers(entry: Input, report: Report) -> pa.Table:
    table = pa.table(report).drop_columns("source")
    for name, value in {"version": entry.version, "source": entry.url, "job": entry.job}.items():
        table = table.add_column(0, name, pa.repeat(value, table.num_rows))
    return table


def _table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), PROGRAMS)


def _begun(entry: Input) -> dict[str, Any]:
    return {"job": entry.job, "source": entry.url, "version": entry.version, "tilewise": __version__, "warnings": []}


def _unlucky(entry: Input, error: str) -> dict[str, Any]:
    """A row for a failure that may be no fault of the file."""
    return {**_begun(entry), "error": error, "version": None}


def _row(entry: Input, report: Report) -> dict[str, Any]:
    line = report.peak_source
    advice = next(iter(report.advice), None)
    return {
        **_begun(entry),
        **{name: getattr(report, name) for name in _REPORTED},
        "peak_file": None if line is None else line.file,
        "peak_line": None if line is None else line.line,
        **{f"advice_{name}": getattr(advice, name, None) for name in _ADVICE},
        "warnings": [str(warning) for warning in report.warnings],
    }


def _write_parquet(url: str, table: pa.Table, options: _files.Options) -> None:
    sink = pa.BufferOutputStream()
    columns = [name for name in table.column_names if name != "job"]
    pq.write_table(table.select(columns), sink, compression="zstd")
    _files.replace(url, memoryview(sink.getvalue()), options)
