"""Conversion of SGF games to :class:`engine.records.games.Games`; records that are no legal game are refused.

Servers write handicap, komi and scoring rules in different ways. These are normalised:

* Black's moves before White's first, two or more, are setup stones: a freely placed handicap;
* handicap is the larger of HA and, if White moves first and has no setup stones, the number of Black's setup stones;
* komi 0 in an even game of Fox (recognised by ranks in 段) means 6.5, which the results of its scored games confirm;
* rules are taken from RU, but games with komi 7.5 never count by territory (Fox writes RU[Japanese] into every file).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.rules import RULE_SETS, SCORING_TERRITORY, Rules
from engine.go.sgf import SgfGame
from engine.records.games import UNKNOWN_VALUES, Games, offsets_of, policy_indices
from engine.records.replay import check_game
from engine.records.sgf_values import date_of, rank_of, result_of, seconds_of

FOX_KOMI = 6.5
AREA_KOMI = 7.5
MAX_MAIN_TIME = 10**6


def to_games(rows: Sequence[dict[str, Any]]) -> Games:
    """Join one or more results of :func:`row_of` into one :class:`Games`, in order."""
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Games(
        size=np.array(columns["size"], np.int64),
        offsets=offsets_of([len(moves) for moves in columns["moves"]]),
        moves=np.concatenate(columns["moves"]),
        setup_offsets=offsets_of([len(stones) for stones in columns["setup"]]),
        setup=np.concatenate(columns["setup"]),
        **{name: np.array(columns[name], value.dtype) for name, value in UNKNOWN_VALUES.items() if name in columns},
    )


def row_of(record: SgfGame) -> dict[str, Any]:
    """Convert a game to one entry for each field of ``Games``, by name, and check it by a replay. Threads: any.

    Raises:
        ValueError: no moves or too many, colours that do not alternate, impossible setup stones, an illegal move.
    """
    moves = record.moves
    leading = next((n for n, (color, _) in enumerate(moves) if color == WHITE), len(moves))
    if leading >= 2 and leading < len(moves) and not record.black and not record.white:
        stones, moves = [point for _, point in moves[:leading]], moves[leading:]
        if PASS in stones:
            raise ValueError("Black passes and moves again before White's first move")
        record = replace(record, black=stones, moves=moves)
    if not moves:
        raise ValueError("no moves")
    for number, ((color, _), (before, _)) in enumerate(zip(moves[1:], moves, strict=False), 2):
        if color == before:
            raise ValueError(f"colours do not alternate at move {number}")
    row = _row(record)
    check_game(record.size, row["setup"], row["first"], row["moves"])
    return row


def komi_meant(record: SgfGame) -> float | None:
    """A record's komi, which for even games of Fox is 6.5 where 0 is written; None = not given."""
    begins_evenly = [color for color, _ in record.moves[:2]] in ([], [BLACK], [BLACK, WHITE])
    is_even = begins_evenly and not record.black and not record.white and not _declared_handicap(record)
    return FOX_KOMI if record.komi == 0 and _is_fox(record) and is_even else record.komi


def rules_meant(record: SgfGame) -> Rules | None:
    """A record's rules; Fox's games with komi 7.5 have Chinese ones, though Japanese is written; None = not given."""
    is_chinese = _has_territory(record) and _is_fox(record) and record.komi == AREA_KOMI
    return RULE_SETS["chinese"] if is_chinese else record.rules


def _has_territory(record: SgfGame) -> bool:
    return record.rules is not None and record.rules.scoring == SCORING_TERRITORY


def _is_fox(record: SgfGame) -> bool:
    return all("段" in record.details.get(name, "") for name in ("BR", "WR"))


def _declared_handicap(record: SgfGame) -> int:
    """The number of handicap stones that HA gives, if it is 2 or more; else 0."""
    said = record.details.get("HA", "")
    number = int(said) if said.isdecimal() and len(said) <= 3 else 0
    return number if number >= 2 else 0


def _row(record: SgfGame) -> dict[str, Any]:
    """Do :func:`row_of` without its checks, for a game whose colours alternate from the first move."""
    size, details = record.size, record.details
    result = result_of(record.result)
    first = record.moves[0][0]
    stones = len(record.black) if not record.white and first == WHITE else 0
    handicap = min(max(stones, _declared_handicap(record)), 255)
    meant = komi_meant(record)
    komi = np.nan if meant is None else meant
    setup = np.concatenate([2 * policy_indices(record.black, size), 2 * policy_indices(record.white, size) + 1])
    return {
        "size": size,
        "komi": komi,
        "moves": policy_indices([point for _, point in record.moves], size).astype(np.uint16),
        "result": result.winner,
        "territory": _has_territory(record) and komi != AREA_KOMI,
        "margin": result.margin,
        "ending": result.ending,
        "first": first,
        "setup": setup.astype(np.uint16),
        "handicap": handicap,
        "date": date_of(details.get("DT", "")) or date_of(details.get("RD", "")),
        "rank_black": rank_of(details.get("BR", "")),
        "rank_white": rank_of(details.get("WR", "")),
        "main_time": min(seconds_of(details.get("TM", "")), MAX_MAIN_TIME),
    }
