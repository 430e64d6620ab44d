"""Compiling ahead: every kernel that play with a network calls, by a record, shared among several processes.

``kernels.txt`` names the kernels that Python called in two warm games, each with the types of its arguments;
``python -m tests.play.warm_game`` plays these games and writes it. Each process compiles the first kernel of the list
that no other process is compiling; what two kernels call is compiled once all the same (:mod:`engine.system.jit`).

A line is ``first`` or ``later`` (whether the first move waits for it), the kernel, and the types. ENCODE and SCRATCH
stand for the encoder's kernel and the type of its working memory, LINES for the lines of a network's program.

``python -m engine.play.ahead ENCODER`` is a helper, which :func:`start_helpers` starts: it compiles what is left and
ends.
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
"""More find no kernel to work on."""
POLL_S = 0.2
SCRATCH, ENCODE, LINES = "SCRATCH", "ENCODE", "LINES"


def read_record() -> dict[str, tuple[bool, str]]:
    """The lines of the record by their kernel: whether the first move waits for it, and the types of its arguments."""
    lines = (line.split(" ", 2) for line in RECORD.read_text(encoding="utf-8").splitlines())
    return {kernel: (when == "first", arguments) for when, kernel, arguments in lines}


KERNELS = read_record()
FIRST = tuple(name for name, (is_first, _) in KERNELS.items() if is_first)
LATER = tuple(name for name in KERNELS if name not in FIRST)


def _stamp_name(name: str, encoder: str) -> str:
    """The name of a kernel's stamp."""
    return f"{name} {encoder}" if SCRATCH in KERNELS[name][1] else name


def missing(encoder: str, names: tuple[str, ...] = tuple(KERNELS)) -> list[str]:
    """Kernels of the record that are not compiled yet; none where nothing can be kept on disk."""
    if jit.FOLDER is None:
        return []
    return [name for name in names if not jit.is_stamped(_stamp_name(name, encoder))]


def compile_kernels(encoder: str, names: tuple[str, ...] = tuple(KERNELS)) -> None:
    """Compile the kernels that no other process compiles at this moment, until none of them is left."""
    while left := missing(encoder, names):
        for name in left:
            with _claimed(name, encoder) as mine:
                if mine:
                    load(name, encoder)
                    break
        else:
            # Others have them all; the first to end may still be followed by one that fails.
            with contextlib.suppress(Timeout), _lock_of(left[0], encoder).acquire(timeout=1.0):
                pass


def load(name: str, encoder: str) -> None:
    """Compile a kernel, or load it where it is on disk, and note that it is."""
    from engine.features.encoder import ENCODERS, kernel_of
    from engine.nets.compute.simd import FEATURES

    # Processors with a matrix unit compute networks otherwise.
    if not (name.startswith("engine.nets.") and "+amx-tile" in FEATURES.split(",")):
        # Without a network there is no encoder; kernels of endings need none.
        scratch: Any = ENCODERS[encoder].new_scratch(2) if encoder else None
        module, _, function = name.partition("#")[0].rpartition(".")
        kernel = getattr(import_module(module), function) if module else kernel_of(scratch)
        kernel.compile(argument_types(KERNELS[name][1], scratch))
    jit.stamp(_stamp_name(name, encoder))


def argument_types(text: str, scratch: Any) -> tuple[types.Type, ...]:
    """The types that a line of the record names.

    Args:
        text: a tuple of Numba's types; structs of arrays by their names where their fields say the types, else as
            ``struct(NAME, TYPE, ...)``.
        scratch: the encoder's.
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
    """All structs of arrays in the modules of the record's kernels and in what these import, by name."""
    for name in KERNELS:
        if "." in name:
            import_module(name.partition("#")[0].rpartition(".")[0])
    modules = [vars(module) for name, module in list(sys.modules.items()) if name.startswith("engine.")]
    return {name: item for module in modules for name, item in module.items() if hasattr(item, "_fields")}


def _lock_of(name: str, encoder: str) -> FileLock:
    """What a process holds while it compiles a kernel."""
    stamp = jit.stamp_of(_stamp_name(name, encoder))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(stamp.with_name(f"{stamp.name}.lock"))


@contextlib.contextmanager
def _claimed(name: str, encoder: str) -> Iterator[bool]:
    """Whether a kernel is this process's for the block."""
    try:
        with _lock_of(name, encoder).acquire(blocking=False):
            yield not jit.is_stamped(_stamp_name(name, encoder))
    except Timeout:
        yield False


def start_helpers(encoder: str) -> list["subprocess.Popen[bytes]"]:
    """Start processes that compile beside this one, where there are cores for them; they end by themselves."""
    # -P: not what lies in the folder that a client has started us in.
    command = [sys.executable, "-P", "-m", "engine.play.ahead", encoder, str(os.getpid())]
    found = [str(jit.ENGINE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, found))}
    flags, quiet = getattr(subprocess, "CREATE_NO_WINDOW", 0), subprocess.DEVNULL
    return [
        subprocess.Popen(command, env=environment, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet)
        for _ in range(min(core_count() - 1, MAX_HELPERS))
    ]


def load_later(encoder: str, helpers: Sequence["subprocess.Popen[bytes]"] = ()) -> None:
    """Load into this process what comes after the first move, each kernel once it is compiled; compile what is left.

    A thread that waited for another process within a kernel would keep this process from loading any other.

    Args:
        helpers: waited for in the end.
    """
    for name in LATER:
        while missing(encoder, (name,)) and _is_claimed(name, encoder):
            time.sleep(POLL_S)
        load(name, encoder)
    for helper in helpers:
        helper.wait()


def _is_claimed(name: str, encoder: str) -> bool:
    """Whether another process is compiling a kernel."""
    with _claimed(name, encoder) as mine:
        return not mine


def _end_with(parent: int) -> None:
    """End this process when the one that has started it has ended; what is compiled by then stays. Not on Windows."""
    while os.getppid() == parent or sys.platform == "win32":
        time.sleep(POLL_S)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=[int(sys.argv[2])], daemon=True).start()
    compile_kernels(sys.argv[1])
