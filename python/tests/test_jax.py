"""With JAX itself."""

from __future__ import annotations

import traceback

import numpy as np
import pytest
from conftest import EXAMPLES

import tilewise as tw

jax = pytest.importorskip("jax")
jnp = jax.numpy


def matmul(x):  # type: ignore[no-untyped-def]
    return jnp.tanh(x @ x.T).sum(axis=0)


def test_compiled_programs() -> None:
    compiled = jax.jit(matmul).lower(jnp.ones((24, 40))).compile()
    report = tw.audit(compiled)
    assert report.module == "jit_matmul"
    assert report.source == "Compiled"
    assert report.is_scheduled
    assert report.argument_bytes == 24 * 40 * 4
    assert report.output_bytes == 24 * 4
    assert any(buffer.source and buffer.source.file == __file__ for buffer in report.buffers)
    assert report.padding_bytes == 0
    # Compiled for the CPU, it has no tiles: no padding is no all-clear.
    assert [warning.kind for warning in report.warnings] == ["not_tpu"]


def test_lowered_programs_and_texts() -> None:
    lowered = jax.jit(matmul).lower(jnp.ones((24, 40)))
    assert tw.audit(lowered).module == "jit_matmul"
    assert tw.audit(lowered.compile().as_text()).module == "jit_matmul"
    assert tw.audit(lowered.compile().runtime_executable().hlo_modules()[0]).module == "jit_matmul"
    with pytest.raises(tw.HloError, match="StableHLO"):
        tw.audit(lowered.as_text())


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "int4", "float32", "bool_", "complex64"])
def test_arrays_and_their_layouts(dtype: str) -> None:
    array = jnp.ones((3, 5), getattr(jnp, dtype))
    element_type = tw.ElementType(getattr(jnp, dtype))
    assert tw.ElementType(array.dtype) == element_type
    shape = tw.from_jax(array)
    assert (shape.element_type, shape.dimensions) == (element_type, (3, 5))
    assert tw.from_jax(array.format) == tw.from_jax(array.format.layout) == shape.layout
    assert shape.layout.minor_to_major == (1, 0)
    flat = tw.Shape.array(element_type, (3, 5))
    np.testing.assert_array_equal(
        tw.untile(tw.tile(array, "{0,1:T(2,2)}"), flat.with_layout(tw.Layout((0, 1), tiles=[(2, 2)]))),
        np.asarray(array),
    )


def test_layouts_to_jax_and_back() -> None:
    from jax.experimental.layout import Layout

    layout = tw.Layout((0, 1), tiles=[(8, 128), (2, 1)])
    assert tw.to_jax(layout) == Layout(major_to_minor=(1, 0))
    assert tw.from_jax(tw.to_jax(layout, tiles=True)) == layout
    combined = tw.Layout((1, 0), tiles=[(None, 6)])
    assert tw.from_jax(tw.to_jax(combined, tiles=True)) == combined
    assert tw.to_jax(tw.Shape("f32[3,5]{0,1}")).major_to_minor == (1, 0)
    with pytest.raises(TypeError):
        tw.from_jax(3)


def test_a_layout_that_a_program_fixes() -> None:
    from jax.experimental.layout import Format

    array = jnp.ones((3, 5))
    column_major = jax.device_put(array, Format(tw.to_jax(tw.Layout((0, 1))), array.sharding))
    assert tw.from_jax(column_major) == tw.Shape("f32[3,5]{0,1}")


def test_abstract_arrays_are_predicted() -> None:
    abstract = jax.ShapeDtypeStruct((2048, 1, 2048, 128), jnp.bfloat16)
    assert tw.predict(abstract, tpu="v5e") == tw.predict("bf16[2048,1,2048,128]", tpu="v5e")
    assert tw.predict(jnp.ones((8, 64)), tpu="v5e") == tw.Shape("f32[8,64]{1,0:T(8,128)}")


def test_an_exception_of_jax_with_a_message_of_a_tpu(message: str) -> None:
    with pytest.raises(jax.errors.JaxRuntimeError) as caught, tw.explain_oom():
        raise jax.errors.JaxRuntimeError(message)
    assert "Change  frees" in "".join(traceback.format_exception(caught.value))
    assert tw.explain(caught.value).module == tw.explain(EXAMPLES / "out_of_memory.txt").module


def test_an_out_of_memory_error_of_another_device_passes() -> None:
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED") as caught, tw.explain_oom():
        jnp.zeros((1 << 44,), jnp.float32).block_until_ready()
    # Notes about TPUs aren't added.
    assert not any("Padding is the cause" in note for note in getattr(caught.value, "__notes__", []))
