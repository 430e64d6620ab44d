"""SIGKILL of long commands at random moments: the same command resumes, and loses nothing that was on disk.

A case kills one process at a random moment within the duration of an undisturbed run, and runs the command again to its
end. Everything that was on disk before the kill must be there after it. Where the command promises it, the result must
equal that of the undisturbed run: the same weights, shards or measurements, every game once, no position twice.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from safetensors import safe_open

from bench.reliability.campaign import Outcome, Part
from bench.reliability.originals import game_shard, keima_network, made_games
from engine.nets.files.checkpoint import arrays_of
from engine.nets.files.read import read_network
from engine.records.games import read_games
from engine.records.labels import read_labels
from engine.records.search_rows import read_search_rows
from engine.system.files import sha256_of
from engine.system.programs import PROGRAM, keima, start_child
from engine.system.run_folder import NumberSet, read_blocks

CASES = 25
POLL_S, END_S = 0.05, 20.0
"""Seconds between two checks of the disk, and seconds in which child processes of a killed process must end"""
POSITIONS = 160
PROGRAMS = {"keima": PROGRAM, "arena": (sys.executable, "-P", "-m", "bench.strength.arena")}
SMALL = "--device cpu --threads 1"
IN_BULK = f"--size 7 --at-once 4 --games-per-shard 25 {SMALL}"
NETWORK = "--blocks 1 --channels 8"


class Work(NamedTuple):
    """A command that a case kills and runs again."""

    command: str
    """command line; braces stand for the output folder, ``{out}``, and for inputs by their names in :func:`material`"""
    kept: Callable[[Path], int]
    """amount stored in the output folder so far: number of steps, positions or games"""
    result: Callable[[Path, str], Any]
    """result to compare, from the finished folder and standard output"""
    is_once: bool = False
    """whether the command refuses a finished folder instead of resuming"""


def steps_kept(out: Path) -> int:
    """Number of training steps in the saved state; 0 without one."""
    if not (out / "state.safetensors").exists():
        return 0
    with safe_open(out / "state.safetensors", "pt") as file:
        return int(json.loads(file.metadata()["keima"])["step"])


def _weights(out: Path, _: str) -> dict[str, np.ndarray]:
    return arrays_of(read_network(out / "network.safetensors")[0])


def _labelled(out: Path) -> int:
    """Number of labelled positions in shards."""
    path = out / "labels.json"
    return sum(json.loads(path.read_text())["positions"].values()) if path.exists() else 0


def _positions(out: Path, _: str) -> str:
    """``enough`` if there are at least POSITIONS positions, none twice; else how many, and how many different ones."""
    found: list[tuple[int, int, int]] = []
    for path in sorted(out.glob("*.npz.xz")):
        labels = read_labels(path)
        columns = labels.source[labels.game], labels.games.number[labels.game], labels.ply
        found += zip(*(column.tolist() for column in columns), strict=True)
    return "enough" if len(found) >= POSITIONS and len(set(found)) == len(found) else f"{len(found)}, {len(set(found))}"


@cache
def _in_shard(path: Path) -> dict[int, tuple[bytes, int, int]]:
    """Games of a shard: number -> moves, result and number of the sampled position."""
    games = read_games(path)
    parts = [part.tobytes() for part in np.split(games.moves, games.offsets[1:-1])]
    games_of = zip(parts, games.result.tolist(), games.position.tolist(), strict=True)
    return dict(zip(games.number.tolist(), games_of, strict=True))


def games_kept(out: Path) -> int:
    """Number of games of ``keima data play``, or positions of ``keima data values``, in shards or in the journal."""
    manifest = out / "games.json"
    # The journal first: games that leave it meanwhile are in a shard.
    held = {number for block in read_blocks(out / "journal.bin") for number in block.numbers.tolist()}
    shards = json.loads(manifest.read_text())["shards"] if manifest.exists() else []
    return len(held.union(*(_in_shard(out / shard["file"]) for shard in shards)))


def played(out: Path, _: str = "") -> list[tuple[int, tuple[bytes, int, int]]]:
    """Number and content of all games in a folder's shards, in order of numbers, repeated ones included."""
    return sorted(game for path in sorted(out.glob("*.npz.xz")) for game in _in_shard(path).items())


def _lines(out: Path) -> int:
    """Number of complete lines of results."""
    path = out / "games.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _numbers(out: Path, _: str) -> list[int]:
    """Numbers of the games that have an SGF."""
    lines = (out / "games.jsonl").read_text().splitlines()
    return sorted(number for line in lines if (out / f"game-{(number := json.loads(line)['game']):04}.sgf").exists())


