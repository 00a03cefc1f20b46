"""Makes the programs of a search: by a factory, a function whose arguments are stretched, or a library.

Factories and their settings may be named as the command line writes them. Programs of libraries need no factory:
``maxtext:CONFIG`` and ``exported:FILE``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import io
import operator
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tilewise._base.errors import Error, Skip
from tilewise._base.modules import module
from tilewise._compiler.program import Program, sendable, trace
from tilewise._fit.candidates import NAMES, Place, candidate
from tilewise._jax import internals
from tilewise._jax.device import traced_for
from tilewise._jax.lowering import Request
from tilewise._jax.topologies import devices_of, slice_with

own_only = False
"""Whether functions that a file or module only imports are refused: a server may run its own, not those of `os`."""


def factory(program: str, modules: Collection[str] = ()) -> Callable[..., Any]:
    """The factory that ``FILE.py:NAME`` names, or the program of a library, ``maxtext:CONFIG``.

    ``MODULE:NAME`` is of an allowed module alone: ``subprocess:call`` is such a name, too.
    """
    library = None if own_only else adapter(program)
    if library is not None:
        return library
    place, colon, name = program.rpartition(":")
    if not colon or not name:
        raise ValueError(f"the program is FILE.py:FACTORY, not {program!r}")
    if place.endswith(".py") or "/" in place:
        found = FromFile(place, name)
        try:
            found.load()
        # A file of Python may raise anything.
        except (Exception, SystemExit) as error:
            if isinstance(error, (OSError, AttributeError, ImportError)):
                raise
            raise ValueError(f"{place} can't be run: {type(error).__name__}: {error}") from error
        if own_only:
            _check_own(place, name, found.load(), Path(found.path))
        return found
    if place not in modules:
        raise ValueError(f"{place!r} isn't a file FILE.py: --allow-module {place} runs the function of a module")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    imported = importlib.import_module(place)
    made: Callable[..., Any] = operator.attrgetter(name)(imported)
    if own_only:
        home = Path(inspect.getfile(imported))
        _check_own(place, name, made, home.parent if home.name == "__init__.py" else home)
    return made


def _check_own(place: str, name: str, made: Any, home: Path) -> None:
    while isinstance(made := inspect.unwrap(made), functools.partial):
        made = made.func
    try:
        of = inspect.getfile(made if inspect.isroutine(made) or inspect.isclass(made) else type(made))
    except TypeError:
        # Python's own, in no file.
        of = ""
    if not of or not Path(of).resolve().is_relative_to(home.resolve()):
        message = f"`{name}` isn't defined in {place}, which only imports it"
        raise Error(message, kind="not_a_program", help="name a function by the file that defines it")


@dataclass(frozen=True)
class Adapter:
    """A program by the name of its library; its settings are the library's own."""

    source: str

    def __call__(self, **settings: Any) -> Any:
        raise TypeError(f"{type(self).__name__} is lowered, not called")

    def lowered(self, settings: Mapping[str, Any], place: Place) -> Any:
        """The program that ``lower`` returns for devices of the place."""
        raise NotImplementedError


