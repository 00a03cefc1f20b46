"""The notebooks in `examples` run and have the stored outputs. `NOTEBOOK=overwrite` stores new ones."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import EXAMPLES, is_recorded_with

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("jax")


def outputs(notebook: Any) -> Iterator[tuple[str, str]]:
    """The kind and content of each output."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield output.name, output.text
            for kind, data in sorted(output.get("data", {}).items()):
                # The default `repr` prints an address.
                yield kind, re.sub(r" at 0x\w+", "", data)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="shows notes of exceptions")
@pytest.mark.parametrize(("name", "needs"), [("layouts", "jax"), ("out_of_memory", "libtpu")])
def test_the_notebook_has_the_stored_outputs(name: str, needs: str, tmp_path: Path) -> None:
    pytest.importorskip(needs)
    if needs == "libtpu" and not is_recorded_with("0.12.0.1", "0.0.50.1"):
        pytest.skip("its outputs are those of JAX 0.12.0.1 with libtpu 0.0.50.1")
    path = EXAMPLES / f"{name}.ipynb"
    stored, notebook = (nbformat.read(path, as_version=4) for _ in range(2))
    # Where it may write, beside what it reads. Reports show the last parts of a path.
    folder = tmp_path / "jobs" / "train"
    folder.mkdir(parents=True)
    for example in EXAMPLES.iterdir():
        (folder / example.name).symlink_to(example)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute()
    if os.environ.get("NOTEBOOK") == "overwrite":
        for cell in notebook.cells:
            cell.metadata = {}
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)
        stored = notebook
    fresh, known = list(outputs(notebook)), list(outputs(stored))
    assert fresh == known
    kinds = [kind for kind, _ in fresh]
    assert kinds.count("text/html") >= 2
    assert "stderr" not in kinds
