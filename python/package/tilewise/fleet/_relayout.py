"""`relayout` of a sharded checkpoint, a slice at a time."""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from fsspec.core import url_to_fs

from tilewise._base.errors import RelayoutError
from tilewise._tilewise import Layout, Shape
from tilewise._tilewise import relayout as relayout_buffer
from tilewise.fleet import _engines, _safetensors
from tilewise.fleet._safetensors import Tensor

_Bytes: TypeAlias = npt.NDArray[np.uint8]
_SAMPLE = 4096
_CHUNK = 1 << 18
_UNFINISHED = ".tilewise-unfinished"


@dataclass(frozen=True)
class Relayout:
    """The result of `relayout`."""

    #: Files written.
    files: int
    #: Tensors written, those copied included.
    tensors: int
    #: Slices that this run converted.
    slices: int
    #: Slices that an earlier run had converted, whose checksums are right.
    resumed_slices: int
    #: Bytes of tensors in the result, padding included.
    bytes: int
    #: Elements compared with their source by their offsets.
    checked_elements: int


@dataclass(frozen=True)
class _Slice:
    """Part of a tensor, whose bytes in the result are contiguous."""

    source: str
    target: str
    # Bytes into the files.
    source_start: int
    target_start: int
    # The whole tensor's, and a box of it; `None` to copy bytes.
    from_shape: str | None = None
    to_shape: str | None = None
    start: tuple[int, ...] = ()
    stop: tuple[int, ...] = ()
    bytes: int = 0

    def runs(self) -> list[tuple[int, int]]:
        """The offsets and lengths of the slice's bytes in the source."""
        if self.from_shape is None:
            return [(self.source_start, self.bytes)]
        whole = Shape(self.from_shape)
        if self.start == (0,) * whole.rank and self.stop == whole.dimensions:
            return [(self.source_start, whole.physical_bytes)]
        runs = whole.slice_runs(self.start, self.stop) // 8
        return [(self.source_start + int(start), int(length)) for start, length in runs]


