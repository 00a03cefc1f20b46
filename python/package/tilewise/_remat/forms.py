"""Steps as functions of arrays alone, whatever they are written with: plain JAX, Flax NNX, Equinox.

Private parts of Flax and Equinox are used here and nowhere else.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tilewise._base.errors import Error
from tilewise._base.modules import module


class Form:
    """A step of trees, as a function of their arrays; `leaves` are those of its arguments."""

    def __init__(self, step: Callable[..., Any], args: Sequence[Any]) -> None:
        self._step = step
        self._results: tuple[Any, dict[int, Any]] | None = None
        self._tree, self.leaves, self._rest = self._apart(tuple(args))

    def _apart(self, args: tuple[Any, ...]) -> tuple[Any, list[Any], dict[int, Any]]:
        leaves, tree = module("jax").tree.flatten(args)
        rest = {at: leaf for at, leaf in enumerate(leaves) if not self._is_array(leaf)}
        return tree, [leaf for at, leaf in enumerate(leaves) if at not in rest], rest

    def _is_array(self, leaf: Any) -> bool:
        return hasattr(leaf, "shape") or isinstance(leaf, (bool, int, float, complex))

    def _joined(self, tree: Any, arrays: Sequence[Any], rest: dict[int, Any]) -> Any:
        given = iter(arrays)
        leaves = [rest[at] if at in rest else next(given) for at in range(tree.num_leaves)]
        return module("jax").tree.unflatten(tree, leaves)

    def flat(self, *arrays: Any) -> list[Any]:
        results = self._step(*self._joined(self._tree, arrays, self._rest))
        tree, found, rest = self._apart(results)
        self._results = (tree, rest)
        return found

    def callable_of(self, run: Callable[..., list[Any]]) -> Callable[..., Any]:
        """A function of the step's own form, of one of arrays."""

        def again(*args: Any) -> Any:
            tree, arrays, _ = self._apart(args)
            if tree != self._tree:
                raise Error(f"the step was chosen for arguments of the form {self._tree}, not {tree}", kind="remat")
            assert self._results is not None
            tree, rest = self._results
            return self._joined(tree, run(*arrays), rest)

        return functools.wraps(self._step)(again) if hasattr(self._step, "__name__") else again


class _Equinox(Form):
    """A step under ``equinox.filter_jit``: numbers of Python are part of the program."""

    def __init__(self, step: Any, args: Sequence[Any]) -> None:
        super().__init__(step, args)
        donated = step.donate_first, step.donate_rest
        self._donate = {(True, True): "all", (False, True): "all-except-first"}.get(donated, "none")

    def _is_array(self, leaf: Any) -> bool:
        return hasattr(leaf, "shape")

    def callable_of(self, run: Callable[..., list[Any]]) -> Callable[..., Any]:
        jitted: Callable[..., Any] = module("equinox").filter_jit(super().callable_of(run), donate=self._donate)
        return jitted


class _Nnx(Form):
    """A step under ``flax.nnx.jit``, which changes the modules that it is given."""

    def __init__(self, step: Any, args: Sequence[Any]) -> None:
        self._nnx, self._jax = module("flax.nnx"), module("jax")
        self._fun = step.fun
        self._modules = [at for at, arg in enumerate(args) if isinstance(arg, self._nnx.Pytree)]
        self._graphs = {at: self._nnx.split(args[at])[0] for at in self._modules}
        info = getattr(step.lower(*args), "lowered", None)
        flags = info.args_info[0] if info is not None else ()
        leaves = (self._jax.tree.leaves(each) for each in flags)
        self._donated = tuple(at for at, each in enumerate(leaves) if each and all(one.donated for one in each))
        super().__init__(self._of_states, [self._state(at, arg) for at, arg in enumerate(args)])

    def _state(self, at: int, arg: Any) -> Any:
        return self._nnx.to_pure_dict(self._nnx.state(arg)) if at in self._graphs else arg

    def _of_states(self, *states: Any) -> Any:
        args: list[Any] = list(states)
        for at, graph in self._graphs.items():
            args[at] = self._nnx.merge(graph, states[at])
        results = self._fun(*args)
        return results, [self._nnx.to_pure_dict(self._nnx.state(args[at])) for at in self._modules]

    def callable_of(self, run: Callable[..., list[Any]]) -> Callable[..., Any]:
        of_states = super().callable_of(run)

        def again(*args: Any) -> Any:
            results, states = of_states(*(self._state(at, arg) for at, arg in enumerate(args)))
            for at, state in zip(self._modules, states, strict=True):
                self._nnx.update(args[at], state)
            return results

        again.__name__ = getattr(self._fun, "__name__", "step")
        jitted: Callable[..., Any] = self._nnx.jit(again, donate_argnums=self._donated or None)
        return jitted


def form_of(step: Any, args: Sequence[Any]) -> Form:
    home = type(step).__module__.partition(".")[0]
    if home == "equinox" and hasattr(step, "donate_first"):
        return _Equinox(step, args)
    if home == "flax" and hasattr(step, "fun"):
        return _Nnx(step, args)
    return Form(step, args)