class MaxText(Adapter):
    """The training step of a MaxText configuration, a file or one of its own (``base``); settings are its keys."""

    def lowered(self, settings: Mapping[str, Any], place: Place) -> Any:
        """As MaxText's ``train_compile`` lowers it."""
        jax = module("jax")
        pyconfig = module("maxtext.configs.pyconfig")
        steps = module("maxtext.trainers.pre_train.train_compile")
        tools, sharding = module("maxtext.utils.maxtext_utils"), module("maxtext.utils.sharding")
        topology, devices = slice_with(place.tpu, place.topology, 1)
        devices = devices_of(topology) if place.topology is not None else devices[:1]
        # Settings of a run that only compiles; the caller's take precedence.
        settled: dict[str, Any] = {
            "run_name": "tilewise",
            "base_output_directory": tempfile.gettempdir(),
            "enable_checkpointing": False,
            "skip_jax_distributed_system": True,
            "dataset_type": "synthetic",
            **settings,
        }
        with contextlib.redirect_stdout(io.StringIO()):
            config = pyconfig.initialize(["", self._file(), *(f"{name}={value}" for name, value in settled.items())])
            kinds = jax.sharding.AxisType
            kind = kinds.Explicit if str(config.shard_mode).lower().endswith("explicit") else kinds.Auto
            shape = tools.create_device_mesh(config, devices)
            mesh = jax.sharding.Mesh(shape, config.mesh_axes, axis_types=(kind,) * len(config.mesh_axes))
            args, kwargs, states, _, model = steps.get_shaped_inputs(mesh, config)
            parameters, states = sharding.maybe_update_params_sharding_with_opt(config, states)
            given = sharding.build_zero1_input_state_mesh_shardings(config, states, parameters)
            data = sharding.get_input_data_sharding(config, mesh)
            step, inputs, results, static, donated = tools.get_functional_train_with_signature(
                steps.train.train_step, data, given, model, config, parameters
            )
            jitted = jax.jit(
                step, in_shardings=inputs, out_shardings=results, static_argnums=static, donate_argnums=donated
            )
            with jax.set_mesh(mesh), steps.axis_rules(config.logical_axis_rules):
                return jitted.lower(*args, **kwargs)

    def _file(self) -> str:
        if Path(self.source).exists():
            return str(Path(self.source).resolve())
        file = Path(inspect.getfile(module("maxtext.configs.pyconfig"))).parent / f"{self.source}.yml"
        if not file.exists():
            raise OSError(f"MaxText has no configuration {self.source!r}, and there is no such file")
        return str(file)


class Exported(Adapter):
    """A program that `jax.export` wrote, as torchax exports it; settings are its symbolic dimensions."""

    def lowered(self, settings: Mapping[str, Any], place: Place) -> Any:
        """Its StableHLO, for one device."""
        jax, export = module("jax"), module("jax.export")
        exported = export.deserialize(bytearray(Path(self.source).read_bytes()))
        # It is of no machine, though it was exported on one.
        exported = replace(exported, platforms=("tpu",))
        symbols = {str(size) for aval in exported.in_avals for size in aval.shape if not isinstance(size, int)}
        unknown = [name for name in settings if not any(name in symbol for symbol in symbols)]
        if unknown:
            message = f"the program has no dimension {unknown[0]!r}, only {', '.join(sorted(symbols)) or 'numbers'}"
            raise TypeError(message)
        _, devices = slice_with(place.tpu, place.topology, 1)
        device = jax.sharding.SingleDeviceSharding(devices[0])

        def array(aval: Any) -> Any:
            shape = tuple(internals.size_of(size, settings) for size in aval.shape)
            return jax.ShapeDtypeStruct(shape, aval.dtype, sharding=device)

        args, kwargs = jax.tree.unflatten(exported.in_tree, [array(aval) for aval in exported.in_avals])
        return jax.jit(exported.call).lower(*args, **kwargs)


_LIBRARIES: Mapping[str, Callable[[str], Adapter]] = {"maxtext": MaxText, "exported": Exported}


def adapter(program: str) -> Adapter | None:
    """The program that ``LIBRARY:SOURCE`` names; ``None`` of a factory."""
    library, colon, source = program.partition(":")
    if not colon or library not in _LIBRARIES or os.path.exists(program):
        return None
    if library == "exported" and not Path(source).is_file():
        raise OSError(f"{source} can't be read: `jax.export.export(…)(…).serialize()` writes such a file")
    return _LIBRARIES[library](str(Path(source).resolve()) if Path(source).exists() else source)


def program_of(make: Callable[..., Any], settings: Mapping[str, Any], place: Place) -> Program:
    """The program that a factory makes of its settings, with the candidates among them that it doesn't take itself."""
    if isinstance(make, Adapter):
        begun = time.perf_counter()
        return sendable(make.lowered(settings, place), place.tpu, place.topology, begun)
    return trace(program(make, settings, place))


def program(make: Callable[..., Any], settings: Mapping[str, Any], place: Place) -> Request:
    """The function that a factory returns, or the candidate among the settings that the factory doesn't take itself."""
    made = _program(make, settings, place)
    return replace(made, again=lambda: _program(make.anew(), settings, place)) if isinstance(make, FromFile) else made


