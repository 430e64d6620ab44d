"""Tables of games: the state of a batch of games, and the kernels that play them by policy and score them.

A table has S slots, each with one game or none. :mod:`engine.selfplay.games` is the loop over it; a game whose player
searches also has a row of :mod:`engine.selfplay.searches`. All random choices use the game's own random state, seeded
by the seed and the game's number, so a game does not depend on the other games of its table. Threads: one at a time.
"""

from typing import Annotated, NamedTuple

import numpy as np

from engine.features.encoder import encode
from engine.features.symmetry import SYMMETRIES, apply_symmetry
from engine.go.board import META_SIZE, Board
from engine.go.geometry import BLACK, EMPTY, PASS, point_of
from engine.go.position import (
    META_N_MOVES,
    META_PASSES,
    META_TO_MOVE,
    Position,
    is_legal_move,
    new_position,
    play_move,
)
from engine.go.random import draw, mix, next_below, next_word
from engine.go.scoring import area_owner, final_score_black
from engine.go.seki import count_without_dead
from engine.records.games import COUNTED, LIMIT, RESIGNED
from engine.records.replay import replay
from engine.rollout.ownership import average_ownership
from engine.rollout.run import is_sensible
from engine.search.level_choice import FULL_STRENGTH, Level
from engine.system.arrays import allocate
from engine.system.jit import inlined_kernel, kernel

FREE = -1
"""Game number of a slot without a game"""
NEVER = 1 << 30
"""A ply that no game reaches"""
ROLLOUTS, CERTAINTY = 128, 0.35
"""Number of rollouts that find dead stones, and mean ownership for the opponent from which a chain counts as dead.
Uniformly random rollouts play into a seki and lose it; at this certainty chains in seki count as alive."""


class GameConfig(NamedTuple):
    """How a player chooses moves, and when games end; the same for all games of a table."""

    limit: int
    """number of moves after which a game ends and is scored as it stands"""
    seed: int = 1
    sensible_moves: int = 0
    """number of a game's first moves that must be sensible (legal, no suicide, no filling of own eyes), with a pass
    only if there is none; NEVER = all"""
    resign_below: float = -2.0
    """resignation threshold: values for the side to move below it are hopeless"""
    resign_count: int = 3
    """consecutive hopeless moves of a colour after which it resigns"""
    are_dead_removed: bool = False
    """final scoring removes stones that rollouts find dead; False = all stones are alive"""
    free_moves: int = 0
    """without search: number of a game's first moves to which ``least_share`` does not apply"""
    least_share: float = 0.0
    """without search: minimum probability of a move, as a share of the most probable move's"""
    visits: int = 0
    """visits of a full search; 0 = no search, moves are drawn from the network's policy. The following fields are for
    searches, see :class:`engine.selfplay.search_options.SearchPlayOptions`."""
    fast_visits: int = 0
    full_share: float = 1.0
    decided_share: float = 1.0
    noise: float = 0.0
    concentration: float = 1.0
    target_temperature: float = 1.0
    forced: float = 0.0
    temperature: float = 1.0
    final_temperature: float = 1.0
    half_life: float = 1.0
    keep_tree: bool = False
    candidates: int = 0
    sigma_scale: float = 1.0
    draws: int = 0
    """number of positions drawn from the tree of each full search"""
    level: Level = FULL_STRENGTH
    """with searches: how moves are drawn, in place of the temperatures; its visits are those of ``fast_visits``"""


class Boards(NamedTuple):
    """S positions of one board size. Row s of each array except ``layout`` is a field of :class:`Position` number s."""

    layout: np.ndarray
    """int64[F, 2]: start and end, in bytes of a board's buffer, of each field of :class:`Board` after ``buffer``"""
    buffer: np.ndarray
    """uint64[S, words]: the memory of the S boards"""
    rules: np.ndarray
    meta: np.ndarray
    past: np.ndarray
    moves: np.ndarray
    colors: np.ndarray
    hashes: np.ndarray
    seen: np.ndarray


