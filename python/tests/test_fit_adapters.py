"""Programs of libraries in place of a factory."""

from __future__ import annotations

from pathlib import Path

import pytest

import tilewise as tw
from tilewise._fit.factory import Adapter, Exported, MaxText, adapter, factory, sizes


def test_programs_are_named_by_their_library(tmp_path: Path) -> None:
    file = tmp_path / "model.exported"
    file.touch()
    assert isinstance(adapter(f"exported:{file}"), Exported)
    assert isinstance(factory("maxtext:base"), MaxText)
    assert adapter("train.py:make") is None
    with pytest.raises(OSError, match="serialize"):
        adapter("exported:nothing")
    with pytest.raises(TypeError, match="lowered"):
        Adapter("")()


def test_sizes_may_be_fractions() -> None:
    assert sizes("per_device_batch_size=0.25,0.5,1") == ("per_device_batch_size", [0.25, 0.5, 1])


def test_an_exported_program(tmp_path: Path) -> None:
    pytest.importorskip("flatbuffers")
    pytest.importorskip("libtpu")
    jax, jnp = pytest.importorskip("jax"), pytest.importorskip("jax.numpy")
    from jax import export

    (batch,) = export.symbolic_shape("b")
    w, x = jax.ShapeDtypeStruct((2**14, 2**14), jnp.float32), jax.ShapeDtypeStruct((batch * 2**14, 2**14), jnp.float32)
    exported = export.export(jax.jit(lambda w, x: jnp.tanh(x @ w)))(w, x)
    file = tmp_path / "model.exported"
    file.write_bytes(exported.serialize())
    found = tw.fit(factory(f"exported:{file}"), tpu="v5e", largest={"b": range(1, 17)}, cache=None, progress=False)
    # The weights, and for each of the batch an argument and a result of 1 GiB.
    assert (found.largest, found.gaps) == ({"b": 7}, [])
    wrong = tw.fit(factory(f"exported:{file}"), tpu="v5e", largest={"batch": range(1, 3)}, cache=None, progress=False)
    assert "no dimension 'batch'" in (wrong.errors[0].error or "")
