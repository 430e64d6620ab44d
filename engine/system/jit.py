"""Compilation of kernels by Numba, and their cache on disk.

``@kernel`` is Numba's ``njit`` with the options of all kernels: no GIL, machine code cached on disk, C-like division.
Numba's own cache keeps a caller's old machine code if only a *callee's file* was edited. Therefore the cache folder is
keyed by a hash of all sources that kernels depend on: any edit of these starts a new folder, and machine code of
another version, Python or processor is never loaded.
"""

import hashlib
import os
import pickle
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numba
from filelock import FileLock
from llvmlite.binding import get_host_cpu_name, parse_assembly
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from engine.system import user_folder

_numba: Any = numba
_Dispatcher: Any = CPUDispatcher
"""Numba's class of dispatchers, as Any: its type hints lack some options and methods"""
ENGINE_FOLDER = Path(__file__).resolve().parents[1]
CACHE_VARIABLE = "KEIMA_CACHE"
KERNEL = b"\n@kernel", b"\n@inlined_kernel"
IMPORT, WORD = re.compile(rb"from (engine(?:\.\w+)*) import (\([^)]*\)|[^\n]+)"), re.compile(rb"\w+")
"""Patterns for imports and imported names in sources; the engine imports its modules by ``from``, not by ``import``.
All begin with fixed letters, which are found twice as fast as the beginnings of lines; every start searches."""
STALE_AFTER_S = 14 * 86400.0
LOCKS, INDEX, DONE = "locks", "index", "done"
"""Folder of lock files, name of the lock of the cache's indices, and folder of :func:`stamp`"""
RESULTS = "settled"
"""Folder beside those of kernels, for results that are expensive to recompute; readers update a file's time"""


def cache_root() -> Path:
    """Folder of the cache: ``$KEIMA_CACHE`` if set, else the platform's cache folder of the user."""
    chosen = os.environ.get(CACHE_VARIABLE)
    return Path(chosen) if chosen else user_folder("cache")


def kernel_sources() -> dict[str, bytes]:
    """Sources that machine code depends on, by path: those with kernels, and all that these import.

    Imported files count, since compiled kernels contain the values of constants and the fields of NamedTuples.
    """
    sources = {path.relative_to(ENGINE_FOLDER).as_posix(): path.read_bytes() for path in ENGINE_FOLDER.rglob("*.py")}
    waiting, found = [name for name, source in sources.items() if any(one in source for one in KERNEL)], {}
    while waiting:
        name = waiting.pop()
        if name in found or name not in sources:
            continue
        found[name] = sources[name]
        for module, names in IMPORT.findall(sources[name]):
            place = "/".join(module.decode().split(".")[1:])
            inside = (f"{place}/{word.decode()}.py" for word in WORD.findall(names))
            waiting += [f"{place}.py", f"{place}/__init__.py", *inside]
    return found


def source_key() -> str:
    """Hash of everything that machine code depends on: sources, Numba, Python, processor, install path."""
    digest = hashlib.sha256()
    for word in (numba.__version__, sys.version, platform.machine(), get_host_cpu_name(), str(ENGINE_FOLDER)):
        digest.update(word.encode())
    for name, source in sorted(kernel_sources().items()):
        digest.update(name.encode())
        digest.update(source)
    return digest.hexdigest()[:16]


def _temporary_root() -> Path:
    """A private folder of this user among the temporary files, used if the home folder cannot be written.

    Raises:
        OSError: another user owns the folder of that name; machine code from there must not be run.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    root = Path(tempfile.gettempdir()) / f"keima-{user}"
    root.mkdir(mode=0o700, exist_ok=True)
    if root.is_symlink() or (hasattr(os, "getuid") and root.stat().st_uid != user):
        raise OSError(f"{root} belongs to another user")
    return root


def _prepare() -> Path | None:
    """Find a writable folder and set it as Numba's cache; None = there is none, so every start compiles."""
    for root in (cache_root, _temporary_root):
        try:
            folder = root() / f"kernels-{source_key()}"
            (folder / LOCKS).mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except (OSError, RuntimeError):  # RuntimeError: the user has no home folder.
            continue
        _numba.config.CACHE_DIR = str(folder)
        return folder
    return None


