"""Programs that are loaded at once."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tilewise as tw
from tilewise.__main__ import main
from tilewise._verbs import largest

SERVER = Path(__file__).parents[2] / "examples" / "server"
FILES = [SERVER / f"{name}.v6e.hlo.gz" for name in ("small", "large", "undonated")]
# `memory_analysis().generated_code_size_in_bytes` of libtpu 0.0.52.
SMALL_CODE = 2_469_888


def test_programs_from_texts() -> None:
    server = tw.audit_together({file.name.partition(".")[0]: file for file in FILES}, tpu="v6e")
    assert [program.name for program in server.programs] == ["small", "large", "undonated"]
    assert server.largest_temporaries == 134_774_784
    assert (server.code_bytes, server.fits) == (None, None)
    assert server.pages is not None
    assert (server.pages.count, server.pages.page_bytes) == (1024, 131_072)
    assert server.programs[2].decides
    assert server.pages.decided_by == "undonated", "it holds the cache twice"
    assert [option.kind for option in server.options if option.program == "undonated"] == ["donate", "drop"]
    held = json.loads(server.to_json())
    assert held["total_bytes"] == server.total_bytes
    assert "What makes room" in str(server)
    assert "undonated: 147.25 MiB" in server.to_html()
    shared = next(array for array in server.residents if array.name == "cache[0][0]")
    assert (shared.programs, shared.donated_to) == (("small", "large", "undonated"), ("small", "large"))


def test_reports_and_limits() -> None:
    reports = [tw.audit(file, tpu="v6e") for file in FILES[:2]]
    server = tw.audit_together(reports, hbm_limit="100MiB")
    assert server.fits is False
    assert server.limit_bytes == 100 << 20
    with pytest.raises(tw.Error, match="no array that is held all the time"):
        tw.audit_together(reports, pages="nothing")
    with pytest.raises(TypeError, match="say which"):
        tw.audit_together([(print, ())])


def test_the_command_line_prints_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--together", *map(str, FILES), "--tpu", "v6e", "--format", "json"]) == 0
    printed = json.loads(capfd.readouterr().out)["together"]
    by_name = {file.name.partition(".")[0]: file for file in FILES}
    assert printed == json.loads(tw.audit_together(by_name, tpu="v6e").to_json())


def test_factories_are_compiled(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libtpu")
    program = f"{SERVER / 'server.py'}:server"
    assert main(["audit", "--together", program, "--tpu", "v6e", "--set", "pages=64", "--format", "json"]) == 0
    together = json.loads(capfd.readouterr().out)["together"]
    assert [each["name"] for each in together["programs"]] == ["small", "large", "undonated"]
    assert together["code_bytes"] > SMALL_CODE
    assert together["pages"]["count"] == 64


def test_only_a_page_is_written_of_factories(capfd: pytest.CaptureFixture[str]) -> None:
    program = f"{SERVER / 'server.py'}:server"
    assert main(["audit", "--together", program, "--tpu", "v6e", "-o", "server.svg"]) == 2
    assert "to FILE.html" in capfd.readouterr().err


def test_as_many_pages_as_fit() -> None:
    """Each answer tells the next count to ask about, and the one above is refused."""

    def ask(count: int, most: int = 14_080) -> Any:
        pages = SimpleNamespace(count=count, fitting=14_036 if count < 14_036 else 14_078)
        return SimpleNamespace(fits=count <= most, pages=pages)

    found, asked = largest(range(64, 131_073), ask)
    assert found.pages is not None
    assert found.pages.count == max(count for count in asked if asked[count].fits) == 14_080
    assert [*asked][:3] == [64, 14_036, 14_078]
    assert 14_081 in asked
    nothing, tried = largest(range(64, 128), functools.partial(ask, most=0))
    assert (nothing.fits, [*tried]) == (False, [64])


@pytest.mark.slow
def test_a_server_is_fitted(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libtpu")
    program = f"{SERVER / 'server.py'}:server"
    limit = ["--hbm-limit", "128MiB"]
    assert main(["fit", program, "--tpu", "v6e", "--largest", "pages=16..1024..16", *limit, "--format", "json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["fits"]
    more = str(found["pages"]["count"] + 16)
    assert main(["fit", program, "--tpu", "v6e", "--largest", f"pages={more}", *limit]) == 1
