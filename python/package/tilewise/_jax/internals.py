"""JAX's private parts that the package uses: all of them are here, with a branch for each JAX that differs.

Public parts are used where they are needed: ``jax.jit(f).trace(…)``, abstract meshes, ``jax.experimental.topologies``,
``jax.extend.core``. A JAX that keeps a private part in another way ends in one sentence, of `unknown`.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

from tilewise._base.errors import Error
from tilewise._base.modules import module

OLDEST, NEWEST = (0, 6), (0, 12)
"""The versions of JAX that all of this was run with."""


def unknown(what: str) -> Error:
    """Says that this JAX keeps something in a way that is not known here."""
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
    current = module("jax").__version__
    return Error(
        f"this tilewise knows JAX {oldest} to {newest}, and JAX {current} keeps {what} in another way",
        kind="unknown_jax",
        help="use a JAX that is known; or give the plain function, with shardings over a `jax.sharding.AbstractMesh`",
    )


@contextlib.contextmanager
def _of(what: str) -> Generator[None]:
    """Says that this JAX is unknown where a private name is missing or is something else."""
    try:
        yield
    except (AttributeError, ImportError, IndexError, KeyError, RecursionError, TypeError) as error:
        raise unknown(what) from error


def _version() -> tuple[int, ...]:
    return tuple(module("jax").__version_info__[:3])


def is_unspecified(sharding: Any) -> bool:
    """Whether this is JAX's marker of a sharding that wasn't given."""
    return type(sharding).__name__ == "UnspecifiedValue"


# Traced programs


@dataclass(frozen=True)
class Traced:
    """A ``jax.stages.Traced`` in the parts that it is lowered from."""

    # The known properties of each argument's leaf.
    arguments: list[Any]
    # Those of the jaxpr: itself, and shardings, layouts and donation of its arguments and results.
    params: dict[str, Any]

    @classmethod
    def of(cls, traced: Any) -> Traced:
        with _of("traced programs"):
            if hasattr(traced, "_meta_tys_flat"):  # Since 0.8.
                return cls(list(traced._meta_tys_flat), dict(traced._params))
            if hasattr(traced, "_lfg"):  # 0.7
                return cls([_abstract(each) for each in traced._lfg.args[0]], dict(traced._params))
            lowering = traced._lower_callable  # 0.6
            params = {name: value for name, value in lowering.keywords.items() if name != "pgle_profiler"}
            return cls([_abstract(each) for each in lowering.args[0]], params)

    def lowered(self, traced: Any) -> Any:
        """Lowers a traced program as if it had these parts."""
        with _of("traced programs"):
            new = copy.copy(traced)
            if hasattr(new, "_meta_tys_flat"):  # Since 0.8.
                new._meta_tys_flat, new._params = self.arguments, self.params
                for derived in ("_lojax", "_closure_converted"):
                    if hasattr(new, derived):
                        setattr(new, derived, None)
            elif hasattr(new, "_lfg"):  # 0.7
                new._lfg = functools.partial(new._lfg.func, self.arguments, **new._lfg.keywords)
                new._params = self.params
            else:  # 0.6
                old = new._lower_callable
                new._lower_callable = functools.partial(old.func, self.arguments, **{**old.keywords, **self.params})
                new._args_flat = self.arguments
        return new.lower()


def _abstract(value: Any) -> Any:
    """An argument as an abstract array, which has a sharding only over a mesh."""
    jax = module("jax")
    if isinstance(value, jax.ShapeDtypeStruct):
        return value
    shape, sharding = jax.eval_shape(lambda same: same, value), getattr(value, "sharding", None)
    over = sharding if hasattr(sharding, "mesh") else None
    return jax.ShapeDtypeStruct(shape.shape, shape.dtype, sharding=over, weak_type=bool(shape.weak_type))


def placed(argument: Any, sharding: Any) -> Any:
    """The argument's leaf, of a `Traced`, with another sharding; ``None`` for none.

    An array lies on this machine as it does; only a layout that is asked for, which has no tiles, is kept.
    """
    with _of("arguments of traced programs"):
        if not hasattr(argument, "committed"):  # 0.6 and 0.7 have abstract arrays.
            layout = getattr(getattr(argument, "format", None), "layout", None)
            place = sharding if layout is None or sharding is None else type(argument.format)(layout, sharding)
            weak = bool(argument.weak_type)
            return module("jax").ShapeDtypeStruct(argument.shape, argument.dtype, sharding=place, weak_type=weak)
        layout = getattr(argument.format, "layout", None)
        is_asked = layout is not None and not getattr(layout, "tiling", None) and not argument.committed
        form = type(argument.format)(layout, sharding) if is_asked and sharding is not None else None
        return argument.replace(sharding=sharding, format=form, committed=sharding is not None)


def argument_names(params: dict[str, Any]) -> tuple[str, ...]:
    with _of("names of arguments"):
        return tuple(params["jaxpr"].jaxpr.debug_info.arg_names or ())


def with_argument_names(params: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    with _of("names of arguments"):
        closed = params["jaxpr"]
        info = closed.jaxpr.debug_info._replace(arg_names=names)
        return {**params, "jaxpr": _replaced(closed, debug_info=info)}


# Jaxprs


def is_jaxpr(value: Any) -> bool:
    core = module("jax.extend.core")
    return isinstance(value, (core.Jaxpr, core.ClosedJaxpr))


def with_params(jaxpr: Any, params: Sequence[Any]) -> Any:
    equations = [each.replace(params=new) for each, new in zip(jaxpr.eqns, params, strict=True)]
    return _replaced(jaxpr, eqns=equations)


def _replaced(jaxpr: Any, **fields: Any) -> Any:
    core = module("jax.extend.core")
    # Since 0.11 a jaxpr holds its constants, and closed ones are no other class.
    if core.ClosedJaxpr is core.Jaxpr or not isinstance(jaxpr, core.ClosedJaxpr):
        return jaxpr.replace(**fields)
    return jaxpr.replace(jaxpr=jaxpr.jaxpr.replace(**fields))


def changed(closed: Any, consts: Sequence[Any], **fields: Any) -> Any:
    """The closed jaxpr with other fields; the names of its arguments and results don't hold any more."""
    with _of("jaxprs"):
        paths = () if _version() < (0, 7) else None
        names = closed.jaxpr.debug_info._replace(arg_names=None, result_paths=paths)
        return module("jax.extend.core").ClosedJaxpr(closed.jaxpr.replace(debug_info=names, **fields), list(consts))


