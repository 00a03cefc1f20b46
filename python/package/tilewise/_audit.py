"""`audit`, which takes a compiled program in any form."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tilewise import _tilewise

if TYPE_CHECKING:
    from tilewise._tilewise import Report
    from tilewise._types import Program, Tpu


def audit(program: Program, /, *, tpu: Tpu | None = None, hbm_limit: int | None = None) -> Report:
    """Find the padding waste of a compiled program.

    Args:
        program: one of

            - the result of ``jax.jit(f).lower(...).compile()``, or any other object with an ``as_text`` or
              ``to_string`` method; the result of ``lower`` alone has no device layouts yet;
            - the path of a file of HLO text, plain or gzip;
            - HLO text: a ``str`` with line breaks or ``" = "``, or one that begins with ``HloModule``; or ``bytes``,
              plain or gzip.
        tpu: the generation that runs the program, under any of its names (``"v5e"``) or as a JAX device. Its layouts
            price the fixes, and its HBM is the default of ``hbm_limit``.
        hbm_limit: the HBM that the program has to fit into, in bytes.

    Raises:
        HloError: the text is not HLO.
        ParseError: ``tpu`` names no TPU generation.
        OSError: the file can't be read.

    Examples:
        >>> report = audit('''
        ... ENTRY main {
        ...   x = f32[400000,12]{1,0:T(8,128)} parameter(0)
        ...   ROOT y = f32[400000,12]{1,0:T(8,128)} negate(x)
        ... }''')
        >>> report.padding_bytes
        371200000
        >>> report.largest_padding()[0].causes
        ['dimension 1 (size 12) lies on the 128 lanes: 12 of 128 used']
    """
    text, source = _text_of(program)
    return _tilewise.audit_text(text, source, tpu, hbm_limit)


def _text_of(program: Program) -> tuple[str, str]:
    """The HLO text, and where it came from."""
    if isinstance(program, str) and _is_hlo(program):
        return program, "text"
    if isinstance(program, (str, os.PathLike)):
        # Not every path is valid Unicode.
        return _tilewise.read(program), os.fsencode(program).decode(errors="replace")
    if isinstance(program, (bytes, bytearray, memoryview)):
        return _tilewise.decode(bytes(program)), "bytes"
    source = type(program).__name__
    return _text_of_object(program, source), source


def _is_hlo(text: str) -> bool:
    return "\n" in text or text.startswith("HloModule") or " = " in text


def _text_of_object(program: Any, source: str) -> str:
    if hasattr(program, "as_text"):
        # An object with `compile` is only lowered: its default text is StableHLO.
        text = program.as_text("hlo") if hasattr(program, "compile") else program.as_text()
    elif hasattr(program, "to_string"):
        text = program.to_string()
    else:
        message = f"audit takes a compiled program, a path, or HLO text, not {source}"
        raise TypeError(message)
    if not isinstance(text, str):
        message = f"this {source} has no text: its compiler does not keep any"
        raise TypeError(message)
    return text
