"""Types of arguments, for type checkers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tilewise._tilewise import Report, Shape


class HasDeviceKind(Protocol):
    """A JAX device."""

    @property
    def device_kind(self) -> str: ...


class HasAsText(Protocol):
    """A compiled JAX program."""

    def as_text(self) -> str | None: ...


class HasToString(Protocol):
    """An HLO module of XLA's Python bindings."""

    def to_string(self) -> str: ...


class HasShape(Protocol):
    """An array, or a description of one such as ``jax.ShapeDtypeStruct``."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> Any: ...


class HasMajorToMinor(Protocol):
    """A ``Layout`` of ``jax.experimental.layout``."""

    @property
    def major_to_minor(self) -> tuple[int, ...]: ...


class HasLayout(Protocol):
    """A ``Format`` of ``jax.experimental.layout``."""

    @property
    def layout(self) -> Any: ...

    @property
    def sharding(self) -> Any: ...


class JaxArray(HasShape, Protocol):
    """A ``jax.Array``. Its ``format`` is missing in JAX's own types."""

    @property
    def sharding(self) -> Any: ...

    @property
    def is_fully_addressable(self) -> bool: ...


class TorchDtype(Protocol):
    """A dtype of PyTorch."""

    @property
    def itemsize(self) -> int: ...

    @property
    def is_floating_point(self) -> bool: ...


class SupportsArray(Protocol):
    """An object that NumPy can convert to an array."""

    def __array__(self) -> npt.NDArray[Any]: ...


class SupportsDLPack(Protocol):
    """An object that supports DLPack."""

    # Keyword arguments differ between libraries.
    @property
    def __dlpack__(self) -> Callable[..., Any]: ...
    def __dlpack_device__(self) -> tuple[Any, int]: ...


class HasReadText(Protocol):
    """An open file."""

    def read(self) -> str | bytes: ...


class HasSerializeToString(Protocol):
    """A message of the Protocol Buffers library."""

    def SerializeToString(self) -> bytes:  # noqa: N802 - its name
        ...


# The generations are offered to complete; other spellings are read, too.
Generation: TypeAlias = Literal["v2", "v3", "v4", "v5e", "v5p", "v6e", "v7x"]
Tpu: TypeAlias = Generation | str | HasDeviceKind
Limit: TypeAlias = int | float | str
DtypeLike: TypeAlias = npt.DTypeLike | TorchDtype
ShapeLike: TypeAlias = Shape | str
Notation: TypeAlias = Literal["pjrt", "jax", "mlir", "memref", "mosaic", "numpy", "dlpack", "cute", "einops"]
Program: TypeAlias = (
    str | PathLike[str] | HasReadText | bytes | bytearray | memoryview | HasSerializeToString | HasAsText | HasToString
)
Member: TypeAlias = (
    Report
    | Program
    | tuple[Callable[..., Any], Sequence[Any]]
    | tuple[Callable[..., Any], Sequence[Any], Mapping[str, Any]]
)
"""A program of a set: a report, an input of `audit`, or a function with its arguments and options of ``jax.jit``."""
Message: TypeAlias = str | PathLike[str] | HasReadText | BaseException
Integers: TypeAlias = npt.NDArray[np.integer[Any]] | Sequence[Any]
ArrayLike: TypeAlias = npt.NDArray[Any] | SupportsArray | SupportsDLPack
BytesLike: TypeAlias = bytes | bytearray | memoryview | ArrayLike
