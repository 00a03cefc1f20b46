"""Stand-ins for what the libraries import to serve, train or profile, and no kernel needs: classes that do nothing, of any name."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types

# Of these, what isn't installed.
_PACKAGES = """aiohttp annotated_doc cloudpickle datasets dill fastapi grain httpx huggingface_hub librosa llguidance modelscope msgspec multipart
omegaconf openai orbax orjson outlines pandas pathwaysutils PIL prometheus_client psutil pybase64 ray requests runai_model_streamer
safetensors sentencepiece setproctitle soundfile tabulate tensorboardX tensorflow tiktoken torch torchax torchvision tpu_info
transformers triton uvicorn uvloop vllm xgrammar xprof zmq""".split()


class _Anything(type):
    """The class of the stand-ins, which have all attributes."""

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)


class _Instance:
    """The result of calling a stand-in; called as a decorator, it returns the function itself."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *given, **named):
        return given[0] if len(given) == 1 and callable(given[0]) and not named else _Instance()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Instance()


def _made(name):
    return _Anything(name, (_Instance,), {})


class _Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _made(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages that nothing else finds."""

    def find_spec(self, name, path=None, target=None):
        is_meant = name.partition(".")[0] in _PACKAGES
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_meant else None

    def create_module(self, spec):
        return _Module(spec.name)

    def exec_module(self, module):
        module.__path__ = []


sys.meta_path.append(_Finder())