class Table(NamedTuple):
    """S slots for games of one board size, with room for CAP moves per game; a colour resigns by its last R values."""

    boards: Boards
    numbers: Annotated[np.ndarray, "int64[]"]
    """numbers of the games; FREE = no game"""
    states: Annotated[np.ndarray, "uint64[4]"]
    """state of the game's random numbers"""
    players: Annotated[np.ndarray, "int64[2, 2]"]
    """player (0 or 1) before and after the random move, by colour (Black first)"""
    switches: Annotated[np.ndarray, "int64[]"]
    """the ply of a uniformly random legal move, after which the other players move; NEVER = none"""
    temperatures: Annotated[np.ndarray, "float64[]"]
    """policy temperature of a player without search, who draws moves"""
    may_resign: Annotated[np.ndarray, "int64[]"]
    """1 = hopeless games are resigned, 0 = they are played out"""
    request_row: Annotated[np.ndarray, "int64[]"]
    """row of the game in its player's pending request; -1 = none"""
    endings: Annotated[np.ndarray, "uint8[]"]
    """COUNTED, RESIGNED or LIMIT; 0 = the game is not over"""
    resigner: Annotated[np.ndarray, "int64[]"]
    """the colour whose values fell below the threshold first, even if the game is played out; 0 = neither"""
    recent: Annotated[np.ndarray, "float32[2, R]"]
    """latest R values by colour (Black first), each for that colour, newest first; 1 = none yet"""
    lowest: Annotated[np.ndarray, "float32[2]"]
    """by colour (Black first), minimum over the game of the maximum of R consecutive values: the colour would resign at
    any higher threshold"""
    symmetries: Annotated[np.ndarray, "uint8[CAP]"]
    """symmetry of the network's input before each move; 0 in searches and openings"""


def new_boards(size: int, count: int, capacity: int) -> Boards:
    """Empty positions, Black to move, each with room for ``capacity`` moves."""
    one = new_position(size, capacity)
    start = one.board.buffer.ctypes.data
    fields = one.board[1:]
    layout = [(field.ctypes.data - start, field.ctypes.data - start + field.nbytes) for field in fields]
    rows = [np.repeat(getattr(one, name)[None], count, axis=0) for name in Position._fields[1:]]
    return Boards(np.array(layout, np.int64), np.repeat(one.board.buffer[None], count, axis=0), *rows)


def new_table(size: int, slots: int, capacity: int, resign_count: int) -> Table:
    """A table without games, with room for ``capacity`` moves a game."""
    table = allocate(Table, slots, boards=new_boards(size, slots, capacity), CAP=capacity, R=resign_count)
    table.numbers[:], table.request_row[:] = FREE, -1
    return table


@kernel
def position_of(boards, row):
    """The position in a row of ``boards``, as views of its arrays."""
    buffer, at = boards.buffer[row], boards.layout
    raw = buffer.view(np.uint8)
    board = Board(
        buffer,
        raw[at[0, 0] : at[0, 1]].view(np.uint64),
        raw[at[1, 0] : at[1, 1]].view(np.int64),
        raw[at[2, 0] : at[2, 1]].view(np.int32),
        raw[at[3, 0] : at[3, 1]].view(np.int16),
        raw[at[4, 0] : at[4, 1]].view(np.int16),
        raw[at[5, 0] : at[5, 1]].view(np.int16),
        raw[at[6, 0] : at[6, 1]].view(np.int16),
        raw[at[7, 0] : at[7, 1]].view(np.int16),
        raw[at[8, 0] : at[8, 1]].view(np.int16),
        raw[at[9, 0] : at[9, 1]],
    )
    return Position(
        board,
        boards.rules[row],
        boards.meta[row],
        boards.past[row],
        boards.moves[row],
        boards.colors[row],
        boards.hashes[row],
        boards.seen[row],
    )


@kernel
def fill_state(state, seed, stream):
    """Seed a random state, uint64[4], in place, as :func:`engine.go.random.seed_state` does."""
    word = mix(np.uint64(seed)) + np.uint64(stream)
    for i in range(4):
        word = mix(word)
        state[i] = mix(word)


