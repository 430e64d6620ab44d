"""Ahead-of-time compilation of the kernels for play with a network, by several processes at once.

``kernels.txt`` lists the kernels that Python called in two warm games, each with its argument types;
``python -m tests.play.warm_game`` plays these games and writes it. Each process compiles the first kernel of the list
that no other process is compiling; a kernel that two others call is compiled once (:mod:`engine.system.jit`).

Each line has ``first`` (the first move needs the kernel), ``page`` (a level, or help on the page of ``keima play``,
needs it at once) or ``later``, the kernel, and its argument types. ENCODE and SCRATCH stand for the encoder's kernel
and the type of its working memory, LINES for the type of a network's program.

``python -m engine.play.ahead ENCODER PARENT COUNT`` is a helper process, started by :func:`start_helpers`: it compiles
the missing kernels, the first COUNT of the list first, and ends.
"""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import numpy as np
from filelock import FileLock, Timeout
from numba.core import types

from engine.config.declaration import core_count
from engine.system import jit
from engine.system.arrays import numba_type

RECORD = Path(__file__).with_name("kernels.txt")
MAX_HELPERS = 3
"""Maximum number of helper processes; more would find no kernel to compile"""
BEHIND = 10
"""Niceness of helpers once the kernels that are needed first are compiled"""
POLL_S = 0.2
SCRATCH, ENCODE, LINES = "SCRATCH", "ENCODE", "LINES"


def read_record() -> dict[str, tuple[str, str]]:
    """Read ``kernels.txt``: by kernel, when it is needed, and the text of its argument types."""
    lines = (line.split(" ", 2) for line in RECORD.read_text(encoding="utf-8").splitlines())
    return {kernel: (when, arguments) for when, kernel, arguments in lines}


STAGES = ("first", "page", "later")
KERNELS = read_record()
FIRST, PAGE, LATER = (tuple(name for name, (when, _) in KERNELS.items() if when == stage) for stage in STAGES)


def _stamp_name(name: str, encoder: str) -> str:
    """The name under which a kernel is stamped as compiled, for its encoder if it depends on one."""
    return f"{name} {encoder}" if SCRATCH in KERNELS[name][1] else name


def missing(encoder: str, names: tuple[str, ...] = tuple(KERNELS)) -> list[str]:
    """Those of the named kernels that are not compiled yet; none without a cache folder."""
    if jit.FOLDER is None:
        return []
    return [name for name in names if not jit.is_stamped(_stamp_name(name, encoder))]


def compile_kernels(encoder: str, names: tuple[str, ...] = tuple(KERNELS)) -> None:
    """Compile kernels that no other process is compiling, until all are compiled."""
    while left := missing(encoder, names):
        for name in left:
            with _claimed(name, encoder) as mine:
                if mine:
                    load(name, encoder)
                    break
        else:
            # Other processes compile them all: wait for one, since it may fail.
            with contextlib.suppress(Timeout), _lock_of(left[0], encoder).acquire(timeout=1.0):
                pass


def load(name: str, encoder: str) -> None:
    """Compile a kernel, or load it from disk, and stamp it as compiled."""
    from engine.features.encoder import ENCODERS, kernel_of
    from engine.nets.compute.simd import FEATURES

    # Processors with a matrix unit do not use programs.
    if not (name.startswith("engine.nets.") and "+amx-tile" in FEATURES.split(",")):
        # Without a network there is no encoder, and no kernel that needs one.
        scratch: Any = ENCODERS[encoder].new_scratch(2) if encoder else None
        module, _, function = name.partition("#")[0].rpartition(".")
        kernel = getattr(import_module(module), function) if module else kernel_of(scratch)
        kernel.compile(argument_types(KERNELS[name][1], scratch))
    jit.stamp(_stamp_name(name, encoder))