def variable(aval: Any) -> Any:
    with _of("variables"):
        made = module("jax.extend.core").Var
        # Until 0.6, names had suffixes.
        return made(aval) if "suffix" not in inspect.signature(made.__init__).parameters else made("", aval)


def within(equation: Any, outer: Any, **fields: Any) -> Any:
    """An equation of a call, in the call's place: its names are below those of the call.

    An equation of a library has the call's line.
    """
    with _of("sources of equations"):
        source = equation.source_info
        if outer is not None:
            source = source.replace(name_stack=outer.source_info.name_stack + source.name_stack)
            if place(equation) is None:
                source = source.replace(traceback=outer.source_info.traceback)
        return equation.replace(source_info=source, **fields)


@contextlib.contextmanager
def traced_as(equation: Any) -> Generator[None]:
    """Gives operations traced here an equation's names and lines, below those of the place; ``None`` adds none."""
    with contextlib.ExitStack() as stack:
        if equation is not None:
            with _of("sources of equations"):
                util, source = module("jax._src.source_info_util"), equation.source_info
                names = util.current_name_stack() + source.name_stack
                stack.enter_context(util.user_context(source.traceback, name_stack=names))
        yield


def scope(equation: Any) -> str:
    """The names that an equation was traced under, such as ``transpose(jvp(layer))``."""
    with _of("sources of equations"):
        return str(equation.source_info.name_stack)