@kernel
def begin_games(table, fresh, slots, seed, rules, record, rows, plies):
    """Begin games in some slots after the first moves of recorded games; ``table.numbers`` has the new games' numbers.

    Args:
        fresh: :class:`Boards` of one empty position.
        slots: int64[K].
        rules: int64[K, RULE_FIELDS].
        record: :class:`engine.records.replay.Recorded`, of games of the table's board size.
        rows, plies: int64[K]: indices of the recorded games, and numbers of their moves to replay.
    """
    for k in range(len(slots)):
        slot = slots[k]
        replay(position_of(table.boards, slot), position_of(fresh, 0), record, rows[k], plies[k], rules[k])
        fill_state(table.states[slot], seed, table.numbers[slot])


@kernel
def skip_moves(table, slots, plies):
    """Skip the random numbers of each game's first ``plies`` moves (int64[K]), as if these moves had been drawn."""
    for k in range(len(slots)):
        # One number for the symmetry, one for the move.
        for _ in range(2 * plies[k]):
            next_word(table.states[slots[k]])


@inlined_kernel
def is_ready(table, slot):
    """Whether a slot has a game that is neither over nor waiting for a network."""
    return table.numbers[slot] != FREE and table.request_row[slot] < 0 and table.endings[slot] == 0


@inlined_kernel
def player_of(table, slot):
    """The player to move in a game."""
    meta = table.boards.meta[slot]
    has_switched = np.int64(meta[META_N_MOVES] > table.switches[slot])
    return table.players[slot, has_switched, meta[META_TO_MOVE] - BLACK]


@kernel
def how_it_ended(position, limit):
    """COUNTED after two passes, LIMIT at the move limit, 0 if the game is not over."""
    if position.meta[META_PASSES] >= 2:
        return COUNTED
    return LIMIT if position.meta[META_N_MOVES] >= limit else 0


@kernel
def is_resigned(table, config, slot, value):
    """Record a value for the side to move; returns whether this side resigns by its latest values."""
    color = table.boards.meta[slot, META_TO_MOVE]
    side = color - BLACK
    recent, highest = table.recent[slot, side], np.float32(value)
    for i in range(len(recent) - 1, 0, -1):
        recent[i] = recent[i - 1]
        highest = max(highest, recent[i])
    recent[0] = value
    table.lowest[slot, side] = min(table.lowest[slot, side], highest)
    if highest >= config.resign_below:
        return False
    if table.resigner[slot] == 0:
        table.resigner[slot] = color
    return table.may_resign[slot] == 1


@kernel
def _random_legal(position, color, state):
    """A uniformly drawn legal point; PASS if there is none. Source: AlphaGo, Methods, which draws points until one is
    legal."""
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
def show_positions(table, player, config, filled, scratch, planes, globals_):
    """Encode the position of every game in which a player without search is to move, under a random symmetry.

    Before that, the random move of games that have reached its ply is played.

    Args:
        player: 0 or 1.
        filled: number of rows of the request that are filled already.
        scratch: the encoder's working memory.
        planes, globals_: inputs of the request, float32[R, C, N, N] and float32[R, G], written from row ``filled`` on.
    Returns:
        int: number of rows of the request that are filled now.
    """
    for slot in range(len(table.numbers)):
        if not is_ready(table, slot):
            continue
        position, state = position_of(table.boards, slot), table.states[slot]
        if position.meta[META_N_MOVES] == table.switches[slot]:
            color = position.meta[META_TO_MOVE]
            play_move(position, _random_legal(position, color, state), color)
            table.endings[slot] = how_it_ended(position, config.limit)
        if table.endings[slot] == 0 and player_of(table, slot) == player:
            shown = next_below(state, SYMMETRIES)
            table.symmetries[slot, position.meta[META_N_MOVES]] = shown
            encode(position, shown, scratch, planes[filled], globals_[filled])
            table.request_row[slot] = filled
            filled += 1
    return filled


