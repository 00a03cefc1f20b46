"""The command line: ``tilewise …`` or ``python -m tilewise …``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

from tilewise import _tilewise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if _tilewise.asks_compiler(["tilewise", *given]):
        from tilewise._verbs import VERBS, apart

        with apart() as answers:
            try:
                return VERBS[given[0]](given[1:], answers)
            except (ValueError, TypeError, ImportError, AttributeError, OSError, KeyError, RuntimeError) as error:
                answers.error(error)
                return 2
    # The verb `mcp` asks the compiler through this interpreter.
    os.environ.setdefault("TILEWISE_INTERPRETER", sys.executable)
    # Python's own handler would only take effect after the native call returns.
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _tilewise.run(["tilewise", *given])
    finally:
        signal.signal(signal.SIGINT, before)


if __name__ == "__main__":
    sys.exit(main())