def is_of_gradient(equation: Any) -> bool:
    """Whether JAX made it by transposing a program."""
    return "transpose(" in scope(equation)


def places(equation: Any) -> list[tuple[str, int]]:
    """The files and lines of the user's that an equation is of, from its own line to its callers'."""
    with _of("sources of equations"):
        util, source = module("jax._src.source_info_util"), equation.source_info
        try:
            frames = list(util.user_frames(source.traceback))
        except AttributeError:  # Before 0.7 it takes all of the information.
            frames = list(util.user_frames(source))
        return [(frame.file_name, frame.start_line) for frame in frames]


def place(equation: Any) -> tuple[str, int] | None:
    """The file and line of the user's that an equation is of; ``None`` where it is of none."""
    return next(iter(places(equation)), None)


@dataclass(frozen=True)
class Scan:
    """The parts of a ``scan``: how many inputs stay the same and are handed on to the next trip; and one trip."""

    consts: int
    carry: int
    body: Any

    @classmethod
    def of(cls, equation: Any) -> Scan:
        with _of("loops"):
            params = equation.params
            if "ft_in" in params:  # Since 0.11.
                consts, carry, _ = (len(each) for each in params["ft_in"].unpack())
            else:
                consts, carry = params["num_consts"], params["num_carry"]
            return cls(consts, carry, params["jaxpr"])

    def put_into(self, equation: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """The equation with these parts, which keeps its line of the source."""
        with _of("loops"):
            params = {**equation.params, "jaxpr": self.body}
            if "ft_in" in params:  # Since 0.11.
                flat = module("jax._src.flattree")
                sliced = len(inputs) - self.consts - self.carry
                params["ft_in"] = flat.pack(tuple(flat.nones(count) for count in (self.consts, self.carry, sliced)))
                params["ft_out"] = flat.pack(
                    tuple(flat.nones(count) for count in (self.carry, len(outputs) - self.carry))
                )
            else:
                params.update(num_consts=self.consts, num_carry=self.carry)
            if "linear" in params:  # Until 0.9.
                params["linear"] = (False,) * len(inputs)
            return equation.replace(invars=list(inputs), outvars=list(outputs), params=params)


def with_program(equation: Any, name: str, closed: Any) -> Any:
    """A loop or a call of another program, which is its parameter of this name, with the same operands."""
    with _of("calls"):
        # Until 0.11, a checkpoint's program is without constants, too.
        is_open = equation.primitive.name == "shard_map" or not hasattr(equation.params[name], "consts")
        return equation.replace(params={**equation.params, name: closed.jaxpr if is_open else closed})


# Devices that aren't there


def abstract_device_context(kind: str) -> contextlib.AbstractContextManager[Any] | None:
    """The context of a device of a kind, such as ``TPU v6 lite``; ``None`` before JAX 0.7, which has none.

    Its mesh is empty, so that code which looks for a mesh finds none; one that the caller has set stays. JAX keeps
    traces by context: another kind's trace isn't found.
    """
    jax = module("jax")
    abstract = getattr(module("jax._src.mesh"), "AbstractDevice", None)
    if abstract is None:
        return None
    with _of("abstract devices"):
        if not jax.sharding.get_abstract_mesh().empty:
            return None
        fields = {"device_kind": kind, "num_cores": 1, "platform": "tpu"}
        known = inspect.signature(abstract).parameters  # `platform` since 0.10.
        device = abstract(**{name: value for name, value in fields.items() if name in known})
        mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
        context: contextlib.AbstractContextManager[Any] = jax.sharding.use_abstract_mesh(mesh)
        return context


def forget_traces() -> None:
    """Drops JAX's traces of functions, which it keeps by their arguments alone; compiled programs stay."""
    for name in ("_create_pjit_jaxpr", "_infer_params_cached"):
        forget = getattr(getattr(module("jax._src.pjit"), name, None), "cache_clear", None)
        if forget is not None:
            forget()


def questions(name: str) -> list[tuple[Any, str]]:
    """Functions of that name by which JAX asks for a device, as ``pltpu.get_tpu_info`` does: modules and names."""
    places = ("jax._src.tpu_info", "jax._src.pallas.mosaic.tpu_info")
    loaded = [sys.modules[place] for place in places if place in sys.modules]
    return [(each, name) for each in loaded if hasattr(each, name)]


def size_of(size: Any, names: dict[str, int] | Any) -> int:
    """A dimension of an exported program, a number or an expression such as ``2*b``, with these values of its names."""
    if isinstance(size, int):
        return size
    with _of("symbolic dimensions"):
        return int(size._evaluate(dict(names)))


def platforms_of(lowered: Any) -> tuple[str, ...]:
    """The platforms that a program was lowered for; empty where it doesn't say."""
    return tuple(getattr(getattr(lowered, "_lowering", None), "_platforms", None) or ())


# JAX's arguments of the compiler

_LOCK = threading.Lock()


@contextlib.contextmanager
def replaced(owner: Any, name: str, answer: Callable[..., Any]) -> Generator[None]:
    """While it lasts, this thread's calls of ``owner.name`` are answered otherwise."""
    original, thread = getattr(owner, name), threading.get_ident()

    def asks(*args: Any, **kwargs: Any) -> Any:
        return (answer if threading.get_ident() == thread else original)(*args, **kwargs)

    setattr(owner, name, asks)
    try:
        yield
    finally:
        setattr(owner, name, original)


def captured(owner: Any, name: str, call: Callable[[], object]) -> list[Any] | None:
    """The values that ``owner.name`` is called with while ``call`` runs, which ends there; ``None`` if it isn't."""

    def capture(*args: Any, **kwargs: Any) -> Any:
        raise _Captured([*args, *kwargs.values()])

    with _LOCK, replaced(owner, name, capture):
        try:
            call()
        except _Captured as found:
            return found.values
    return None


class _Captured(BaseException):
    """Carries the values past every handler of the library's."""

    def __init__(self, values: list[Any]) -> None:
        super().__init__()
        self.values = values


def handed(lowered: Any, unused: dict[str, Any]) -> tuple[Any, Any, list[Any], bool] | None:
    """The compiler's module, options, devices in ``lowered.compile()``, and whether it calls back into this process.

    They are captured before it runs; ``None`` where this JAX passes them in another way. No other call may have the
    unused options: JAX doesn't compile a program again with the same ones.
    """
    try:
        values = captured(module("jax._src.compiler"), "compile_or_get_cached", lambda: lowered.compile(unused))
    except (ImportError, AttributeError):
        return None
    if values is None:
        return None
    computation = next((each for each in values if hasattr(each, "operation")), None)
    options = next((each for each in values if hasattr(each, "env_option_overrides")), None)
    devices = next((each for each in values if hasattr(each, "flatten")), None)
    if computation is None or options is None or devices is None:
        return None
    sequences: list[Any] = [each for each in values if isinstance(each, (list, tuple))]
    options.env_option_overrides = [each for each in options.env_option_overrides if each[0] not in unused]
    return computation, options, list(devices.flatten()), any(map(len, sequences))


def module_bytes(computation: Any) -> bytes:
    return bytes(module("jax._src.interpreters.mlir").module_to_bytecode(computation))


def assign_devices(options: Any, assignment: Any) -> None:
    """Sets which devices run the program: their numbers, an array of replicas × partitions."""
    options.device_assignment = module("jaxlib.xla_client").DeviceAssignment.create(assignment)


def compiled(content: bytes, options: bytes, overrides: dict[str, Any], devices: Sequence[Any]) -> Callable[[], Any]:
    """A function that compiles a module of MLIR's bytecode for these devices, with further options."""
    mlir, client = module("jax._src.interpreters.mlir"), module("jaxlib.xla_client")
    read = client.CompileOptions.ParseFromString(options)
    theirs = [each for each in read.env_option_overrides if each[0] not in overrides]
    read.env_option_overrides = [*theirs, *overrides.items()]
    there = client.DeviceList(tuple(devices))
    compiler = devices[0].client

    def compile_it() -> Any:
        if _version() < (0, 6, 1):
            return compiler.compile(content, read)
        if _version() < (0, 8):
            return compiler.compile(content, there, read)
        with mlir.make_ir_context():
            return compiler.compile(mlir.ir.Module.parse(content), there, read)

    return compile_it


# Pallas


def kernel_name(params: dict[str, Any], kernel: Any) -> str:
    places = (
        params.get("name"),
        getattr(params.get("name_and_src_info"), "name", None),
        getattr(params.get("debug_info"), "func_name", None),
        getattr(getattr(kernel, "debug_info", None), "func_name", None),
    )
    return next((str(name) for name in places if name), "kernel")


def compiler_parameter(params: dict[str, Any], name: str) -> Any:
    found: Any = params.get("compiler_params")
    if hasattr(found, "get"):  # Before 0.8 there are those of each backend.
        found = found.get("mosaic_tpu", found.get("mosaic", found))
    return found.get(name) if hasattr(found, "get") else getattr(found, name, None)


def operand_avals(mapping: Any, aval: Any) -> tuple[Any, Any]:
    """The array of a block's mapping, and its block in its memory space."""
    array = getattr(mapping, "array_aval", None)
    array = getattr(mapping, "array_shape_dtype", None) if array is None else array  # Before 0.7.
    block = getattr(mapping, "transformed_block_aval", None) or getattr(mapping, "block_aval", aval)
    return (aval if array is None else array), block


def block_size(bound: Any) -> Any:
    """A block's size in a dimension; ``None`` where the block has no such dimension."""
    is_squeezed = bound is None or type(bound).__name__ in ("Squeezed", "Mapped", "_Mapped")
    return None if is_squeezed else getattr(bound, "block_size", bound)


def unusual_block(mapping: Any) -> list[str]:
    """Features of a block's mapping whose bytes were never compared with the compiler's, by JAX's names."""
    kinds = {type(bound).__name__ for bound in mapping.block_shape if not isinstance(bound, int)}
    is_mixed = "Element" in kinds and len({type(bound).__name__ for bound in mapping.block_shape}) > 1
    found = [*(["BoundedSlice"] if "BoundedSlice" in kinds else []), *(["Element beside others"] if is_mixed else [])]
    mode = getattr(mapping, "pipeline_mode", None)
    return [*found, "lookahead"] if getattr(mode, "use_lookahead", False) else found


def is_tensor_core(mesh: Any) -> bool:
    """Whether the kernels over such a mesh run on TensorCores, not on SparseCores."""
    return str(getattr(mesh, "core_type", "")).rsplit(".", 1)[-1].lower() == "tc"


def read_by_results(function: str) -> list[set[int]]:
    """The arguments that each result of a function of MLIR depends on, once the canonicalizer has simplified it."""
    with _of("passes of MLIR"), module("jax._src.interpreters.mlir").make_ir_context():
        parsed = module("jaxlib.mlir.ir").Module.parse(function)
        passes = module("jaxlib.mlir.passmanager").PassManager.parse("builtin.module(canonicalize,cse,canonicalize)")
        passes.run(parsed.operation)
        (body,) = parsed.body.operations[0].regions[0].blocks
        # Operations come before those that read them.
        reads: dict[Any, set[int]] = {each: {number} for number, each in enumerate(body.arguments)}
        found: list[set[int]] = []
        for operation in body.operations:
            found = [reads[operand] for operand in operation.operands]
            reads |= dict.fromkeys(operation.results, set[int]().union(*found))
        return found
