"""Openings of matches: the first moves of games in SGF files."""

from pathlib import Path

from engine.go.geometry import BLACK, WHITE
from engine.go.sgf import read_sgf


def read_openings(path: Path, size: int, most_moves: int) -> tuple[tuple[int, ...], ...]:
    """The first moves of every SGF in a folder, in the order of the file names.

    Args:
        most_moves: moves to take of each; 0 = all.
    Raises:
        ValueError: no SGF there, or one that is no even game on this board from Black's first move on.
    """
    files = sorted(path.glob("*.sgf"))
    if not files:
        raise ValueError(f"{path}: no file *.sgf in this folder")
    return tuple(_first_moves(file, size, most_moves) for file in files)


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
