"""What arguments may be, for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from tilewise._tilewise import Shape


class HasDeviceKind(Protocol):
    """A JAX device."""

    @property
    def device_kind(self) -> str:
        """Such as ``'TPU v5 lite'``."""
        ...


class HasAsText(Protocol):
    """A compiled program of JAX."""

    def as_text(self) -> str | None:
        """HLO text, if the compiler has it."""
        ...


class HasToString(Protocol):
    """An HLO module of XLA's Python bindings."""

    def to_string(self) -> str:
        """HLO text."""
        ...


class HasShape(Protocol):
    """An array, or what stands for one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Bounds in elements."""
        ...

    @property
    def dtype(self) -> Any:
        """Whatever `ElementType` takes."""
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
        """A ``Layout``, or what leaves it to the compiler."""
        ...

    @property
    def sharding(self) -> Any:
        """The devices that hold it."""
        ...


class HasFormat(HasShape, Protocol):
    """A ``jax.Array``."""

    @property
    def format(self) -> Any:
        """Its ``Format``."""
        ...


class SupportsArray(Protocol):
    """What NumPy can see as an array."""

    def __array__(self) -> npt.NDArray[Any]: ...


class SupportsDLPack(Protocol):
    """What speaks DLPack."""

    def __dlpack__(self) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...


Tpu: TypeAlias = str | HasDeviceKind
Program: TypeAlias = str | PathLike[str] | bytes | bytearray | memoryview | HasAsText | HasToString
ShapeLike: TypeAlias = Shape | str
Integers: TypeAlias = npt.NDArray[np.integer[Any]] | Sequence[Any]
ArrayLike: TypeAlias = npt.NDArray[Any] | SupportsArray | SupportsDLPack
BytesLike: TypeAlias = bytes | bytearray | memoryview | ArrayLike