def _program(make: Callable[..., Any], settings: Mapping[str, Any], place: Place) -> Request:
    wanted = {name: settings[name] for name in NAMES if name in settings and not takes(make, name)}
    kept = {name: value for name, value in settings.items() if name not in wanted}
    if not wanted:
        return _made_for(make, kept, place)
    batch = kept.pop(place.axis, None)

    def at(batch: int | None) -> Request:
        return _made_for(make, kept if batch is None else {**kept, place.axis: batch}, place)

    return candidate(at, wanted, batch)


def _made_for(make: Callable[..., Any], settings: Mapping[str, Any], place: Place) -> Request:
    """The factory's result; if it raises, it is called again as if on the TPU, whose kind it may ask for."""

    def made() -> Request:
        f, args, options = parts_of(make(**settings))
        return Request(f, args, place.tpu, place.topology, options)

    try:
        return made()
    except Skip:
        raise
    except Exception:
        return traced_for(place.tpu, made)


def parts_of(returned: Any) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """The function that a factory returned, its arguments and options of ``jax.jit``; `TypeError` for all else."""
    if isinstance(returned, Mapping):
        raise TypeError("the factory returns several programs, which `tw.audit_together` sums up; `fit` is of one")
    is_tuple: bool = isinstance(returned, tuple)
    if not is_tuple or len(returned) not in (2, 3) or not callable(returned[0]):
        raise TypeError(f"the factory returns (f, args) or (f, args, jit_options), not {type(returned).__name__}")
    f, args = returned[:2]
    is_tuple = isinstance(args, (tuple, list))
    if not is_tuple:
        message = f"the factory's second value is the tuple of the function's arguments, not {type(args).__name__}"
        raise TypeError(message)
    return f, tuple(args), dict(returned[2] or {}) if len(returned) == 3 else {}


def takes(make: Callable[..., Any], name: str) -> bool:
    parameters = parameters_of(make)
    if parameters is None:
        return True
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def parameters_of(make: Callable[..., Any]) -> Mapping[str, inspect.Parameter] | None:
    try:
        return inspect.signature(make).parameters
    except (TypeError, ValueError):
        return None


def check_settings(make: Callable[..., Any], names: set[str]) -> None:
    """Refuse names that the factory doesn't take, and a search without the settings that it needs."""
    parameters = None if isinstance(make, (Adapter, Stretched)) else parameters_of(make)
    if parameters is None:
        return
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    taken = {name: each for name, each in parameters.items() if each.kind in kinds}
    takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    unknown = sorted(name for name in names if name not in taken and name not in NAMES)
    if unknown and not takes_all:
        raise TypeError(f"the factory has no setting {unknown[0]!r}, only {', '.join(taken) or 'none'}")
    lacking = [name for name, each in taken.items() if each.default is each.empty and name not in names]
    if lacking:
        raise TypeError(f"the factory needs a value of {lacking[0]!r}")


