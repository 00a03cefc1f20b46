# Made by `cargo xtask stub`.
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, SupportsFloat, SupportsIndex, TypeVar, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

from tilewise._base.types import (
    ArrayLike,
    BytesLike,
    DtypeLike,
    HasShape,
    Integers,
    Notation,
    ShapeLike,
    SupportsDLPack,
    Tpu,
)
from tilewise._fit.advice import AdviceCheck

_Out = TypeVar("_Out", bound=SupportsDLPack)

__all__ = [
    "CHECKED_WITH",
    "TPU_GENERATIONS",
    "Allocation",
    "Alternative",
    "BoundaryChange",
    "Buffer",
    "Cause",
    "Change",
    "ComparedProgram",
    "Comparison",
    "Copy",
    "Drawing",
    "ElementType",
    "Explanation",
    "Headline",
    "KernelArray",
    "KernelBudget",
    "KernelRow",
    "KernelUse",
    "Layout",
    "LineEdit",
    "LoadedProgram",
    "MadeBatch",
    "Owner",
    "PageArrays",
    "PeakBuffer",
    "PlannedChange",
    "ProgramShape",
    "Recommendation",
    "Relation",
    "Remedy",
    "Report",
    "ReportWarning",
    "ResidentArray",
    "Row",
    "Shape",
    "SourceLine",
    "SpaceTotal",
    "Step",
    "Steps",
    "Table",
    "Tabular",
    "Time",
    "TimeGroup",
    "TimeRow",
    "Together",
    "__version__",
    "asks_compiler",
    "audit_text",
    "block_bytes",
    "compare_programs",
    "compare_reports",
    "compared_program",
    "comparison_words",
    "decode",
    "draw",
    "equation_json",
    "explain_text",
    "fields_of",
    "floor_of",
    "free_reshapes",
    "frontier",
    "generation_name",
    "hbm_bytes",
    "kernel_budget",
    "kernel_fits",
    "kernel_measured",
    "layout_in",
    "lock_text",
    "machine_name",
    "markdown",
    "plot",
    "predict",
    "programs_in",
    "quoting",
    "rates",
    "read",
    "read_lock",
    "relayout",
    "reshard",
    "restore",
    "run",
    "search_curves",
    "search_page",
    "set_origin",
    "size_of",
    "steps_of",
    "sum_together",
    "tile",
    "untile",
    "work_of",
]

CHECKED_WITH: Final[str]
TPU_GENERATIONS: Final[tuple[str, ...]]
__version__: Final[str]

@final
class Allocation(Row):
    """
    One entry of an out-of-memory message: an allocation, an argument or an output. Sizes are in bytes.

    Examples:
        >>> import pathlib
        >>> worst = explain(pathlib.Path("../examples/out_of_memory.txt")).allocations[0]
        >>> worst.instruction, worst.reported_bytes, worst.logical_bytes
        ('fusion.6', 204797379, 19200000)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def instruction(self, /) -> str | None:
        """
        The name of the instruction; `None` if the message does not name it.
        """
    @property
    def label(self, /) -> str | None:
        """
        The compiler's label, as printed; `None` without one.
        """
    @property
    def reported_bytes(self, /) -> int | None:
        """
        The printed size, in bytes.
        """
    @property
    def section(self, /) -> Literal["allocations", "arguments_and_outputs"]:
        """
        The list that contains it: `'allocations'` or `'arguments_and_outputs'`.
        """
    @property
    def shape(self, /) -> Shape | None:
        """
        The shape of the array. If the message prints no tiles, they are inferred from the printed size; `None` without
        a readable shape.
        """
    @property
    def shape_text(self, /) -> str | None:
        """
        The shape, as printed; `None` without one.
        """

@final
class Alternative:
    """
    A change of the set. `str` gives it in words.

    Examples:
        >>> server.options[0].kind, server.options[0].freed_bytes
        ('donate', 4194304)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def freed_bytes(self, /) -> int:
        """
        The bytes that the set saves.
        """
    @property
    def is_bound(self, /) -> bool:
        """
        Whether it may be less.
        """
    @property
    def kind(self, /) -> Literal["donate", "drop", "narrow", "layout"]:
        """
        `'donate'` arrays that it returns again, `'drop'` a program, `'narrow'` pages to int8, or pages in a `'layout'`
        without padding.
        """
    @property
    def pages(self, /) -> int | None:
        """
        How many pages fit then.
        """
    @property
    def program(self, /) -> str | None:
        """
        The program that it is about.
        """
    @property
    def sentence(self, /) -> str:
        """
        The change in words.
        """

@final
class BoundaryChange:
    """
    One instruction that changes the layout, shape, type or memory space of an array at a kernel, and computes nothing.

    Examples:
        >>> report = audit('''HloModule jit_f, is_scheduled=true
        ...   ENTRY main {
        ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
        ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
        ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
        ...   }''', tpu="v5e")
        >>> report.kernels[0].operands[0].between[0].opcode
        'copy'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bytes(self, /) -> int:
        """
        Bytes that it reads and writes in one run; 0 for a bitcast.
        """
    @property
    def from_shape(self, /) -> Shape:
        """
        The array that it reads.
        """
    @property
    def instruction(self, /) -> str:
        """
        The name of the instruction.
        """
    @property
    def is_duplicate(self, /) -> bool:
        """
        Whether it makes the same array again in the same memory space.
        """
    @property
    def is_relayout(self, /) -> bool:
        """
        Whether elements move: not in a transfer between memory spaces, nor in a bitcast or a conversion.
        """
    @property
    def opcode(self, /) -> str:
        """
        The opcode of the instruction.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """
    @property
    def to_shape(self, /) -> Shape:
        """
        The array that it writes.
        """
    @property
    def trips(self, /) -> int | None:
        """
        How often it runs; `None` in a loop whose trip count isn't known.
        """

@final
class Buffer(Row):
    """
    One buffer of a program: an array that an instruction defines. Sizes are in bytes.

    Examples:
        >>> buffer = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").largest_padding()[0]
        >>> buffer.instruction, buffer.shape
        ('x', Shape('f32[400000,12]{1,0:T(8,128)}'))
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def computation(self, /) -> str:
        """
        The name of the computation that contains the instruction.
        """
    @property
    def instruction(self, /) -> str:
        """
        The name of the instruction that defines it.
        """
    @property
    def logical_bytes(self, /) -> int:
        """
        Bytes of data, computed from the shape.
        """
    @property
    def memory_space(self, /) -> int:
        """
        The memory space's number, 0 for HBM.
        """
    @property
    def opcode(self, /) -> str:
        """
        The instruction's opcode.
        """
    @property
    def physical_bytes(self, /) -> int:
        """
        Bytes taken, computed from the shape.
        """
    @property
    def shape(self, /) -> Shape:
        """
        The shape of the array.
        """
    @property
    def shape_index(self, /) -> tuple[int, ...]:
        """
        The array's index in the instruction's result; `()` if the result is not a tuple.
        """

@final
class Cause:
    """
    A part of a program's need, and its meaning: one of `Report.causes`, `Explanation.causes`. `str` gives the sentence.
    Sizes are in bytes.

    Examples:
        >>> import pathlib
        >>> cause = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).causes[0]
        >>> cause.kind, cause.arrays, cause.filled, str(cause.source)
        ('padding', 3, (12, 128), 'model.py:439')
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def arrays(self, /) -> int:
        """
        The number of its arrays.
        """
    @property
    def axes(self, /) -> list[tuple[str | None, int]]:
        """
        The dimensions of the largest array, without those of size 1: the name of each, `None` if unknown, and its size.
        """
    @property
    def bytes(self, /) -> int:
        """
        Bytes that it takes.
        """
    @property
    def filled(self, /) -> tuple[int, int] | None:
        """
        The places of a row that hold data, and all that the row takes; `None` where most of it isn't padding.
        """
    @property
    def kind(self, /) -> str:
        """
        The kind of its arrays: `'padding'`, `'held_twice'`, `'fragmentation'`, `'parameters'`, `'optimizer_state'`,
        `'cache'`, `'arguments'`, `'results'`, `'logits'`, `'attention_scores'`, `'kept_for_gradient'`, `'gradients'`,
        `'copies_of_arguments'`, `'loop_carry'`, `'workspace'` or `'intermediates'`; for a message `'padding'`,
        `'listed'`, `'kernel'` (its own memory), `'temporaries'`, `'arguments'`, `'others'` (memory in use before) or
        `'fragmentation'`.
        """
    @property
    def quote(self, /) -> str | None:
        """
        The text of that line, if the program's function is at hand.
        """
    @property
    def remedy(self, /) -> str | None:
        """
        A change that makes them take less, without a price; `None` where nothing helps.
        """
    @property
    def sentence(self, /) -> str:
        """
        Its description, without a full stop.
        """
    @property
    def share(self, /) -> float | None:
        """
        Its share of the need, 0 to 1; `None` if unknown.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line that makes the largest array.
        """

@final
class Change:
    """
    One difference between two programs.

    Examples:
        >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> after = audit("x = f32[50000,12]{1,0:T(8,128)} parameter(0)")
        >>> before.diff(after).changes[0]
        <Change total: 409600000 to 51200000, better>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def after(self, /) -> Any:
        """
        The value after; `None` if the second program doesn't have it.
        """
    @property
    def before(self, /) -> Any:
        """
        The value before: bytes, a count, whether, a layout, settings, or the estimated seconds of a run; `None` if the
        first program doesn't have it.
        """
    @property
    def file(self, /) -> str | None:
        """
        The file that the owner is written in.
        """
    @property
    def line(self, /) -> int | None:
        """
        The line there, from 1.
        """
    @property
    def owner(self, /) -> str | None:
        """
        Whose it is, and its shape; `None` for the whole program.
        """
    @property
    def verdict(self, /) -> Literal["same", "better", "worse", "changed", "other compiler"]:
        """
        Whether that is `'better'`, `'worse'` or only `'changed'`.
        """
    @property
    def what(self, /) -> str:
        """
        `'total'`, `'argument'`, `'output'`, `'alias'`, `'constant'`, `'temporary'`, `'padding'`, `'limit'`, `'copies'`,
        the opcode of a collective, `'kernel_copies'`, `'vmem'` and other memories, `'recomputed'`, `'fits'`, `'time'`,
        `'owner'`, `'layout'` or `'settings'`.
        """

@final
class ComparedProgram:
    """
    One of two programs that are compared; sizes are in bytes, on one device.

    Examples:
        >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> report.diff(report).before
        <ComparedProgram text: 409600000 bytes>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def alias_bytes(self, /) -> int:
        """
        Bytes of the results that lie in donated arguments.
        """
    @property
    def argument_bytes(self, /) -> int:
        """
        Bytes of its arguments.
        """
    @property
    def constant_bytes(self, /) -> int:
        """
        Bytes of its constants.
        """
    @property
    def estimate_seconds(self, /) -> float | None:
        """
        How long a run takes, estimated from the compiler's own cycle counts, not measured; `None` where its text has none.
        """
    @property
    def hbm_limit(self, /) -> int | None:
        """
        The memory that it has to fit, if known.
        """
    @property
    def output_bytes(self, /) -> int:
        """
        Bytes of its results.
        """
    @property
    def owners(self, /) -> tuple[Owner, ...]:
        """
        The buffers alive at the peak, the largest first.
        """
    @property
    def peak_bytes(self, /) -> int:
        """
        Their sum; results that lie in donated arguments count once.
        """
    @property
    def peak_padding_bytes(self, /) -> int:
        """
        Padding of all that is alive at the peak.
        """
    @property
    def recomputed(self, /) -> int:
        """
        How many instructions the compiler computes twice to save memory.
        """
    @property
    def settings(self, /) -> Mapping[str, Any]:
        """
        The arguments of its factory.
        """
    @property
    def source(self, /) -> str:
        """
        Where its text came from; empty if a lock has it.
        """
    @property
    def temporary_bytes(self, /) -> int:
        """
        Bytes of its temporaries.
        """
    @property
    def topology(self, /) -> str | None:
        """
        The slice that it is for.
        """
    @property
    def tpu(self, /) -> str | None:
        """
        The TPU generation that it is for.
        """

@final
class Comparison(Tabular):
    """
    The differences between two programs; false if there are none. `str` lists them.

    Returned by `Report.diff` and `check_fix`. Two buffers are the same if the framework's name of their operation, their
    opcode, shape and memory space are: compilers number instructions anew, and a comment moves all lines. As a table, it
    has a row for each change.

    Examples:
        >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> after = audit("x = f32[50000,12]{1,0:T(8,128)} parameter(0)")
        >>> difference = before.diff(after)
        >>> [(owner.bytes, owner.shape) for owner in (*difference.removed, *difference.added)]
        [(204800000, 'f32[400000,12]{1,0:T(8,128)}'), (25600000, 'f32[50000,12]{1,0:T(8,128)}')]
    """
    def __bool__(self, /) -> bool: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _rows(self, /) -> list[dict[str, Any]]: ...
    @property
    def added(self, /) -> tuple[Owner, ...]:
        """
        The buffers that only the second program has, the largest first.
        """
    @property
    def advice(self, /) -> str | None:
        """
        The first change to try, if it is worse.
        """
    @property
    def after(self, /) -> ComparedProgram:
        """
        The second program.
        """
    @property
    def before(self, /) -> ComparedProgram:
        """
        The first program.
        """
    @property
    def changes(self, /) -> tuple[Change, ...]:
        """
        The differences: the program's numbers, its owners, its copies; the largest difference first.
        """
    @staticmethod
    def from_json(text: str, /) -> Comparison:
        """
        Read the JSON that `to_json` wrote.

        Raises:
            ValueError: the text isn't such JSON.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> bool(Comparison.from_json(report.diff(report).to_json()))
            False
        """
    @property
    def headline(self, /) -> str:
        """
        The totals and their difference, in words.
        """
    @property
    def peak_bytes_saved(self, /) -> int:
        """
        By how much the program's bytes fall; negative if they rise.
        """
    @property
    def program(self, /) -> str:
        """
        The program's name, without the `jit_` of its framework.
        """
    @property
    def removed(self, /) -> tuple[Owner, ...]:
        """
        The buffers that only the first program has, the largest first.
        """
    @property
    def text(self, /) -> str:
        """
        All of it, as the JSON that `tilewise audit --against` prints.
        """
    def to_json(self, /) -> str:
        """
        All of it as JSON, which `from_json` reads.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> report.diff(report).to_json()[:11]
            '{"schema":1'
        """
    def to_markdown(self, /) -> str:
        """
        Markdown for a pull request: a table, and below it the largest buffers that are new.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> print(report.diff(report).to_markdown().splitlines()[0])
            | program | total before | after | left | verdict |
        """
    @property
    def verdict(self, /) -> Literal["same", "better", "worse", "changed", "other compiler"]:
        """
        `'same'`, `'better'`, `'worse'`, or `'other compiler'`, whose plan isn't comparable. Worse is: a larger total, or
        more bytes of copies or collectives, by more than 1 % and a MiB; more that the compiler recomputes; or that it no
        longer fits.
        """

@final
class Copy:
    """
    One `copy` instruction. Sizes are in bytes.

    Examples:
        >>> report = audit('''
        ...   x = f32[256,512]{1,0:T(8,128)} parameter(0)
        ...   y = f32[256,512]{0,1:T(8,128)} copy(x)''')
        >>> report.copies
        [<Copy y: f32[256,512]{1,0:T(8,128)} to f32[256,512]{0,1:T(8,128)}>]
        >>> report = audit('''HloModule jit_f, is_scheduled=true
        ...   ENTRY main {
        ...     w = f32[1024,1024]{0,1:T(8,128)} parameter(0), metadata={op_name="w"}
        ...     c = f32[1024,1024]{1,0:T(8,128)} copy(w)
        ...     ROOT r = f32[1024]{0:T(1024)} custom-call(c), custom_call_target="rows"
        ...   }''')
        >>> print(report.copies[0].fix.code)
        w = jax.device_put(w, Format(Layout(major_to_minor=(0, 1)), w.sharding))
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def cancels(self, /) -> str | None:
        """
        The other copy of a pair whose second copy undoes the first; `None` for all others.
        """
    @property
    def class_name(self, /) -> str:
        """
        The class of its reason, as in the command line's JSON.
        """
    @property
    def computation(self, /) -> str:
        """
        The name of the computation that contains it.
        """
    @property
    def fix(self, /) -> Recommendation | None:
        """
        The layout in which to pass an argument or take a result so that the copy isn't needed; `None` if unknown.
        """
    @property
    def from_shape(self, /) -> Shape:
        """
        The operand's shape.
        """
    @property
    def instruction(self, /) -> str:
        """
        The name of the instruction.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation.
        """
    @property
    def read_bytes(self, /) -> int:
        """
        Bytes that the operand takes.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """
    @property
    def to_shape(self, /) -> Shape:
        """
        The result's shape.
        """
    @property
    def trips(self, /) -> int | None:
        """
        How often it runs; `None` where a loop around it runs an unknown number of times.
        """
    @property
    def why(self, /) -> str:
        """
        The reason, as a sentence: what needs which layout.
        """
    @property
    def written_bytes(self, /) -> int:
        """
        Bytes that the result takes.
        """

