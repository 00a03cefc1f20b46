"""`equation`: an equation of XLA's tiled-layout document, worked out."""

from __future__ import annotations

import json
from typing import Any

from tilewise._tilewise import equation_json


def equation(text: str, /) -> dict[str, Any]:
    """An equation of XLA's tiled-layout document, each member worked out.

    Args:
        text: members joined by `=`, as the document prints them: `linear_index_with_tile((2,3), (3,5), (2,2)) = 17`.

    Returns:
        `members`, each with its `text` and `value`, and whether all are equal, `holds`; of a function with numbers also
        the element's `shape`, `index`, `linear_index` and `physical_index`. Values are `None` where there are symbols.

    Raises:
        ParseError: the text isn't an equation.

    Examples:
        >>> found = equation("linear_index((2,3), (3,5)) = 14")
        >>> found["holds"], found["linear_index"]
        (False, 13)
    """
    return dict(json.loads(equation_json(text)))