class Stretched:
    """A factory from a function and its arguments: marked axes grow with the batch."""

    def __init__(
        self,
        f: Callable[..., Any],
        args: Sequence[Any],
        in_axes: Any,
        axis: str,
        batch_size: int | None,
        jit_options: Mapping[str, Any] | None,
    ) -> None:
        jax = module("jax")
        self.f, self.axis, self.options = f, axis, dict(jit_options or {})
        self.args = tuple(args)
        axes: Sequence[Any] = in_axes
        if not isinstance(in_axes, (tuple, list)):
            axes = (in_axes,) * len(self.args)
        if len(axes) != len(self.args):
            raise ValueError(f"in_axes has {len(axes)} entries for {len(self.args)} arguments")
        self._axes: list[int | None] = []

        def is_axis(value: Any) -> bool:
            return value is None or isinstance(value, int)

        def note(axis: int | None, part: Any) -> None:
            self._axes.extend([axis] * len(jax.tree.leaves(part)))

        # An entry stands for all that is below it, as in `jax.vmap`.
        for axes_of, arg in zip(axes, self.args, strict=True):
            jax.tree.map(note, axes_of, arg, is_leaf=is_axis)
        leaves = zip(jax.tree.leaves(self.args), self._axes, strict=True)
        marked = [leaf.shape[axis] for leaf, axis in leaves if axis is not None]
        if not marked:
            raise ValueError("in_axes marks no axis of any argument")
        self.batch_size = int(marked[0]) if batch_size is None else batch_size

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.Signature([inspect.Parameter(self.axis, inspect.Parameter.KEYWORD_ONLY)])

    def __call__(self, **settings: Any) -> Any:
        jax = module("jax")
        batch = settings.pop(self.axis)
        if settings:
            raise TypeError(f"a function has no setting {next(iter(settings))!r}: give a factory")

        def stretched(leaf: Any, axis: int | None) -> Any:
            if axis is None:
                return leaf
            shape = list(leaf.shape)
            shape[axis], rest = divmod(shape[axis] * batch, self.batch_size)
            if rest:
                raise Skip(f"axis {axis} of {tuple(leaf.shape)} can't be {batch}/{self.batch_size} of its size")
            sharding = getattr(leaf, "sharding", None)
            kept = {} if getattr(sharding, "mesh", None) is None else {"sharding": sharding}
            return jax.ShapeDtypeStruct(tuple(shape), leaf.dtype, **kept)

        leaves, tree = jax.tree.flatten(self.args)
        args = jax.tree.unflatten(tree, map(stretched, leaves, self._axes))
        return self.f, args, self.options


class FromFile:
    """The factory of that name in a file of Python, which each process loads for itself."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = str(Path(path).resolve()), name

    def __call__(self, **settings: Any) -> Any:
        return self.load()(**settings)

    def load(self) -> Callable[..., Any]:
        return _loaded(self.path, self.name)

    def anew(self) -> Callable[..., Any]:
        """The factory of the file as it is run once more."""
        return _loaded.__wrapped__(self.path, self.name)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.load())


@functools.cache
def _loaded(path: str, name: str) -> Callable[..., Any]:
    """The factory of a file, which is run once."""
    folder, stem = str(Path(path).parent), Path(path).stem
    # As `python FILE` does.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    specification = importlib.util.spec_from_file_location(stem, path)
    if specification is None or specification.loader is None:
        raise OSError(f"{path} isn't a Python file")
    loaded = importlib.util.module_from_spec(specification)
    sys.modules.setdefault(stem, loaded)
    specification.loader.exec_module(loaded)
    found: Callable[..., Any] = operator.attrgetter(name)(loaded)
    if not callable(found):
        raise AttributeError(f"{name} in {path} can't be called")
    return found


def travels(make: Callable[..., Any]) -> bool:
    """Whether another process can import the factory; otherwise it is called here."""
    try:
        held = pickle.dumps(make)
    except Exception:
        return False
    # There, `__main__` is another module.
    return b"__main__" not in held


def sizes(text: str) -> tuple[str, Sequence[float]]:
    """``batch=1..512``, ``seq=128..4096..128``, ``batch=1,2,8`` or ``batch=0.25,0.5,1``: the axis and its sizes."""
    name, held = _named(text)
    try:
        if ".." in held:
            first, last, *step = (int(part) for part in held.split(".."))
            chosen = range(first, last + 1, *step)
            if max(abs(first), abs(last)) < sys.maxsize:
                return name, chosen
            raise ValueError("a size is below 2^63")
        return name, [float(part) if "." in part else int(part) for part in held.split(",")]
    except (ValueError, TypeError) as error:
        raise ValueError(f"sizes are written 1..512, 8..512..8 or 1,2,8, not {held!r}") from error


def values(text: str) -> tuple[str, list[Any]]:
    """``remat=none,dots,full``: the axis and its values."""
    name, held = _named(text)
    return name, [_value(part) for part in held.split(",")]


def setting(text: str) -> tuple[str, Any]:
    name, held = _named(text)
    return name, _value(held)


def _named(text: str) -> tuple[str, str]:
    name, equals, held = text.partition("=")
    if not equals or not name:
        raise ValueError(f"settings are written NAME=VALUE, not {text!r}")
    return name, held


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
