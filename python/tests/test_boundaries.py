"""Copies at kernels: the assertions on programs of public threads, before and after what the report names first."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tilewise as tw
from tilewise.testing import assert_bitcast, assert_no_copies

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "boundaries"
CONFORMANCE = ROOT / "conformance"
NAMES = [
    "queries_by_head",
    "rotary_table",
    "expert_table",
    "transposed_projection",
    "gradient_of_inputs",
    "experts_transposed",
    "int8_gradient",
    "latent_queries",
    "latent_values",
    "heads_to_projection",
    "projection_to_heads",
    "tutorial",
    "flat_pool",
    "pool_in_branch",
    "flat_pool_in_branch",
    "discarded_cache",
    "in_place",
    "narrow_heads",
    "padded_heads",
    "column_major",
    "device_put",
    "column_of_scales",
    "cache_in_loop",
]


@pytest.mark.parametrize("name", ["gradient_of_inputs", "queries_by_head", "rotary_table"])
def test_recorded_programs_fail_before_and_hold_after(name: str) -> None:
    kernel = {"gradient_of_inputs": "gmm", "queries_by_head": "attend", "rotary_table": "rotate"}[name]
    with pytest.raises(AssertionError, match=rf"out of {kernel}, more than 1\.00 MiB(.|\n)*try: Hand the kernel"):
        assert_no_copies(EXAMPLES / f"{name}.before.v6e.hlo", tpu="v6e", into=kernel)
    assert_no_copies(EXAMPLES / f"{name}.after.v6e.hlo", tpu="v6e", into=kernel)


def test_kernels_say_what_lies_between() -> None:
    report = tw.audit(EXAMPLES / "gradient_of_inputs.before.v6e.hlo", tpu="v6e")
    (weights,) = [array for kernel in report.kernels for array in kernel.operands if array.copied_bytes]
    assert (weights.side, weights.index, weights.forced_by) == ("operand", 1, "interface")
    assert weights.copied_bytes == 2 * 8 * 3072 * 2048 * 2
    assert [change.opcode for change in weights.between if change.is_relayout] == ["copy"]
    assert weights.remedy is not None
    assert (weights.remedy.kind, weights.remedy.access) == ("view", "transposed")
    assert weights.remedy.shape == "bf16[8,3072,2048]{2,1,0:T(8,128)(2,1)}"
    assert report.copied_bytes == weights.copied_bytes


def test_a_kernel_that_is_not_there_is_no_all_clear() -> None:
    with pytest.raises(AssertionError, match="has no kernel 'flash'"):
        assert_no_copies(EXAMPLES / "rotary_table.after.v6e.hlo", tpu="v6e", into="flash")


def test_without_a_kernel_all_copies_count() -> None:
    with pytest.raises(AssertionError, match=r"copies 48\.00 MiB \(50331648\), more than 1\.00 KiB"):
        assert_no_copies(EXAMPLES / "rotary_table.before.v6e.hlo", tpu="v6e", above=1024)


def test_bitcasts() -> None:
    queries = "bf16[2048,32,128]{2,1,0:T(8,128)(2,1)}"
    assert_bitcast(queries, "bf16[2048,8,2,2,128]{4,3,2,1,0:T(2,128)(2,1)}")
    with pytest.raises(AssertionError, match="isn't a bitcast of"):
        assert_bitcast(queries, "bf16[32,2048,128]{2,1,0:T(8,128)(2,1)}", reading="transpose")


def cases() -> dict[str, Any]:
    """The cases of `conformance/copies`, by name."""
    sys.path[:0] = [str(CONFORMANCE / folder) for folder in ("copies", "advice", "tpu")]
    try:
        import judge_boundaries
    finally:
        del sys.path[:3]
    return {"judge": judge_boundaries, **judge_boundaries.BOUNDARIES}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_public_cases_fail_before_and_hold_after(name: str) -> None:
    pytest.importorskip("libtpu")
    known = cases()
    judge, case = known["judge"], known[name]
    made = case.make(judge.Draw("", case.tpu, judge.devices(case.tpu)))

    def compiled(program: Any) -> tw.Report:
        return tw.audit(
            judge.jax.jit(program.function, **program.jit).lower(*program.arguments).compile(), tpu=case.tpu
        )

    before = compiled(judge.before(made))
    with pytest.raises(AssertionError, match="copies"):
        assert_no_copies(before, tpu=case.tpu, into=case.kernel)
    arrays = [array for kernel in before.kernels for array in (*kernel.operands, *kernel.results)]
    remedy = max(arrays, key=lambda array: array.copied_bytes).remedy
    assert remedy is not None
    after = compiled(judge.after(made, {"kind": remedy.kind, "code": remedy.code}))
    assert_no_copies(after, tpu=case.tpu, into=case.kernel)