def _zero_kept(out: Path) -> int:
    """Number of games of self-play, in shards or in the journal."""
    manifest, blocks = out / "rows" / "rows.json", read_blocks(out / "rows" / "journal.bin")
    kept = NumberSet(json.loads(manifest.read_text())["numbers"] if manifest.exists() else [])
    for block in blocks:
        kept.add(block.numbers)
    return len(kept)


def _turns(out: Path, _: str) -> str:
    """As text: number of finished turns, and whether each game and each network's row of ``curves.csv`` exists once."""
    shards = sorted((out / "rows").glob("*.npz.xz"))
    numbers = [number for path in shards for number in read_search_rows(path).games.number.tolist()]
    steps = [line.split(",")[0] for line in (out / "curves.csv").read_text().splitlines() if "zero/rows" in line]
    networks = sorted(str(int(path.stem)) for path in (out / "networks").glob("*.safetensors"))
    turn = json.loads((out / "zero.json").read_text())["turn"]["number"]
    is_once = len(set(numbers)) == len(numbers) and sorted(["0", *steps]) == networks
    return f"{turn} turns, {'each' if is_once else 'not each'} game and network once"


WORKS = {
    "training": Work(
        f"keima train dual --games {{games}} --validation {{held}} --out {{out}} --steps 60 --batch 4 {NETWORK} "
        "--head-channels 8 --value-hidden 8 --save-every 3 --validate-every 30 --threads 1",
        steps_kept, _weights,
    ),
    "labelling": Work(
        f"keima data label {{games}} --network {{net}} --out {{out}} --positions {POSITIONS} --recorded 9=1 "
        f"--self-play 9=1 --at-once 4 --positions-per-shard 40 {SMALL}",
        _labelled, _positions,
    ),
    "games in bulk": Work(f"keima data play {{net}} --games 80 --out {{out}} {IN_BULK}", games_kept, played),
    "value positions": Work(
        f"keima data values {{net}} {{net}} --positions 80 --out {{out}} {IN_BULK}", games_kept, played
    ),
    "reinforcement": Work(
        "keima train reinforce {net} --out {out} --size 7 --updates 12 --games 4 --pool-every 3 --check-every 4 "
        f"--check-games 2 --save-every 2 --rate 0.01 {SMALL}",
        steps_kept, _weights,
    ),
    "zero": Work(
        f"keima zero --out {{out}} --size 3 --turns 3 {NETWORK} --first-rows 200 --rows 100 --batch 16 --visits 8 "
        f"--fast-visits 4 --at-once 4 {SMALL}",
        _zero_kept, _turns,
    ),
    "build": Work(
        "keima data build {sgf} --out {out} --size 9 --games-per-shard 5",
        lambda out: int((out / "manifest.json").exists()),
        lambda out, _: {path.name: sha256_of(path) for path in sorted(out.rglob("*.*"))}, is_once=True,
    ),
    "match": Work(
        "keima match --first {engine} --second {engine} --size 5 --games 4 --sgf {out}", _lines, _numbers
    ),
    "arena": Work(
        "arena --weights {net} --visits 4 --games 4 --size 7 --at-once 1 --sgf {out}", _lines, _numbers
    ),
    "evaluation": Work(
        "keima evaluate {net} {games} --json --device cpu", lambda out: 0, lambda out, text: text
    ),
}  # fmt: skip
PART = Part(
    title=f"Kill -9 at random moments of {', '.join(WORKS)}",
    unit="kills",
    wanted=f"{CASES} of each: the same command resumes, nothing kept is lost, the result is that without a kill",
    figures={"most lost of what was kept": max},
    alone=True,
    limit_s=1800.0,
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``CASES`` kills of every command; the quick campaign has one of ``build``."""
    is_quick = metafunc.config.option.campaign["quick"]
    names, count = (["build"], 1) if is_quick else (list(WORKS), CASES)
    metafunc.parametrize(("name", "number"), [(name, number) for name in names for number in range(1, count + 1)])


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Inputs of the commands: a network, shards of games, a folder of SGF files, an engine's command line."""
    folder = tmp_path_factory.mktemp("material")
    keima_network(folder / "net.safetensors")
    for name in ("games", "held"):
        game_shard(folder / f"{name}.npz.xz")
    (folder / "sgf").mkdir()
    games = made_games()
    for number, moves in enumerate(np.split(games.moves, games.offsets[1:-1])):
        text = "".join(f";{'BW'[n % 2]}[{chr(97 + at % 9)}{chr(97 + at // 9)}]" for n, at in enumerate(moves.tolist()))
        (folder / "sgf" / f"{number}.sgf").write_text(f"(;SZ[9]KM[6.5]RE[B+R]{text})")
    engine = shlex.join(keima("gtp", "--weights", "none", "--visits", 2, "--seed", 1, "--threads", 1))
    files = {"net": "net.safetensors", "games": "games.npz.xz", "held": "held.npz.xz", "sgf": "sgf"}
    return {name: folder / file for name, file in files.items()} | {"engine": engine}


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, tuple[Any, float]]:
    """Name of a work -> result and seconds of its undisturbed run; filled in as cases need it."""
    return {}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="SIGKILL")
