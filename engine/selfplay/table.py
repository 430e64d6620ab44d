"""Games of policies side by side: what a table of them holds, and the kernels that take every game a move further.

A table has S seats, each with one game or none. A step is: outputs of the networks for the games in play, a move drawn
in each (:func:`play_rows`), games that ended counted and handed over (:func:`count_games`), new ones begun
(:func:`begin_games`), and every game's position encoded for the network that moves next (:func:`seat_rows`,
:func:`encode_rows`). All that is drawn comes from a random state of the game's own, which follows from the seed and the
game's number; so a game is the same whichever others share its table.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from engine.features.encoder import encode
from engine.features.symmetry import SYMMETRIES, apply_symmetry
from engine.go.board import META_SIZE
from engine.go.geometry import BLACK, EMPTY, PASS, index_of, point_of
from engine.go.position import (
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    begin,
    is_legal_move,
    play_move,
)
from engine.go.random import mix, next_below, next_unit, next_word
from engine.go.rules import RULE_FIELDS
from engine.go.scoring import final_score_black
from engine.records.games import COUNTED, LIMIT, RESIGNED
from engine.records.replay import replay
from engine.rollout.run import is_sensible
from engine.selfplay.boards import Boards, new_boards, position_of
from engine.system.arrays import copy_items
from engine.system.jit import kernel

EMPTY_SEAT = -1
NEVER = 1 << 30
"""A ply that no game reaches"""


class Table(NamedTuple):
    """S seats for games of one size."""

    boards: Boards
    numbers: np.ndarray
    """int64[S]: the games; EMPTY_SEAT = none"""
    states: np.ndarray
    """uint64[S, 4]: random states"""
    temperatures: np.ndarray
    """float64[S]"""
    players: np.ndarray
    """int64[S, 2, 2]: the network (0 or 1) that moves, by colour (Black first), before and after the switch"""
    switches: np.ndarray
    """int64[S]: the ply of a uniformly random legal move, after which the other players move; NEVER = none"""
    hopeless: np.ndarray
    """int64[S, 2]: hopeless moves in a row, by colour"""
    quits: np.ndarray
    """int64[S]: 1 where hopeless games are resigned, 0 where they are played out"""
    resigner: np.ndarray
    """int64[S]: the colour that first had reason to resign, though the game was played out; 0 = neither"""
    symmetries: np.ndarray
    """uint8[S, CAP]: what the position before each move was shown under; 0 where no network was asked"""


def seat_numbers(table_numbers: np.ndarray, seats: np.ndarray, numbers: Iterator[int]) -> tuple[np.ndarray, np.ndarray]:
    """Free some seats (int64), and take numbers for the games that are to begin there.

    Args:
        table_numbers: int64[S]: the games on all seats, EMPTY_SEAT = none; changed.
        numbers: of games; they may be fewer than the seats.
    Returns:
        int64[K], int64[K]: the first of these seats, as far as there are games, and the games.
    """
    table_numbers[seats] = EMPTY_SEAT
    taken = np.fromiter(islice(numbers, len(seats)), np.int64)
    return seats[: len(taken)], taken


class Conduct(NamedTuple):
    """How moves are chosen and games end; the same for all games of a table."""

    limit: int
    """moves after which a game is broken off and counted as it stands"""
    is_pass_last: bool = False
    """only sensible moves are played (legal, no suicide, no own eye filled), and a pass where none is left; else every
    legal move may be, a pass among them, as probable as the network says"""
    free_moves: int = 0
    least_share: float = 0.0
    """after the first ``free_moves`` no move is played that is less probable than this share of the likeliest"""
    resign_below: float = -2.0
    """value for the side to move that is hopeless"""
    resign_count: int = 3
    """hopeless moves in a row of one colour after which it resigns"""
    are_dead_removed: bool = False
    """rollouts find out which stones are dead at the end; else all stones count as alive"""


def new_table(size: int, seats: int, capacity: int) -> Table:
    """A table without games, with room for ``capacity`` moves a game."""
    return Table(
        boards=new_boards(size, seats, capacity),
        numbers=np.full(seats, EMPTY_SEAT, np.int64),
        states=np.zeros((seats, 4), np.uint64),
        temperatures=np.ones(seats),
        players=np.zeros((seats, 2, 2), np.int64),
        switches=np.full(seats, NEVER, np.int64),
        hopeless=np.zeros((seats, 2), np.int64),
        quits=np.zeros(seats, np.int64),
        resigner=np.zeros(seats, np.int64),
        symmetries=np.zeros((seats, capacity), np.uint8),
    )


@kernel
def fill_state(state, seed, stream):
    """:func:`engine.go.random.seed_state` into uint64[4]."""
    word = mix(np.uint64(seed)) + np.uint64(stream)
    for i in range(4):
        word = mix(word)
        state[i] = mix(word)


@kernel
def _random_legal(position, color, state):
    """A legal point, each with the same probability; PASS if there is none. Source: the 2016 paper, Methods, which
    draws points of the board until one is legal."""
    size = position.board.meta[META_SIZE]
    legal = 0
    for index in range(size * size):
        legal += is_legal_move(position, point_of(index, size), color)
    if legal == 0:
        return PASS
    wanted = next_below(state, legal)
    for index in range(size * size):
        point = point_of(index, size)
        if is_legal_move(position, point, color):
            if wanted == 0:
                return point
            wanted -= 1
    return PASS


@kernel
def begin_games(table, fresh, seats, numbers, seed, rules, temperatures, players, switches, quits):
    """Begin one game on each of some seats, on the empty board.

    Args:
        fresh: :class:`Boards` of one empty position.
        seats, numbers: int64[K].
        rules: int64[K, RULE_FIELDS].
        temperatures, players, switches, quits: as in :class:`Table`, by K.
    """
    for k in range(len(seats)):
        seat = seats[k]
        position = position_of(table.boards, seat)
        copy_items(table.boards.buffer[seat], fresh.buffer[0], fresh.buffer.shape[1])
        copy_items(position.rules, rules[k], RULE_FIELDS)
        begin(position, BLACK)
        table.numbers[seat] = numbers[k]
        fill_state(table.states[seat], seed, numbers[k])
        table.temperatures[seat] = temperatures[k]
        copy_items(table.players[seat].reshape(-1), players[k].reshape(-1), 4)
        table.switches[seat] = switches[k]
        table.hopeless[seat] = 0
        table.quits[seat] = quits[k]
        table.resigner[seat] = 0
        table.symmetries[seat] = 0
        if switches[k] == 0:
            play_move(position, _random_legal(position, BLACK, table.states[seat]), BLACK)


@kernel
def open_games(table, fresh, seats, rules, record, rows, plies):
    """Take games just begun to recorded positions, from which they go on.

    Args:
        fresh, seats, rules: as for :func:`begin_games`.
        record: :class:`engine.records.replay.Recorded`, of games of the table's size.
        rows, plies: int64[K]: the recorded games, and how many of their moves.
    """
    for k in range(len(seats)):
        position = position_of(table.boards, seats[k])
        replay(position, position_of(fresh, 0), record, rows[k], plies[k], rules[k])


@kernel
def skip_moves(table, seats, plies):
    """Leave out what was drawn for the first moves of games (int64[K] each), where all of these had a choice."""
    for k in range(len(seats)):
        # One number for the symmetry, one for the move.
        for _ in range(2 * plies[k]):
            next_word(table.states[seats[k]])


@kernel
def _weigh(position, color, logits, symmetry, temperature, conduct, weights):
    """Weights of the moves that may be drawn, unnormalised.

    Args:
        logits: float32[N*N+1], under the symmetry.
        weights: float64[N*N+1] in policy order, overwritten.
    Returns:
        float64: their sum; 0 = no sensible move is left.
    """
    area = len(weights) - 1
    size = position.board.meta[META_SIZE]
    largest = -np.inf
    for index in range(area):
        point = point_of(index, size)
        weights[index] = -np.inf
        is_open = not conduct.is_pass_last or position.board.color[point] == EMPTY
        if conduct.is_pass_last and is_open:
            is_open = is_sensible(position.board, point, color)
        if is_open and is_legal_move(position, point, color):
            weights[index] = logits[apply_symmetry(index, size, symmetry)]
            largest = max(largest, weights[index])
    weights[area] = -np.inf if conduct.is_pass_last else logits[area]
    largest = max(largest, weights[area])
    if largest == -np.inf:
        weights[:] = 0.0
        return 0.0
    is_free = position.meta[META_N_MOVES] < conduct.free_moves or conduct.least_share <= 0.0
    least = -np.inf if is_free else largest + np.log(conduct.least_share)
    total = 0.0
    for index in range(area + 1):
        logit = weights[index]
        weights[index] = 0.0 if logit < least or logit == -np.inf else np.exp((logit - largest) / temperature)
        total += weights[index]
    return total


@kernel
def draw(weights, total, state):
    """An index drawn in proportion to its weight."""
    left, chosen = next_unit(state) * total, 0
    for index in range(len(weights)):
        if weights[index] > 0.0:
            chosen = index
            left -= weights[index]
            if left < 0.0:
                break
    return chosen


@kernel
def probabilities(boards, conduct, seats, symmetries, logits, out):
    """What a network's outputs give each legal move of some games: float64[B, N*N+1] in policy order, overwritten.

    Args:
        conduct: that leaves out no legal move.
        seats, symmetries: int64[B], as for :func:`encode_rows`.
        logits: float32[B or more, N*N+1], under the symmetry, pass last.
    """
    for b in range(len(seats)):
        position = position_of(boards, seats[b])
        total = _weigh(position, position.meta[META_TO_MOVE], logits[b], symmetries[b], 1.0, conduct, out[b])
        for index in range(len(out[b])):
            out[b, index] /= total


@kernel
def _count_hopeless(table, seat, color, value, conduct):
    """Count a move by its value for the side to move; whether the colour has reason to resign."""
    side = color - BLACK
    table.hopeless[seat, side] = table.hopeless[seat, side] + 1 if value < conduct.resign_below else 0
    return table.hopeless[seat, side] >= conduct.resign_count


@kernel
def how_it_ended(position, limit):
    """How a game that goes by its moves has ended; 0 = not yet."""
    if position.meta[META_PASSES] >= 2:
        return COUNTED
    return LIMIT if position.meta[META_N_MOVES] >= limit else 0


@kernel
def play_rows(table, conduct, seats, symmetries, policy, value, weights, endings):
    """Play a move in each of some games, drawn from its network's outputs; and the random move, where it is due next.

    Args:
        seats, symmetries: int64[B]: the games, and the symmetry that each was shown under.
        policy: float32[B or more, N*N+1]: logits, pass last.
        value: float32[B or more], for the side to move.
        weights: float64[N*N+1], overwritten.
        endings: uint8[S], by seat, overwritten for these games: how each has ended (COUNTED, RESIGNED, LIMIT), or 0.
    """
    for b in range(len(seats)):
        seat = seats[b]
        position, state = position_of(table.boards, seat), table.states[seat]
        color = position.meta[META_TO_MOVE]
        if _count_hopeless(table, seat, color, value[b], conduct):
            if table.quits[seat]:
                table.resigner[seat] = color
                endings[seat] = RESIGNED
                continue
            if table.resigner[seat] == 0:
                table.resigner[seat] = color
        total = _weigh(position, color, policy[b], symmetries[b], table.temperatures[seat], conduct, weights)
        drawn = draw(weights, total, state) if total > 0.0 else len(weights) - 1
        play_move(position, point_of(drawn, position.board.meta[META_SIZE]), color)
        endings[seat] = how_it_ended(position, conduct.limit)
        if endings[seat] == 0 and position.meta[META_N_MOVES] == table.switches[seat]:
            color = position.meta[META_TO_MOVE]
            play_move(position, _random_legal(position, color, state), color)
            endings[seat] = how_it_ended(position, conduct.limit)


@kernel
def count_games(table, seats, endings, leads):
    """Black's leads in games that ended, as the rules count the board as it stands: float64[K], overwritten.

    A resigned game is not counted: NaN.
    """
    for k in range(len(seats)):
        position = position_of(table.boards, seats[k])
        leads[k] = np.nan if endings[seats[k]] == RESIGNED else final_score_black(position)


@kernel
def take_moves(table, seats, lengths, moves, symmetries):
    """The moves of games, one game after the other, and what the positions before them were shown under.

    Args:
        seats, lengths: int64[K]: the games, and how many of their first moves.
        moves, symmetries: uint16[sum of lengths] policy indices, uint8[sum of lengths], overwritten.
    """
    at = 0
    for k in range(len(seats)):
        position = position_of(table.boards, seats[k])
        size = position.board.meta[META_SIZE]
        for n in range(lengths[k]):
            moves[at] = index_of(position.moves[n], size)
            symmetries[at] = table.symmetries[seats[k], n]
            at += 1


@kernel
def seat_rows(table, seats, symmetries, counts):
    """List every game in play for the network that moves next, and draw the symmetry that it is shown under.

    Args:
        seats, symmetries: int64[2, S], by network, overwritten as far as ``counts`` (int64[2], overwritten) says.
    """
    counts[:] = 0
    for seat in range(len(table.numbers)):
        if table.numbers[seat] == EMPTY_SEAT:
            continue
        meta = table.boards.meta[seat]
        has_switched = np.int64(meta[META_N_MOVES] > table.switches[seat])
        network = table.players[seat, has_switched, meta[META_TO_MOVE] - BLACK]
        seats[network, counts[network]] = seat
        shown = next_below(table.states[seat], SYMMETRIES)
        table.symmetries[seat, meta[META_N_MOVES]] = symmetries[network, counts[network]] = shown
        counts[network] += 1


@kernel
def encode_rows(boards, seats, symmetries, scratch, planes, globals_):
    """Encode the positions of some games, each under its symmetry, into float32[B, C, N, N] and float32[B, G]."""
    for b in range(len(seats)):
        encode(position_of(boards, seats[b]), symmetries[b], scratch, planes[b], globals_[b])
