"""Out-of-memory messages and the exceptions that carry them."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
import traceback
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import polars
import pytest
from conftest import EXAMPLES

import tilewise as tw


def test_the_example(message: str) -> None:
    explained = tw.explain(message)
    assert (explained.form, explained.memory_space_name) == ("assignment", "hbm")
    assert explained.exceeded_bytes == 488_960
    assert explained.used_bytes is not None
    assert explained.limit_bytes is not None
    assert explained.padding_bytes == sum(row.padding_bytes for row in explained.allocations)
    allocation = next(row for row in explained.allocations if row.section == "arguments_and_outputs")
    assert allocation.shape is not None
    assert str(allocation.shape) == allocation.shape_text == "f32[100000,12]{0,1:T(8,128)}"
    assert explained.verdict == "padding"
    assert allocation.physical_bytes == allocation.shape.physical_bytes
    assert str(explained) == explained.table()
    assert "Padding is the cause" in explained.table()
    assert tw.explain(EXAMPLES / "out_of_memory.txt").padding_bytes == explained.padding_bytes
    frame = explained.to_polars()
    assert isinstance(frame, polars.DataFrame)
    assert frame["padding_bytes"].sum() == explained.padding_bytes
    assert list(explained.to_pandas().columns) == frame.columns
    assert "<svg" in explained._repr_html_()


def test_advice_is_the_command_line_s(message: str) -> None:
    command = [sys.executable, "-m", "tilewise", "explain", "--format", "json", str(EXAMPLES / "out_of_memory.txt")]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    fields = {name: name for name in ("kind", "target", "is_bound", "is_estimate", "sentence", "code", "imports")}
    fields |= {"shape": "shape_text", "peak_bytes_saved": "peak_bytes_saved"}
    advice = tw.explain(message).advice
    rows = [{name: row[name] for name in fields} for row in printed["advice"]]
    assert [{name: getattr(piece, ours) for name, ours in fields.items()} for piece in advice] == rows
    assert (advice[0].kind, str(advice[0])) == ("split", advice[0].sentence)


def test_exceptions_and_their_causes(message: str) -> None:
    error = RuntimeError(message)
    assert tw.explain(error).padding_bytes == tw.explain(message).padding_bytes
    with pytest.raises(ValueError, match="training loop") as caught:
        raise ValueError("in the training loop") from error
    assert tw.explain(caught.value).padding_bytes == tw.explain(message).padding_bytes
    with pytest.raises(tw.MessageError):
        tw.explain(RuntimeError("something else"))
    loop = RuntimeError("one")
    loop.__context__ = ValueError("two")
    loop.__context__.__context__ = loop
    with pytest.raises(tw.MessageError):
        tw.explain(loop)


def printed(error: BaseException) -> str:
    return "".join(traceback.format_exception(type(error), error, error.__traceback__))


def test_explain_oom_adds_a_note_to_the_same_exception(message: str) -> None:
    class Error(RuntimeError):
        pass

    original = Error(message)
    with pytest.raises(Error) as caught, tw.explain_oom():
        raise original
    assert caught.value is original
    assert "jnp.unstack(table" in printed(original)
    if sys.version_info >= (3, 11):
        assert str(original) == message
        assert original.__notes__ == [tw.explain(message).table()]


def test_explain_oom_passes_other_exceptions(message: str) -> None:
    for error in (RuntimeError("something else"), KeyError("x"), KeyboardInterrupt()):
        with pytest.raises(type(error)) as caught, tw.explain_oom():
            raise error
        assert caught.value is error
        assert not getattr(error, "__notes__", [])
    with tw.explain_oom():
        pass

    @tw.explain_oom(tpu="v5e")
    def step() -> None:
        raise RuntimeError(message)

    for _ in range(2):
        with pytest.raises(RuntimeError) as caught:
            step()
        assert "Padding is the cause" in printed(caught.value)


def test_explain_oom_checks_tpu_first() -> None:
    with pytest.raises(tw.ParseError), tw.explain_oom(tpu="v99"):
        pytest.fail("the work has begun")


def test_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        tw.explain(Path("no/such/message.txt"))


def test_a_path_in_a_string(message: str) -> None:
    path = EXAMPLES / "out_of_memory.txt"
    assert tw.explain(str(path)) == tw.explain(path) == tw.explain(message)
    assert list(tw.explain(path)) == tw.explain(path).allocations
    assert len(tw.explain(path)) == len(tw.explain(path).allocations)
    with pytest.raises(tw.MessageError):
        tw.explain("no/such/message.txt")


def test_files_and_lists(message: str) -> None:
    path = EXAMPLES / "out_of_memory.txt"
    with path.open() as as_text, path.open("rb") as as_bytes:
        explanations = tw.explain([message, path, as_text, as_bytes, RuntimeError(message)])
    assert all(each == explanations[0] for each in explanations)


def test_explain_oom_decorates_without_parentheses(message: str) -> None:
    @tw.explain_oom
    def step(x: int) -> int:
        """Raises."""
        if x < 0:
            raise RuntimeError(message)
        return x + 1

    assert (step(1), step.__name__, step.__doc__) == (2, "step", "Raises.")
    with pytest.raises(RuntimeError) as caught:
        step(-1)
    assert "Padding is the cause" in printed(caught.value)


def test_explain_oom_decorates_generators_and_coroutines(message: str) -> None:
    @tw.explain_oom
    def batches() -> Generator[int, int, str]:
        got = yield 1
        assert got == 5
        raise RuntimeError(message)

    @tw.explain_oom(tpu="v5e")
    async def step() -> None:
        await asyncio.sleep(0)
        raise RuntimeError(message)

    @tw.explain_oom
    async def stream() -> AsyncGenerator[int, None]:
        yield 1
        raise RuntimeError(message)

    async def drained() -> None:
        async for _ in stream():
            pass

    running = batches()
    assert next(running) == 1
    for work in (lambda: running.send(5), lambda: asyncio.run(step()), lambda: asyncio.run(drained())):
        with pytest.raises(RuntimeError) as caught:
            work()
        assert printed(caught.value).count("Padding is the cause") == 1
    assert inspect.iscoroutinefunction(step)
    assert inspect.isgeneratorfunction(batches)
    assert inspect.isasyncgenfunction(stream)


SHORT = (
    "RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate 2.00G. That was not possible. "
    "There are 1.00G free.; (0x0x0_HBM0)"
)


class Jitted:
    """Stands for a jitted function on a TPU without memory left."""

    marker = 7

    def __call__(self) -> None:
        raise RuntimeError(SHORT)

    def lower(self) -> Jitted:
        return self

    def compile(self, options: dict[str, Any]) -> None:
        folder = Path(options["xla_dump_to"])
        text = (EXAMPLES / "gnn_large.v5e.hlo").read_text(encoding="utf-8")
        (folder / "module_0001.jit_f.tpu_after_optimizations.txt").write_text(text, encoding="utf-8")


class JittedOnGpu(Jitted):
    """A jitted function on a GPU, whose messages name no owner."""

    def __call__(self) -> None:
        raise RuntimeError(
            "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 25165824 bytes.\n"
            "BufferAssignment OOM Debugging.\nBufferAssignment stats:\n"
            "             parameter allocation:    3.00MiB\n              constant allocation:         0B\n"
            "        maybe_live_out allocation:    1.00MiB\n     preallocated temp allocation:   24.00MiB\n"
            "                 total allocation:   28.00MiB\n"
        )

    def compile(self, options: dict[str, Any]) -> None:
        text = (EXAMPLES / "machines/attention.h100.hlo").read_text(encoding="utf-8")
        name = "module_0001.jit_attention.sm_9.0_gpu_after_optimizations.txt"
        (Path(options["xla_dump_to"]) / name).write_text(text, encoding="utf-8")


def test_a_message_of_a_gpu_is_explained_with_the_program_s_plan() -> None:
    with pytest.raises(RuntimeError) as caught:
        tw.explain_oom(JittedOnGpu())()
    assert "Out of memory on a GPU: 24.00 MiB asked for" in printed(caught.value)
    # As the message has it: 3 MiB of arguments, 1 of results, 24 of temporaries.
    assert "Holds 28.00 MiB (29360128) of GPU memory at most" in printed(caught.value)
    # Without the program, the message alone; other machines' are left as they are.
    with pytest.raises(RuntimeError) as caught, tw.explain_oom():
        JittedOnGpu()()
    assert printed(caught.value).count("Out of memory on a GPU") == 1


def test_a_message_without_arrays_is_explained_from_a_dump() -> None:
    step = tw.explain_oom(Jitted())
    assert step.marker == 7
    with pytest.raises(RuntimeError) as caught:
        step()
    assert len(tw.explain(SHORT)) == 0
    assert "Holds 311.37 MiB (326497792) of HBM at most" in printed(caught.value)
