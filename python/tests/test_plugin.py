"""The assertions for tests, and the pytest plugin that has them as fixtures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tilewise as tw
from tilewise import testing
from tilewise._base.limits import bytes_of, in_words


def test_limits() -> None:
    cases = {"10%": 100, "1 GiB": 2**30, "1.5KiB": 1536, "2MB": 2_000_000, "12": 12, "7B": 7}
    assert {text: bytes_of(text, 1000) for text in cases} == cases
    assert (bytes_of(16e9, 1000), bytes_of(5, 1000), bytes_of("1G", 1)) == (16 * 10**9, 5, 2**30)
    for wrong in ("", "x", "-1", "1 furlong", "10 %%"):
        with pytest.raises(ValueError, match="a limit is"):
            bytes_of(wrong, 1)
    assert (in_words(12), in_words(2**34)) == ("12 bytes", "16.00 GiB (17179869184)")


def test_programs_within_their_limits(
    program: Path, assert_padding_below: Callable[..., None], assert_peak_below: Callable[..., None]
) -> None:
    assert_padding_below(program, limit="300MiB", tpu="v5e")
    assert_peak_below(program, limit="10%", tpu="v5e")
    assert_peak_below(tw.audit(program, tpu="v5e"), limit=326_497_792, tpu="v5e")


def test_programs_above_them_name_their_lines(program: Path) -> None:
    with pytest.raises(AssertionError, match=r"of padding at the peak of jit_f, more than (.|\n)*model\.py:439"):
        testing.assert_padding_below(program, limit="10%", tpu="v5e")
    with pytest.raises(AssertionError, match=r"jit_f holds 311\.37 MiB \(326497792\)(.|\n)*model\.py:439(.|\n)*try: "):
        testing.assert_peak_below(program, limit=326_497_279, tpu="v5e")


def test_programs_without_tiles_or_schedule_fail() -> None:
    for check in (testing.assert_padding_below, testing.assert_peak_below):
        with pytest.raises(tw.NotATpuProgram):
            check("x = f32[400000,12]{1,0} parameter(0)", limit="1GiB", tpu="v5e")
        with pytest.raises(AssertionError, match="isn't scheduled"):
            check("x = f32[400000,12]{1,0:T(8,128)} parameter(0)", limit="1GiB", tpu="v5e")


def test_a_share_is_text(program: Path) -> None:
    with pytest.raises(ValueError, match=r"'10%', not 0\.1"):
        testing.assert_peak_below(program, limit=0.1, tpu="v5e")
    with pytest.raises(TypeError, match="limit"):
        testing.assert_peak_below(program, tpu="v5e")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]


def test_the_fixtures_are_there() -> None:
    command = [sys.executable, "-m", "pytest", "--fixtures", "-q", "-p", "no:cacheprovider", "--co", "--rootdir=/"]
    done = subprocess.run([*command, __file__], capture_output=True, text=True)
    assert "assert_padding_below" in done.stdout
    assert "assert_peak_below" in done.stdout
