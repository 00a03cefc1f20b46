"""The notebook in `examples` runs and has the stored outputs. `NOTEBOOK=overwrite` stores new ones."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from conftest import EXAMPLES

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("jax")

NOTEBOOK = EXAMPLES / "layouts.ipynb"


def outputs(notebook: Any) -> Iterator[tuple[str, str]]:
    """The kind and content of each output."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield output.name, output.text
            for kind, data in sorted(output.get("data", {}).items()):
                # The default `repr` prints an address.
                yield kind, re.sub(r" at 0x\w+", "", data)


@pytest.mark.filterwarnings("default")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="shows notes of exceptions")
def test_the_notebook_has_the_stored_outputs() -> None:
    stored = nbformat.read(NOTEBOOK, as_version=4)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}})
    client.execute()
    if os.environ.get("NOTEBOOK") == "overwrite":
        for cell in notebook.cells:
            cell.metadata = {}
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, NOTEBOOK)
        stored = notebook
    fresh, known = list(outputs(notebook)), list(outputs(stored))
    assert fresh == known
    kinds = [kind for kind, _ in fresh]
    assert kinds.count("image/svg+xml") >= 2
    assert kinds.count("text/html") >= 2
    assert "stderr" not in kinds
