"""Contexts: the threads and the instruction set that operators use."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from ._library import PTR, Error, Options, lib
from ._numbers import INT32, whole

_local = threading.local()


class Context:
    """Threads and an instruction set. The bits of a result do not depend on either.

    threads: 0: one per available core. backend: None: that of REPOPS_CPU, else the best one;
    "scalar", and on x86-64 "avx2" or "avx512", on aarch64 "neon".

    `with Context(threads=2):` makes it this thread's current context. One thread at a time may
    use a context; every thread that has no current one gets its own, with the defaults.

    parallel: the address of a function in C that lends threads of another library (ro_options);
    None: the context has its own.

    stream, device_alloc, device_free: addresses of a CUDA stream that calls join and of functions
    in C for the device's memory (ro_options); None: the context has its own.
    """

    def __init__(
        self,
        threads: int = 0,
        backend: str | None = None,
        parallel: int | None = None,
        stream: int | None = None,
        device_alloc: int | None = None,
        device_free: int | None = None,
    ) -> None:
        self.handle, self.stream = PTR(), stream
        # For repops.torch: the device of tensors, if it is not the CPU; the CPU's context beside
        # it; operators whose handlers are running.
        self.device: Any = None
        self.host: Any = None
        self.inside: set[Any] = set()
        # For repops.torch: called before each call of the library, and decides whether it is made.
        self.watcher: Any = None
        self.job: Any = None  # for repops.torch: how the step of a job differs
        name = backend.encode() if backend else None
        count = whole(threads, "threads", INT32)
        options = Options(
            threads=count,
            backend=name,
            parallel=parallel,
            stream=stream,
            device_alloc=device_alloc,
            device_free=device_free,
        )
        if lib.ro_ctx_create(ctypes.byref(options), ctypes.byref(self.handle)):
            raise Error(lib.ro_ctx_error(None).decode())

    def __del__(self) -> None:
        if getattr(self, "handle", None) and lib is not None:  # None: the interpreter ends
            lib.ro_ctx_destroy(self.handle)

    @property
    def backend(self) -> str:
        """The instruction set in use, "avx2" for instance."""
        return lib.ro_ctx_backend(self.handle).decode()

    @property
    def threads(self) -> int:
        """The number of threads."""
        return lib.ro_ctx_threads(self.handle)

    def check(self, status: int) -> None:
        """Raises Error with the library's sentence, unless status is 0."""
        if status:
            raise Error(lib.ro_ctx_error(self.handle).decode())

    def __enter__(self) -> Context:
        _stack().append(self)
        return self

    def __exit__(self, *exception: object) -> None:
        _stack().pop()

    def __repr__(self) -> str:
        if not getattr(self, "handle", None):
            return "<repops.Context: not created>"
        return f"<repops.Context: {self.backend}, {self.threads} threads>"


def _stack() -> list[Context]:
    try:
        return _local.stack
    except AttributeError:
        _local.stack = []
        return _local.stack


def current() -> Context:
    """The context of the innermost `with`, else this thread's default context."""
    stack = _stack()
    if stack:
        return stack[-1]
    if not hasattr(_local, "own"):
        _local.own = Context()
    return _local.own
