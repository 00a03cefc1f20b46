"""Types of arguments, for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt


class HasDeviceKind(Protocol):
    """A JAX device."""

    @property
    def device_kind(self) -> str:
        """The name of the device, such as ``'TPU v5 lite'``."""
        ...


class HasAsText(Protocol):
    """A compiled JAX program."""

    def as_text(self) -> str | None:
        """HLO text; ``None`` if the compiler does not keep it."""
        ...


class HasToString(Protocol):
    """An HLO module of XLA's Python bindings."""

    def to_string(self) -> str:
        """HLO text."""
        ...


class HasShape(Protocol):
    """An array, or a description of one such as ``jax.ShapeDtypeStruct``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds in elements."""
        ...

    @property
    def dtype(self) -> Any:
        """Anything that `ElementType` accepts."""
        ...


class HasMajorToMinor(Protocol):
    """A ``Layout`` of ``jax.experimental.layout``."""

    @property
    def major_to_minor(self) -> tuple[int, ...]:
        """Dimension numbers from the slowest-varying to the fastest."""
        ...


class HasLayout(Protocol):
    """A ``Format`` of ``jax.experimental.layout``."""

    @property
    def layout(self) -> Any:
        """A ``Layout``, or an object that leaves it to the compiler."""
        ...

    @property
    def sharding(self) -> Any:
        """The sharding of the array."""
        ...


class HasFormat(HasShape, Protocol):
    """A ``jax.Array``."""

    @property
    def format(self) -> Any:
        """The array's ``Format``."""
        ...


class SupportsArray(Protocol):
    """An object that NumPy can convert to an array."""

    def __array__(self) -> npt.NDArray[Any]: ...


class SupportsDLPack(Protocol):
    """An object that supports DLPack."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


Tpu: TypeAlias = str | HasDeviceKind
Program: TypeAlias = str | PathLike[str] | bytes | bytearray | memoryview | HasAsText | HasToString
Integers: TypeAlias = npt.NDArray[np.integer[Any]] | Sequence[Any]
ArrayLike: TypeAlias = npt.NDArray[Any] | SupportsArray | SupportsDLPack
BytesLike: TypeAlias = bytes | bytearray | memoryview | ArrayLike