def relayout(
    checkpoint: str | os.PathLike[str],
    plan: Mapping[str, Layout | str],
    out: str | os.PathLike[str],
    *,
    engine: Literal["ray", "dask", "threads"] = "threads",
    slice_bytes: int = 64 << 20,
    check: Literal["sample", "all"] = "sample",
    storage_options: Mapping[str, Any] | None = None,
) -> Relayout:
    """Converts the tensors of a safetensors checkpoint to other layouts.

    Each tensor, or slice of one, is a task. A worker holds one slice at a time: its bytes in both layouts. The files
    of the result have their full size from the start and take their names when all slices are in place, the index
    last. A run that was interrupted is taken up by the same call: a journal in ``out`` tells which slices are done,
    and they are read again and compared with their checksums.

    In the result, a tensor in a tiled layout is ``U8`` of one dimension, the bytes of its buffer; the file's metadata
    has its shape as ``tilewise.shape/NAME``. `tilewise.untile` takes both, and so does this function, as a source.

    Args:
        checkpoint: the folder or URL of a checkpoint, its ``*.safetensors.index.json``, or one ``.safetensors`` file.
        plan: layouts, or their texts such as ``"{1,0:T(8,128)}"``, by tensor names or patterns such as ``"*.kernel"``;
            the first that matches counts. Tensors that match none are copied.
        out: a folder of a file system that all workers share.
        engine: as for `audit`.
        slice_bytes: the most bytes of a slice in its new layout. A tensor whose layouts differ so that no part of it
            is contiguous in the new one is one slice.
        check: compare a sample of each slice's elements with the source, or ``"all"`` of them, at the offsets that
            `Shape.offsets` computes.
        storage_options: arguments of the source's file system.

    Raises:
        FileNotFoundError: there is no checkpoint.
        RelayoutError: a file is malformed, XLA has no type for a tensor of the plan, an element differs
            (``check_failed``), or slices failed more often than the engine retries (``incomplete``).
        ShapeError: a layout does not fit its tensor.
        ValueError: a pattern of the plan matches no tensor, or ``slice_bytes`` isn't positive.
    """
    if slice_bytes < 1:
        raise ValueError(f"slice_bytes must be positive, not {slice_bytes}")
    options = dict(storage_options or {})
    files, index = _safetensors.read_checkpoint(os.fspath(checkpoint), options)
    out = os.path.abspath(os.fspath(out))
    targets = _targets([tensor for file in files for tensor in file.tensors], plan)
    work = os.path.join(out, _UNFINISHED)

    slices: list[_Slice] = []
    headers: dict[str, tuple[bytes, int]] = {}
    for file in files:
        placed = {tensor.name: (tensor, targets[tensor.name]) for tensor in file.tensors}
        header, starts = _safetensors.header(placed, file.metadata)
        end = len(header)
        for name, (tensor, shape) in placed.items():
            parts = list(_slices(tensor, shape, file.url, os.path.join(work, file.name), starts[name], slice_bytes))
            slices += parts
            end += sum(part.bytes for part in parts)
        headers[file.name] = header, end

    described = [[file.name, file.url, file.version] for file in files], [asdict(part) for part in slices]
    journal = _Journal(work, hashlib.sha256(json.dumps(described).encode()).hexdigest())
    finished = journal.open(out, headers)
    redo = [number for number, _ in enumerate(slices) if number not in finished]
    old = [(number, slices[number], finished[number]) for number in finished]
    intact = {number for _, (number, is_intact) in _engines.run(engine, _is_intact, old) if is_intact}
    redo += [number for number in finished if number not in intact]

    checked = 0
    convert = partial(_convert, options, check)
    for task, (checksum, elements) in _engines.run(engine, convert, [slices[number] for number in redo]):
        if checksum is None:
            message = f"elements of {slices[redo[task]]} differ after conversion; the result is unfinished"
            raise RelayoutError(message, kind="check_failed")
        journal.append(f"{redo[task]} {checksum}")
        checked += elements
        intact.add(redo[task])
    if len(intact) != len(slices):
        message = f"{len(slices) - len(intact)} of {len(slices)} slices failed; the same call takes up the rest"
        raise RelayoutError(message, kind="incomplete")
    total = sum(part.bytes for part in slices)
    for file in files:
        os.replace(os.path.join(work, file.name), os.path.join(out, file.name))
    if index is not None:
        _safetensors.replace_index(out, index, total)
    shutil.rmtree(work)
    return Relayout(len(files), len(targets), len(redo), len(slices) - len(redo), total, checked)


def _targets(tensors: list[Tensor], plan: Mapping[str, Layout | str]) -> dict[str, Shape | None]:
    """Each tensor's new shape; `None` to copy its bytes."""
    targets: dict[str, Shape | None] = {}
    unused = set(plan)
    for tensor in tensors:
        patterns = [pattern for pattern in plan if fnmatchcase(tensor.name, pattern)]
        targets[tensor.name] = tensor.shape
        unused -= {*patterns}
        if not patterns:
            continue
        if tensor.shape is None:
            message = f"XLA has no type that is stored like {tensor.dtype} of {tensor.name!r}"
            raise RelayoutError(message, kind="unsupported_element_type")
        layout = plan[patterns[0]]
        if isinstance(layout, str):
            layout = Shape(f"{tensor.shape.without_layout()}{layout}").layout
        targets[tensor.name] = tensor.shape.with_layout(layout)
    if unused:
        raise ValueError(f"the plan's {sorted(unused)[0]!r} matches no tensor")
    return targets


def _slices(tensor: Tensor, to: Shape | None, source: str, target: str, start: int, most: int) -> Iterator[_Slice]:
    """Slices of at most `most` bytes, in the order of the result's bytes."""
    size = tensor.end - tensor.start
    if to is None or tensor.shape is None or tensor.shape == to:
        for at in range(0, size, most):
            yield _Slice(source, target, tensor.start + at, start + at, bytes=min(most, size - at))
        return
    for low, high, at, taken in _boxes(tensor.shape, to, most):
        yield _Slice(source, target, tensor.start, start + at, str(tensor.shape), str(to), low, high, taken)