@kernel
def _weigh(position, logits, symmetry, temperature, config, weights):
    """Unnormalised probabilities of drawing each move.

    Args:
        logits: float32[N*N+1], of the input under ``symmetry``.
        weights: float64[N*N+1] in policy order, overwritten.
    Returns:
        float64: the sum of ``weights``; 0 = no sensible move is left.
    """
    area, color = len(weights) - 1, position.meta[META_TO_MOVE]
    size = position.board.meta[META_SIZE]
    is_bound = position.meta[META_N_MOVES] < config.sensible_moves
    largest = -np.inf
    for index in range(area):
        point = point_of(index, size)
        weights[index] = -np.inf
        is_open = not is_bound or position.board.color[point] == EMPTY
        if is_bound and is_open:
            is_open = is_sensible(position.board, point, color)
        if is_open and is_legal_move(position, point, color):
            weights[index] = logits[apply_symmetry(index, size, symmetry)]
            largest = max(largest, weights[index])
    weights[area] = -np.inf if is_bound else logits[area]
    largest = max(largest, weights[area])
    if largest == -np.inf:
        weights[:] = 0.0
        return 0.0
    is_free = position.meta[META_N_MOVES] < config.free_moves or config.least_share <= 0.0
    least = -np.inf if is_free else largest + np.log(config.least_share)
    total = 0.0
    for index in range(area + 1):
        logit = weights[index]
        weights[index] = 0.0 if logit < least or logit == -np.inf else np.exp((logit - largest) / temperature)
        total += weights[index]
    return total


@kernel
def probabilities(table, config, slots, logits, out):
    """Write the policy of games that have been evaluated into ``out``: float64[B, N*N+1] in policy order; 0 = illegal.

    Args:
        config: one that excludes no legal move.
        slots: int64[B]: the games' slots.
        logits: float32[R, N*N+1], outputs of the request: pass last, under the symmetry of each game's input.
    """
    for b in range(len(slots)):
        position = position_of(table.boards, slots[b])
        symmetry = table.symmetries[slots[b], position.meta[META_N_MOVES]]
        total = _weigh(position, logits[table.request_row[slots[b]]], symmetry, 1.0, config, out[b])
        for index in range(len(out[b])):
            out[b, index] /= total


@kernel
def play_policy(table, player, config, policy, value, weights):
    """Draw a move from the policy in each game that a player's network has evaluated, and play it, or resign.

    Args:
        policy: float32[R, N*N+1]: logits under the symmetry of each game's input, pass last.
        value: float32[R], for the side to move.
        weights: float64[N*N+1], overwritten.
    """
    for slot in range(len(table.numbers)):
        row = table.request_row[slot]
        if row < 0 or player_of(table, slot) != player:
            continue
        table.request_row[slot] = -1
        position = position_of(table.boards, slot)
        if is_resigned(table, config, slot, value[row]):
            table.endings[slot] = RESIGNED
            continue
        shown = table.symmetries[slot, position.meta[META_N_MOVES]]
        _weigh(position, policy[row], shown, table.temperatures[slot], config, weights)
        drawn = draw(weights, table.states[slot])
        point = PASS if drawn < 0 else point_of(drawn, position.board.meta[META_SIZE])
        play_move(position, point, position.meta[META_TO_MOVE])
        table.endings[slot] = how_it_ended(position, config.limit)


@kernel
def count_games(table, slots, memory, ownership, leads, owners):
    """Score finished games: Black's lead and the owner of each point.

    Policies that may pass at any time end games with dead stones on the board.

    Args:
        memory: :class:`engine.go.seki.CountMemory`, for games of the table's capacity: rollouts with the games' random
            states find dead stones, and leads are counted without them; None = all stones are alive.
        ownership: float32[N*N], working memory.
        leads: float64[K], overwritten; NaN = resigned, without ownership.
        owners: int8[K, N*N], overwritten, of the board as it stands: 1 = Black's, -1 = White's, 0 = neither.
    """
    for k in range(len(slots)):
        leads[k] = np.nan
        owners[k] = 0
        if table.endings[slots[k]] == RESIGNED:
            continue
        position = position_of(table.boards, slots[k])
        area_owner(position.board, owners[k])
        if memory is None:
            leads[k] = final_score_black(position)
        else:
            state = table.states[slots[k]]
            average_ownership(position.board, memory.cleared.board, None, ROLLOUTS, state, ownership)
            leads[k] = count_without_dead(position, ownership, CERTAINTY, memory)