def test_kill(
    name: str, number: int, material: dict[str, object], undisturbed: dict[str, tuple[Any, float]], folder: Path,
    outcome: Outcome, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Kill a command once, and resume it."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    work, begun_s = WORKS[name], time.monotonic()
    if name not in undisturbed:
        undisturbed[name] = finish(work, material | {"out": folder / "whole"}), time.monotonic() - begun_s
    result, seconds = undisturbed[name]
    kill(work, material, folder, seconds, 2 * seconds * Random(f"{name} {number}").random(), result, outcome)


def kill(
    work: Work, material: Mapping[str, object], folder: Path, seconds: float, moment_s: float, expected: Any,
    outcome: Outcome,
) -> None:  # fmt: skip
    """Kill a command, resume it, and compare its result with the expected one.

    Args:
        seconds: duration of the undisturbed run.
        moment_s: twice the seconds before the kill; halved again whenever the command ends before the kill.
    """
    was_killed, attempt = False, 0
    while not was_killed:
        # The command may end earlier than the undisturbed run, on a machine that is less busy now.
        attempt, moment_s = attempt + 1, moment_s / 2
        places = {**material, "out": (out := folder / f"run-{attempt}")}
        was_killed, seen, faults = _killed(work, places, out, moment_s)
    kept = work.kept(out)
    if kept < seen:
        faults.append(f"{kept} are kept, expected the {seen} that were on disk")
    try:
        result = work.result(out, "") if work.is_once and kept else finish(work, places)
    except RuntimeError as error:
        faults.append(f"cannot resume: {error}")
    else:
        if work.kept(out) < kept:
            faults.append(f"{work.kept(out)} at the end, but {kept} before")
        if not _are_alike(result, expected):
            faults.append(difference(result, expected))
    outcome.faults += [f"killed after {moment_s:.2f} s of {seconds:.2f}: {fault}" for fault in faults]
    outcome.figures = {"most lost of what was kept": max(0, seen - kept)}


@contextmanager
def _started(work: Work, places: Mapping[str, object], folder: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command in its own process group; the whole group is killed at the end of the ``with`` block."""
    name, *words = shlex.split(work.command)
    command = [*PROGRAMS[name], *(word.format_map(places) for word in words)]
    process = start_child(command, None, folder / "errors", folder / "printed")
    try:
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def finish(work: Work, places: Mapping[str, Any]) -> Any:
    """Run a command to its end; returns its result.

    Raises:
        RuntimeError: the command failed.
    """
    folder = places["out"].parent
    with _started(work, places, folder) as process:
        status = process.wait()
    if status != 0:
        raise RuntimeError(f"status {status}: {(folder / 'errors').read_text()[-2000:]}")
    return work.result(places["out"], (folder / "printed").read_text())


def _killed(work: Work, places: Mapping[str, object], out: Path, moment_s: float) -> tuple[bool, int, list[str]]:
    """Kill a command after some seconds.

    Returns:
        Whether it was still running, the largest amount on disk before the kill, and faults.
    """
    seen, begun_s = 0, time.monotonic()
    with _started(work, places, out.parent) as process:
        while process.poll() is None and time.monotonic() - begun_s < moment_s:
            seen = max(seen, work.kept(out))
            time.sleep(POLL_S)
        process.kill()
        status, end_s = process.wait(), time.monotonic() + END_S
        while _is_alive(process.pid) and time.monotonic() < end_s:
            time.sleep(POLL_S)
        faults = [f"child processes live after {END_S:g} s"] if _is_alive(process.pid) else []
    return status == -signal.SIGKILL, seen, faults


def _is_alive(group: int) -> bool:
    """Whether any process of a process group lives."""
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _are_alike(result: Any, expected: Any) -> bool:
    """Whether two results are equal, weights up to rounding."""
    if isinstance(expected, dict) and all(isinstance(value, np.ndarray) for value in expected.values()):
        return all(np.allclose(result[name], value, 1e-3, 1e-4) for name, value in expected.items())
    return bool(result == expected)


def difference(result: Any, expected: Any) -> str:
    """A result and the expected one as text, cut to 500 characters each; of lists only the items that differ."""
    counts = ""
    if isinstance(result, list) and isinstance(expected, list):
        ours, theirs = [one for one in result if one not in expected], [one for one in expected if one not in result]
        counts = f"{len(ours)} of {len(result)} differ from {len(theirs)} of {len(expected)}: "
        result, expected = ours, theirs
    return f"{counts}{str(result)[:500]}, expected {str(expected)[:500]}"
