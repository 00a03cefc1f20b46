"""`live`: the memory that this process holds on its devices now."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import Any

from tilewise._base.limits import in_words
from tilewise._base.modules import module
from tilewise._base.results import Shown
from tilewise._tilewise import Report


@dataclass(frozen=True)
class LiveRow:
    """Equal arrays of one name on one device, or a loaded program. Sizes are in bytes.

    Attributes:
        device: the device, such as ``"TPU_0(process=0,(0,0,0,0))"``.
        kind: ``"array"``, ``"program"`` for a program's code, or ``"other"`` for the device's other bytes in use.
        name: where an array is in the tree, or the program's name; ``None`` if neither is known.
        shape: an array's shard on this device, such as ``"float32[8,128]"``.
        count: how many there are.
        bytes: their size.
        temporary_bytes: a program's memory besides its arguments and results while it runs.
    """

    device: str
    kind: str
    name: str | None
    shape: str | None
    count: int
    bytes: int
    temporary_bytes: int | None


@dataclass(frozen=True)
class LiveDevice:
    """A device's memory, in bytes; ``None`` where it doesn't say, as the CPU.

    Attributes:
        device: the device.
        used_bytes: the bytes in use.
        limit_bytes: the bytes that there are.
        peak_used_bytes: the most that has been in use.
        largest_free_bytes: the largest piece that is free.
        needed_bytes: the bytes that the next program needs in one piece: its temporaries.
    """

    device: str
    used_bytes: int | None
    limit_bytes: int | None
    peak_used_bytes: int | None
    largest_free_bytes: int | None
    needed_bytes: int | None

    @property
    def fits(self) -> bool | None:
        """Whether the next program's temporaries find a place; ``None`` where that can't be known."""
        free = self.largest_free_bytes
        if free is None and self.limit_bytes is not None and self.used_bytes is not None:
            free = self.limit_bytes - self.used_bytes
        return None if free is None or self.needed_bytes is None else self.needed_bytes <= free


@dataclass(frozen=True)
class Live(Shown):
    """A process's memory on its devices: `live` returns it. As a table, it has a row for each `LiveRow`.

    Attributes:
        rows: the memory held, for each device the largest first.
        devices: the devices' own figures.

    Examples:
        >>> Live((LiveRow("cpu:0", "array", "w", "float32[8,128]", 1, 4096, None),), ()).held_bytes("cpu:0")
        4096
    """

    rows: tuple[LiveRow, ...]
    devices: tuple[LiveDevice, ...]

    def held_bytes(self, device: str) -> int:
        """The bytes of all rows of a device.

        Examples:
            >>> Live((), ()).held_bytes("cpu:0")
            0
        """
        return sum(row.bytes for row in self.rows if row.device == device)

    def _rows(self) -> list[dict[str, Any]]:
        return [asdict(row) for row in self.rows]

    def __str__(self) -> str:
        lines: list[str] = []
        for device in self.devices:
            lines.append(f"{device.device}: {in_words(self.held_bytes(device.device))} held")
            if device.limit_bytes is not None and device.used_bytes is not None:
                lines[-1] += f", {in_words(device.used_bytes)} of {in_words(device.limit_bytes)} in use"
            for row in self.rows:
                if row.device == device.device:
                    what = " ".join(filter(None, (row.kind, row.name, row.shape)))
                    more = f", and {in_words(row.temporary_bytes)} while it runs" if row.temporary_bytes else ""
                    lines.append(f"  {in_words(row.bytes):>28}  {row.count} x {what}{more}")
            if device.needed_bytes is not None:
                verdict = {True: "fits", False: "does not fit", None: "may fit"}[device.fits]
                free = device.largest_free_bytes
                piece = "" if free is None else f", the largest free piece is {in_words(free)}"
                lines.append(
                    f"  the next program needs {in_words(device.needed_bytes)} in one piece: it {verdict}{piece}"
                )
        return "\n".join(lines)


def live(tree: Any = None, /, *, next_program: Any = None) -> Live:
    """List this process's memory on its devices now: arrays, programs, and free memory.

    Args:
        tree: a pytree whose arrays are named by their paths in it, such as ``{"params": params, "state": state}``.
        next_program: the program to run next, a `Report` or a compiled program: its need in one piece is compared with
            the free memory.

    Raises:
        ImportError: JAX is not installed.

    Examples:
        >>> import jax.numpy as jnp
        >>> w = jnp.ones((512, 128))
        >>> [row.bytes for row in live({"w": w}).rows if row.name == "w"]
        [262144]
    """
    jax = module("jax")
    names: dict[int, str] = {}
    for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
        names[id(leaf)] = jax.tree_util.keystr(path, simple=True, separator="/")
    counts: Counter[LiveRow] = Counter()
    for array in jax.live_arrays():
        for shard in array.addressable_shards:
            size = int(shard.data.on_device_size_in_bytes())
            shape = f"{shard.data.dtype}[{','.join(map(str, shard.data.shape))}]"
            counts[LiveRow(str(shard.device), "array", names.get(id(array)), shape, 1, size, None)] += 1
    rows = [replace(row, count=count, bytes=row.bytes * count) for row, count in counts.items()]
    devices = jax.local_devices()
    rows += _programs(devices)
    needed = _needed(next_program)
    figures: list[LiveDevice] = []
    for device in devices:
        said: dict[str, int] = device.memory_stats() or {}
        name, used = str(device), said.get("bytes_in_use")
        other = 0 if used is None else used - sum(row.bytes for row in rows if row.device == name)
        if other > 0:
            rows.append(LiveRow(name, "other", None, None, 1, other, None))
        limit, peak, free = (said.get(key) for key in ("bytes_limit", "peak_bytes_in_use", "largest_free_block_bytes"))
        figures.append(LiveDevice(name, used, limit, peak, free, needed))
    return Live(tuple(sorted(rows, key=lambda row: (row.device, -row.bytes))), tuple(figures))


def _programs(devices: list[Any]) -> list[LiveRow]:
    rows: list[LiveRow] = []
    for client in {id(device.client): device.client for device in devices}.values():
        for program in client.live_executables():
            said, name = program.get_compiled_memory_stats(), program.hlo_modules()[0].name
            code, temporary = said.generated_code_size_in_bytes, said.temp_size_in_bytes
            for device in program.local_devices() if code or temporary else ():
                rows.append(LiveRow(str(device), "program", name, None, 1, code, temporary))
    return rows


def _needed(program: Any) -> int | None:
    if program is None or isinstance(program, Report):
        return None if program is None else program.temporary_bytes
    if not hasattr(program, "memory_analysis"):
        raise TypeError(f"next_program is a Report or a compiled function of JAX, not {type(program).__name__}")
    return int(program.memory_analysis().temp_size_in_bytes)
