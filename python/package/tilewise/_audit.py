"""Audits of compiled programs, in whatever form they come."""

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

            - what ``jax.jit(f).lower(...).compile()`` returns, or anything else with an ``as_text`` or ``to_string``
              method; what ``lower`` alone returns has no layouts of the device yet;
            - the path of a file of HLO text, plain or gzip;
            - HLO text: a ``str`` with line breaks, or one that begins with ``HloModule``; as ``bytes``, also gzip.
        tpu: the generation it is for, by any name (``"v5e"``) or as a JAX device: prices the fixes, and says whether
            the program fits.
        hbm_limit: the HBM it should fit, in bytes; with ``tpu`` that of the generation.

    Raises:
        HloError: the text holds no HLO.
        ParseError: no TPU generation of that name.
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
    """The text, and where it came from."""
    if isinstance(program, str) and _is_hlo(program):
        return program, "text"
    if isinstance(program, (str, os.PathLike)):
        # A path may be of bytes, or of characters that stand for bytes.
        return _tilewise.read(program), os.fsencode(program).decode(errors="replace")
    if isinstance(program, (bytes, bytearray, memoryview)):
        return _tilewise.decode(bytes(program)), "bytes"
    source = type(program).__name__
    return _text_of_object(program, source), source


def _is_hlo(text: str) -> bool:
    return "\n" in text or text.startswith("HloModule") or " = " in text


def _text_of_object(program: Any, source: str) -> str:
    if hasattr(program, "as_text"):
        # What can still be compiled is lowered only, and would print StableHLO.
        text = program.as_text("hlo") if hasattr(program, "compile") else program.as_text()
    elif hasattr(program, "to_string"):
        text = program.to_string()
    else:
        message = f"audit takes a compiled program, a path, or HLO text, not {source}"
        raise TypeError(message)
    if not isinstance(text, str):
        message = f"this {source} has no text: its compiler keeps none"
        raise TypeError(message)
    return text