@final
class Drawing:
    """
    A picture of a layout, or of a program's memory: notebooks display it, `save` writes it as SVG, PNG or text, `str` is
    its text.

    Examples:
        >>> print(Shape("f32[2,2]{0,1}").draw(view="memory"), end="")
        f32[2,2]{0,1}
        4 elements, no padding, 16 bytes.
        ...
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __reduce__(self, /) -> tuple[Any, Any]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_svg_(self, /) -> str: ...
    def save(self, path: str | PathLike[str], /) -> None:
        """
        Writes the picture to a file. The file name's extension chooses the format: `.svg`, `.png` or `.txt`.

        Raises:
            DrawError: any other extension.
            OSError: the file can't be written.

        Examples:
            >>> import os, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Shape("f32[2,2]").draw().save(os.path.join(folder, "layout.svg"))
            ...     os.listdir(folder)
            ['layout.svg']
        """
    def to_png(self, /, *, scale: SupportsFloat | SupportsIndex = 2.0) -> bytes:
        """
        The picture as a PNG image.

        Args:
            scale: pixels per unit of the SVG.

        Raises:
            DrawError: the scale is not a positive number, or the image would have more than 100 million pixels.

        Examples:
            >>> Shape("f32[2,2]").draw().to_png(scale=1.0)[1:4]
            b'PNG'
        """
    def to_svg(self, /) -> str:
        """
        The picture as an SVG document.

        Examples:
            >>> Shape("f32[2,2]").draw().to_svg()[:4]
            '<svg'
        """
    def to_text(self, /, *, width: int = 100) -> str:
        """
        The picture as lines of text.

        Args:
            width: the number of columns to fit into, where the widest cell allows it.

        Examples:
            >>> Shape("f32[2,2]").draw().to_text(width=60).splitlines()[0]
            'f32[2,2]{1,0}'
        """

@final
class ElementType:
    """
    The type of an array's elements, under XLA's name.

    Accepts XLA's names (`"bf16"`, `"f8e4m3fn"`, `"pred"`), NumPy's full names (`"bfloat16"`), PyTorch's dtypes
    (`torch.bfloat16`), and anything that `numpy.dtype` accepts: dtypes, and the scalar types of NumPy, ml_dtypes and JAX.

    NumPy's abbreviations are not accepted: `"u8"` is XLA's 8-bit type, not 8 bytes.

    Raises:
        ParseError: the string names no element type.
        ShapeError: XLA has no element type for the dtype.
        TypeError: the value is not a dtype, or is that of JAX's keys.

    Examples:
        >>> import numpy as np
        >>> ElementType("bf16")
        ElementType('bf16')
        >>> ElementType(np.float32) == ElementType("f32")
        True
        >>> ElementType("s4").bits
        4
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, value: ElementType | DtypeLike, /) -> ElementType: ...
    def __reduce__(self, /) -> tuple[Any, tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @staticmethod
    def all() -> list[ElementType]:
        """
        Every element type, in the order of XLA's documentation.

        Examples:
            >>> [str(known) for known in ElementType.all()][:3]
            ['pred', 's1', 's2']
        """
    @property
    def bits(self, /) -> int:
        """
        Bits of information in one element: 1 for `pred`, 4 for `s4`, 128 for `c128`.
        """
    @property
    def dtype(self, /) -> np.dtype[Any]:
        """
        The dtype with the same values: NumPy's, or that of ml_dtypes for types that NumPy lacks.

        Raises:
            ImportError: the type needs ml_dtypes, which is not installed.
            ShapeError: the installed ml_dtypes has no such type.

        Examples:
            >>> ElementType("s16").dtype
            dtype('int16')
        """
    @property
    def kind(self, /) -> Literal["predicate", "signed", "unsigned", "float", "complex"]:
        """
        The kind of value: `'predicate'`, `'signed'`, `'unsigned'`, `'float'` or `'complex'`.
        """
    @property
    def name(self, /) -> str:
        """
        XLA's name, such as `'f8e4m3fn'`.
        """
    @property
    def natural_bits(self, /) -> int:
        """
        Bits that one element occupies if the layout sets no element size: `bits` rounded up to whole bytes.
        """

@final
class Explanation(Table):
    """
    The explanation of an out-of-memory message. Sizes are in bytes, as exact as the message prints them.

    Returned by `explain`. `str` is the text that the command line prints. As a `Table`, it has one row for each
    allocation; `len` and iteration are over the allocations. Two are equal if they have the same text and TPU.

    Examples:
        >>> import pathlib
        >>> explained = explain(pathlib.Path("../examples/out_of_memory.txt"))
        >>> explained.memory_space_name, explained.exceeded_bytes
        ('hbm', 488960)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[Allocation]: ...
    def __len__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[str, str | None]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_html_(self, /) -> str:
        """
        For notebooks: the explanation, and pictures of the arrays with the most padding.
        """
    @property
    def advice(self, /) -> list[Recommendation]:
        """
        The recommended changes, the best first.

        Examples:
            >>> import pathlib
            >>> first = explain(pathlib.Path("../examples/out_of_memory.txt")).advice[0]
            >>> first.kind, first.target, first.is_bound
            ('split', 'upstream', True)
        """
    @property
    def allocations(self, /) -> list[Allocation]:
        """
        The entries of the message, in its order.
        """
    @property
    def causes(self, /) -> list[Cause]:
        """
        The largest arrays that the message lists, equal ones together, three at most.
        """
    @property
    def changes(self, /) -> list[PlannedChange]:
        """
        The changes to make, the best first, each with the need after it. `advice` has more about each.
        """
    @property
    def code(self, /) -> str | None:
        """
        XLA's error code, such as `'E1000'`.
        """
    @property
    def exceeded_bytes(self, /) -> int | None:
        """
        Bytes by which the need exceeds the memory: as printed, or the difference.
        """
    @property
    def form(self, /) -> str:
        """
        The form of the message: `'assignment'`, `'bound'`, `'scoped'`, `'allocation'`, `'early_abort'`, `'run_time'`,
        `'cores'`, `'sparse_core'`, `'excerpt'`, `'other'` or `'not_tpu'`.
        """
    @staticmethod
    def from_json(json: str, /) -> Explanation:
        """
        The explanation that `to_json` wrote.

        Raises:
            MessageError: the text is not such JSON.

        Examples:
            >>> import pathlib
            >>> text = explain(pathlib.Path("../examples/out_of_memory.txt")).to_json()
            >>> Explanation.from_json(text).verdict
            'padding'
        """
    @property
    def headline(self, /) -> Headline:
        """
        The memory that ran out, and by how much; its `verdict` is that of the explanation.

        Examples:
            >>> import pathlib
            >>> print(explain(pathlib.Path("../examples/out_of_memory.txt")).headline)
            Out of memory in hbm: 314.47 MiB needed, 314.00 MiB available, 477.5 KiB over.
        """
    @property
    def limit_bytes(self, /) -> int | None:
        """
        Bytes that the memory has.
        """
    @property
    def memory_space_name(self, /) -> str | None:
        """
        The name of the memory that ran out, such as `'hbm'`.
        """
    @property
    def module(self, /) -> str | None:
        """
        The name of the HLO module.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Padding of all the arrays that the message lists.
        """
    @property
    def raised_at(self, /) -> tuple[str, int] | None:
        """
        The file and the line of the user's own program in the text's traceback; `None` without one.
        """
    def table(self, /, *, width: int = 100) -> str:
        """
        The explanation as text, as the command line prints it.

        Args:
            width: the number of columns to fit into, where words can be cut or wrapped.

        Examples:
            >>> import pathlib
            >>> print(explain(pathlib.Path("../examples/out_of_memory.txt")).table())
            Out of memory in hbm: 314.47 MiB needed, 314.00 MiB available, 477.5 KiB over.
            ...
        """
    def to_json(self, /) -> str:
        """
        The explanation as JSON: the object that the command line prints, and in `message` the explanation's text and
        TPU, from which `from_json` restores it.

        Examples:
            >>> import pathlib
            >>> explained = explain(pathlib.Path("../examples/out_of_memory.txt"))
            >>> Explanation.from_json(explained.to_json()) == explained
            True
        """
    @property
    def truncated(self, /) -> bool:
        """
        Whether parts of the message are missing.
        """
    @property
    def used_bytes(self, /) -> int | None:
        """
        Bytes that the program needs.
        """
    @property
    def verdict(self, /) -> str:
        """
        The cause: `'padding'`, `'arguments'`, `'size'`, `'fragmentation'`, `'reservation'`, `'kernel_memory'`,
        `'spills'`, `'not_tpu'` or `'unknown'`.
        """

@final
class Headline:
    """
    Whether a program fits, or what ran out, in a sentence: `Report.headline`, `Explanation.headline`. `str` gives the
    sentence. Sizes are in bytes.

    Examples:
        >>> import pathlib
        >>> headline = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").headline
        >>> headline.verdict, headline.needed_bytes - headline.limit_bytes
        ('does_not_fit', 115176960)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def is_comfortable(self, /) -> bool:
        """
        Whether it needs less than 80 % of the limit: nothing needs to change.
        """
    @property
    def limit_bytes(self, /) -> int | None:
        """
        Bytes of the memory limit; `None` if unknown.
        """
    @property
    def needed_bytes(self, /) -> int | None:
        """
        Bytes that it needs; `None` if unknown.
        """
    @property
    def sentence(self, /) -> str:
        """
        The verdict, the bytes needed, the limit, and the difference.
        """
    @property
    def verdict(self, /) -> str:
        """
        `'fits'`, `'does_not_fit'`, `'may_not_fit'` or `'unknown'`; for a message its own verdict.
        """

@final
class KernelArray:
    """
    An operand of a kernel with what XLA does to it before the call; or a result, with what XLA does to it before another
    instruction reads it.

    Examples:
        >>> report = audit('''HloModule jit_f, is_scheduled=true
        ...   ENTRY main {
        ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
        ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
        ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
        ...   }''', tpu="v5e")
        >>> report.kernels[0].operands
        [<KernelArray operand 0: f32[1024,512]{1,0:T(8,128)}, 4194304 bytes copied>]
        >>> [change.opcode for change in report.kernels[0].operands[0].between]
        ['copy']
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def between(self, /) -> list[BoundaryChange]:
        """
        The instructions between the kernel and `other`, from the kernel on.
        """
    @property
    def copied_bytes(self, /) -> int:
        """
        Bytes that the copies among these read and write, in all runs of the program.
        """
    @property
    def forced_by(self, /) -> Literal["kernel", "interface", "loop", "branch", "donation"] | None:
        """
        Why it is copied: `'kernel'`, `'interface'`, `'loop'`, `'branch'`, `'donation'`; `None` where it isn't.
        """
    @property
    def index(self, /) -> int:
        """
        Its number among the operands, or among the arrays that the kernel makes.
        """
    @property
    def other(self, /) -> str:
        """
        The instruction that makes an operand, or the parameter that it is; the one that reads a result.
        """
    @property
    def other_opcode(self, /) -> str:
        """
        The opcode of `other`.
        """
    @property
    def remedy(self, /) -> Remedy | None:
        """
        A remedy that avoids the copy; `None` if unknown.
        """
    @property
    def shape(self, /) -> Shape:
        """
        The array as the kernel takes or makes it.
        """
    @property
    def side(self, /) -> Literal["operand", "result"]:
        """
        `'operand'` or `'result'`.
        """

@final
class KernelBudget:
    """
    The VMEM and SMEM of a kernel on a TPU generation. `str` is a table.

    Declared bytes are exact; the bytes of its body are a guess, or not known. Sizes are in bytes.

    Examples:
        >>> from tilewise import kernels
        >>> found = kernels.budget("grid 8\\nin f32[64,128] block 8,128 @ 0,-", tpu="v6e")
        >>> found.vmem_bytes, found.verdict, found.rows[0].cause
        (8192, 'declared_fits', 'moves')
        >>> kernels.budget("grid 8\\nin f32[64,512] block 7,100 @ 0,0", tpu="v6e").unsupported[0].split("; ")[1]
        'the nearest such block is 8,128'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def cap_bytes(self, /) -> int | None:
        """
        The largest `vmem_limit_bytes` that is honoured.
        """
    @property
    def guess_bytes(self, /) -> int | None:
        """
        Bytes of VMEM that its body is guessed to take; `None` without a guess.
        """
    @property
    def libtpu(self, /) -> str | None:
        """
        The versions of libtpu whose limits these are; `None` where there are none.
        """
    @property
    def limit_bytes(self, /) -> int | None:
        """
        The limit of VMEM in force; `None` where it is not known.
        """
    @property
    def limit_needed_bytes(self, /) -> int | None:
        """
        The limit that it needs, in whole MiB; `None` if no limit is enough.
        """
    @property
    def may_be_dropped_bytes(self, /) -> int:
        """
        Bytes of scratch that the compiler may do without: allocations of `pl.run_scoped`, unless copies from HBM fill it.
        0 of a text, which doesn't tell it from other scratch.
        """
    @property
    def may_be_kept_bytes(self, /) -> int:
        """
        Bytes of windows that aren't allocated if XLA keeps their arrays in VMEM.
        """
    @property
    def measured_bytes(self, /) -> int | None:
        """
        Bytes of VMEM by the compiler's own account; `None` unless it was asked.
        """
    @property
    def moved_bytes(self, /) -> int | None:
        """
        Bytes that all windows move over the whole grid; `None` where only the run knows the grid.
        """
    @property
    def name(self, /) -> str | None:
        """
        Its name.
        """
    @property
    def refusal(self, /) -> str | None:
        """
        The compiler's words where it was asked and refuses the kernel for something else than its memory; `None` where
        it doesn't.
        """
    @property
    def rows(self, /) -> tuple[KernelRow, ...]:
        """
        Windows, prefetched scalars and scratch.
        """
    @property
    def smem_bytes(self, /) -> int:
        """
        Bytes of SMEM that it declares.
        """
    @property
    def text(self, /) -> str:
        """
        The kernel, as `tilewise kernel` reads it.
        """
    @property
    def tpu(self, /) -> str:
        """
        The generation.
        """
    @property
    def unsupported(self, /) -> tuple[str, ...]:
        """
        Why the compiler refuses its blocks: a sentence for each, with the nearest legal block.
        """
    @property
    def verdict(self, /) -> str | None:
        """
        `'does_not_fit'`, `'declared_fits'`, and with a guess `'probably_fits'` or `'probably_does_not_fit'`; `'ask'`, the
        compiler, where it fits only without `may_be_dropped_bytes`. Of its size alone, also where `unsupported` says that
        the compiler refuses a block. `'fits'` and `'does_not_fit'` where the compiler was asked.
        """
    @property
    def vmem_bytes(self, /) -> int:
        """
        Bytes of VMEM that it declares.
        """

@final
class KernelRow:
    """
    The memory of a window, prefetched scalars or scratch of a kernel.

    Examples:
        >>> from tilewise import kernels
        >>> kernels.budget("grid 8\\nin f32[64,100] block 8,100 @ 0,-", tpu="v6e").rows
        (<KernelRow in0: 8192 bytes of vmem>,)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def block(self, /) -> tuple[int | None, ...] | None:
        """
        The bounds of a block, `None` where a dimension is squeezed; `None` without a window.
        """
    @property
    def buffers(self, /) -> int:
        """
        How many blocks are held at a time.
        """
    @property
    def bytes(self, /) -> int:
        """
        Bytes of all of them.
        """
    @property
    def cause(self, /) -> str | None:
        """
        The cause of the buffer count: `'moves'`, `'as_asked'`, `'constant'`, `'one_step'`, `'no_window'`,
        `'one_element'`, `'fused'`; `None` if it isn't a window.
        """
    @property
    def logical_bytes(self, /) -> int:
        """
        Bytes of the elements of all of its blocks, without the padding of their tiles.
        """
    @property
    def may_be_kept(self, /) -> bool:
        """
        Whether XLA may keep the whole array in VMEM, so that the window is not allocated.
        """
    @property
    def memory_space_name(self, /) -> str:
        """
        `'vmem'`, `'smem'`, `'any'`, `'hbm'` or `'semaphore'`.
        """
    @property
    def moved_bytes(self, /) -> int | None:
        """
        Bytes copied to or from the window over the whole grid; `None` if it isn't a window, and where only the run knows
        the grid.
        """
    @property
    def nearest_block(self, /) -> tuple[int, ...] | None:
        """
        The nearest block that it takes; `None` without one.
        """
    @property
    def operand(self, /) -> str:
        """
        `'in0'`, `'out0'`, `'prefetch0'`, `'scratch0'`, ….
        """
    @property
    def padded_block(self, /) -> tuple[int, ...] | None:
        """
        The bounds with the padding of the tiles; `None` if it takes nothing.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Bytes of padding.
        """
    @property
    def shape(self, /) -> str | None:
        """
        The whole array; `None` for semaphores.
        """
    @property
    def unsupported(self, /) -> str | None:
        """
        Why the compiler refuses such a block; `None` if it doesn't.
        """

@final
class KernelUse:
    """
    A Pallas kernel of a compiled program, and the VMEM that it took by the compiler's own account. Sizes are in bytes.

    Examples:
        >>> report = audit('''HloModule jit_f, is_scheduled=true
        ...   ENTRY main {
        ...     x = f32[1024,512]{1,0:T(8,128)} parameter(0)
        ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(x), custom_call_target="tpu_custom_call",
        ...       backend_config={"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"2097152"}]}
        ...   }''', tpu="v5e")
        >>> report.kernels
        [<KernelUse y: 2097152 of 16777216 bytes of VMEM>]
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def block_sizes(self, /) -> dict[str, int]:
        """
        The sizes of its blocks by the names that its library gives them, such as `{'block_q': 512, 'block_kv': 1024}`: from its metadata
        or its name; empty where neither has them.
        """
    @property
    def body_moves(self, /) -> list[str] | None:
        """
        The operations of its body that move elements between rows and lanes, as it was handed to the compiler: `'tpu.transpose'` and
        the like; `None` where the text doesn't have the body.
        """
    @property
    def cap_bytes(self, /) -> int | None:
        """
        The largest limit that is honoured.
        """
    @property
    def computation(self, /) -> str:
        """
        The name of the computation that contains it.
        """
    @property
    def copied_bytes(self, /) -> int:
        """
        Bytes that are read and written to copy its operands and results, in all runs of the program.
        """
    @property
    def held_bytes(self, /) -> int:
        """
        Bytes of operands and results that XLA keeps in VMEM as a whole, beside `used_bytes`: they have no windows.
        """
    @property
    def instruction(self, /) -> str:
        """
        The name of the call.
        """
    @property
    def is_near_limit(self, /) -> bool:
        """
        Whether it uses nine tenths of its limit or more: a slightly larger block may not compile.
        """
    @property
    def limit_bytes(self, /) -> int | None:
        """
        The limit in force: the kernel's own, or the generation's default; `None` if unknown.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation.
        """
    @property
    def operands(self, /) -> list[KernelArray]:
        """
        Its operands, with what XLA does to each before the call.
        """
    @property
    def results(self, /) -> list[KernelArray]:
        """
        Its results, one for each reader, with what XLA does to each before it is read.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """
    @property
    def used_bytes(self, /) -> int | None:
        """
        Bytes of VMEM that it uses: windows, scratch and the body's own; `None` if the text doesn't give them.
        """

@final
class Layout:
    """
    How an array lies in memory: the order of its dimensions, its tiles, and everything else XLA writes between braces.

    Args:
        minor_to_major: a permutation of 0 … N−1: dimension numbers from the fastest-varying to the slowest; or the whole
            layout as XLA writes it, `"{1,0:T(8,128)}"`.
        tiles: the sizes of each tile in elements, major to minor; each tile is applied to the result of the one before.
            `None`, or −1 as in the documents, is XLA's `*`, which merges a dimension into the next. Or the tile's text, `"(8,128)"`.
        tail_padding_alignment: the element count is padded to a multiple of this, XLA's `L(n)`.
        element_size_in_bits: bits of one stored element, XLA's `E(n)`; `None` for the element type's whole bytes.
        memory_space: 0 … 127, XLA's `S(n)`; 0 is the device's default memory.
        split_configs: (dimension, indices) pairs, XLA's `SC(…)`: the physical dimensions that are split between
            memories, and the indices before which they are split.
        dynamic_shape_metadata_prefix_bytes: bytes of run-time sizes in front of the data, XLA's `M(n)`; not compared.
        index_primitive_type: the type of a sparse array's indices, XLA's `#(t)`: u8, u16, u32 or u64.
        pointer_primitive_type: the type of its pointers, XLA's `*(t)`.

    Raises:
        ParseError: the string is not a layout.
        ShapeError: `minor_to_major` is not a permutation, a tile is empty, or a number is out of range.

    Examples:
        >>> layout = Layout((1, 0), tiles=[(8, 128), (2, 1)])
        >>> str(layout)
        '{1,0:T(8,128)(2,1)}'
        >>> Layout("{1,0:T(8,128)(2,1)}") == layout
        True
        >>> str(Shape.array("bf16", (16, 256), layout))
        'bf16[16,256]{1,0:T(8,128)(2,1)}'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(
        cls,
        /,
        minor_to_major: Sequence[int] | str,
        *,
        tiles: Sequence[Sequence[int | None] | str] = ...,
        tail_padding_alignment: int = 1,
        element_size_in_bits: int | None = None,
        memory_space: int = 0,
        split_configs: Sequence[tuple[int, Sequence[int]]] = ...,
        dynamic_shape_metadata_prefix_bytes: int = 0,
        index_primitive_type: ElementType | DtypeLike | None = None,
        pointer_primitive_type: ElementType | DtypeLike | None = None,
    ) -> Layout: ...
    def __reduce__(self, /) -> tuple[Any, tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def are_dimensions_consecutive(self, dimensions: Sequence[SupportsIndex], /) -> bool:
        """
        Whether these dimensions are neighbours in memory, in any order.

        Examples:
            >>> Layout((0, 2, 1)).are_dimensions_consecutive((0, 2))
            True
        """
    @staticmethod
    def ascending(rank: int, /) -> Layout:
        """
        The layout of that rank whose dimensions ascend from minor to major, `{0,…,N-1}`: the first dimension varies fastest.

        Examples:
            >>> Layout.ascending(3)
            Layout((0, 1, 2))
        """
    @staticmethod
    def descending(rank: int, /) -> Layout:
        """
        The layout of that rank whose dimensions descend from minor to major: `row_major` under XLA's other name.

        Examples:
            >>> Layout.descending(3)
            Layout((2, 1, 0))
        """
    @property
    def dynamic_shape_metadata_prefix_bytes(self, /) -> int:
        """
        Bytes of run-time sizes in front of the data; ignored by `==`, and included in no size.
        """
    @property
    def element_size_in_bits(self, /) -> int | None:
        """
        Bits of one stored element; `None` for the element type's whole bytes.
        """
    @staticmethod
    def from_major_to_minor(major_to_minor: Sequence[SupportsIndex], /) -> Layout:
        """
        A layout with this order of dimensions, the slowest-varying first, and nothing else.

        Raises:
            ShapeError: not a permutation of 0 … N−1.

        Examples:
            >>> Layout.from_major_to_minor((1, 0, 2))
            Layout((2, 0, 1))
        """
    @staticmethod
    def from_proto(message: bytes, /) -> Layout:
        """
        The layout in a serialised `xla.LayoutProto` message.

        Raises:
            ShapeError: the bytes are not such a message.

        Examples:
            >>> Layout.from_proto(bytes.fromhex("0a020001"))
            Layout((0, 1))
        """
    @property
    def index_primitive_type(self, /) -> ElementType | None:
        """
        The index type of a sparse array, which XLA still reads but no longer validates.
        """
    def logical_to_physical(self, /) -> tuple[int, ...]:
        """
        For each dimension its place in memory, 0 the most major.

        Examples:
            >>> Layout((0, 2, 1)).logical_to_physical()
            (2, 0, 1)
        """
    @property
    def memory_space(self, /) -> int:
        """
        The memory space, 0 … 127.
        """
    @property
    def memory_space_name(self, /) -> str:
        """
        The memory space's name on a TPU, such as `'hbm'`.
        """
    @property
    def minor_to_major(self, /) -> tuple[int, ...]:
        """
        Dimension numbers from the fastest-varying to the slowest.
        """
    def move_dim_to_major(self, dimension: int, /) -> Layout:
        """
        The layout with this dimension the most major; everything else stays.

        Raises:
            OutOfRangeError: there is no such dimension.

        Examples:
            >>> str(Layout("{2,1,0:T(2,2)}").move_dim_to_major(2))
            '{1,0,2:T(2,2)}'
        """
    def move_dim_to_minor(self, dimension: int, /) -> Layout:
        """
        The layout with this dimension the most minor; everything else stays.

        Raises:
            OutOfRangeError: there is no such dimension.

        Examples:
            >>> str(Layout("{2,1,0:T(2,2)}").move_dim_to_minor(0))
            '{0,2,1:T(2,2)}'
        """
    @property
    def order_name(self, /) -> str | None:
        """
        The name of the dimension order, where it has one: `'row-major'` ("dim 0 is major"), `'column-major'` ("dim 0 is minor").
        """
    @property
    def pointer_primitive_type(self, /) -> ElementType | None:
        """
        The pointer type of a sparse array, which XLA still reads but no longer validates.
        """
    @staticmethod
    def row_major(rank: int, /) -> Layout:
        """
        XLA's default layout for that rank: the last dimension varies fastest.

        Examples:
            >>> Layout.row_major(3)
            Layout((2, 1, 0))
        """
    @property
    def split_configs(self, /) -> tuple[tuple[int, tuple[int, ...]], ...]:
        """
        The physical dimensions that are split between memories: (dimension, indices) pairs.
        """
    @property
    def tail_padding_alignment(self, /) -> int:
        """
        The element count is padded to a multiple of this; 1 means no padding at the end.
        """
    @property
    def tiles(self, /) -> tuple[tuple[int | None, ...], ...]:
        """
        The tiles in the order of their application, each a tuple of sizes in elements; `None` is XLA's `*`.
        """
    def to_proto(self, /) -> bytes:
        """
        The layout as a serialised `xla.LayoutProto` message, byte for byte as XLA writes it.

        Examples:
            >>> Layout((0, 1)).to_proto().hex()
            '0a020001800101'
        """

@final
class LineEdit:
    """
    A line of the program's own source, and its replacement: `PlannedChange.edit`.

    Examples:
        >>> import pathlib
        >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).changes[0].edit is None
        True
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def after(self, /) -> str:
        """
        The line after the change, perhaps behind a new one.
        """
    @property
    def before(self, /) -> str:
        """
        The line now, without its indentation, and those that its call goes on in.
        """
    @property
    def file(self, /) -> str:
        """
        Its file, as the program names it.
        """
    @property
    def line(self, /) -> int:
        """
        Its number, from 1.
        """

