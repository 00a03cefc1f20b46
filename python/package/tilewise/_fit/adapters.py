"""Programs of libraries, which need no factory: ``maxtext:CONFIG`` and ``exported:FILE``."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tilewise._base.modules import module
from tilewise._fit.candidates import Place
from tilewise._jax import internals
from tilewise._jax.topologies import devices_of, slice_with


class Adapter:
    """A program by the name of its library; its settings are the library's own."""

    def __init__(self, source: str) -> None:
        self.source = source

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
