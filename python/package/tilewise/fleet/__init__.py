"""Many programs and large checkpoints, on many machines. Extra: ``tilewise[fleet]``.

`audit` audits the dumps of thousands of jobs into a Parquet dataset; `relayout` converts a sharded checkpoint that is
larger than memory. Ray or Dask distributes the work and retries failed tasks, each as it is configured; install ``ray``
or ``dask[distributed]``. The engine ``"threads"`` needs neither. Every worker needs this package.
"""

try:
    from tilewise.fleet._audit import audit
    from tilewise.fleet._relayout import Relayout, relayout
except ModuleNotFoundError as _error:
    _message = f"tilewise.fleet needs {_error.name}: install the extra `tilewise[fleet]`"
    raise ModuleNotFoundError(_message, name=_error.name) from _error

__all__ = ["Relayout", "audit", "relayout"]
