"""Checkpoints in safetensors: their files, their tensors, and the layouts that metadata gives.

https://huggingface.co/docs/safetensors/index#format. A tensor in a tiled layout is stored as the bytes of its buffer:
``U8`` of one dimension, with the shape in the file's metadata, under the tensor's name after `LAYOUT`.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsspec.core import url_to_fs

from tilewise._base.errors import RelayoutError
from tilewise._base.files import write_whole
from tilewise._tilewise import Layout, Shape

LAYOUT = "tilewise.shape/"
INDEX = ".safetensors.index.json"
# The format's own limit.
_LONGEST_HEADER = 100_000_000

# Equal to the command line's.
_TYPES = {
    "BOOL": "pred", "I8": "s8", "I16": "s16", "I32": "s32", "I64": "s64",
    "U8": "u8", "U16": "u16", "U32": "u32", "U64": "u64",
    "F8_E5M2": "f8e5m2", "F8_E4M3": "f8e4m3fn", "F8_E5M2FNUZ": "f8e5m2fnuz", "F8_E4M3FNUZ": "f8e4m3fnuz",
    "F8_E8M0": "f8e8m0fnu", "F16": "f16", "BF16": "bf16", "F32": "f32", "F64": "f64", "C64": "c64",
}  # fmt: skip
_DTYPES = {element_type: dtype for dtype, element_type in _TYPES.items()}


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file. ``shape`` is ``None`` if XLA has no such type."""

    name: str
    dtype: str
    dimensions: tuple[int, ...]
    # In bytes from the start of the file.
    start: int
    end: int
    shape: Shape | None


@dataclass(frozen=True)
class File:
    name: str
    url: str
    # The file's version that the header is of: differs after the file has changed.
    version: str
    tensors: tuple[Tensor, ...]
    metadata: dict[str, str]


def read_checkpoint(url: str, options: Mapping[str, Any]) -> tuple[list[File], tuple[str, dict[str, Any]] | None]:
    """The files of a folder with an index, of an index, or of one file; and the index's name and contents."""
    files, path = url_to_fs(url, **options)
    if files.isdir(path):
        found = [name for name in files.ls(path, detail=False) if name.endswith((INDEX, ".safetensors"))]
        indices = [name for name in found if name.endswith(INDEX)] or found
        if len(indices) != 1:
            raise FileNotFoundError(f"{path} has {len(indices)} indices (*{INDEX}) or files (*.safetensors), not one")
        path = indices[0]
    if not path.endswith(INDEX):
        return [_read_file(files, path)], None
    try:
        index = json.loads(files.cat_file(path))
        names = sorted(set(index["weight_map"].values()))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _malformed(path, str(error)) from error
    if not all(isinstance(name, str) and name == posixpath.basename(name) and name.strip(".") for name in names):
        raise _malformed(path, "it names files in other folders")
    parent = posixpath.dirname(path)
    return [_read_file(files, posixpath.join(parent, name)) for name in names], (posixpath.basename(path), index)


def _read_file(files: Any, path: str) -> File:
    info = files.info(path)
    with files.open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > min(_LONGEST_HEADER, info["size"]):
            raise _malformed(path, f"its header has {size} bytes")
        text = file.read(size)
    if len(text) != size:
        raise _malformed(path, "it ends within its header")
    try:
        header = json.loads(text)
        metadata = header.pop("__metadata__", {})
        tensors = tuple(_tensor(name, entry, metadata, 8 + size) for name, entry in header.items())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _malformed(path, str(error)) from error
    for tensor in tensors:
        held = tensor.end - tensor.start
        if tensor.end > info["size"] or (tensor.shape is not None and tensor.shape.physical_bytes != held) or held < 0:
            raise _malformed(path, f"{tensor.name!r} can't be at {tensor.start} to {tensor.end}")
    version = f"{info['size']}-{info.get('ETag') or info.get('mtime')}-{len(text)}"
    return File(posixpath.basename(path), files.unstrip_protocol(path), version, tensors, dict(metadata))


def _tensor(name: str, entry: Any, metadata: Mapping[str, str], data: int) -> Tensor:
    dimensions = tuple(int(bound) for bound in entry["shape"])
    start, end = (data + int(offset) for offset in entry["data_offsets"])
    shape = None
    if LAYOUT + name in metadata:
        shape = Shape(metadata[LAYOUT + name])
    elif entry["dtype"] in _TYPES:
        shape = Shape.array(_TYPES[entry["dtype"]], dimensions, Layout.row_major(len(dimensions)))
    return Tensor(name, entry["dtype"], dimensions, start, end, shape)


def _malformed(path: str, message: str) -> RelayoutError:
    return RelayoutError(f"{path}: {message}", kind="malformed_header")


def header(
    tensors: Mapping[str, tuple[Tensor, Shape | None]], metadata: Mapping[str, str]
) -> tuple[bytes, dict[str, int]]:
    """The header of a file with these tensors in these shapes, and where in the file each starts."""
    entries: dict[str, Any] = {}
    kept = {key: value for key, value in metadata.items() if not key.startswith(LAYOUT)}
    at = 0
    for name, (tensor, shape) in tensors.items():
        dtype, dimensions, size = tensor.dtype, list(tensor.dimensions), tensor.end - tensor.start
        if shape is not None:
            size = shape.physical_bytes
            if is_row_major(shape):
                dtype, dimensions = _DTYPES[shape.element_type.name], [int(bound or 0) for bound in shape.dimensions]
            else:
                dtype, dimensions = "U8", [size]
                kept[LAYOUT + name] = str(shape)
        entries[name] = {"dtype": dtype, "shape": dimensions, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({"__metadata__": kept, **entries} if kept else entries, separators=(",", ":")).encode()
    # The first tensor starts on a cache line.
    text += b" " * (-(8 + len(text)) % 64)
    start = 8 + len(text)
    starts = {name: start + entry["data_offsets"][0] for name, entry in entries.items()}
    return len(text).to_bytes(8, "little") + text, starts


def is_row_major(shape: Shape) -> bool:
    """Whether a buffer in this layout is a tensor as the format has it."""
    plain = shape.without_layout().with_layout(Layout.row_major(shape.rank))
    return shape.layout == plain.layout and shape.physical_bytes == plain.physical_bytes


def replace_index(folder: str, index: tuple[str, dict[str, Any]], sizes: int) -> None:
    """Writes the index, which makes the checkpoint a whole."""
    name, contents = index
    contents = {**contents, "metadata": {**(contents.get("metadata") or {}), "total_size": sizes}}
    write_whole(Path(folder) / name, json.dumps(contents, indent=2).encode(), shared=True)
