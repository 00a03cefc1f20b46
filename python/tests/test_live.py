"""The arrays that a process holds on its devices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilewise as tw
from tilewise import Live, LiveDevice

jax = pytest.importorskip("jax")
jnp = jax.numpy


def test_arrays_are_named_and_counted_by_device() -> None:
    devices = jax.devices()
    w = jax.device_put(np.ones((512, 128), np.float32), devices[0])
    mesh = jax.sharding.Mesh(np.array(devices[:2]), ("x",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    halves = jax.device_put(np.ones((64, 256), np.float32), sharding)
    found = tw.live({"params": {"w": w}, "batch": [halves]})
    rows = {(row.device, row.name): row for row in found.rows if row.name}
    first, second = str(devices[0]), str(devices[1])
    assert (rows[first, "params/w"].shape, rows[first, "params/w"].bytes) == ("float32[512,128]", 512 * 128 * 4)
    assert [rows[device, "batch/0"].bytes for device in (first, second)] == [32 * 256 * 4] * 2
    assert found.held_bytes(second) >= 32 * 256 * 4
    assert "array params/w float32[512,128]" in str(found)


def test_it_passes_through_json_and_is_a_table() -> None:
    kept = jnp.ones((8, 128))
    found = tw.live([kept])
    assert Live.from_json(found.to_json()) == found
    assert sum(found.to_dict()["bytes"]) == sum(row.bytes for row in found.rows)
    with pytest.raises(ValueError, match="not a Live in JSON"):
        Live.from_json("{}")


def test_what_the_next_program_needs_in_one_piece(program: Path) -> None:
    report = tw.audit(program)
    found = tw.live(next_program=report)
    assert {device.needed_bytes for device in found.devices} == {report.temporary_bytes}
    # A CPU does not say what is free.
    assert {device.fits for device in found.devices} == {None}
    assert LiveDevice("d", 10, 100, 50, largest_free_bytes=40, needed_bytes=41).fits is False
    assert LiveDevice("d", 10, 100, 50, largest_free_bytes=None, needed_bytes=90).fits is True
