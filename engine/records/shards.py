"""``keima data build``: from game files to a folder of shards with a manifest.

Start at :func:`build`. The moves of all games that pass the filters are spooled to one file; then duplicates are
removed, games split and shuffled, and shards written. The folder is built under a temporary name beside OUT and renamed
when it is complete, so a build that was stopped leaves nothing that looks finished.

    OUT/manifest.json
    OUT/train/train-000.npz.xz, train-001.npz.xz, ...
    OUT/validation.npz.xz
    OUT/test.npz.xz
"""

import glob
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from filelock import FileLock, Timeout

from engine import __version__
from engine.config.declaration import Checked, check, option
from engine.records.duplicates import (
    BEGINNING,
    OPENING,
    OPENING_KEY,
    SPLITS,
    WHOLE,
    fingerprints,
    first_of_each,
    split_keys,
    split_of,
)
from engine.records.filters import Filters
from engine.records.games import MAX_MOVES, VERSION, Games, read_games, select, write_games
from engine.records.gather import Gathered, gather
from engine.records.schema import join
from engine.system.files import sha256_of, synced, written_whole

SHARDS = "*.npz.xz"
"""Pattern of the names of shards"""
MANIFEST = "manifest.json"
FORMAT = "keima games"
"""``format`` in the manifest of a built folder; bulk self-play writes another (:mod:`engine.selfplay.plan`)"""
NAMED_PROBLEMS = 100
"""Maximum number of faulty records that the manifest describes; it counts all of them"""


@dataclass(frozen=True)
class BuildOptions(Checked):
    """Sources and settings of :func:`build`."""

    sources: tuple[Path, ...]
    filters: Filters = Filters()  # noqa: RUF009 - frozen
    without: tuple[Path, ...] = ()
    """shards, or folders of shards; games with the same opening as any game in these are left out"""
    distinct_moves: int = option(
        0, "keep only the longest of the games that agree in this number of first moves; 0 = keep all that differ",
        low=0, high=MAX_MOVES,
    )  # fmt: skip
    validation_share: float = option(0.02, "share of games for validation", low=0.0, high=1.0)
    test_share: float = option(0.02, "share of games for the final test", low=0.0, high=1.0)
    games_per_shard: int = option(20000, "games in a training shard", low=1)
    seed: int = option(1, "random seed of the split and the order of games", low=0, high=2**63 - 1)
    workers: int = 1

    def __post_init__(self) -> None:
        check(self)
        if not self.sources:
            raise ValueError("no source of games was given")
        if self.validation_share + self.test_share > 1:
            raise ValueError(f"shares {self.validation_share} and {self.test_share}, expected at most 1 together")
        if self.workers < 1:
            raise ValueError("at least one worker is needed")


@dataclass
class Pool:
    """The games that passed the filters so far: their moves in a file, everything else in memory."""

    file: BinaryIO
    parts: list[Games] = field(default_factory=list)
    keys: list[np.ndarray] = field(default_factory=list)

    def add(self, games: Games, keys: np.ndarray) -> None:
        games.moves.tofile(self.file)
        self.parts.append(games._replace(moves=np.zeros(0, np.uint16)))
        self.keys.append(keys)

    def all(self) -> tuple[Games, np.ndarray]:
        """All games, with moves memory-mapped from the file, and their fingerprints (uint64[G, 3])."""
        self.file.flush()
        return join(self.parts)._replace(moves=np.memmap(self.file.name, np.uint16, "r")), np.concatenate(self.keys)


