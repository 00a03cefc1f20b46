"""The command line: ``tilewise …`` or ``python -m tilewise …``."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence

from tilewise import _tilewise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    # Python's own handler would only take effect after the native call returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _tilewise.run(["tilewise", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