FOLDER = _prepare()
"""Folder of the kernels of the present sources; None = no cache folder can be written"""


def mark_warm() -> None:
    """Mark the cache as complete (all kernels of play are compiled), and delete unused files."""
    if FOLDER is None:
        return
    with suppress(OSError):
        (FOLDER / "complete").touch()
    drop_unused()


def drop_unused() -> None:
    """Delete kernels of other versions and files of ``RESULTS`` that were not used for two weeks."""
    if FOLDER is None:
        return
    for other in FOLDER.parent.glob("kernels-*"):
        stamp = other / "complete"
        if other != FOLDER and _is_stale(stamp if stamp.exists() else other):
            shutil.rmtree(other, ignore_errors=True)
    for path in FOLDER.parent.glob(f"{RESULTS}/*"):
        with suppress(OSError):
            if _is_stale(path):
                path.unlink()


def _is_stale(path: Path) -> bool:
    """Whether a file or folder was not used for two weeks; False if another process has deleted it meanwhile."""
    try:
        return time.time() - path.stat().st_mtime > STALE_AFTER_S
    except OSError:
        return False


def stamp_of(name: str) -> Path:
    """The file that marks the kernels of a use of the engine as compiled; ``FOLDER`` must not be None."""
    assert FOLDER is not None
    return FOLDER / DONE / name.replace(" ", "-")