def build(options: BuildOptions, out: Path, report: Callable[[Gathered], None], advance: Callable[[int, int], None]):
    """Build a folder of shards from game files.

    Args:
        out: the folder to create; must not exist, or be empty.
        report: called with the result of every batch of files read.
        advance: called after every shard with the number of games written and their total.
    Returns:
        dict: the manifest.
    Raises:
        ValueError: ``out``, a source, or a shard of ``without`` cannot be used, or no game is left.
        OSError: the folder cannot be written.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"{out}: exists, expected a new or empty folder")
    if not out.absolute().parent.is_dir():
        raise ValueError(f"{out}: there is no folder {out.absolute().parent}")
    for path in options.sources:
        if not path.exists():
            raise ValueError(f"{path}: no such file or folder")
    known = opening_keys(options.without)
    with _partial_folder(out.absolute()) as partial:
        spool = partial / "moves"
        with spool.open("wb") as file:
            pool, manifest = _read(options, Pool(file), report)
            if not pool.parts:
                raise ValueError(_nothing_left(manifest))
            games, keys = pool.all()
        splits = _split(options, games, keys, known, manifest)
        if not any(map(len, splits)):
            raise ValueError(_nothing_left(manifest))
        manifest["shards"] = _write(options, games, splits, partial, advance)
        # Windows cannot delete a mapped file.
        del games
        spool.unlink()
        with written_whole(partial / MANIFEST) as part:
            part.write_text(json.dumps(manifest, ensure_ascii=False, indent=1) + "\n", "utf-8", "backslashreplace")
        if out.exists():
            out.rmdir()
        partial.rename(out)
        synced(out.absolute().parent)
    return manifest


@contextmanager
def _partial_folder(out: Path) -> Iterator[Path]:
    """A new temporary folder beside ``out``, removed at the end; first removes those that killed builds have left."""
    parent, prefix, suffix = out.parent, f".{out.name}-", ".partial"
    for old in parent.glob(f"{glob.escape(prefix)}*{suffix}"):
        lock = FileLock(old.with_suffix(".lock"), timeout=0)
        with suppress(Timeout, OSError):
            with lock:
                shutil.rmtree(old)
            Path(lock.lock_file).unlink(missing_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=prefix, suffix=suffix, dir=parent))
    # Beside the folder: Windows neither moves nor removes a folder with an open file in it.
    lock = FileLock(partial.with_suffix(".lock"))
    try:
        with lock:
            partial.chmod(0o755)
            yield partial
    finally:
        shutil.rmtree(partial, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)


def opening_keys(paths: Sequence[Path]) -> np.ndarray:
    """uint64: the distinct fingerprints of the openings of all games in shards or folders of shards, ascending."""
    files = [file for path in paths for file in every_shard_file(path)]
    keys = [fingerprints(read_games(file), OPENING)[:, OPENING_KEY] for file in files]
    return np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.uint64)


def every_shard_file(path: Path) -> list[Path]:
    """Paths of all shards below a folder, sorted, those of validation and test included; of a file, the file itself.

    Raises:
        ValueError: the folder has no shard.
    """
    files = sorted(path.rglob(SHARDS)) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: no shard (.npz.xz) in this folder")
    return files


def _read(options: BuildOptions, pool: Pool, report: Callable[[Gathered], None]) -> tuple[Pool, dict[str, Any]]:
    """Read all sources into the pool; returns the pool and the manifest so far (sources, problems, filters)."""
    # "games" are all games found, the unreadable ones included; "kept" passed the filters, duplicates included.
    counts: list[dict[str, Any]] = [
        {"path": str(path), "files": 0, "games": 0, "unreadable": 0, "kept": 0} for path in options.sources
    ]
    removed: Counter[str] = Counter()
    named: list[list[str]] = []
    for found in gather(options.sources, options.filters, options.distinct_moves, options.workers):
        count = counts[found.source]
        count["files"] += found.files
        count["games"] += found.found
        count["unreadable"] += len(found.problems)
        removed.update(found.removed)
        named += [list(problem) for problem in found.problems[: NAMED_PROBLEMS - len(named)]]
        if found.games is not None:
            count["kept"] += len(found.games.size)
            pool.add(found.games, found.keys)
        report(found)
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "program": f"Keima {__version__}",
        "sources": counts,
        "unreadable": sum(count["unreadable"] for count in counts),
        "unreadable_first": named,
        "filters": asdict(options.filters),
        "removed": dict(removed),
    }
    return pool, manifest


def _split(
    options: BuildOptions, games: Games, keys: np.ndarray, known: np.ndarray, manifest: dict[str, Any]
) -> list[np.ndarray]:
    """Remove duplicates and split the games; adds counts and settings to the manifest.

    Args:
        keys: uint64[G, 3]: fingerprints of the games.
        known: uint64: fingerprints of openings to leave out.
    Returns:
        for each of ``SPLITS``, the indices of its games (int64) in random order.
    """
    lengths = np.diff(games.offsets)
    keep = first_of_each(keys[:, WHOLE], lengths)
    removed = manifest["removed"]
    removed["same moves as another game"] = int((~keep).sum())
    if options.distinct_moves:
        rows = np.flatnonzero(keep)
        keep[rows] = first_of_each(keys[rows, BEGINNING], lengths[rows])
        removed[f"same first {options.distinct_moves} moves as a longer game"] = int(len(rows) - keep.sum())
    if options.without:
        is_known = np.isin(keys[:, OPENING_KEY], known)
        removed[f"same first {OPENING} moves as a game to keep apart from"] = int((keep & is_known).sum())
        keep &= ~is_known
    split = split_of(split_keys(games, keys), options.seed, options.validation_share, options.test_share)
    splits = [
        np.random.default_rng([options.seed, number]).permutation(np.flatnonzero(keep & (split == number)))
        for number in range(len(SPLITS))
    ]
    manifest["without"] = [str(path) for path in options.without]
    manifest["split"] = {
        "seed": options.seed,
        "validation_share": options.validation_share,
        "test_share": options.test_share,
        "same_opening_same_split": OPENING,
    }
    manifest["games"] = {name: len(rows) for name, rows in zip(SPLITS, splits, strict=True)}
    manifest["moves"] = {name: int(lengths[rows].sum()) for name, rows in zip(SPLITS, splits, strict=True)}
    manifest["games_per_shard"] = options.games_per_shard
    return splits


def _write(
    options: BuildOptions, games: Games, splits: list[np.ndarray], folder: Path, advance: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """Write all shards, training games ``games_per_shard`` a shard, validation and test in one shard each; returns the
    manifest's entry of each shard.
    """
    (folder / "train").mkdir()
    shards, done, total = [], 0, sum(map(len, splits))
    for name, rows in zip(SPLITS, splits, strict=True):
        step = options.games_per_shard if name == "train" else max(1, len(rows))
        for number, start in enumerate(range(0, len(rows), step)):
            file = f"train/train-{number:03d}.npz.xz" if name == "train" else f"{name}.npz.xz"
            chosen = select(games, rows[start : start + step])
            write_games(folder / file, chosen)
            shards.append({
                "file": file,
                "split": name,
                "games": len(chosen.size),
                "moves": len(chosen.moves),
                "bytes": (folder / file).stat().st_size,
                "sha256": sha256_of(folder / file),
            })  # fmt: skip
            done += len(chosen.size)
            advance(done, total)
    return shards


def _nothing_left(manifest: dict[str, Any]) -> str:
    """The error message of a build that no game passed: how many games were removed for which reason."""
    found = sum(source["games"] for source in manifest["sources"])
    reasons = [f"{count} {name}" for name, count in manifest["removed"].items() if count]
    if manifest["unreadable"]:
        reasons.insert(0, f"{manifest['unreadable']} could not be read")
    return f"no game is left of {found} found" + (f" ({'; '.join(reasons)})" if reasons else "")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a built folder.

    Raises:
        ValueError: the manifest is missing or damaged, or of another format or version.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path}: not a readable manifest ({error})") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or manifest.get("version") != VERSION:
        raise ValueError(f"{path}: not a manifest of {FORMAT}, version {VERSION}")
    return manifest


def verify(folder: Path) -> None:
    """Compare the checksums of all shards of a built folder with its manifest.

    Raises:
        ValueError: the manifest cannot be read, or a shard is missing or was changed.
    """
    for shard in read_manifest(folder)["shards"]:
        path = folder / shard["file"]
        if not path.is_file():
            raise ValueError(f"{path}: missing, though the manifest lists it")
        if sha256_of(path) != shard["sha256"]:
            raise ValueError(f"{path}: changed since it was built (SHA-256 differs from the manifest's)")