_Box: TypeAlias = tuple[tuple[int, ...], tuple[int, ...], int, int]


def _boxes(source: Shape, to: Shape, most: int) -> list[_Box]:
    """Boxes of the array, each contiguous in `to`: where they start and stop, at which byte, and how many bytes."""
    dimensions = tuple(int(bound or 0) for bound in to.dimensions)
    whole = [((0,) * to.rank, dimensions, 0, to.physical_bytes)]
    # Of a tiled source, only part of whose rows and columns is at hand, no part can be read without the others.
    if to.physical_bytes <= most or to.physical_elements == 0 or not _safetensors.is_row_major(source):
        return whole
    width, rest = divmod(to.physical_bytes, to.physical_elements)
    order = to.layout.minor_to_major[::-1]
    tiles = {size or 1 for tile in to.layout.tiles for size in tile}
    # Whole tiles, or single indices where there are none. Fewer indices than a tile has take as many bytes.
    units = sorted({1, *tiles, math.lcm(*tiles)}, reverse=True)
    for depth, dimension in enumerate(order):
        for unit in units:
            row = list(dimensions)
            for outer in order[:depth]:
                row[outer] = 1
            row[dimension] = min(unit, dimensions[dimension])
            row_bytes = _part(to, row).physical_bytes
            count = max(1, most // row_bytes) * unit
            if rest == 0 and (row_bytes <= most or depth + 1 == len(order)):
                boxes = _cut(to, dimensions, order[: depth + 1], count, width)
                if boxes is not None:
                    return boxes
    return whole


def _cut(to: Shape, dimensions: tuple[int, ...], order: tuple[int, ...], count: int, width: int) -> list[_Box] | None:
    """The array cut along the last of these dimensions, and to single indices along the others."""
    *outer, last = order
    boxes: list[_Box] = []
    at = 0
    for index in np.ndindex(*(dimensions[dimension] for dimension in outer)):
        low, high = [0] * len(dimensions), list(dimensions)
        for dimension, position in zip(outer, index, strict=True):
            low[dimension], high[dimension] = position, position + 1
        for first in range(0, dimensions[last], count):
            low[last], high[last] = first, min(first + count, dimensions[last])
            # Sizes that don't add up, or offsets elsewhere, show that the box isn't contiguous.
            if to.offset(low) * width != at:
                return None
            size = _part(to, [stop - start for start, stop in zip(low, high, strict=True)]).physical_bytes
            boxes.append((tuple(low), tuple(high), at, size))
            at += size
    return boxes if at == to.physical_bytes else None


def _part(shape: Shape, dimensions: list[int]) -> Shape:
    return Shape.array(shape.element_type, dimensions, shape.layout)


class _Journal:
    """The finished slices: a line each, with its checksum, after a line with the fingerprint of the work."""

    def __init__(self, folder: str, fingerprint: str) -> None:
        self._folder, self._fingerprint = folder, fingerprint
        self._path = os.path.join(folder, "journal")

    def open(self, out: str, headers: Mapping[str, tuple[bytes, int]]) -> dict[int, int]:
        """The checksums of slices that are done, with files of full size: new ones without a journal of this work."""
        try:
            with open(self._path, encoding="ascii") as file:
                lines = file.read().split("\n")
        except FileNotFoundError:
            lines = []
        if lines[:1] == [self._fingerprint]:
            # The last line may be cut, and the next must not continue it.
            done = {int(words[0]): int(words[1]) for words in map(str.split, lines[1:-1])}
            if lines[-1]:
                os.truncate(self._path, os.path.getsize(self._path) - len(lines[-1]))
            for name in headers:
                # The last run was interrupted when it named its files.
                if not os.path.exists(os.path.join(self._folder, name)) and os.path.exists(os.path.join(out, name)):
                    os.replace(os.path.join(out, name), os.path.join(self._folder, name))
            self._allocate(headers)
            return done
        shutil.rmtree(self._folder, ignore_errors=True)
        os.makedirs(self._folder)
        try:
            self._allocate(headers)
        except OSError:
            # The disk is full.
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        self.append(self._fingerprint)
        return {}

    def _allocate(self, headers: Mapping[str, tuple[bytes, int]]) -> None:
        """Files with their headers, and with room for the tensors."""
        for name, (header, size) in headers.items():
            with open(os.open(os.path.join(self._folder, name), os.O_RDWR | os.O_CREAT, 0o666), "r+b") as target:
                target.write(header)
                target.truncate(size)
                if hasattr(os, "posix_fallocate") and size > 0:
                    os.posix_fallocate(target.fileno(), 0, size)
                os.fsync(target.fileno())

    def append(self, line: str) -> None:
        with open(self._path, "a", encoding="ascii") as file:
            file.write(line + "\n")


def _is_intact(task: tuple[int, _Slice, int]) -> tuple[int, bool]:
    number, part, checksum = task
    with open(part.target, "rb") as file:
        file.seek(part.target_start)
        found = 0
        left = part.bytes
        while left and (piece := file.read(min(left, 1 << 20))):
            found = zlib.crc32(piece, found)
            left -= len(piece)
    return number, left == 0 and found == checksum


def _convert(options: dict[str, Any], check: Literal["sample", "all"], part: _Slice) -> tuple[int | None, int]:
    """The checksum of a slice, now in place, or `None` if it is wrong; and how many of its elements were checked."""
    result: _Bytes = _read(part.source, part.runs(), options)
    checked = 0
    if part.from_shape is not None and part.to_shape is not None:
        data, bounds = result, [stop - start for start, stop in zip(part.start, part.stop, strict=True)]
        source, to = _part(Shape(part.from_shape), bounds), _part(Shape(part.to_shape), bounds)
        result = relayout_buffer(data, source, to)
        compared = _compare(data, source, result, to, check)
        if compared is None:
            return None, 0
        checked = compared
    with open(part.target, "r+b") as file:
        file.seek(part.target_start)
        file.write(result.data)
        file.flush()
        # The journal must not know more than the disk.
        os.fsync(file.fileno())
    return zlib.crc32(result.data), checked


def _read(url: str, runs: list[tuple[int, int]], options: dict[str, Any]) -> _Bytes:
    data = np.empty(sum(length for _, length in runs), np.uint8)
    files, path = url_to_fs(url, **options)
    at = 0
    with files.open(path, "rb", **({"cache_type": "none"} if len(runs) == 1 else {})) as file:
        for start, length in runs:
            file.seek(start)
            piece = data.data[at : at + length]
            at += length
            while piece:
                read = file.readinto(piece)
                if not read:
                    raise EOFError(f"{url} ends before byte {start + length}")
                piece = piece[read:]
    return data


def _compare(data: _Bytes, source: Shape, result: _Bytes, to: Shape, check: Literal["sample", "all"]) -> int | None:
    """The number of compared elements; `None` if one differs."""
    dimensions = [int(bound or 0) for bound in to.dimensions]
    count = math.prod(dimensions)
    bits = to.layout.element_size_in_bits or 8
    if count == 0 or bits % 8 or (source.layout.element_size_in_bits or 8) % 8:
        return 0
    width = max(1, to.element_type.natural_bits // 8)
    chunks: Iterable[npt.NDArray[np.int64]]
    if check == "all":
        chunks = (np.arange(first, min(first + _CHUNK, count)) for first in range(0, count, _CHUNK))
    else:
        chunks = [np.random.default_rng(count).integers(0, count, min(_SAMPLE, count))]
    checked = 0
    for chunk in chunks:
        checked += len(chunk)
        index = np.stack(np.unravel_index(chunk, dimensions), axis=-1) if dimensions else np.zeros((len(chunk), 0), int)
        left = data.reshape(-1, width)[source.offsets(index).astype(np.intp)]
        right = result.reshape(-1, width)[to.offsets(index).astype(np.intp)]
        if not np.array_equal(left, right):
            return None
    return checked