def stamp(name: str) -> None:
    """Mark the kernels of use ``name`` of the engine as compiled, if there is a cache folder."""
    if FOLDER is not None:
        path = stamp_of(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def is_stamped(name: str) -> bool:
    """Whether the kernels of use ``name`` of the engine are marked as compiled."""
    return FOLDER is not None and stamp_of(name).exists()


@contextmanager
def _locked(name: str) -> Iterator[None]:
    """Exclude other processes from the block, if the file system supports locks."""
    with ExitStack() as stack:
        if FOLDER is not None:
            with suppress(OSError, NotImplementedError):
                stack.enter_context(FileLock(FOLDER / LOCKS / f"{name}.lock"))
        yield


@cache
def _say_unsaved(reason: str) -> None:
    """Print once that compiled kernels cannot be saved."""
    print(f"kernel cache {FOLDER}: not saved ({reason}), the next start compiles again", file=sys.stderr, flush=True)


class _Cache(FunctionCache):
    """Numba's cache on disk, written by one process at a time, since two would lose entries of the index."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """See :meth:`numba.core.caching.Cache.load_overload`; None if a crash of the machine left the files incomplete.

        Unlike Numba's, it does not load what only compilation needs, which takes longer than all kernels of a move.
        """
        try:
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except (EOFError, pickle.UnpicklingError):
            name = self._py_func.__name__
            print(f"kernel cache {FOLDER}: damaged files of {name}, compiled again", file=sys.stderr, flush=True)
            with suppress(OSError), _locked(INDEX):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            with _locked(INDEX):
                super().save_overload(sig, data)
        except OSError as error:
            # The compiled kernel works; an index entry without data only causes another compilation.
            _say_unsaved(error.strerror or str(error))


class _KernelFiles(CompileResultCacheImpl):
    """Cache files of a kernel, with what Python needs to call it: no kernel inlines it.

    Its LLVM code is replaced by empty functions, whose names Numba looks up. Environments of inlined functions hold
    constants for Python, mostly none, but reading one imports the function's module, often of Numba's compiler.
    """

    def reduce(self, data: Any) -> Any:
        (name, kind, (machine_code, _)), function, *rest, environments = super().reduce(data)
        names = function.llvm_func_name, function.llvm_cpython_wrapper_name
        code = "".join(f'define void @"{one}"() {{ ret void }}\n' for one in names)
        library = name, kind, (machine_code, parse_assembly(code).as_bitcode())
        return library, function, *rest, tuple(one for one in environments if one.consts)


class _KernelCache(_Cache):
    _impl_class: Any = _KernelFiles


class _BodyFiles(CompileResultCacheImpl):
    """Names the cache files of a body, unlike those of its kernel, with ``.body``."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return str(super().get_filename_base(f"{fullname}.body", abiflags))


class _BodyCache(_Cache):
    _impl_class: Any = _BodyFiles


class _Shared(_Dispatcher):
    """A dispatcher that one process compiles at a time; other processes wait and load the result.

    What a kernel needs only to be compiled or loaded is made then: a start imports ten times the kernels that it calls.
    """

    _kind = ""
    _cache_class: type[_Cache]

    def __init__(self, function: Any, locals: Any = None, targetoptions: Any = None) -> None:
        """Arguments as for Numba's dispatchers, which a pickle passes too."""
        super().__init__(function, locals or {}, {"nopython": True, "boundscheck": None, **(targetoptions or {})})
        del self._cache

    @cached_property
    def _cache(self) -> Any:
        return self._cache_class(self.py_func) if FOLDER is not None else NullCache()

    def compile(self, sig: Any) -> Any:
        # Numba's lock before the file lock, always, or two threads could deadlock.
        with global_compiler_lock, _locked(f"{self._kind}{self.py_func.__module__}.{self.py_func.__qualname__}"):
            return super().compile(sig)


class _Body(_Shared):
    """The function that other kernels call: without the wrapper for Python objects it compiles in a third of the time.

    Numba compiles a function for each combination of argument types, so ``play`` with a point of an int16 array would
    be compiled apart from ``play`` with a point of an int32 array. A body widens integers narrower than int64 to int64.
    Literal types stay: without them the encoding of AlphaGo Zero's planes took a third longer.
    """

    _kind = "body."
    _cache_class = _BodyCache

    def get_call_template(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        return super().get_call_template(tuple(map(_widened, args)), {name: _widened(of) for name, of in kws.items()})


class _Kernel(_Shared):
    """The function that Python calls; kernels that call it get its body."""

    _cache_class = _KernelCache

    @cached_property
    def body(self) -> _Body:
        return _Body(self.py_func, targetoptions=self.targetoptions | {"no_cpython_wrapper": True})

    def get_call_template(self, args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        return self.body.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        return self.body.get_overload(sig)


NARROW = (types.int8, types.int16, types.int32, types.uint8)


def _widened(of: types.Type) -> types.Type:
    """The type with which a body takes an argument: int64 for narrower integers, else the argument's own."""
    return types.int64 if of in NARROW else of


def _kernel(**more: bool) -> Callable[[Callable[..., Any]], _Kernel]:
    """Make a decorator that compiles functions with the options of all kernels, and ``more``."""

    def decorate(function: Any) -> Any:
        if _numba.config.DISABLE_JIT:
            function.py_func = function
            return function
        return _Kernel(function, targetoptions=KERNEL_OPTIONS | more)

    return decorate


KERNEL_OPTIONS: Any = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
kernel = _kernel()
"""Decorator for every compiled function of the engine.

Kernels do not allocate memory but write into the caller's arrays, so Numba's reference counting (``_nrt``) is off.
Otherwise every call with a position would change the reference counts of its twenty arrays: legality of a whole 19x19
board took 145 us instead of 1.4, and encoding 80 us instead of 21. ``np.empty`` in a kernel is a compile error, as is
slice assignment between arrays (it may need a temporary): copy with a loop, which is also faster.
"""

inlined_kernel = _kernel(forceinline=True)
"""``@kernel`` for a function of an innermost loop that LLVM would not inline by itself.

A call passes a board as some seventy words, a search tree and a batch as 350. Inlining the draw of a random move
reduced a 19x19 rollout from 74 us to 64, inlining selection a visit of the tree from 3.3 us to 0.9. Callers grow, so
use it only after a measurement, in a process that loads its kernels from the cache: kernels compiled in the same
process may be faster.
"""