@final
class LoadedProgram:
    """
    The memory that a program adds to its set; sizes are in bytes, on one device.

    Examples:
        >>> server.programs[0]
        <LoadedProgram tanh: frees 8388608 bytes>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def alias_bytes(self, /) -> int:
        """
        Bytes of the results that lie in donated arguments, likewise.
        """
    @property
    def argument_bytes(self, /) -> int:
        """
        Bytes of its arguments, as `memory_analysis()` has them.
        """
    @property
    def bytes_per_page(self, /) -> int:
        """
        By how much its temporaries and results grow with a page of the cache.
        """
    @property
    def call_bytes(self, /) -> int:
        """
        Inputs and new results that a call of it holds beside the resident arrays.
        """
    @property
    def code_bytes(self, /) -> int | None:
        """
        Its code; `None` where it is known from its text alone.
        """
    @property
    def constant_bytes(self, /) -> int:
        """
        Its constants.
        """
    @property
    def costs_pages(self, /) -> int | None:
        """
        How many pages more fit without it; `None` without pages, a limit or other programs.
        """
    @property
    def decides(self, /) -> bool:
        """
        Whether its temporaries, inputs and new results together are the largest.
        """
    @property
    def fragmentation_bytes(self, /) -> int:
        """
        The bytes of its temporaries that are unused at its peak.
        """
    @property
    def freed_bytes(self, /) -> int:
        """
        The bytes that the set saves without it.
        """
    @property
    def module(self, /) -> str:
        """
        The module's name.
        """
    @property
    def name(self, /) -> str:
        """
        Its name in the set.
        """
    @property
    def output_bytes(self, /) -> int:
        """
        Bytes of its results, likewise.
        """
    @property
    def temporary_bytes(self, /) -> int:
        """
        Bytes of its temporaries, likewise.
        """
    @property
    def undonated_bytes(self, /) -> int:
        """
        New results that could take the place of arrays it is given.
        """

@final
class MadeBatch:
    """
    A batch that a step makes itself, by the arguments that `microbatch` takes.

    Examples:
        >>> audit("x = f32[3] parameter(0)").advice
        ()
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def axis(self, /) -> int:
        """
        Their dimension of that array.
        """
    @property
    def made_at(self, /) -> str:
        """
        The line that makes the largest array: ``train.py:30``.
        """
    @property
    def parts(self, /) -> int:
        """
        Parts, of equally many samples.
        """
    @property
    def size(self, /) -> int:
        """
        Samples.
        """

@final
class Owner:
    """
    A buffer that takes memory in a program, such as at its peak. `str` gives its line and its shape.

    Examples:
        >>> str(Owner("src/model.py", 12, "dot", "f32[8,128]{1,0:T(8,128)}", 4096))
        'model.py:12 f32[8,128]'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(
        cls,
        /,
        file: str | None,
        line: SupportsIndex | None,
        op: str,
        shape: str,
        bytes: SupportsIndex,
        padding_bytes: SupportsIndex = 0,
    ) -> Owner: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def bytes(self, /) -> int:
        """
        Its size, padding included.
        """
    @property
    def file(self, /) -> str | None:
        """
        The file that it is written in; `None` if the program does not say.
        """
    @property
    def line(self, /) -> int | None:
        """
        The line there, from 1.
        """
    @property
    def op(self, /) -> str:
        """
        Its name, as JAX gives it.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        The padding in it.
        """
    @property
    def shape(self, /) -> str:
        """
        Its shape and layout.
        """

@final
class PageArrays:
    """
    The pages of a set's cache.

    Examples:
        >>> print(server.pages)
        None
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def arrays(self, /) -> int:
        """
        How many arrays there are, such as one a layer.
        """
    @property
    def count(self, /) -> int:
        """
        How many pages the programs were compiled for.
        """
    @property
    def decided_by(self, /) -> str | None:
        """
        The program that then holds the most beside the resident arrays.
        """
    @property
    def dimension(self, /) -> int:
        """
        Which of its dimensions counts pages.
        """
    @property
    def fitting(self, /) -> int | None:
        """
        How many pages fit; `None` without a limit.
        """
    @property
    def name(self, /) -> str:
        """
        The name of the first.
        """
    @property
    def page_bytes(self, /) -> int:
        """
        The bytes of a page in all arrays.
        """
    @property
    def page_padding_bytes(self, /) -> int:
        """
        The padding in them.
        """
    @property
    def shape(self, /) -> str:
        """
        The shape of the first.
        """

@final
class PeakBuffer:
    """
    Equal arrays of one line that are alive at the peak. Sizes are in bytes, of all of them together.

    Examples:
        >>> import pathlib
        >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).peak_buffers[0]
        <PeakBuffer fusion.6 f32[400000,12]{1,0:T(8,128)}: 204800000 bytes>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bytes(self, /) -> int:
        """
        Bytes they take.
        """
    @property
    def causes(self, /) -> list[str]:
        """
        The causes of the padding, as sentences.
        """
    @property
    def computation(self, /) -> str:
        """
        The instruction's computation.
        """
    @property
    def count(self, /) -> int:
        """
        The number of arrays.
        """
    @property
    def instruction(self, /) -> str:
        """
        The instruction that makes the first of them.
        """
    @property
    def logical_bytes(self, /) -> int:
        """
        Bytes of data.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation, or of the argument.
        """
    @property
    def opcode(self, /) -> str:
        """
        The instruction's opcode.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Bytes of padding.
        """
    @property
    def role(self, /) -> str:
        """
        The role of the arrays, such as `'argument'` or `'temporary'`.
        """
    @property
    def shape(self, /) -> Shape:
        """
        The array; a tuple where it is a tuple's table of pointers.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """

@final
class PlannedChange:
    """
    A change, and the need after it: one of `Report.changes`, which are in the order in which to try them, or of
    `Explanation.changes`. `str` gives the task.

    Examples:
        >>> import pathlib
        >>> change = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").changes[0]
        >>> change.kind, change.fits
        ('split', True)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def bytes_after(self, /) -> int | None:
        """
        Bytes needed after it and the changes before it; for a message, after it alone. `None` if a message doesn't show
        them.
        """
    @property
    def caveat(self, /) -> str | None:
        """
        A caveat, without a full stop.
        """
    @property
    def code(self, /) -> str | None:
        """
        Code for it, in the program's framework; `None` for a change without code.
        """
    @property
    def do(self, /) -> str:
        """
        The task, in a few words.
        """
    @property
    def edit(self, /) -> LineEdit | None:
        """
        The line of source that makes the change; `None` unless it is one line at hand, and the only one that could be
        meant.
        """
    @property
    def fits(self, /) -> bool | None:
        """
        Whether that fits; `None` if the memory is unknown.
        """
    @property
    def kind(self, /) -> str:
        """
        The `kind` of its `Recommendation`.
        """
    @property
    def lines(self, /) -> list[tuple[str, int, str | None]]:
        """
        The lines to edit: file, number, and text if the program's function is at hand.
        """
    @property
    def place(self, /) -> str:
        """
        The place of the change: a line, and the call on it; empty if unknown.
        """
    @property
    def recommendation(self, /) -> Recommendation:
        """
        More about it.
        """
    @property
    def seconds_after(self, /) -> float | None:
        """
        Seconds of a run after the change, estimated from the compiler's cycle counts; `None` if unknown.
        """

@final
class ProgramShape:
    """
    The shapes of a computation's parameters and of its result: XLA's `ProgramShape`.

    Parsed from XLA's text, with layouts or without; a missing layout stays missing. `str` returns the text as XLA prints it, without layouts.

    Raises:
        ParseError: the string is not the shape of a program.

    Examples:
        >>> program = ProgramShape("(x: f32[2]{0:S(1)}, s32[]) -> f32[3]")
        >>> program.parameters
        (('x', Shape('f32[2]{0:S(1)}')), (None, Shape('s32[]')))
        >>> program.result
        Shape('f32[3]')
        >>> str(program)
        '(x: f32[2], s32[]) -> f32[3]'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(cls, text: str, /) -> ProgramShape: ...
    def __reduce__(self, /) -> tuple[type, tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def parameters(self, /) -> tuple[tuple[str | None, Shape], ...]:
        """
        Each parameter's name, `None` where it has none, and its shape.
        """
    @property
    def result(self, /) -> Shape:
        """
        The result's shape.
        """

@final
class Recommendation:
    """
    One change, and what it frees: of `Report.advice`, `Explanation.advice` or a `Copy.fix`. `str` gives the sentence.

    Examples:
        >>> import pathlib
        >>> first = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).advice[0]
        >>> first.kind, first.target, str(first.shape)
        ('split', 'upstream', 'bf16[400000,12]{1,0:T(8,128)(2,1)}')
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def code(self, /) -> str | None:
        """
        The code for it, in the language of the program's framework; `None` for a change without code.
        """
    @property
    def donate(self, /) -> list[str]:
        """
        The parameters of the function to donate; empty for other changes.
        """
    @property
    def imports(self, /) -> str | None:
        """
        The imports of that code.
        """
    @property
    def inputs(self, /) -> dict[str, int]:
        """
        For a step that `microbatch` takes in `parts`: the arguments with a batch dimension, by their names in the
        report, each with that dimension. Empty for other changes.
        """
    @property
    def instruction(self, /) -> str | None:
        """
        The instruction that makes the array it is about; `None` if it follows from a message.
        """
    @property
    def is_bound(self, /) -> bool:
        """
        Whether `peak_bytes_saved` is an upper bound.
        """
    @property
    def is_estimate(self, /) -> bool:
        """
        Whether `peak_bytes_saved` is an estimate: it may free less or more.
        """
    @property
    def kind(
        self, /
    ) -> Literal[
        "order",
        "transpose",
        "reshape",
        "split",
        "batch",
        "chunk",
        "checkpoint",
        "carry",
        "donate",
        "narrow",
        "shard",
        "block",
        "limit",
        "free",
        "audit",
        "none",
    ]:
        """
        The sort of change: `'order'`, `'transpose'`, `'reshape'`, `'split'`, `'chunk'`, `'checkpoint'`, `'donate'`,
        `'narrow'` types, `'shard'` arrays between devices, a kernel's `'block'`, a `'limit'` to raise, memory to
        `'free'`, `'audit'` where the program shows more than the message, or `'none'` where none of these helps.
        """
    @property
    def made(self, /) -> MadeBatch | None:
        """
        The batch that the step makes itself and `microbatch` takes in parts; `None` for other changes.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation, or of the argument.
        """
    @property
    def parts(self, /) -> int | None:
        """
        The number of parts of the batch for this saving, where more parts save more; `None` for other changes.
        """
    @property
    def peak_bytes_saved(self, /) -> int | None:
        """
        The drop in bytes of arguments, results that don't lie in them, and temporaries together, after the preceding
        advice; `None` if unknown.
        """
    @property
    def requested(self, /) -> Shape | None:
        """
        The layout to request for an argument or result; `None` if the change is not about a copy.
        """
    @property
    def sentence(self, /) -> str:
        """
        The task, as a sentence.
        """
    @property
    def shape(self, /) -> Shape | None:
        """
        The array it is about, the largest of several; `None` without an array, or if the message cuts its shape off.
        """
    @property
    def shape_text(self, /) -> str | None:
        """
        The recommended shape, as the command line's JSON has it.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """
    @property
    def target(self, /) -> Literal["argument", "result", "upstream", "kernel", "loop", "value", "compiler", "process"]:
        """
        The target of the change: an `'argument'`, a `'result'`, code `'upstream'` of a gather or scatter, a `'kernel'`,
        arrays that a `'loop'` keeps, a `'value'` inside the program, the `'compiler'`, or the `'process'` around the
        program.
        """

@final
class Relation:
    """
    Whether the bytes of one array can be read as another, and how; true if they can. `Shape.bitcast` returns it.

    Examples:
        >>> relation = Shape("f32[64,128]{1,0:T(8,128)}").bitcast("f32[128,64]{0,1:T(8,128)}")
        >>> relation.kind, relation.permutation, bool(relation)
        ('transpose', (1, 0), True)
    """
    def __bool__(self, /) -> bool: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def counterexample(self, /) -> tuple[tuple[int, ...], tuple[int, ...], int, int] | None:
        """
        The smallest element that lies elsewhere: its index in the first array and in the second, and its offset in
        either buffer, in elements; `None` without one.
        """
    @property
    def exposed(self, /) -> int | None:
        """
        Elements of the second array that are padding of the first; `None` unless padding is exposed.
        """
    @property
    def hidden(self, /) -> int | None:
        """
        Elements of the first array that are padding of the second; `None` unless padding is exposed.
        """
    @property
    def kind(self, /) -> Literal["identical", "reshape", "transpose", "transpose_reshape", "exposes_padding", "none"]:
        """
        The relation: `'identical'`, `'reshape'`, `'transpose'`, `'transpose_reshape'` (a transpose, then a
        reshape, then a second transpose), `'exposes_padding'` or `'none'`.
        """
    @property
    def permutation(self, /) -> tuple[int, ...] | None:
        """
        Dimension k of the second array is this dimension of the first; `None` without a transpose.
        """
    @property
    def reason(self, /) -> str | None:
        """
        Why it isn't a bitcast, in a clause; `None` for a bitcast.
        """
    @property
    def reshape(self, /) -> tuple[int, ...] | None:
        """
        The bounds of the reshape behind the transpose; `None` unless the relation is `'transpose_reshape'`.
        """
    @property
    def then(self, /) -> tuple[int, ...] | None:
        """
        The transpose behind the reshape; `None` unless the relation is `'transpose_reshape'`.
        """

@final
class Remedy:
    """
    A remedy that avoids the copy of a kernel's operand or result.

    Examples:
        >>> report = audit('''HloModule jit_f, is_scheduled=true
        ...   ENTRY main {
        ...     x = f32[1024,512]{0,1:T(8,128)} parameter(0)
        ...     c = f32[1024,512]{1,0:T(8,128)} copy(x)
        ...     ROOT y = f32[1024,512]{1,0:T(8,128)} custom-call(c), custom_call_target="tpu_custom_call"
        ...   }''', tpu="v5e")
        >>> report.kernels[0].operands[0].remedy.kind
        'layout'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def access(self, /) -> Literal["index_map", "lanes", "rows", "transposed", "split"] | None:
        """
        The change to a block: `'index_map'`, `'lanes'`, `'rows'`, `'transposed'`, `'split'`; `None` if `shape` is.
        """
    @property
    def code(self, /) -> str | None:
        """
        The code for it: outside the kernel, then inside.
        """
    @property
    def kind(self, /) -> Literal["layout", "view", "stored", "donate", "drop_alias"]:
        """
        `'layout'`, `'view'`, `'stored'`, `'donate'` or `'drop_alias'`.
        """
    @property
    def sentence(self, /) -> str:
        """
        The task, as a sentence.
        """
    @property
    def shape(self, /) -> str | None:
        """
        The array that the kernel reads or writes instead; `None` for other kinds than a view or a stored shape.
        """

@final
class Report(Table):
    """
    The audit of one program: every buffer it defines, its data and its padding. Sizes are in bytes.

    Returned by `audit`. `str` is the report that the command line prints. As a `Table`, it has one row for each buffer;
    `len` and iteration are over the buffers. Two are equal if they have the same text, source, machine, limit and
    buffer assignment.

    Examples:
        >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        <Report of text: 1 buffers, 185600000 bytes of padding in HBM>
    """
    def __bool__(self, /) -> bool:
        """
        Always true, even without buffers.
        """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[Buffer]: ...
    def __len__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, Any]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_html_(self, /) -> str:
        """
        For notebooks: the report, and pictures of the arrays with the most padding.
        """
    @property
    def advice(self, /) -> list[Recommendation]:
        """
        The recommended changes, the best first; each frees its bytes after the ones before it.
        """
    @property
    def alias_bytes(self, /) -> int:
        """
        Bytes of the results that reuse the memory of donated arguments.
        """
    @property
    def argument_bytes(self, /) -> int:
        """
        Bytes of the entry computation's arguments in HBM.
        """
    @property
    def at_least_bytes(self, /) -> int:
        """
        The least HBM the program can need, in bytes: its arguments, its results, its constants, and temporaries where they
        are known.
        """
    @property
    def at_most_bytes(self, /) -> int:
        """
        The HBM the program needs, in bytes; if it isn't scheduled, as if no two buffers shared memory.
        """
    @property
    def buffer_assignment(self, /) -> str | None:
        """
        The text of the compiler's own buffer assignment, if available, as for a function that `audit` compiled. Its
        bytes take precedence over the plan's.
        """
    @property
    def buffers(self, /) -> list[Buffer]:
        """
        Every buffer, in the order of the text.
        """
    @property
    def causes(self, /) -> list[Cause]:
        """
        The largest parts of the peak, the largest first: as many as make up 80 % of it, three at most.
        """
    @property
    def changes(self, /) -> list[PlannedChange]:
        """
        The changes to make, in the order in which to try them: the gentlest that is enough by itself, then those that
        free most. `advice` has more about each.
        """
    def check(self, /, *, confirm: bool = False, until_fits: bool = False) -> AdviceCheck:
        """
        Make the changes of the report, one after the other, and ask the compiler what each frees.

        A change of one line of the function's file is made in that line, in memory: the function's module, or the file of
        a FILE.py:FACTORY, is imported again. Others are made from outside: arguments are donated, values recomputed, the
        batch taken in parts. The rest is not applied.

        Needs JAX and libtpu, and a report of a function: of `audit(f, *args, tpu=…)`.

        Args:
            confirm: compile all in full, which takes longer; only then is the cost of each in time reported.
            until_fits: end at the first change with which the program fits.

        Returns:
            An `AdviceCheck`, which prints the promised bytes beside the freed ones.

        Raises:
            TypeError: the report is not of a function.

        Examples:
            >>> import jax, jax.numpy as jnp
            >>> x = jax.ShapeDtypeStruct((400000, 128), jnp.float32)
            >>> print(audit(lambda x: x + 1, x, tpu="v5e").check())
            promised  freed ...
        """
    @property
    def constant_bytes(self, /) -> int:
        """
        Bytes of constants in HBM, each an allocation of its own: `memory_analysis()` doesn't count them.
        """
    @property
    def copied_bytes(self, /) -> int:
        """
        Bytes that the program reads and writes to reorder elements or to duplicate arrays; transfers between memory
        spaces don't count.
        """
    @property
    def copies(self, /) -> list[Copy]:
        """
        Every `copy` between two layouts, in the order of the text.
        """
    def diff(self, other: Report, /) -> Comparison:
        """
        The differences between this report and another, such as that of the program after a change.

        Returns:
            A `Comparison`, which is false if nothing differs.

        Examples:
            >>> before = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> after = audit("x = f32[400000,12]{0,1:T(8,128)} parameter(0)")
            >>> [(change.what, change.before, change.after) for change in before.diff(after).changes if change.what == "layout"]
            [('layout', '{1,0:T(8,128)}', '{0,1:T(8,128)}')]
            >>> bool(before.diff(before))
            False
        """
    @property
    def entry(self, /) -> str | None:
        """
        The name of the entry computation.
        """
    @property
    def fits(self, /) -> bool | None:
        """
        Whether it fits into `hbm_limit`; `None` without a limit, or if it depends on how temporaries share memory.
        """
    @staticmethod
    def from_json(json: str, /) -> Report:
        """
        The report that `to_json` wrote: the program in it is audited again, so that nothing is lost.

        Raises:
            HloError: the text is not such JSON, or was written without its program.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> Report.from_json(report.to_json()) == report
            True
        """
    @property
    def hbm_limit(self, /) -> int | None:
        """
        The memory it has to fit into, in bytes: `hbm_limit` of `audit`, or a program's part of the memory of `tpu` or
        `machine`.
        """
    @property
    def headline(self, /) -> Headline:
        """
        Whether it fits, and by how much.

        Examples:
            >>> import pathlib
            >>> print(audit(pathlib.Path("../examples/gnn_large.v5e.hlo"), hbm_limit="200MiB").headline)
            Does not fit 200.00 MiB of HBM: needs 309.84 MiB, 109.84 MiB too much.
        """
    @property
    def is_scheduled(self, /) -> bool:
        """
        Whether the text declares the module scheduled.
        """
    @property
    def kernels(self, /) -> list[KernelUse]:
        """
        The Pallas kernels of a TPU's program, in the order of the text, with the VMEM that each took.
        """
    def largest_padding(self, /, count: int | None = None) -> list[Buffer]:
        """
        The buffers with padding, the most padding first.

        Args:
            count: the number of buffers to return at most; `None` for all.

        Examples:
            >>> import pathlib
            >>> report = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"))
            >>> [buffer.instruction for buffer in report.largest_padding(2)]
            ['fusion.6', 'gather_fusion']
        """
    @property
    def libtpu(self, /) -> str | None:
        """
        The version of libtpu that compiled the program, such as ``"0.0.50.1"``, if the file name or the caller has it.
        """
    @property
    def machine(self, /) -> str:
        """
        The machine of the plan, such as `'tpu:v5e'`, `'gpu:h100'` or `'cpu'`: the one given to `audit`, or else the one
        that the file's name or the text shows. If neither does, there is a warning `assumed_machine`.

        Examples:
            >>> import pathlib
            >>> audit(pathlib.Path("../examples/machines/attention.h100.hlo")).machine
            'gpu:h100'
        """
    @property
    def memory_spaces(self, /) -> list[SpaceTotal]:
        """
        Totals of the buffers in each memory space, in the order of the spaces' numbers.
        """
    @property
    def module(self, /) -> str:
        """
        The name of the module.
        """
    @property
    def moved_bytes(self, /) -> int:
        """
        Bytes that the program reads and writes: the operands and results of all that runs, times the trip counts of
        loops. They include `copied_bytes`.
        """
    @property
    def no_time(self, /) -> str | None:
        """
        Why there is no `time`; `None` where there is one.
        """
    @property
    def output_bytes(self, /) -> int:
        """
        Bytes of the entry computation's results in HBM.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Padding of all buffers in HBM. Buffers that are never live at the same time share memory, but each is counted.
        """
    @property
    def padding_share(self, /) -> float:
        """
        Padding as a fraction of the bytes that all buffers in HBM take, 0 … 1.
        """
    @property
    def partitions(self, /) -> int:
        """
        Devices that run the program together; sizes are those of one device.
        """
    @property
    def peak_buffers(self, /) -> list[PeakBuffer]:
        """
        The arrays alive in HBM at that peak, the largest first; empty for a program that isn't scheduled.
        """
    @property
    def peak_bytes(self, /) -> int | None:
        """
        The HBM that arguments, results that don't lie in them, constants and temporaries take together, in bytes: the
        size that advice reduces. `None` for a program that isn't scheduled.

        Examples:
            >>> import pathlib
            >>> report = audit(pathlib.Path("../examples/gnn_large.v5e.hlo"))
            >>> report.peak_bytes, report.peak_instruction, str(report.peak_source)
            (326497792, 'fusion.6', 'model.py:439')
        """
    @property
    def peak_instruction(self, /) -> str | None:
        """
        The instruction that runs at that peak.
        """
    @property
    def peak_live_bytes(self, /) -> int | None:
        """
        Bytes of everything alive in HBM at the peak of live bytes; `None` for a program that isn't scheduled.
        """
    @property
    def peak_padding_bytes(self, /) -> int | None:
        """
        Padding of everything alive in HBM at that peak.
        """
    @property
    def peak_source(self, /) -> SourceLine | None:
        """
        The line of the user's program that `peak_instruction` comes from.
        """
    def plot(self, /, *, memory_space: int = 0, theme: Literal["auto", "light", "dark"] = "auto") -> Drawing:
        """
        The memory plan as a picture: the bytes held over the program's order, and when and where each array lies.

        Args:
            memory_space: its number, 0 for HBM.
            theme: `'auto'` follows the viewer's colour scheme; or `'light'`, or `'dark'`.

        Raises:
            DrawError: the program has no memory plan, as one that isn't scheduled.
            ValueError: the theme is unknown.

        Examples:
            >>> import pathlib
            >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).plot()
            <Drawing of jit_f: HBM>
        """
    @property
    def reported_temporary_bytes(self, /) -> int | None:
        """
        Bytes of temporaries in that compiler's `memory_analysis()` (`temp_size_in_bytes`): `temporary_bytes`, and
        before libtpu 0.0.51 the gaps between them a second time.
        """
    @property
    def source(self, /) -> str:
        """
        Where the text came from: a path, or the type of the object.
        """
    def table(self, /, *, all: bool = False, width: int = 100) -> str:
        """
        The report as text, as the command line prints it.

        Args:
            all: whether to list every buffer, not only those with the most padding.
            width: the number of columns to fit into, where words can be cut or wrapped.

        Examples:
            >>> import pathlib
            >>> print(audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).table(width=80))
            Fits a TPU v5e: needs 311.37 MiB of 15.75 GiB, 15.45 GiB left.
            jit_f  ../examples/gnn_large.v5e.hlo, entry main.2
            ...
        """
    @property
    def temporary_bytes(self, /) -> int | None:
        """
        Bytes of temporaries in HBM, as the compiler allocates them; `None` for a program that isn't scheduled.

        Examples:
            >>> import pathlib
            >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).temporary_bytes
            310476800
        """
    @property
    def text(self, /) -> str:
        """
        The HLO text of the program.
        """
    @property
    def time(self, /) -> Time | None:
        """
        Where the time of a run goes, estimated from the compiler's own cycle counts, not measured: a `Time`. `None` where
        the text has none, for the reason in `no_time`.

        Examples:
            >>> import pathlib
            >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.kinds[0].name
            'matmul'
            >>> print(audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").time)
            None
        """
    def to_html(self, /) -> str:
        """
        The report as an HTML page in one file, which opens without network: the program's memory over time, the changes
        to make, and pictures of the layouts.

        Examples:
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> report.to_html()[:15]
            '<!doctype html>'
        """
    def to_json(self, /, *, program: bool = True) -> str:
        """
        The report as the JSON object that `tilewise audit --all --format json` prints; `docs/json.md` lists its fields.

        Args:
            program: whether to add the field `program`, {`text`, `tpu`, `hbm_limit`, `machine`, `libtpu`,
                `buffer_assignment`}, from which `from_json` restores the report.

        Examples:
            >>> import json
            >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
            >>> json.loads(report.to_json())["buffers"][0]["padding_bytes"]
            185600000
        """
    @property
    def tpu(self, /) -> str | None:
        """
        The generation that `audit` was given, as `TPU_GENERATIONS` has it; `None` if it was given none.
        """
    @property
    def warnings(self, /) -> list[ReportWarning]:
        """
        The parts of the program that could not be read or sized.
        """

@final
class ReportWarning:
    """
    A part of a program's text that could not be read or sized; or, first, that the program was not compiled for a TPU.

    Examples:
        >>> first, *_, last = audit("x = b16[3] parameter(0)").warnings
        >>> first.kind
        'not_tpu'
        >>> last
        <ReportWarning shape: the shape of `x` isn't valid: `b16` is not an element type ...>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def kind(self, /) -> str:
        """
        A stable name in snake case.
        """
    @property
    def message(self, /) -> str:
        """
        The warning, as a sentence.
        """

@final
class ResidentArray:
    """
    An array that is held whichever program runs.

    Examples:
        >>> server.residents[0]
        <ResidentArray : f32[1024,1024]{1,0:T(8,128)} in 4194304 bytes>
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bytes(self, /) -> int:
        """
        Its size.
        """
    @property
    def donated_to(self, /) -> tuple[str, ...]:
        """
        Those of them that it is donated to.
        """
    @property
    def is_laid_out_otherwise(self, /) -> bool:
        """
        Whether other programs have it in another layout: it is held in each.
        """
    @property
    def is_pages(self, /) -> bool:
        """
        Whether it is a part of the cache.
        """
    @property
    def name(self, /) -> str:
        """
        The argument's name, such as `params['w']`.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        The padding in it.
        """
    @property
    def programs(self, /) -> tuple[str, ...]:
        """
        Names of the programs that have it.
        """
    @property
    def shape(self, /) -> str:
        """
        Its shape and layout.
        """

@disjoint_base
class Row:
    """
    The base class of `Buffer` and `Allocation`: something that takes memory, its padding and the causes. Sizes are in
    bytes.

    Examples:
        >>> row = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").buffers[0]
        >>> row.padding_bytes, row.causes
        (185600000, ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used'])
    """
    @property
    def bytes(self, /) -> int | None:
        """
        Bytes taken; for a message's entry without a readable shape, as printed. `None` if neither is known.
        """
    @property
    def causes(self, /) -> list[str]:
        """
        The causes of the padding, as sentences, the largest first.
        """
    @property
    def expansion(self, /) -> float:
        """
        Bytes taken as a multiple of the bytes of data; 1 if that can't be computed.
        """
    @property
    def logical_bytes(self, /) -> int | None:
        """
        Bytes of data, computed from the shape.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation, such as `'jit(f)/dot_general'`.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Bytes of padding; 0 if they can't be computed.
        """
    @property
    def physical_bytes(self, /) -> int | None:
        """
        Bytes taken, computed from the shape.
        """
    @property
    def source(self, /) -> SourceLine | None:
        """
        The line of the user's program.
        """

@final
class Shape:
    """
    An XLA shape: an array with its layout, a tuple of shapes, or a token, opaque or buffer.

    Parsed from XLA's text, which `str` returns byte for byte. As in XLA, a missing layout becomes the default one, the
    last dimension minor; `Shape.parse_as_written` leaves it missing. A name behind `@` gives the array the tiles of another
    machine or library, as `tilewise tiles` lists them.

    Immutable and hashable. `==` is XLA's equality, which ignores run-time metadata (`M(n)`). Offsets and indices are in
    elements, sizes in bytes.

    Raises:
        ParseError: the string is not a shape; `.span` is the place of the error, and the message points at it.

    Examples:
        >>> s = Shape("f32[3,5]{1,0:T(2,2)}")
        >>> s
        Shape('f32[3,5]{1,0:T(2,2)}')
        >>> s.offset((2, 3))
        17
        >>> s.logical_bytes, s.physical_bytes
        (60, 96)
        >>> Shape("bf16[100,300]@tt-tile")
        Shape('bf16[100,300]{1,0:T(32,32)(16,16)}')
        >>> Shape("b16[2]")
        Traceback (most recent call last):
        ...
        tilewise.ParseError: `b16` is not an element type
          b16[2]
          ^^^
        help: did you mean `bf16`?
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __new__(cls, text: ShapeLike, /) -> Shape: ...
    def __reduce__(self, /) -> builtins.tuple[Any, builtins.tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_html_(self, /) -> str:
        """
        For notebooks: the text, its meaning, and the picture.
        """
    def append_major_dimension(self, bound: int, /) -> Shape:
        """
        The array with another dimension of this size behind its own, the most major in memory; the rest of its layout stays.

        Raises:
            ShapeError: not an array.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").append_major_dimension(7)
            Shape('f32[3,5,7]{1,0,2:T(2,2)}')
        """
    def append_minor_dimension(self, bound: int, /) -> Shape:
        """
        The array with another dimension of this size behind its own, the most minor in memory; the rest of its layout stays.

        Raises:
            ShapeError: not an array.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").append_minor_dimension(7)
            Shape('f32[3,5,7]{2,1,0:T(2,2)}')
        """
    def append_shape_to_tuple(self, element: ShapeLike, /) -> Shape:
        """
        The tuple with another element behind its own.

        Raises:
            ShapeError: not a tuple.

        Examples:
            >>> Shape("(f32[2])").append_shape_to_tuple("s8[]")
            Shape('(f32[2]{0}, s8[])')
        """
    @staticmethod
    def array(
        element_type: ElementType | DtypeLike, dimensions: Sequence[SupportsIndex], layout: Layout | None = None
    ) -> Shape:
        """
        The shape of an array; `layout=None` is XLA's default layout.

        Args:
            element_type: anything `ElementType` accepts, such as `"bf16"`, `numpy.float32` or `x.dtype`.
            dimensions: the bounds in elements.
            layout: how the array lies in memory.

        Raises:
            ShapeError: the layout has another rank, or a size exceeds 2^63 − 1.

        Examples:
            >>> Shape.array("f32", (3, 5))
            Shape('f32[3,5]{1,0}')
        """
    def bitcast(self, to: ShapeLike, /, *, reading: Literal["any", "reshape", "transpose"] = "any") -> Relation:
        """
        How the bytes of this array relate to those of another: true if they can be read as it. Exact for arrays of any size.

        Args:
            to: the array to read the bytes as, a `Shape` or a `str`.
            reading: the relation to test: `'any'`, `'reshape'` (the same elements in row-major order) or `'transpose'`.

        Raises:
            ShapeError: not arrays with layouts; or `.kind` is `'undecided'`: a tile cuts across dimensions that `*`
                merged out of order, and there are too many elements to compare.
            ValueError: the reading is unknown.

        Examples:
            >>> heads = Shape("bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}")
            >>> heads.bitcast("bf16[8,512,768]{1,2,0:T(8,128)(2,1)}")
            <Relation reshape>
            >>> Shape("f32[16,16]").bitcast("f32[16,16]{0,1}", reading="reshape").counterexample
            ((0, 1), (0, 1), 1, 16)
        """
    @staticmethod
    def buffer(array: ShapeLike, /) -> Shape:
        """
        The shape of a buffer of an array.

        Raises:
            ShapeError: not an array.

        Examples:
            >>> Shape.buffer("f32[3]")
            Shape('b(f32[3]{0})')
        """
    def bump_indices(self, index: Sequence[SupportsIndex], /) -> builtins.tuple[int, ...] | None:
        """
        The index after another, the last dimension counting fastest; `None` after the last.

        Raises:
            OutOfRangeError: the index is outside the array.
            ShapeError: not an array, or one with an unbounded dimension.

        Examples:
            >>> Shape("f32[2,3]").bump_indices((0, 2))
            (1, 0)
        """
    def byte_size_of(self, /, pointer_bytes: int = 8) -> int:
        """
        XLA's `ByteSizeOf`: an array's elements without padding, or a tuple's table of pointers to its elements.

        Examples:
            >>> Shape("(f32[256], s32[])").byte_size_of()
            16
        """
    def byte_strides(self, /) -> builtins.tuple[int, ...]:
        """
        The bytes between neighbours along each dimension, as in an array without tiles.

        Examples:
            >>> Shape("bf16[5,8,10]{1,2,0}").byte_strides()
            (160, 2, 16)
        """
    def causes(self, /) -> list[str]:
        """
        The causes of the padding, as sentences, the largest first; empty without padding.

        Examples:
            >>> Shape("f32[400000,12]{1,0:T(8,128)}").causes()
            ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used']
        """
    def change_element_type(self, element_type: ElementType | DtypeLike, /) -> Shape:
        """
        The shape with this element type; of a tuple, every leaf. Its layout stays, but for the element size: `E(n)` stays only where the new
        type has fewer than 8 bits.

        Args:
            element_type: anything `ElementType` accepts.

        Raises:
            ShapeError: a token or an opaque value, also in a tuple.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").change_element_type("s8")
            Shape('s8[3,5]{1,0:T(2,2)}')
        """
    def clear_tiles(self, /) -> Shape:
        """
        The shape without tiles; everything else of its layouts stays.

        Examples:
            >>> Shape("f32[3,5]{0,1:T(2,2)S(1)}").clear_tiles()
            Shape('f32[3,5]{0,1:S(1)}')
        """
    def compatible(self, other: ShapeLike, /) -> bool:
        """
        Whether both have the same element types and dimensions; ignores layouts, and which dimensions are dynamic.

        Examples:
            >>> Shape("f32[2,3]{0,1}").compatible("f32[2,<=3]")
            True
        """
    def compatible_ignoring_element_type(self, other: ShapeLike, /) -> bool:
        """
        As `compatible`, and ignores element types.

        Examples:
            >>> Shape("f32[2,3]").compatible_ignoring_element_type("s8[2,3]")
            True
        """
    def compatible_ignoring_fp_precision(self, other: ShapeLike, /) -> bool:
        """
        As `compatible`, and treats all floating-point types as equal.

        Examples:
            >>> Shape("f32[2,3]").compatible_ignoring_fp_precision("bf16[2,3]")
            True
        """
    def compatible_kind(self, other: ShapeLike, /) -> bool:
        """
        Whether both are the same tuples of leaves of the same kinds and ranks.

        Examples:
            >>> Shape("(f32[2,3], token[])").compatible_kind("(s8[4,5], token[])")
            True
        """
    def complex_component_shape(self, /) -> Shape:
        """
        The shape of the real or the imaginary parts of complex numbers.

        Raises:
            ShapeError: the elements aren't complex.

        Examples:
            >>> Shape("c64[3]").complex_component_shape()
            Shape('f32[3]{0}')
        """
    def delete_dimension(self, dimension: int, /) -> Shape:
        """
        The array without a dimension; negative numbers count from the end. The layout keeps its tiles, which then apply to the dimensions
        that are left.

        Raises:
            OutOfRangeError: there is no such dimension.
            ShapeError: not an array.

        Examples:
            >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").delete_dimension(0)
            Shape('f32[4,5]{1,0:T(2,2)}')
        """
    def delete_dimensions(self, dimensions: Sequence[SupportsIndex], /) -> Shape:
        """
        The array without these dimensions; otherwise as `delete_dimension`.

        Examples:
            >>> Shape("f32[3,4,5]").delete_dimensions([0, -1])
            Shape('f32[4]{0}')
        """
    def device_shape_to_host_shape(self, /) -> Shape:
        """
        The shape as a host has it: without tiles, `L(n)`, `E(n)`, `S(n)` and `M(n)`.

        Examples:
            >>> Shape("bf16[16,256]{0,1:T(8,128)(2,1)S(1)}").device_shape_to_host_shape()
            Shape('bf16[16,256]{0,1}')
        """
    def dimension_stride(self, dimension: int, /) -> int:
        """
        How many elements lie between neighbours along a dimension, without tiles.

        Examples:
            >>> Shape("f32[5,8,10,4]").dimension_stride(1)
            40
        """
    @property
    def dimensions(self, /) -> builtins.tuple[int | None, ...]:
        """
        The bounds of an array, in elements; of a dynamic dimension its upper bound, `None` for an unbounded one (`?`).

        Raises:
            ShapeError: not an array.

        Examples:
            >>> Shape("f32[3,<=5,?]").dimensions
            (3, 5, None)
        """
    def dimensions_unmodified_by_reshape(self, to: ShapeLike, /) -> list[builtins.tuple[int, int]]:
        """
        The dimensions that a reshape to another array does not modify: pairs of a dimension of this array and one of the other.

        Raises:
            ShapeError: not arrays with the same number of elements.

        Examples:
            >>> Shape("f32[2,3,5,7,12]").dimensions_unmodified_by_reshape("f32[6,5,1,7,3,4]")
            [(2, 1), (3, 3)]
        """
    def draw(
        self,
        /,
        *,
        view: Literal["logical", "memory", "both", "word", "steps"] = "both",
        compare: ShapeLike | None = None,
        highlight: Sequence[SupportsIndex] | None = None,
        slices: Mapping[int, int] | None = None,
        theme: Literal["auto", "light", "dark"] = "auto",
    ) -> Drawing:
        """
        A picture of the layout, or of each array in a tuple.

        Args:
            view: `'logical'` draws the array with the offset in each cell, `'memory'` the memory with the index in each
                cell, `'both'` the two, `'word'` which elements share a 32-bit word, `'steps'` how the buffer is made.
            compare: another layout of the same array: draws which elements move, and where to, in place of a view.
            highlight: the index of an element to mark.
            slices: for dimensions that are not drawn, the index to draw: `{0: 3}` draws index 3 of dimension 0.
            theme: `'auto'` follows the viewer's colour scheme; or `'light'`, or `'dark'`.

        Raises:
            DrawError: there is nothing to draw.
            OutOfRangeError: an index is outside the array.
            ShapeError: neither an array nor a tuple of arrays, or one with an unbounded dimension or no layout.
            ValueError: the view or theme is unknown.

        Examples:
            >>> print(Shape("f32[2,2]{0,1}").draw(view="logical"), end="")
            f32[2,2]{0,1}
            4 elements, no padding, 16 bytes.
            ...
        """
    def drop_degenerate_dimensions(self, /) -> Shape:
        """
        The array without its dimensions of size 1; otherwise as `delete_dimension`.

        Examples:
            >>> Shape("bf16[8,1,1280]{2,0,1:T(8,128)(2,1)}").drop_degenerate_dimensions()
            Shape('bf16[8,1280]{1,0:T(8,128)(2,1)}')
        """
    @staticmethod
    def dynamic_array(element_type: ElementType | DtypeLike, dimensions: Sequence[int | str]) -> Shape:
        """
        An array with dynamic dimensions, and XLA's default layout.

        Args:
            element_type: anything `ElementType` accepts.
            dimensions: each a size, `"<=8"` for at most 8, or `"?"`.

        Examples:
            >>> Shape.dynamic_array("f32", ("<=8", 5))
            Shape('f32[<=8,5]{1,0}')
        """
    @property
    def dynamic_dimensions(self, /) -> builtins.tuple[bool, ...]:
        """
        For each dimension, whether it is dynamic.

        Raises:
            ShapeError: not an array.
        """
    def dynamic_shape_is_compatible(self, bounded: ShapeLike, /) -> bool:
        """
        Whether a value of this shape may stand where the bounded one is expected: no dynamic array is larger.

        Examples:
            >>> Shape("f32[<=3]").dynamic_shape_is_compatible("f32[<=8]")
            True
        """
    @property
    def element_type(self, /) -> ElementType:
        """
        The element type of an array.

        Raises:
            ShapeError: not an array.
        """
    @property
    def elements(self, /) -> builtins.tuple[Shape, ...]:
        """
        The elements of a tuple; empty for other kinds.
        """
    @property
    def elements_in(self, /) -> int | None:
        """
        The elements of the array, without padding; `None` where a dimension is `?`.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").elements_in
            15
        """
    def equal(self, other: ShapeLike, /, *, ignore: Sequence[str] = ...) -> bool:
        """
        `==` that ignores parts, XLA's `Shape::Equal`.

        Args:
            other: a `Shape` or a `str`.
            ignore: the ignored parts: `'layout'`, `'tiles_in_layout'`, `'element_size_in_layout'`,
                `'memory_space_in_layout'`, `'element_type'`, `'fp_precision'`, `'dynamic_dimension'`, `'dimensions'`,
                `'tail_padding_alignment_in_elements'`, `'split_config_in_layout'`, `'buffer'`.

        Raises:
            ValueError: there is no such part.

        Examples:
            >>> Shape("f32[8,128]{1,0:T(8,128)S(1)}").equal("f32[8,128]", ignore=["tiles_in_layout", "memory_space_in_layout"])
            True
        """
    def equal_structure(self, other: ShapeLike, /) -> bool:
        """
        Whether both have parts at the same paths through their tuples, whatever their leaves are.

        Examples:
            >>> Shape("(f32[2], (s8[], token[]))").equal_structure("(u8[], (u8[], u8[]))")
            True
        """
    @property
    def expansion(self, /) -> float:
        """
        `physical_bytes / logical_bytes`; 1 for an array without elements.
        """
    def filter_dimensions(self, is_kept: Callable[[int], object], /) -> Shape:
        """
        The array with only the dimensions for whose number the function is true; otherwise as `delete_dimension`.

        Examples:
            >>> Shape("f32[3,4,5]").filter_dimensions(lambda dimension: dimension != 1)
            Shape('f32[3,5]{1,0}')
        """
    def for_each_in_memory(self, visit: Callable[[int, builtins.tuple[int, ...] | None], object], /) -> bool:
        """
        Calls a function with each place of memory, in order: its offset in elements, and the index of the element there or `None` for
        padding, until it returns false.

        Returns:
            Whether all were visited.

        Raises:
            ShapeError: not an array, or one with an unbounded dimension or no layout.

        Examples:
            >>> Shape("f32[1,3]{1,0:T(2)}").for_each_in_memory(print)
            0 (0, 0)
            1 (0, 1)
            2 (0, 2)
            3 None
            True
        """
    def for_each_index(
        self,
        visit: Callable[[builtins.tuple[int, ...]], object],
        /,
        *,
        base: Sequence[SupportsIndex] | None = None,
        count: Sequence[SupportsIndex] | None = None,
        step: Sequence[SupportsIndex] | None = None,
    ) -> bool:
        """
        Calls a function with the index of each element, in the order of the dimensions in memory, the most minor counting fastest, until it
        returns false. Tiles play no part; `for_each_in_memory` follows them.

        Args:
            visit: called with a tuple; returning `None` doesn't end the walk.
            base, count, step: along each dimension the start, the extent, and the step; `None` visits everything.

        Returns:
            Whether all were visited.

        Raises:
            OutOfRangeError: the range leaves the array.
            ShapeError: not an array, or one with an unbounded dimension.

        Examples:
            >>> Shape("f32[2,2]{0,1}").for_each_index(print)
            (0, 0)
            (1, 0)
            (0, 1)
            (1, 1)
            True
        """
    def free_reshape(self, dimensions: Sequence[SupportsIndex], /) -> list[Shape]:
        """
        The array reshaped to these dimensions, in each layout that leaves every element in place, those with the
        array's own tiles first; may be empty. `free_reshapes` has the orders of this array with such a layout on a TPU.

        Raises:
            ShapeError: not an array, or another number of elements.

        Examples:
            >>> Shape("bf16[8,512,768]{1,2,0:T(8,128)(2,1)}").free_reshape([8, 512, 12, 64])
            [Shape('bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}')]
            >>> Shape("bf16[8,512,768]{2,1,0:T(8,128)(2,1)}").free_reshape([8, 512, 12, 64])
            []
        """
    @staticmethod
    def from_notation(notation: Notation, text: str, array: ShapeLike, /) -> Shape:
        """
        An array in the layout of a text in another system's notation, as `to_notation` writes it.

        Args:
            notation: as for `to_notation`.
            text: the layout.
            array: the array, a `Shape` or a `str`; it gives `E(n)` and `S(n)` if the notation doesn't express them.

        Raises:
            ShapeError: the text is not in this notation or describes another array, no layout fits it, or the notation
                is unknown.

        Examples:
            >>> Shape.from_notation("memref", "memref<3x5xf32, strided<[8, 1]>>", "f32[3,5]")
            Shape('f32[3,5]{1,0:T(8)}')
        """
    @staticmethod
    def from_proto(message: bytes, /) -> Shape:
        """
        The shape in a serialised `xla.ShapeProto` message.

        Raises:
            ShapeError: the bytes are not such a message.

        Examples:
            >>> Shape.from_proto(bytes.fromhex("100b1a0103"))
            Shape('f32[3]')
        """
    @property
    def has_degenerate_dimensions(self, /) -> bool:
        """
        Whether a dimension has size 1.

        Examples:
            >>> Shape("f32[3,1]").has_degenerate_dimensions
            True
        """
    @property
    def has_layout(self, /) -> bool:
        """
        Whether this is an array with a layout.
        """
    def identical(self, other: Shape, /) -> bool:
        """
        Whether both have the same text: stricter than `==`, which ignores run-time metadata.

        Examples:
            >>> one, other = Shape("f32[3]{0:M(8)}"), Shape("f32[3]{0}")
            >>> one == other, one.identical(other)
            (True, False)
        """
    def index(self, offset: SupportsIndex, /) -> builtins.tuple[int, ...] | None:
        """
        The index of the element at an offset, or `None` if the offset holds padding.

        Args:
            offset: in elements from the start of the buffer.

        Raises:
            OutOfRangeError: the offset is past the end of the buffer; also an `IndexError`.
            ShapeError: not an array, or one with an unbounded dimension or no layout.

        Examples:
            >>> s = Shape("f32[3,5]{1,0:T(2,2)}")
            >>> s.index(17)
            (2, 3)
            >>> s.index(9) is None
            True
        """
    def index_in_bounds(self, index: Sequence[SupportsIndex], /) -> bool:
        """
        Whether an element has that index.

        Examples:
            >>> Shape("f32[3,5]").index_in_bounds((2, 4)), Shape("f32[3,5]").index_in_bounds((3, 0))
            (True, False)
        """
    def indices(
        self, offsets: Integers, /, *, out: npt.NDArray[np.int64] | None = None, threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """
        The indices of the elements at many offsets.

        Args:
            offsets: integers of any dtype and of any shape (…): offsets in elements.
            out: a contiguous int64 array of shape (…, rank) to write into; `None` for a new one.
            threads: the number of threads to use at most; few offsets take one.

        Returns:
            A `numpy.ndarray` of int64 and of shape (…, rank): indices, all −1 where the offset holds padding; `out` if
                given.

        Raises:
            OutOfRangeError: an offset is past the end of the buffer; also an `IndexError`.
            ShapeError: `out` does not fit, or the shape is not an array, or one with an unbounded dimension or no
                layout.
            TypeError: the values are not integers.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").indices([17, 9])
            array([[ 2,  3],
                   [-1, -1]])
        """
    def insert_dimension_at_index(self, index: int, bound: int, /) -> Shape:
        """
        The array with a dimension of this size inserted in front of dimension `index`. As in XLA, the layout keeps only
        its order of dimensions, bounded dimensions become static, and a buffer becomes an array.

        Raises:
            OutOfRangeError: there is no such place.
            ShapeError: not an array, or one with an unbounded dimension.

        Examples:
            >>> Shape("f32[3,5]{0,1}").insert_dimension_at_index(1, 7)
            Shape('f32[3,7,5]{0,2,1}')
        """
    def insert_dimensions_at_index(self, index: int, bounds: Sequence[SupportsIndex], /) -> Shape:
        """
        As `insert_dimension_at_index`, for several adjacent dimensions.

        Examples:
            >>> Shape("f32[3,5]").insert_dimensions_at_index(0, [1, 2])
            Shape('f32[1,2,3,5]{3,2,1,0}')
        """
    def inserted_or_deleted_1_sized_dimensions(self, to: ShapeLike, /) -> builtins.tuple[list[int], list[int]] | None:
        """
        The dimensions of size 1 that a reshape to the other array deletes and inserts; `None` if it does anything else.

        Raises:
            ShapeError: not arrays with the same number of elements.

        Examples:
            >>> Shape("f32[3,1,5]").inserted_or_deleted_1_sized_dimensions("f32[3,5,1]")
            ([1], [2])
        """
    def is_effectively_most_major_dimension(self, dimension: int, /) -> bool:
        """
        Whether a dimension varies slowest of those that are not of size 1.

        Examples:
            >>> Shape("f32[1,16,279]").is_effectively_most_major_dimension(1)
            True
        """
    def is_prefix_of(self, other: ShapeLike, /) -> bool:
        """
        Whether each leaf is at the same path in the other shape, and equal.

        Examples:
            >>> Shape("(f32[2])").is_prefix_of("(f32[2], s8[])")
            True
        """
    @property
    def is_scalar(self, /) -> bool:
        """
        Whether it is an array without dimensions.

        Examples:
            >>> Shape("f32[]").is_scalar
            True
        """
    @property
    def kind(self, /) -> Literal["array", "tuple", "token", "opaque", "buffer"]:
        """
        The kind of shape: `'array'`, `'tuple'`, `'token'`, `'opaque'` or `'buffer'`.
        """
    @property
    def layout(self, /) -> Layout:
        """
        How an array lies in memory.

        Raises:
            ShapeError: not an array, or the layout is missing (`has_layout` is `False`).
        """
    def layout_in_words(self, /) -> list[builtins.tuple[str, str]]:
        """
        The parts of the layout's text, each a (text, meaning) pair; empty without a layout.

        Examples:
            >>> Shape("bf16[300,500]{1,0:T(8,128)(2,1)}").layout_in_words()[1]
            ('T(8,128)', 'the two minor dimensions are cut into blocks of 8 rows × 128 columns')
        """
    def leaves(self, /) -> list[builtins.tuple[builtins.tuple[int, ...], Shape]]:
        """
        Every leaf as a (path through the tuples, shape) pair; a shape that is not a tuple is its only leaf, at `()`.

        Examples:
            >>> Shape("(f32[2], (token[], s8[]))").leaves()[2]
            ((1, 1), Shape('s8[]'))
        """
    @property
    def logical_bytes(self, /) -> int:
        """
        Bytes of the array's data, without padding.

        Raises:
            ShapeError: not an array, or one with an unbounded dimension or no layout, or more than 2^63 − 1 bytes. The
                same holds for every other size.
        """
    def map_leaves(self, map: Callable[[builtins.tuple[int, ...], Shape], ShapeLike], /) -> Shape:
        """
        The shape with each leaf replaced by the function's result for its path and the leaf.

        Examples:
            >>> Shape("(f32[2], s8[])").map_leaves(lambda path, leaf: leaf.change_element_type("bf16") if path == (0,) else leaf)
            Shape('(bf16[2]{0}, s8[])')
        """
    def map_subshapes_post_order(self, map: Callable[[builtins.tuple[int, ...], Shape], ShapeLike], /) -> Shape:
        """
        The shape with each part, a tuple behind its elements, replaced by the function's result for path and part.

        Examples:
            >>> Shape("(f32[2], (s8[]))").map_subshapes_post_order(lambda path, part: "u8[]" if path == (1,) else part)
            Shape('(f32[2]{0}, u8[])')
        """
    def move_dim_to_major(self, dimension: int, /) -> Shape:
        """
        The array with this dimension the most major in memory; of a tuple, every leaf. As in XLA, the layout keeps only
        its order of dimensions; `Layout.move_dim_to_major` keeps the rest.

        Raises:
            OutOfRangeError: there is no such dimension.
            ShapeError: a token or an opaque value, also in a tuple.

        Examples:
            >>> Shape("f32[3,4,5]").move_dim_to_major(2)
            Shape('f32[3,4,5]{1,0,2}')
        """
    @staticmethod
    def of(array: ShapeLike | HasShape, /, *, layout: Layout | str | None = None) -> Shape:
        """
        The shape of an array, or of anything with a `shape` and a `dtype`; with a `sharding`, that of one device's shard.

        Args:
            array: a NumPy or JAX array, a `jax.ShapeDtypeStruct`, or a `Shape` or `str`.
            layout: a `Layout` or its text; `None` is XLA's default layout.

        Raises:
            ParseError: the string is not a layout.
            ShapeError: the layout has another rank.

        Examples:
            >>> import numpy as np
            >>> Shape.of(np.zeros((16, 256), np.float32), layout="{1,0:T(8,128)}")
            Shape('f32[16,256]{1,0:T(8,128)}')
        """
    def offset(self, index: Iterable[SupportsIndex], /) -> int:
        """
        The offset of an element, in elements from the start of the buffer.

        Args:
            index: one integer for each dimension, from 0; negative integers do not count from the end.

        Raises:
            OutOfRangeError: the index is outside the array; also an `IndexError`.
            ShapeError: the index has another length than the rank, or the shape is not an array, or one with an
                unbounded dimension or no layout.

        Examples:
            >>> Shape("bf16[8,256]{1,0:T(8,128)(2,1)}").offset((1, 0))
            1
        """
    def offsets(
        self, indices: Integers, /, *, out: npt.NDArray[np.int64] | None = None, threads: int = 1
    ) -> npt.NDArray[np.int64]:
        """
        The offsets of many elements.

        Args:
            indices: integers of any dtype and of shape (…, rank): each row along the last axis is one index.
            out: a contiguous int64 array of shape (…) to write into; `None` for a new one.
            threads: the number of threads to use at most; few indices take one.

        Returns:
            A `numpy.ndarray` of int64 and of shape (…): offsets in elements; `out` if given.

        Raises:
            OutOfRangeError: an index is outside the array; also an `IndexError`.
            ShapeError: the last axis has another length than the rank, `out` does not fit, or the shape is
                not an array, or one with an unbounded dimension or no layout.
            TypeError: the values are not integers.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").offsets([[0, 4], [2, 3]])
            array([ 8, 17])
        """
    @staticmethod
    def opaque() -> Shape:
        """
        The shape of an opaque value, which only custom calls read.

        Examples:
            >>> Shape.opaque()
            Shape('opaque[]')
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Bytes of padding: `physical_bytes - logical_bytes`.
        """
    @staticmethod
    def parse_as_written(text: str, /) -> Shape:
        """
        Parses a shape and leaves a missing layout missing: compilers' messages print shapes without layouts.

        Raises:
            ParseError: the string is not a shape.

        Examples:
            >>> Shape.parse_as_written("f32[20000,12]").has_layout
            False
        """
    def permute_dimensions(self, permutation: Sequence[SupportsIndex], /) -> Shape:
        """
        The array whose dimension i is this array's dimension `permutation[i]`, its layout permuted too: no byte moves.

        Raises:
            ShapeError: not an array, or no permutation of its dimensions.

        Examples:
            >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").permute_dimensions((2, 0, 1))
            Shape('f32[5,3,4]{1,0,2:T(2,2)}')
        """
    @property
    def physical_bytes(self, /) -> int:
        """
        Bytes that the array takes in memory, padding included.
        """
    @property
    def physical_dimensions(self, /) -> builtins.tuple[int, ...]:
        """
        The bounds of the array in memory, with every tile's dimensions, major to minor, in elements.

        Examples:
            >>> Shape("f32[3,5]{1,0:T(2,2)}").physical_dimensions
            (2, 3, 2, 2)
        """
    @property
    def physical_elements(self, /) -> int:
        """
        Elements the buffer has room for, padding included.
        """
    @property
    def rank(self, /) -> int:
        """
        The number of dimensions of an array.

        Raises:
            ShapeError: not an array.
        """
    def replace_subshape(self, index: Sequence[SupportsIndex], part: ShapeLike, /) -> Shape:
        """
        The shape with another part at a path through its tuples.

        Args:
            index: the path.
            part: a `Shape` or a `str`.

        Raises:
            OutOfRangeError: there is nothing at that path.

        Examples:
            >>> Shape("(f32[2], (token[], s8[]))").replace_subshape((1, 0), "u8[4]")
            Shape('(f32[2]{0}, (u8[4]{0}, s8[]))')
        """
    def reshape_leaves_dimensions_unmodified(
        self, to: ShapeLike, dimensions: Sequence[SupportsIndex], /
    ) -> list[int] | None:
        """
        The dimensions of the other array that a reshape makes of these, given in ascending order; `None` if it modifies
        one of them.

        Raises:
            ShapeError: not arrays with the same number of elements.

        Examples:
            >>> Shape("f32[2,3,5,7,12]").reshape_leaves_dimensions_unmodified("f32[6,5,1,7,3,4]", [2, 3])
            [1, 3]
        """
    def same_bytes(self, other: ShapeLike, /) -> bool:
        """
        Whether both have the same dimensions and put every element into the same bits of buffers of the same size, however
        their layouts are written.

        Raises:
            ShapeError: as for `bitcast`.

        Examples:
            >>> one, other = Shape("f32[3,5]{1,0:T(1,1)}"), Shape("f32[3,5]")
            >>> one == other, one.same_bytes(other)
            (False, True)
        """
    def same_dimensions(self, other: ShapeLike, /) -> bool:
        """
        Whether both are arrays with the same dimensions, of any element types; an unbounded one is like any other.

        Examples:
            >>> Shape("f32[2,3]").same_dimensions("s8[2,3]{0,1}")
            True
        """
    def slice_runs(
        self,
        start: Sequence[SupportsIndex],
        limit: Sequence[SupportsIndex],
        /,
        *,
        strides: Sequence[SupportsIndex] | None = None,
        order: Literal["memory", "slice"] = "memory",
    ) -> npt.NDArray[np.int64]:
        """
        The runs of bits that a slice takes.

        A run holds bits of the slice's elements only: padding and other elements end it. Neighbours are merged.

        Args:
            start: the first index, one integer for each dimension.
            limit: the first index behind the slice, for each dimension.
            strides: the step from one index to the next, from `start` on, for each dimension; `None` for every index.
            order: `"memory"`: by rising offset; `"slice"`: row-major over the slice, so that the runs, one after the other,
                are the slice as a dense array.

        Returns:
            A `numpy.ndarray` of int64 and of shape (runs, 2): where each run begins, in bits from the start of the buffer, and
                its length in bits.

        Raises:
            OutOfRangeError: the slice is not inside the array; also an `IndexError`.
            ShapeError: `start` or `limit` has another length than the rank, or the shape is not an array, or one with an
                unbounded dimension or no layout, or runs of its layout can't be computed in this order.

        Examples:
            >>> cache = Shape("bf16[4096,8,128]{2,1,0:T(8,128)(2,1)}")
            >>> cache.slice_runs((32, 0, 0), (48, 8, 128)) // 8    # a block of 16 tokens is one run, in bytes
            array([[65536, 32768]])
        """
    def slice_tuple(self, start: int, limit: int, /) -> Shape:
        """
        The tuple of the elements from `start` up to `limit`.

        Raises:
            OutOfRangeError: there are no such elements.
            ShapeError: not a tuple.

        Examples:
            >>> Shape("(f32[], s32[], u32[])").slice_tuple(1, 3)
            Shape('(s32[], u32[])')
        """
    def static_shape(self, /) -> Shape:
        """
        The shape with every bounded dimension static.

        Raises:
            ShapeError: a dimension is unbounded.

        Examples:
            >>> Shape("f32[<=3,5]").static_shape()
            Shape('f32[3,5]{1,0}')
        """
    def steps(self, /) -> Steps:
        """
        How the buffer is made from the array, step by step: pad, reshape, transpose.

        Raises:
            ShapeError: not an array, or one with an unbounded dimension or no layout.

        Examples:
            >>> print(Shape("f32[4,6]{1,0:T(2,2)}").steps())
            reshape    [4,6] → [2,2,3,2]      bitcast      T(2,2)
            transpose  [2,2,3,2] → [2,3,2,2]  moves bytes  T(2,2): axes 0,2,1,3
            reshape    [2,3,2,2] → [24]       bitcast
        """
    def subshape(self, index: Sequence[SupportsIndex], /) -> Shape | None:
        """
        The part of the shape at a path through its tuples, XLA's `ShapeIndex`; `None` if nothing is there.

        Examples:
            >>> Shape("(f32[2], (token[], s8[]))").subshape((1, 1))
            Shape('s8[]')
        """
    def subshapes(self, /) -> list[builtins.tuple[builtins.tuple[int, ...], Shape]]:
        """
        Every part as a (path, shape) pair, a tuple in front of its elements, the shape itself first.

        Examples:
            >>> [path for path, _ in Shape("(f32[2], (token[], s8[]))").subshapes()]
            [(), (0,), (1,), (1, 0), (1, 1)]
        """
    def subshapes_post_order(self, /) -> list[builtins.tuple[builtins.tuple[int, ...], Shape]]:
        """
        Every part as a (path, shape) pair, a tuple behind its elements, the shape itself last.

        Examples:
            >>> [path for path, _ in Shape("(f32[2], (token[], s8[]))").subshapes_post_order()]
            [(0,), (1, 0), (1, 1), (1,), ()]
        """
    def to_notation(self, notation: Notation, /) -> str:
        """
        The layout in another system's notation.

        Args:
            notation: `'pjrt'`, `'jax'`, `'mlir'`, `'memref'`, `'mosaic'`, `'numpy'`, `'dlpack'`, `'cute'` or `'einops'`.

        Raises:
            ShapeError: the notation can't express this layout, with the reason (`.kind` is `'not_expressible'`), or is
                unknown.

        Examples:
            >>> Shape("bf16[64,512]{1,0:T(8,128)(2,1)}").to_notation("cute")
            '((2,4,8),(128,4)):((1,256,4096),(2,1024))'
        """
    def to_proto(self, /) -> bytes:
        """
        The shape as a serialised `xla.ShapeProto` message, byte for byte as XLA writes it.

        Examples:
            >>> Shape.from_proto(Shape("f32[3,5]").to_proto())
            Shape('f32[3,5]{1,0}')
        """
    @staticmethod
    def token() -> Shape:
        """
        The shape of a token, which orders operations and holds no data.

        Examples:
            >>> Shape.token()
            Shape('token[]')
        """
    @property
    def true_rank(self, /) -> int:
        """
        How many dimensions of an array have another size than 1; an unbounded one counts.

        Raises:
            ShapeError: not an array.
        """
    @staticmethod
    def tuple(elements: Iterable[ShapeLike], /) -> Shape:
        """
        A tuple of shapes, each a `Shape` or a `str`.

        Examples:
            >>> Shape.tuple(["f32[2]", "token[]"])
            Shape('(f32[2]{0}, token[])')
        """
    def update_dynamic_dimension(self, dimension: int, is_dynamic: bool, /) -> Shape:
        """
        The array with this dimension made dynamic, at most its size, or static.

        Examples:
            >>> Shape("f32[8,5]{0,1}").update_dynamic_dimension(0, True)
            Shape('f32[<=8,5]{0,1}')
        """
    def update_element_size_in_bits(self, /, *, pack_subbyte_types: bool) -> Shape:
        """
        The shape with `E(n)` for types below 8 bits but `pred`, or without any.

        Examples:
            >>> Shape("s4[8]").update_element_size_in_bits(pack_subbyte_types=True)
            Shape('s4[8]{0:E(4)}')
        """
    def with_default_layout(self, /) -> Shape:
        """
        The shape with the default order of dimensions; as in XLA, everything else of its layouts stays.

        Raises:
            ShapeError: a split does not fit the new order.

        Examples:
            >>> Shape("f32[3,5]{0,1:T(2,2)}").with_default_layout()
            Shape('f32[3,5]{1,0:T(2,2)}')
        """
    def with_descending_layout_and_same_physical_layout(self, /) -> Shape:
        """
        The array with its dimensions in the order of memory and the layout `{N-1,…,0}`: the same bytes, tiles included.

        Raises:
            ShapeError: not an array, or the layout is missing.

        Examples:
            >>> Shape("f32[3,4,5]{0,2,1:T(2,2)}").with_descending_layout_and_same_physical_layout()
            Shape('f32[4,5,3]{2,1,0:T(2,2)}')
        """
    def with_layout(self, layout: Layout | str, /) -> Shape:
        """
        This array with another layout.

        Args:
            layout: a `Layout`, or its text, such as `"{1,0:T(8,128)}"`.

        Raises:
            ParseError: the string is not a layout.
            ShapeError: not an array, or the layout does not fit it.

        Examples:
            >>> Shape("f32[3,5]").with_layout(Layout((0, 1), tiles=[(2, 2)]))
            Shape('f32[3,5]{0,1:T(2,2)}')
        """
    def without_layout(self, /) -> Shape:
        """
        This shape without any layout, as `predict` takes it.

        Examples:
            >>> str(Shape("f32[8,64]{0,1:T(8,128)}").without_layout())
            'f32[8,64]'
        """
    @property
    def xla_array_size(self, /) -> int | None:
        """
        The result of XLA's `ShapeUtil::ArraySize`, in bytes, which takes only the first tile into account; `None` where
        that function fails.
        """

@final
class SourceLine:
    """
    A line of the user's program; `str` gives `file:line`.

    Examples:
        >>> import pathlib
        >>> worst = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).largest_padding()[0]
        >>> str(worst.source)
        'model.py:439'
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def file(self, /) -> str:
        """
        The path of the file, as the program's metadata has it.
        """
    @property
    def function(self, /) -> str | None:
        """
        The function, if the metadata names it.
        """
    @property
    def library(self, /) -> SourceLine | None:
        """
        The line of an installed package, such as a model's, that it leads to; `None` without one.
        """
    @property
    def line(self, /) -> int:
        """
        The line number, from 1.
        """

@final
class SpaceTotal:
    """
    Totals of the buffers in one memory space, and its peak. Sizes are in bytes.

    The fields of the peak are `None` for a program without a memory plan: one that isn't scheduled.

    Examples:
        >>> import pathlib
        >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").memory_spaces
        [<SpaceTotal hbm: 185600000 of 204800000 bytes are padding>]
        >>> hbm = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).memory_spaces[0]
        >>> hbm.peak_instruction, str(hbm.peak_source), hbm.peak_buffers[0].count
        ('fusion.6', 'model.py:439', 1)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def buffers(self, /) -> int:
        """
        The number of buffers.
        """
    @property
    def logical_bytes(self, /) -> int:
        """
        Bytes of data.
        """
    @property
    def memory_space(self, /) -> int:
        """
        The memory space's number, 0 for HBM.
        """
    @property
    def memory_space_name(self, /) -> str:
        """
        The memory space's name on a TPU, such as `'hbm'`.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        Bytes of padding.
        """
    @property
    def padding_share(self, /) -> float:
        """
        Padding as a fraction of the bytes taken, 0 … 1.
        """
    @property
    def peak_buffers(self, /) -> list[PeakBuffer] | None:
        """
        The arrays alive at the peak, the largest first.
        """
    @property
    def peak_fragmentation_bytes(self, /) -> int | None:
        """
        Bytes of the temporaries' memory that nothing uses at the peak.
        """
    @property
    def peak_instruction(self, /) -> str | None:
        """
        The instruction that runs at the peak.
        """
    @property
    def peak_live_bytes(self, /) -> int | None:
        """
        Bytes of everything alive at the peak.
        """
    @property
    def peak_padding_bytes(self, /) -> int | None:
        """
        Padding of everything alive at the peak.
        """
    @property
    def peak_source(self, /) -> SourceLine | None:
        """
        The line of the user's program that it comes from.
        """
    @property
    def peak_temporary_bytes(self, /) -> int | None:
        """
        Bytes of the temporaries' memory.
        """
    @property
    def physical_bytes(self, /) -> int:
        """
        Bytes taken.
        """

@final
class Step:
    """
    One step: a pad, a reshape or a transpose.

    Examples:
        >>> step = Shape("f32[3,5]{1,0:T(2,2)}").steps()[0]
        >>> step.operation, step.before, step.after, step.padding
        ('pad', (3, 5), (4, 6), (1, 1))
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Steps, int]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def after(self, /) -> tuple[int, ...]:
        """
        The bounds after, major to minor, in elements.
        """
    @property
    def before(self, /) -> tuple[int, ...]:
        """
        The bounds before, major to minor, in elements.
        """
    @property
    def effect(self, /) -> Literal["bitcast", "append", "move"]:
        """
        The effect on the bytes: `'bitcast'` leaves them, `'append'` adds padding at the end, `'move'` reorders them.
        """
    @property
    def operation(self, /) -> Literal["pad", "reshape", "transpose"]:
        """
        `'pad'`, `'reshape'` or `'transpose'`.
        """
    @property
    def padding(self, /) -> tuple[int, ...] | None:
        """
        For a pad, the number of elements added to each axis; otherwise `None`.
        """
    @property
    def permutation(self, /) -> tuple[int, ...] | None:
        """
        For a transpose, the operand's axis for each axis of the result; otherwise `None`.
        """
    @property
    def tile(self, /) -> int | None:
        """
        The number of the tile it belongs to, from 0; `None` for steps before the first tile and after the last.
        """

@final
class Steps:
    """
    How a buffer is made from its array: a sequence of steps, each from a row-major array to a row-major array.

    `str` describes them, one line each.

    Examples:
        >>> steps = Shape("f32[3,5]{1,0:T(2,2)}").steps()
        >>> [step.operation for step in steps]
        ['pad', 'reshape', 'transpose', 'reshape']
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __getitem__(self, number: SupportsIndex, /) -> Step: ...
    def __hash__(self, /) -> int: ...
    def __iter__(self, /) -> Iterator[Step]: ...
    def __len__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def as_einops(self, /) -> str:
        """
        The source of the same program with einops.

        Examples:
            >>> program = Shape("f32[4,6]{1,0:T(2,2)}").steps().as_einops()
            >>> "rearrange(x, '(y y1) (x x1) -> (y x y1 x1)', y1=2, x1=2)" in program
            True
        """
    def as_mlir(self, /) -> str:
        """
        Two affine maps in MLIR's syntax, one a line: from an index to the physical index, and to the offset.

        Raises:
            ShapeError: the map has too many terms.

        Examples:
            >>> print(Shape("f32[4,6]{1,0:T(2,2)}").steps().as_mlir(), end="")
            affine_map<(d0, d1) -> (d0 floordiv 2, d1 floordiv 2, d0 mod 2, d1 mod 2)>
            affine_map<(d0, d1) -> ((d0 mod 2) * 2 + (d0 floordiv 2) * 12 + d1 mod 2 + (d1 floordiv 2) * 4)>
        """
    def as_numpy(self, /) -> str:
        """
        The source of a NumPy program with two functions, `to_buffer(x)` and `from_buffer(x)`.

        Examples:
            >>> import numpy as np
            >>> program = {}
            >>> exec(Shape("f32[3,5]{1,0:T(2,2)}").steps().as_numpy(), program)
            >>> buffer = program["to_buffer"](np.arange(15).reshape(3, 5))
            >>> buffer[17] == 2 * 5 + 3
            np.True_
        """

@disjoint_base
class Table:
    """
    Rows with named columns, for pandas, Polars, and any reader of the Arrow PyCapsule interface. A `Report` is a table
    of buffers, an `Explanation` a table of allocations.

    Examples:
        >>> report = audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)")
        >>> report.to_pandas()[["shape", "padding_bytes"]].values.tolist()
        [['f32[400000,12]{1,0:T(8,128)}', 185600000]]
    """
    def __arrow_c_stream__(self, /, requested_schema: object | None = None) -> object:
        """
        Every row, as an Arrow C stream of the PyCapsule interface.
        """
    def to_dict(self, /) -> dict[str, Any]:
        """
        Every row, by column: a dict of NumPy arrays, or of lists for columns whose values may be missing.

        Examples:
            >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_dict()["logical_bytes"]
            array([19200000])
        """
    def to_pandas(self, /) -> Any:
        """
        Every row, as a `pandas.DataFrame`.

        Raises:
            ImportError: pandas is not installed.

        Examples:
            >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_pandas()["padding_bytes"].sum()
            np.int64(185600000)
        """
    def to_polars(self, /) -> Any:
        """
        Every row, as a `polars.DataFrame`.

        Raises:
            ImportError: Polars is not installed.

        Examples:
            >>> audit("x = f32[400000,12]{1,0:T(8,128)} parameter(0)").to_polars()["padding_bytes"].sum()
            185600000
        """

class Tabular:
    """
    The base class of results that are tables; `_rows` has a dict for each row.
    """
    def __arrow_c_stream__(self, /, requested_schema: object | None = None) -> object:
        """
        The table, for any reader of Arrow, where pyarrow is installed.
        """
    def __new__(cls, /, *_arguments: Any, **_named: Any) -> Self:
        """
        Classes that are written in Python have arguments of their own.
        """
    def _repr_html_(self, /) -> str:
        """
        For notebooks: the text, as wide as it is, and no higher than a screen.
        """
    def to_dict(self, /) -> dict[str, list[Any]]:
        """
        The table, by column.
        """
    def to_pandas(self, /) -> Any:
        """
        The table, as a `pandas.DataFrame`.

        Raises:
            ImportError: pandas is not installed.
        """
    def to_polars(self, /) -> Any:
        """
        The table, as a `polars.DataFrame`.

        Raises:
            ImportError: Polars is not installed.
        """

@final
class Time(Tabular):
    """
    The time of a run, by instruction: the compiler's own estimate, not a measurement. `str` is a table of it.

    Returned by `Report.time`. As a table, it has a row for each instruction that takes time. docs/time.md says how far
    off the figures are.

    Examples:
        >>> import pathlib
        >>> time = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time
        >>> time
        <Time: at least 0.00086 s a run, estimated, not measured>
        >>> time.is_at_least, [each.name for each in time.unpriced]
        (True, ['gather_scatter_sort'])
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _rows(self, /) -> list[dict[str, Any]]: ...
    @property
    def bound_share(self, /) -> float:
        """
        The part of the estimate that is only a lower bound, 0 … 1.
        """
    @property
    def compiler_seconds(self, /) -> float:
        """
        The compiler's cycles at the core's clock.
        """
    @property
    def cores(self, /) -> int | None:
        """
        The cores that it is compiled for, of a chip whose two cores can be one device (v4, v5p); else `None`.
        """
    @property
    def cycles(self, /) -> int:
        """
        The compiler's cycles of a run, loops times their trips.
        """
    @property
    def estimate_seconds(self, /) -> float:
        """
        How long a run takes: the compiler's figure, corrected where it charges narrow types like 4-byte ones.
        """
    @property
    def floor_seconds(self, /) -> float:
        """
        The estimate with every operation at the memory's full rate or at the peak of the matrix unit.
        """
    @staticmethod
    def from_json(text: str, /) -> Time:
        """
        Read the JSON that `to_json` wrote.

        Raises:
            ValueError: the text isn't such JSON.

        Examples:
            >>> import pathlib
            >>> time = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time
            >>> Time.from_json(time.to_json()) == time
            True
        """
    @property
    def is_at_least(self, /) -> bool:
        """
        Whether a run takes longer: operations without cycle counts, or a loop of unknown trip count, are in it.
        """
    @property
    def kinds(self, /) -> tuple[TimeGroup, ...]:
        """
        The time by kind of operation, the longest first.
        """
    @property
    def lines(self, /) -> tuple[TimeGroup, ...]:
        """
        The time by line of the program, the longest first.
        """
    @property
    def modules(self, /) -> tuple[TimeGroup, ...]:
        """
        The time by module of the network, the longest first.
        """
    @property
    def padding_seconds(self, /) -> float:
        """
        The time of padding in the operations that memory bounds.
        """
    @property
    def rows(self, /) -> tuple[TimeRow, ...]:
        """
        Every instruction that takes time, the longest first.
        """
    @property
    def text(self, /) -> str:
        """
        All of it, as the `time` of the command line's JSON.
        """
    def to_json(self, /) -> str:
        """
        All of it as JSON, which `from_json` reads.

        Examples:
            >>> import pathlib
            >>> audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.to_json()[:11]
            '{"schema":1'
        """
    @property
    def unpriced(self, /) -> tuple[TimeGroup, ...]:
        """
        The operations without cycle counts, by kind, with their time in the estimate.
        """
    @property
    def words(self, /) -> str:
        """
        The table that `tilewise audit --time` prints.
        """

@final
class TimeGroup:
    """
    The time of operations that have something in common.

    Examples:
        >>> import pathlib
        >>> group = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.unpriced[0]
        >>> group.name, group.seconds == group.bound_seconds
        ('gather_scatter_sort', True)
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def bound_seconds(self, /) -> float:
        """
        The part of it that is only a lower bound.
        """
    @property
    def name(self, /) -> str:
        """
        The common kind, line (`model.py:439`) or module of the network; empty without one.
        """
    @property
    def operations(self, /) -> int:
        """
        How many.
        """
    @property
    def seconds(self, /) -> float:
        """
        How long they take.
        """

@final
class TimeRow:
    """
    An instruction's time. All executions together, in seconds.

    Examples:
        >>> import pathlib
        >>> row = audit(pathlib.Path("../examples/gnn_large.v5e.hlo")).time.rows[0]
        >>> row.instruction, row.basis, row.roof
        ('fusion.6', 'cycles', 'memory')
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def basis(self, /) -> str:
        """
        `'cycles'` (the compiler's), `'bound'` (bytes and operations at full rate: a lower bound), `'unknown'` (likewise,
        where the compiler marks its cycles as unknown) or `'wait'` (for work beside the core).
        """
    @property
    def bytes(self, /) -> int:
        """
        The bytes that one execution reads and writes in HBM.
        """
    @property
    def compiler_seconds(self, /) -> float:
        """
        How long by the compiler's cycles.
        """
    @property
    def computation(self, /) -> str:
        """
        The name of its computation.
        """
    @property
    def estimate_seconds(self, /) -> float:
        """
        How long, by the compiler's figure, corrected where it charges narrow types like 4-byte ones.
        """
    @property
    def executions(self, /) -> int:
        """
        How often it runs.
        """
    @property
    def file(self, /) -> str | None:
        """
        The file it is written in.
        """
    @property
    def floor_seconds(self, /) -> float:
        """
        How long at full rates.
        """
    @property
    def flops(self, /) -> int:
        """
        Operations of the matrix multiplications and convolutions in it, for one execution.
        """
    @property
    def instruction(self, /) -> str:
        """
        Its name.
        """
    @property
    def kind(self, /) -> str:
        """
        `'matmul'`, `'elementwise'`, `'copy'` and so on, as the command line's JSON has it.
        """
    @property
    def line(self, /) -> int | None:
        """
        The line there, from 1.
        """
    @property
    def op_name(self, /) -> str | None:
        """
        The framework's name of the operation.
        """
    @property
    def padding_bytes(self, /) -> int:
        """
        The padding in them.
        """
    @property
    def roof(self, /) -> str | None:
        """
        Its bound, `'memory'` or `'compute'`; `None` if unknown.
        """

@final
class Together:
    """
    The memory of programs that are loaded on one device at once; it prints as text.

    Examples:
        >>> server.resident_bytes
        4194304
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[type, str]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def _repr_html_(self, /) -> str: ...
    @property
    def call_bytes(self, /) -> int:
        """
        Inputs and new results of the largest call.
        """
    @property
    def code_bytes(self, /) -> int | None:
        """
        Code of all programs; `None` where one's isn't known.
        """
    @property
    def constant_bytes(self, /) -> int:
        """
        Constants of all programs.
        """
    @property
    def fits(self, /) -> bool | None:
        """
        Whether it fits; `None` without a limit, or where code decides that isn't known.
        """
    @property
    def largest_temporaries(self, /) -> int:
        """
        Temporaries of the largest program, which the runtime reserves while it is loaded.
        """
    @property
    def limit_bytes(self, /) -> int | None:
        """
        The HBM that there is.
        """
    @property
    def machine(self, /) -> str:
        """
        The machine that all are compiled for, such as `tpu:v6e`.
        """
    @property
    def options(self, /) -> tuple[Alternative, ...]:
        """
        Changes that free memory or make room for pages, the most first.
        """
    @property
    def pages(self, /) -> PageArrays | None:
        """
        The pages of the cache; `None` if no argument is one.
        """
    @property
    def programs(self, /) -> tuple[LoadedProgram, ...]:
        """
        The part of each program.
        """
    @property
    def resident_bytes(self, /) -> int:
        """
        Arrays that are held whichever program runs, each once.
        """
    @property
    def residents(self, /) -> tuple[ResidentArray, ...]:
        """
        The arrays that are held whichever program runs.
        """
    def to_html(self, /) -> str:
        """
        A page in one file: a bar of the held memory, each program beneath, and all of the printed text.

        Examples:
            >>> server.to_html()[:15]
            '<!doctype html>'
        """
    def to_json(self, /) -> str:
        """
        All of it as JSON: the `Together` of docs/json.md.

        Examples:
            >>> import json
            >>> json.loads(server.to_json())["machine"]
            'tpu:v5e'
        """
    @property
    def total_bytes(self, /) -> int:
        """
        All of it.
        """

def asks_compiler(arguments: Sequence[str]) -> bool:
    """
    Whether these arguments, the program's name first, ask a compiler.
    """

def audit_text(
    text: str,
    source: str,
    tpu: Tpu | None = None,
    hbm_limit: int | None = None,
    machine: str | None = None,
    libtpu: str | None = None,
    buffer_assignment: str | None = None,
) -> Report:
    """
    Audits HLO text, with the compiler's own buffer assignment if given.
    """

def block_bytes(shape: str, *, tpu: Tpu) -> tuple[int, int]:
    """
    Bytes of a block with its tiles: packed as in a window, and as scratch.
    """

def compare_programs(
    name: str,
    before: str,
    after: str,
    report: Report | None,
    *,
    tolerance: SupportsFloat | SupportsIndex = 0.01,
    exact: bool = False,
    any_compiler: bool = False,
) -> Comparison:
    """
    The differences between two programs, each as `compared_program` returns it; `report` is the second's.
    """

def compare_reports(
    before: Report,
    after: Report,
    name: str | None = None,
    *,
    tolerance: SupportsFloat | SupportsIndex = 0.01,
    exact: bool = False,
    any_compiler: bool = False,
) -> Comparison:
    """
    The differences between two reports, under this name or the second's.
    """

def compared_program(report: Report, root: str | PathLike[str] | None) -> str:
    """
    The compared facts of a program as JSON, as a lock keeps them.
    """

def comparison_words(compared: Sequence[Comparison], format: str) -> str:
    """
    Comparisons in words: `human`, `markdown` or `github`.
    """

def decode(bytes: bytes) -> str:
    """
    Bytes as text, plain or gzip.
    """

def draw(
    shape: str, view: str, compare: str | None, highlight: Sequence[int] | None, slices: Mapping[int, int], theme: str
) -> Drawing:
    """
    The picture of the shape in a text. Pickled pictures call it.
    """

def equation_json(text: str, /) -> str:
    """
    The answer of `tilewise index` to an equation of XLA's tiled-layout document, as JSON.
    """

def explain_text(text: str, tpu: Tpu | None) -> Explanation:
    """
    Explains the out-of-memory message in a text.
    """

def fields_of(value: object) -> dict[str, Any]:
    """
    The fields of such a value, as JSON has them.
    """

def floor_of(report: Report) -> float | None:
    """
    The least seconds of a run of a report's program, at full rates; `None` if unknown.
    """

def free_reshapes(
    shape: ShapeLike | HasShape, dimensions: Sequence[SupportsIndex], *, tpu: Tpu
) -> list[tuple[Shape, Shape]]:
    """
    The orders of an array's dimensions for which a reshape is free on a TPU generation: pairs of the array and the reshaped
    array, each with the tiles that the TPU gives it, the fewest bytes first. `Shape.free_reshape` answers for one layout.

    Args:
        shape: an array shape, as `predict` takes it; its layout doesn't matter.
        dimensions: the bounds of the result.
        tpu: a generation under any of its names, or a JAX device.

    Raises:
        ParseError: the string is not a shape, or `tpu` names no TPU.
        ShapeError: not an array, another number of elements, or more than six dimensions.

    Examples:
        >>> for array, result in free_reshapes("bf16[8,512,768]", (8, 512, 12, 64), tpu="v6e")[:2]:
        ...     print(array, result)
        bf16[8,512,768]{1,2,0:T(8,128)(2,1)} bf16[8,512,12,64]{1,3,2,0:T(8,128)(2,1)}
        bf16[8,512,768]{1,0,2:T(8,128)(2,1)} bf16[8,512,12,64]{1,0,3,2:T(8,128)(2,1)}
    """

def frontier(
    title: str, summary: str, points: Sequence[tuple[str, int, float, bool]], limit: SupportsIndex, theme: str
) -> Drawing:
    """
    The picture of choices in bytes and time. `Remat.draw` calls it, and pickled pictures.
    """

def generation_name(tpu: Tpu) -> str:
    """
    The name of a TPU generation, as `TPU_GENERATIONS` has it.
    """

def hbm_bytes(tpu: Tpu, /) -> int:
    """
    The HBM that one device of a TPU generation offers to programs, in bytes.

    Raises:
        ParseError: `tpu` names no TPU.

    Examples:
        >>> hbm_bytes("v5e") / 2**30
        15.75
    """

def kernel_budget(text: str, *, tpu: Tpu | None = None, may_be_dropped_bytes: int = 0) -> KernelBudget:
    """
    The budget of a kernel's text, of whose scratch the compiler may do without some bytes.
    """

def kernel_fits(text: str, limit: int | None = None, *, tpu: Tpu | None = None) -> tuple[int, int, bool, int | None]:
    """
    Declared bytes of VMEM, the guess of the body's bytes, whether both fit `limit` or the kernel's own limit, and the
    limit that both need, if any is enough.
    """

def kernel_measured(
    budget: KernelBudget, measured_bytes: int | None = None, *, verdict: str | None = None, refusal: str | None = None
) -> KernelBudget:
    """
    The budget with the compiler's answer: the VMEM that it measured, and the verdict or the refusal that follows.
    """

def layout_in(shape: str) -> Layout:
    """
    The layout in a shape's text. Pickled layouts call it.
    """

def lock_text(compiler: Mapping[str, str], programs: Mapping[str, str]) -> str:
    """
    The text of a lock of these programs.
    """

def machine_name(name: str) -> tuple[str, int | None]:
    """
    The name of a machine, such as `gpu:h100`, and the bytes of its memory, if they are known.
    """

def markdown(rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """
    A table in Markdown, the first row its header, and paragraphs below it.
    """

def plot(report: Report, memory_space: int, theme: str) -> Drawing:
    """
    The picture of a report's memory plan. Pickled pictures call it.
    """

def predict(shape: ShapeLike | HasShape, *, tpu: Tpu) -> Shape:
    """
    The shape with the layout that the compiler picks on a TPU generation.

    Args:
        shape: an array shape without a layout, such as `"bf16[2048,1,2048,128]"`, or any object with a `shape` and a
            `dtype`: an array of NumPy, JAX or PyTorch, a `jax.ShapeDtypeStruct`. A sharded array counts as one device's
            shard. A `str` or `Shape` with a layout keeps its order of dimensions and gets the tiles for that order.
        tpu: a generation under any of its names, `"v5e"`, `"TPU v5 lite"`, `"v5litepod-4"`, or a JAX device.

    Raises:
        ParseError: the string is not a shape, or `tpu` names no TPU.
        ShapeError: not an array, an unbounded dimension, or an element type whose layout is not known.

    Examples:
        >>> predict("bf16[2048,1,2048,128]", tpu="v5e")
        Shape('bf16[2048,1,2048,128]{3,2,1,0:T(8,128)(2,1)}')
        >>> predict("f32[400000,12]{1,0}", tpu="v5e").expansion
        10.666666666666666
    """

def programs_in(path: str | PathLike[str]) -> list[Path] | None:
    """
    The files in a folder that are audited; `None` if the path isn't a folder.
    """

def quoting(report: Report, folder: str) -> Report:
    """
    The report with lines of source from files below a folder; unchanged if `folder` isn't one.
    """

def rates(tpu: Tpu) -> tuple[float, float, float]:
    """
    A device's rates per second: operations of a matrix multiplication, bytes of HBM, bytes over a link to another chip.
    """

def read(path: str | PathLike[str]) -> str:
    """
    A file's text, plain or gzip.
    """

def read_lock(file: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """
    The lock in a file, checked: its compiler and its programs.
    """

@overload
def relayout(
    buffer: BytesLike,
    from_shape: ShapeLike,
    to_shape: ShapeLike,
    *,
    out: None = None,
    padding: Literal["zero", "leave"] = "zero",
    threads: int = 1,
) -> npt.NDArray[np.uint8]: ...
@overload
def relayout(
    buffer: BytesLike,
    from_shape: ShapeLike,
    to_shape: ShapeLike,
    *,
    out: _Out,
    padding: Literal["zero", "leave"] = "zero",
    threads: int = 1,
) -> _Out:
    """
    Converts a buffer from one layout of an array to another.

    Args:
        buffer: the array's bytes in `from_shape`'s layout: `bytes`, any other object with the buffer protocol, a NumPy
            array, a PyTorch tensor of any dtype on the CPU, or another CPU array that supports DLPack. The dtype of an
            array must be uint8 or that of `from_shape`. Contiguous memory is not copied.
        from_shape: a `Shape` or `str`.
        to_shape: a `Shape` or `str`: another layout of the same array.
        out: a contiguous one-dimensional array of uint8, of NumPy or PyTorch, of exactly `to_shape`'s physical bytes to
            write into; `None` for a new one.
        padding: `"zero"` clears the result's padding; `"leave"` writes only elements, and needs `out`.
        threads: the number of threads to use at most.

    Returns:
        A one-dimensional `numpy.ndarray` of uint8 with `to_shape`'s physical bytes; `out` if given.

    Raises:
        RelayoutError: the shapes are different arrays, or the buffer has another length, dtype or shape than
            `from_shape`.
        TypeError: `buffer` holds no bytes.

    Releases the GIL. Other threads must not write to the buffers meanwhile.

    Examples:
        >>> import numpy as np
        >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
        >>> y = relayout(x, "f32[3,5]", "f32[3,5]{1,0:T(2,2)}")
        >>> y.view(np.float32)[17] == x[2, 3]
        np.True_
    """

def reshard(
    shards: Sequence[npt.NDArray[np.uint8] | None],
    from_shape: ShapeLike,
    from_sharding: str,
    to_shape: ShapeLike,
    to_sharding: str,
) -> list[npt.NDArray[np.uint8]]:
    """
    An array's shards on every device, from the shards of another sharding.

    Args:
        shards: for each device the bytes of its shard, a one-dimensional `numpy.ndarray` of uint8 in `from_shape`'s layout;
            `None` for a device that holds none.
        from_shape: a `Shape` or `str`: the whole array, with the layout of its shards.
        from_sharding: how it is divided, in XLA's notation, such as `"{devices=[2,2]<=[4]}"`; `str()` of jax's
            `HloSharding` is one.
        to_shape, to_sharding: the shape and the sharding of the result.

    Returns:
        For each device the bytes of its new shard, in `to_shape`'s layout. Padding is zero.

    Raises:
        ParseError: a sharding is not in XLA's notation.
        ShapeError: the shardings don't fit the array or each other.
        RelayoutError: a shard has another length.

    Releases the GIL. Other threads must not write to the shards meanwhile.

    Examples:
        >>> import numpy as np
        >>> rows = [np.arange(4, dtype=np.uint8), np.arange(4, 8, dtype=np.uint8)]
        >>> reshard(rows, "u8[2,4]", "{devices=[2,1]<=[2]}", "u8[2,4]", "{devices=[1,2]<=[2]}")
        [array([0, 1, 4, 5], dtype=uint8), array([2, 3, 6, 7], dtype=uint8)]
    """

def restore(class_: type, held: str) -> Any:
    """
    The value of this class in a JSON text. Pickled values call it.
    """

def run(arguments: Sequence[str]) -> int:
    """
    Runs the `tilewise` command line with these arguments, the program's name first, and returns its exit status.

    It reads and writes the standard streams of the process.
    """

def search_curves(axis: str, curves: Sequence[tuple[str, Sequence[tuple[int, int, int, str]]]]) -> str:
    """
    The picture of a search, with arguments of [`search_page`].
    """

def search_page(
    rows: Sequence[Sequence[str]],
    owners: Sequence[str],
    notes: Sequence[str],
    axis: str,
    curves: Sequence[tuple[str, Sequence[tuple[int, int, int, str]]]],
) -> str:
    """
    The page of a search: its table, owners and notes, and the axis with its curves, each a name and the sizes, bytes,
    limits and statuses of its points.
    """

def set_origin(report: Report, origin: object) -> None:
    """
    Sets the function that a report is of, for its `check`.
    """

def size_of(text: str) -> int:
    """
    The bytes of a size such as `1GiB`, `1G` or `1.5 MB`.
    """

def steps_of(shape: str) -> Steps:
    """
    The steps of the shape in a text. Pickled steps call it.
    """

def sum_together(
    programs: Sequence[tuple[Report, str | None, int | None]], limit: int | None, pages: str | None
) -> Together:
    """
    The memory of programs, each with its name and the bytes of its code, when all are loaded.
    """

@overload
def tile(
    array: ArrayLike, layout: Layout | Shape | str, *, out: None = None, threads: int = 1
) -> npt.NDArray[np.uint8]: ...
@overload
def tile(array: ArrayLike, layout: Layout | Shape | str, *, out: _Out, threads: int = 1) -> _Out:
    """
    The bytes of an array in a device's layout.

    Args:
        array: a NumPy array, with ml_dtypes' dtypes too, a PyTorch tensor of any dtype on the CPU, or another CPU array
            that NumPy can convert, such as JAX's.
        layout: a `Layout`, its text such as `"{1,0:T(8,128)(2,1)}"`, or a `Shape` or `str` of the whole shape.
        out, threads: as for `relayout`.

    Returns:
        A one-dimensional `numpy.ndarray` of uint8 with the layout's physical bytes, padding zero; `out` if given.

    Raises:
        ParseError: the string is not a layout.
        RelayoutError: the shape is not the array's.
        ShapeError: the layout has another rank, or XLA has no element type for the dtype.

    Examples:
        >>> import numpy as np
        >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
        >>> tile(x, "{1,0:T(2,2)}").view(np.float32)[:4]
        array([0., 1., 5., 6.], dtype=float32)
    """

@overload
def untile(buffer: BytesLike, shape: ShapeLike, *, out: None = None, threads: int = 1) -> npt.NDArray[Any]: ...
@overload
def untile(buffer: BytesLike, shape: ShapeLike, *, out: _Out, threads: int = 1) -> _Out:
    """
    The array in a buffer with a device's layout: the inverse of `tile`.

    Args:
        buffer: the bytes, as `relayout` takes them.
        shape: a `Shape` or `str`: the array and the layout of its bytes.
        out: a contiguous array of the shape's dimensions and dtype, of NumPy or PyTorch, to write into; `None` for a new
            one.
        threads: as for `relayout`.

    Returns:
        A row-major `numpy.ndarray` of the shape's dimensions and dtype; `out` if given.

    Raises:
        ImportError: the dtype needs ml_dtypes, which is not installed.
        RelayoutError: the buffer has another length, or `out` does not fit.
        ShapeError: not an array, or one without a layout.

    Examples:
        >>> import numpy as np
        >>> x = np.arange(15, dtype=np.float32).reshape(3, 5)
        >>> np.array_equal(untile(tile(x, "{1,0:T(2,2)}"), "f32[3,5]{1,0:T(2,2)}"), x)
        True
    """

def work_of(report: Report) -> tuple[int, int, dict[str, int], int]:
    """
    A program's floating-point operations, bytes read and written, and bytes of collectives by kind, all times the trip
    counts of loops; and the number of instructions that the compiler computes twice.
    """
