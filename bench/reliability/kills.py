"""Long work that is killed outright at a random moment: the same command goes on, and loses nothing that was kept.

A case kills one process by SIGKILL, at a moment drawn from how long the undisturbed run took, and runs the command
again to its end. What was on the disk at any time before is there afterwards; the end is that of the undisturbed run
where that is promised: the same weights, shards or measurements, every game once, no position twice.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from safetensors import safe_open

from bench.match.engines import keima
from bench.reliability.originals import game_shard, keima_network, made_games
from bench.reliability.part import Campaign, Case, Outcome, Part
from engine.nets.files.read import read_network
from engine.records.games import read_games
from engine.records.labels import read_labels
from engine.records.search_rows import read_search_rows
from engine.system.files import sha256_of
from engine.system.run_folder import NumberSet, read_blocks

CASES = 25
POLL_S, END_S = 0.05, 20.0
"""How often the disk is looked at, and how long child processes of a killed one may live on"""
POSITIONS, GAMES, STEPS = 160, 4, 60
GAMES_IN_BULK, UPDATES, TURNS = 80, 12, 3
IN_BULK = ("--size", 7, "--at-once", 4, "--games-per-shard", 25, "--device", "cpu", "--threads", 1)


@dataclass(frozen=True)
class Work:
    """One kind of work; all are called with the folder that it fills."""

    command: Callable[[Path], list[str]]
    kept: Callable[[Path], int]
    """how much is safe by now: steps, positions, games"""
    result: Callable[[Path, str], Any]
    """what the finished folder and standard output hold, to be compared"""
    is_alike: Callable[[Any, Any], bool] = lambda one, other: bool(one == other)
    is_once: bool = False
    """a folder that is finished is refused, not gone on with"""


@cache
def _material() -> Path:
    """A network, a shard of games and a folder of SGF files."""
    folder = Path(tempfile.mkdtemp(prefix="keima-kills-"))
    keima_network(folder / "net.safetensors")
    for name in ("games", "held"):
        game_shard(folder / f"{name}.npz.xz")
    (folder / "sgf").mkdir()
    games = made_games()
    for number in range(len(games.size)):
        moves = games.moves[games.offsets[number] : games.offsets[number + 1]].tolist()
        text = "".join(f";{'BW'[ply % 2]}[{chr(97 + move % 9)}{chr(97 + move // 9)}]" for ply, move in enumerate(moves))
        (folder / "sgf" / f"{number}.sgf").write_text(f"(;SZ[9]KM[6.5]RE[B+R]{text})")
    return folder


def _training(out: Path) -> list[str]:
    games, held = (_material() / f"{name}.npz.xz" for name in ("games", "held"))
    return keima(
        "train", "dual", "--games", games, "--validation", held, "--out", out, "--steps", STEPS, "--batch", 4,
        "--blocks", 1, "--channels", 8, "--head-channels", 8, "--value-hidden", 8, "--save-every", 3,
        "--validate-every", 30, "--threads", 1,
    )  # fmt: skip


def steps_kept(out: Path) -> int:
    """Steps of the saved state."""
    if not (out / "state.safetensors").exists():
        return 0
    with safe_open(out / "state.safetensors", "pt") as file:
        return int(json.loads(file.metadata()["keima"])["step"])


def _weights(out: Path, _: str) -> dict[str, torch.Tensor]:
    return read_network(out / "network.safetensors")[0].state_dict()


def _are_close(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.allclose(other[name], value, 1e-3, 1e-4) for name, value in one.items())


def _labelling(out: Path) -> list[str]:
    return keima(
        "data", "label", _material() / "games.npz.xz", "--network", _material() / "net.safetensors", "--out", out,
        "--positions", POSITIONS, "--recorded", "9=1", "--self-play", "9=1", "--at-once", 4, "--threads", 1,
        "--positions-per-shard", 40, "--device", "cpu",
    )  # fmt: skip


def _labelled(out: Path) -> int:
    """Positions in shards."""
    path = out / "labels.json"
    return sum(json.loads(path.read_text())["positions"].values()) if path.exists() else 0


def _positions(out: Path, _: str) -> str:
    """That enough positions are there, none twice."""
    found: list[tuple[int, int, int]] = []
    for path in sorted(out.glob("*.npz.xz")):
        labels = read_labels(path)
        sources, numbers = labels.source[labels.game].tolist(), labels.games.number[labels.game].tolist()
        found += zip(sources, numbers, labels.ply.tolist(), strict=True)
    return "enough" if len(found) >= POSITIONS and len(set(found)) == len(found) else f"{len(found)}, {len(set(found))}"


def _build(out: Path) -> list[str]:
    return keima("data", "build", _material() / "sgf", "--out", out, "--size", 9, "--games-per-shard", 5)


def _hashes(out: Path, _: str) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in sorted(out.rglob("*.*"))}


def _play(out: Path) -> list[str]:
    return keima("data", "play", _material() / "net.safetensors", "--games", GAMES_IN_BULK, "--out", out, *IN_BULK)


def _values(out: Path) -> list[str]:
    network = _material() / "net.safetensors"
    return keima("data", "values", network, network, "--positions", GAMES_IN_BULK, "--out", out, *IN_BULK)


@cache
def _in_shard(path: Path) -> dict[int, tuple[bytes, int, int]]:
    """The games of a shard by number: moves, result, the one position."""
    games = read_games(path)
    parts = [part.tobytes() for part in np.split(games.moves, games.offsets[1:-1])]
    return dict(
        zip(games.number.tolist(), zip(parts, games.result.tolist(), games.position.tolist(), strict=True), strict=True)
    )


def games_kept(out: Path) -> int:
    """Games of ``keima data play`` or positions of ``keima data values``, in shards or in the journal."""
    manifest = out / "games.json"
    # The journal first: then what leaves it meanwhile is in a shard.
    held = {number for block in read_blocks(out / "journal.bin") for number in block.numbers.tolist()}
    shards = json.loads(manifest.read_text())["shards"] if manifest.exists() else []
    return len(held.union(*(_in_shard(out / shard["file"]) for shard in shards)))


def played(out: Path, _: str = "") -> list[tuple[int, tuple[bytes, int, int]]]:
    """All games, so that one played twice differs."""
    return sorted(game for path in sorted(out.glob("*.npz.xz")) for game in _in_shard(path).items())


def _reinforcement(out: Path) -> list[str]:
    return keima(
        "train", "reinforce", _material() / "net.safetensors", "--out", out, "--size", 7, "--updates", UPDATES,
        "--games", 4, "--pool-every", 3, "--check-every", 4, "--check-games", 2, "--save-every", 2, "--rate", 0.01,
        "--device", "cpu", "--threads", 1,
    )  # fmt: skip


def _are_same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(other[name], value) for name, value in one.items())


def _match(out: Path) -> list[str]:
    engine = shlex.join(keima("gtp", "--weights", "none", "--visits", 2, "--seed", 1, "--threads", 1))
    return keima("match", "--first", engine, "--second", engine, "--size", 5, "--games", GAMES, "--sgf", out)


def _arena(out: Path) -> list[str]:
    return [
        *(sys.executable, "-P", "-m", "bench.strength.arena", "--weights", str(_material() / "net.safetensors")),
        *("--visits", "4", "--games", str(GAMES), "--size", "7", "--at-once", "1", "--sgf", str(out)),
    ]


def _lines(out: Path) -> int:
    """Whole lines of results."""
    path = out / "games.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _numbers(out: Path, _: str) -> list[int]:
    """The games, each with its SGF."""
    lines = (out / "games.jsonl").read_text().splitlines()
    return sorted(number for line in lines if (out / f"game-{(number := json.loads(line)['game']):04}.sgf").exists())


def _evaluation(out: Path) -> list[str]:
    games = _material() / "games.npz.xz"
    return keima("evaluate", _material() / "net.safetensors", games, "--json", "--device", "cpu")


def _zero(out: Path) -> list[str]:
    return keima(
        "zero", "--out", out, "--size", 3, "--turns", TURNS, "--blocks", 1, "--channels", 8, "--first-rows", 200,
        "--rows", 100, "--batch", 16, "--visits", 8, "--fast-visits", 4, "--at-once", 4, "--ladder-games", 4,
        "--ladder-visits", 2, "--device", "cpu", "--threads", 1,
    )  # fmt: skip


def _zero_kept(out: Path) -> int:
    """Games of self-play, in shards or in the journal."""
    manifest, blocks = out / "rows" / "rows.json", read_blocks(out / "rows" / "journal.bin")
    kept = NumberSet(json.loads(manifest.read_text())["numbers"] if manifest.exists() else [])
    for block in blocks:
        kept.add(block.numbers)
    return len(kept)


def _turns(out: Path, _: str) -> str:
    """That all turns have ended, that no game is there twice, and that each network has its row of the curves once."""
    shards = sorted((out / "rows").glob("*.npz.xz"))
    numbers = [number for path in shards for number in read_search_rows(path).games.number.tolist()]
    steps = [line.split(",")[0] for line in (out / "curves.csv").read_text().splitlines() if "zero/rows" in line]
    networks = sorted(str(int(path.stem)) for path in (out / "networks").glob("*.safetensors"))
    turn = json.loads((out / "zero.json").read_text())["turn"]["number"]
    is_once = len(set(numbers)) == len(numbers) and sorted(["0", *steps]) == networks
    return f"{turn} turns, {'each' if is_once else 'not each'} game and network once"


WORKS = {
    "training": Work(_training, steps_kept, _weights, _are_close),
    "labelling": Work(_labelling, _labelled, _positions),
    "games in bulk": Work(_play, games_kept, played),
    "value positions": Work(_values, games_kept, played),
    "reinforcement": Work(_reinforcement, steps_kept, _weights, _are_same),
    "zero": Work(_zero, _zero_kept, _turns),
    "build": Work(_build, lambda out: int((out / "manifest.json").exists()), _hashes, is_once=True),
    "match": Work(_match, _lines, _numbers),
    "arena": Work(_arena, _lines, _numbers),
    "evaluation": Work(_evaluation, lambda out: 0, lambda out, text: text),
}


class _Run:
    """A process of some work in a session of its own; whatever happens, nothing of it is left at the end."""

    def __init__(self, command: list[str], folder: Path):
        self._out, self._err = (folder / "out").open("w+"), (folder / "err").open("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err, start_new_session=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip

    def __enter__(self) -> "_Run":
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._out.close()
        self._err.close()

    def text(self) -> tuple[str, str]:
        """Standard output and the end of standard error."""
        self._out.seek(0)
        self._err.seek(0)
        return self._out.read(), self._err.read()[-2000:]

    def has_children(self) -> bool:
        """Whether processes that it started outlive it for long."""
        end_s = time.monotonic() + END_S
        while time.monotonic() < end_s:
            try:
                os.killpg(self.process.pid, 0)
            except (ProcessLookupError, PermissionError):
                return False
            time.sleep(POLL_S)
        return True


def _finish(work: Work, out: Path, folder: Path) -> tuple[Any, float]:
    """Run some work to its end: the result, and seconds.

    Raises:
        RuntimeError: it failed.
    """
    began_s = time.monotonic()
    with _Run(work.command(out), folder) as run:
        status = run.process.wait()
        text, errors = run.text()
    if status != 0:
        raise RuntimeError(f"status {status}: {errors}")
    return work.result(out, text), time.monotonic() - began_s


@cache
def _undisturbed(name: str) -> tuple[Any, float]:
    """What some work comes to, and how long that takes."""
    with tempfile.TemporaryDirectory() as folder:
        return _finish(WORKS[name], Path(folder) / "run", Path(folder))


def _killed(work: Work, out: Path, folder: Path, moment_s: float) -> tuple[bool, int, list[str]]:
    """Kill some work after some seconds.

    Returns:
        whether it had not ended by itself, the most that was kept before, and faults.
    """
    seen, faults = 0, []
    began_s = time.monotonic()
    with _Run(work.command(out), folder) as run:
        while run.process.poll() is None and time.monotonic() - began_s < moment_s:
            seen = max(seen, work.kept(out))
            time.sleep(POLL_S)
        run.process.kill()
        status = run.process.wait()
        if run.has_children():
            faults.append(f"child processes live on for {END_S:g} s")
    return status == -signal.SIGKILL, seen, faults


def _difference(result: Any, expected: Any) -> str:
    """How a result is not as expected; of lists only the items that differ, since what is shown is cut."""
    counts = ""
    if isinstance(result, list) and isinstance(expected, list):
        ours, theirs = [one for one in result if one not in expected], [one for one in expected if one not in result]
        counts = f"{len(ours)} of {len(result)} differ from {len(theirs)} of {len(expected)}: "
        result, expected = ours, theirs
    return f"{counts}{str(result)[:500]}, expected {str(expected)[:500]}"


def _kill(name: str, number: int, folder: Path) -> Outcome:
    """Kill some work once, and let it go on."""
    work, (expected, seconds) = WORKS[name], _undisturbed(name)
    moment_s, was_killed, attempt = 2 * seconds * Random(f"{name} {number}").random(), False, 0
    while not was_killed:
        # On a machine that is less busy now, it may have ended before.
        attempt, moment_s = attempt + 1, moment_s / 2
        out = folder / f"run-{attempt}"
        was_killed, seen, faults = _killed(work, out, folder, moment_s)
    kept = work.kept(out)
    if kept < seen:
        faults.append(f"{kept} are kept, expected the {seen} that were on the disk")
    try:
        result = work.result(out, "") if work.is_once and kept else _finish(work, out, folder)[0]
    except RuntimeError as error:
        faults.append(f"cannot go on: {error}")
    else:
        if work.kept(out) < kept:
            faults.append(f"{work.kept(out)} at the end, but {kept} before")
        if not work.is_alike(expected, result):
            faults.append(_difference(result, expected))
    faults = [f"killed after {moment_s:.2f} s of {seconds:.2f}: {fault}" for fault in faults]
    return Outcome(faults, {"most lost of what was kept": max(0, seen - kept)})


def _cases(campaign: Campaign) -> Iterator[Case]:
    """Kills of every kind of work."""
    for name in ("build",) if campaign.quick else WORKS:
        for number in range(1, 2 if campaign.quick else CASES + 1):
            yield Case(f"{name}-{number}", partial(_kill, name, number))


PART = Part(
    __name__,
    title=f"Kill -9 at random moments of {', '.join(WORKS)}",
    unit="kills",
    wanted=f"{CASES} of each: the same command goes on, nothing kept is lost, the end is as undisturbed",
    cases=_cases,
    figures={"most lost of what was kept": max},
    alone=True,
    limit_s=1800.0,
    missing=lambda campaign: "" if hasattr(signal, "SIGKILL") else "SIGKILL",
)
