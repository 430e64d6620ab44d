"""Damaged files of every kind that the engine reads: read, or refused in one line, in bounded time and memory.

If a reader accepts a damaged file and its data are cheap to use, they are also used, which must not fail either.
"""

import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
import torch

from bench.match.folder import MatchFolder
from bench.match.summary import render, summarise
from bench.process_memory import PeakMemory
from bench.reliability import originals
from bench.reliability.campaign import Outcome, Part
from bench.reliability.mutations import mutated
from bench.reliability.originals import MATCH_SETTINGS, made_games, tiny_model
from engine.config import TrainOptions
from engine.features.encoder import KEIMA
from engine.go.sgf import SgfGame, read_sgf, read_sgf_games, write_sgf
from engine.nets.files.read import describe, read_network
from engine.nets.layers import named_arrays
from engine.records.final_owners import FinalOwners, find_final_owners, saved_final_owners
from engine.records.games import Games, read_games
from engine.records.labels import Labels, read_labels
from engine.records.search_rows import read_search_rows
from engine.rollout.model import load_patterns, rollout_tables
from engine.train.curves import Curves
from engine.train.dataset import Material, Mixture
from engine.train.state import read_state
from engine.train.turns import WindowBatches
from gtp.cli.settings import read_settings, write_settings

FILES, BLOCK = 1000, 50
MAX_SECONDS, MAX_MIB = 20.0, 512
"""Limits for reading one file: processor time, and peak memory"""
MAX_LINE = 1000


def _network(path: Path) -> None:
    """Describe a network file and load it."""
    describe(path)
    network, _, _ = read_network(path)
    assert all(np.isfinite(values).all() for _, values in named_arrays(network))


def _sgf(path: Path) -> None:
    """Read the first game, and every game, of a file."""
    data = path.read_bytes()
    for game in read_sgf_games(data):
        if isinstance(game, SgfGame):
            with suppress(ValueError):
                write_sgf(game.to_game())
    write_sgf(read_sgf(data).to_game())


def _settings(path: Path) -> None:
    """Read a settings file, and change a setting in it."""
    read_settings(path)
    write_settings(path, {"threads": 2})
    assert read_settings(path)["threads"] == 2


def _learn(games: list[Games], labels: list[Labels], owners: list[FinalOwners]) -> None:
    """Make three training batches of games, labels and final owners."""
    data = Mixture(KEIMA, Material(games, labels, owners), TrainOptions(batch=4))
    for step in range(3):
        data.batch_at(step)


def _games(path: Path) -> None:
    """Read a shard of games and learn from it."""
    games = read_games(path)
    _learn([games], [], [find_final_owners(games)])


def _labels(path: Path) -> None:
    """Read a shard of labels and learn from it."""
    _learn([], [read_labels(path)], [])


def _rows(path: Path) -> None:
    """Read a shard of self-play rows and make three training batches."""
    batches = WindowBatches(KEIMA, read_search_rows(path), batch=4, seed=1)
    for step in range(3):
        batches.batch_at(step)


def _owners(path: Path) -> None:
    """Let the file replace the saved final owners of an earlier run: they are read if sound, else computed again."""
    place = path.parent / "owners"
    games = made_games()
    saved_final_owners(games, place)
    path.replace(next(place.iterdir()))
    _learn([games], [], [saved_final_owners(games, place)])


def _patterns(path: Path) -> None:
    """Read a rollout policy and compute its tables."""
    rollout_tables(load_patterns(path))


def _state(path: Path) -> None:
    """Read the file as the state of a training run, and the start of it, in ``curves.csv``, as the run's curves."""
    Curves(path.with_name("curves.csv"), 1)
    read_state(path, tiny_model(), torch.device("cpu"))


def _match(path: Path) -> None:
    """Resume a match that has this file in its folder, and make the table."""
    folder = MatchFolder(path.parent / "match", MATCH_SETTINGS)
    render(summarise(folder.records, folder.settings))


class Kind(NamedTuple):
    """A kind of file."""

    write: Callable[[Path], None]
    """writes a sound file"""
    read: Callable[[Path], None]
    """reads a file and uses its data"""
    name: str = "file"


KINDS = {
    "keima": Kind(originals.keima_network, _network),
    "leela-zero": Kind(originals.leela_network, _network),
    "katago": Kind(originals.katago_network, _network),
    "sgf": Kind(originals.sgf, _sgf),
    "settings": Kind(originals.settings, _settings),
    "games": Kind(originals.game_shard, _games),
    "labels": Kind(originals.label_shard, _labels),
    "rows": Kind(originals.row_shard, _rows),
    "owners": Kind(originals.final_owners, _owners),
    "patterns": Kind(originals.patterns, _patterns),
    "state": Kind(originals.run_state, _state),
    "match": Kind(originals.match_games, _match, "match/games.jsonl"),
    "match-settings": Kind(originals.match_settings, _match, "match/match.json"),
}
PART = Part(
    title="Damaged files: networks (three formats), SGF, settings, shards, states, match folders",
    unit="files",
    wanted=f"{FILES:,} of each of {len(KINDS)} kinds: one line, bounded time and memory",
    figures={"slowest file, s": max, "most memory for one, MiB": max},
    limit_s=1800.0,
)


@cache
def _original(kind: str) -> bytes:
    """Write a sound file of a kind and check that the reader accepts it; returns its content."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / KINDS[kind].name
        path.parent.mkdir(exist_ok=True)
        KINDS[kind].write(path)
        content = path.read_bytes()
        KINDS[kind].read(path)
    return content


def _one_line(read: Callable[[], None]) -> str:
    """The fault of a reader; empty if it accepts the file, or refuses it in one line."""
    try:
        read()
    except (ValueError, OSError) as error:
        text = str(error)
        return "" if len(text.splitlines()) == 1 and len(text) < MAX_LINE else f"refused with {text[:2000]!r}"
    except Exception:
        return "".join(traceback.format_exc()[-2000:])
    return ""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Cases of ``amount`` damaged files each, for every kind of file."""
    files, block = (5, 5) if metafunc.config.option.campaign["quick"] else (FILES, BLOCK)
    cases = [(kind, first, block) for kind in KINDS for first in range(1, files + 1, block)]
    metafunc.parametrize(("kind", "first", "amount"), cases)


def test_files(kind: str, first: int, amount: int, folder: Path, outcome: Outcome) -> None:
    """Damage a file in ``amount`` ways and read each result."""
    sound, slowest, grown = _original(kind), 0.0, 0.0
    for number in range(first, first + amount):
        path = folder / str(number) / KINDS[kind].name
        path.parent.mkdir(parents=True)
        path.write_bytes(mutated(sound, Random(f"{kind} {number}")))
        path.with_name("curves.csv").write_bytes(path.read_bytes()[:4096])
        began_s, memory = time.process_time(), PeakMemory()
        fault = _one_line(partial(KINDS[kind].read, path))
        seconds, mib = time.process_time() - began_s, memory.grown_mib()
        slowest, grown = max(slowest, seconds), max(grown, mib)
        if seconds > MAX_SECONDS or mib > MAX_MIB:
            fault += f" took {seconds:.1f} s and {mib:.0f} MiB, expected at most {MAX_SECONDS:g} s and {MAX_MIB} MiB"
        if fault:
            outcome.faults.append(f"{kind} {number}: {fault}")
    outcome.figures = {"slowest file, s": slowest, "most memory for one, MiB": grown}
