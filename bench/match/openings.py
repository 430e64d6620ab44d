"""Openings of matches: the first moves of games in SGF files or in shards of games."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from engine.go.geometry import BLACK, WHITE, point_of
from engine.go.sgf import read_sgf
from engine.records.archive import SHARD_FILE
from engine.records.games import read_games


def read_openings(path: Path, size: int, most_moves: int) -> tuple[tuple[int, ...], ...]:
    """The first moves of every SGF in a folder, or of every game in its shards, in the order of the file names.

    Args:
        most_moves: moves to take of each; 0 = all.
    Raises:
        ValueError: no SGF or shard there, or a game that is no even one on this board from Black's first move on.
    """
    files, shards = sorted(path.glob("*.sgf")), sorted(path.glob(f"*{SHARD_FILE}"))
    if not files and not shards:
        raise ValueError(f"{path}: no file *.sgf in this folder, and no shard of games")
    of_shards = [moves for shard in shards for moves in _in_shard(shard, size, most_moves)]
    return (*(_first_moves(file, size, most_moves) for file in files), *of_shards)


def _in_shard(file: Path, size: int, most_moves: int) -> Iterator[tuple[int, ...]]:
    """The first moves of every game of a shard; args and errors as of :func:`read_openings`."""
    games = read_games(file)
    if not (games.starts_even() & (games.size == size)).all():
        raise ValueError(f"{file}: expected even games on {size}x{size} with Black to begin")
    for start, end in pairwise(games.offsets.tolist()):
        moves = games.moves[start : min(end, start + most_moves) if most_moves else end].tolist()
        yield tuple(int(point_of(move, size)) for move in moves)


def _first_moves(file: Path, size: int, most_moves: int) -> tuple[int, ...]:
    """The first moves of one SGF, Black's first and the colours in turn.

    Args, errors: as of :func:`read_openings`.
    """
    try:
        found = read_sgf(file.read_bytes())
        moves = found.to_game().moves()[: most_moves or None]
    except (OSError, ValueError) as error:
        raise ValueError(f"{file}: {error}") from error
    in_turn = all(color == (BLACK, WHITE)[i % 2] for i, (color, _) in enumerate(moves))
    if found.size != size or found.black or found.white or not in_turn:
        raise ValueError(f"{file}: expected an even game on {size}x{size} with Black to begin")
    return tuple(point for _, point in moves)