def argument_types(text: str, scratch: Any) -> tuple[types.Type, ...]:
    """Numba's argument types from the text of a line of ``kernels.txt``.

    Args:
        text: a tuple of Numba types; structs of arrays by name if their fields declare the types, else as
            ``struct(NAME, TYPE, ...)``.
        scratch: working memory of the encoder; None = no encoder.
    """
    from engine.nets.compute.program import LINE

    scope: dict[str, Any] = {
        SCRATCH: numba.typeof(scratch), LINES: numba.typeof(np.zeros(0, LINE)), "C": "C", "A": "A",
        "array": types.Array, "readonly": partial(types.Array, readonly=True), "Tuple": types.Tuple,
        "bool": types.boolean,
        "struct": lambda struct, *fields: types.BaseTuple.from_types(fields, struct),
    }  # fmt: skip
    for name in set(re.findall(r"[A-Za-z_]\w*", text)) - set(scope):
        struct = _structs().get(name)
        if struct is None:
            scope[name] = getattr(types, name)
        else:
            scope[name] = struct if f"struct({name}" in text else numba_type(struct)
    found: tuple[types.Type, ...] = eval(text, {"__builtins__": {}}, scope)
    return found


@cache
def _structs() -> dict[str, type]:
    """All structs of arrays, by name, in the modules of the kernels of ``kernels.txt`` and in what these import."""
    for name in KERNELS:
        if "." in name:
            import_module(name.partition("#")[0].rpartition(".")[0])
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    return {name: item for module in modules for name, item in module.items() if hasattr(item, "_fields")}


def _lock_of(name: str, encoder: str) -> FileLock:
    """The file lock that a process holds while it compiles a kernel."""
    stamp = jit.stamp_of(_stamp_name(name, encoder))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(stamp.with_name(f"{stamp.name}.lock"))


@contextlib.contextmanager
def _claimed(name: str, encoder: str) -> Iterator[bool]:
    """Try to lock a kernel during the block; yields whether this process has the lock and must compile the kernel."""
    try:
        with _lock_of(name, encoder).acquire(blocking=False):
            yield not jit.is_stamped(_stamp_name(name, encoder))
    except Timeout:
        yield False


def start_helpers(encoder: str, needed: tuple[str, ...] = FIRST) -> list["subprocess.Popen[bytes]"]:
    """Start processes that compile the missing kernels on the other cores, and end after that.

    Args:
        needed: FIRST, or FIRST and PAGE: the kernels that are compiled first, at normal priority.
    """
    # -P: no imports from the folder in which a client started the engine.
    command = [sys.executable, "-P", "-m", "engine.play.ahead", encoder, str(os.getpid()), str(len(needed))]
    found = [str(jit.ENGINE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, found))}
    flags, quiet = getattr(subprocess, "CREATE_NO_WINDOW", 0), subprocess.DEVNULL
    return [
        subprocess.Popen(command, env=environment, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet)
        for _ in range(min(core_count() - 1, MAX_HELPERS))
    ]


def load_later(
    encoder: str, names: tuple[str, ...] = PAGE + LATER, helpers: Sequence["subprocess.Popen[bytes]"] = ()
) -> None:
    """Load kernels beyond those of the first move into this process; compile those that no other process compiles.

    If another process is compiling a kernel, this function waits until it is compiled: waiting inside the compiler
    would block the loading of all other kernels.

    Args:
        helpers: helper processes; this function returns after they have ended.
    """
    for name in names:
        while missing(encoder, (name,)) and _is_claimed(name, encoder):
            time.sleep(POLL_S)
        load(name, encoder)
    for helper in helpers:
        helper.wait()


def _is_claimed(name: str, encoder: str) -> bool:
    """Whether another process is compiling a kernel, or has compiled it."""
    with _claimed(name, encoder) as mine:
        return not mine


def _end_with(parent: int) -> None:
    """Wait until the parent process has ended, then end this process, except on Windows; compiled kernels stay."""
    while os.getppid() == parent or sys.platform == "win32":
        time.sleep(POLL_S)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=[int(sys.argv[2])], daemon=True).start()
    compile_kernels(sys.argv[1], tuple(KERNELS)[: int(sys.argv[3])])
    if hasattr(os, "nice"):
        os.nice(BEHIND)  # the first move has begun, and its search needs the cores
    compile_kernels(sys.argv[1])
