"""Compiling ahead: every kernel that play with a network calls, in pieces that several processes share.

A piece uses some kernels once, on a small board, with arguments of the types that play hands over; how large the board
is makes no difference to a kernel. Each process takes the pieces that no other one is at, in the order of ``PIECES``,
which is that of play; kernels that two pieces have in common are compiled once all the same
(:mod:`engine.system.jit`). Torch is not needed here.

``python -m engine.play.ahead ENCODER`` is a helper, which :func:`start_helpers` starts: it compiles what is left and
ends.
"""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from filelock import FileLock, Timeout

from engine.config import SearchOptions
from engine.config.declaration import core_count
from engine.system import jit

MAX_HELPERS = 3
"""More find no piece to work on."""
SIZE = 9
POLL_S = 0.2


def _game(encoder: str) -> None:
    """Positions: moves, legality, undo."""
    from engine.go.game import Game
    from engine.go.geometry import BLACK, WHITE, point_at
    from engine.go.position import META_TO_MOVE, legal_moves, play_move

    game = Game(SIZE)
    for color, row in ((BLACK, 2), (WHITE, 4), (BLACK, 6)):
        game.is_legal(color, int(point_at(row, 3, SIZE)))
        game.play(color, int(point_at(row, 3, SIZE)))
    game.undo()
    game.setup_stones([int(point_at(4, 4, SIZE))], [], WHITE)
    legal_moves(game.position, game.position.meta[META_TO_MOVE], np.zeros(SIZE * SIZE + 1, np.uint8))
    play_move(game.position, int(point_at(6, 6, SIZE)), game.position.meta[META_TO_MOVE])


def _encoder(encoder: str) -> None:
    """What a network is shown when it is loaded."""
    from engine.features.encoder import sample_inputs

    sample_inputs(encoder, SIZE)


def _tree(encoder: str) -> None:
    """The search tree: select, expand, back up, report, move on."""
    from engine.features.symmetry import symmetry_table
    from engine.go.board import new_board
    from engine.inference.cache import new_cache
    from engine.search.backup import complete, release
    from engine.search.leaves import new_batch, rank_moves, take_results
    from engine.search.report import new_root_table, read_root
    from engine.search.selection import select
    from engine.search.stoppers import RIVAL_SHARE
    from engine.search.tree import META_ROOT, advance_root, edge_visits, follow, new_tree
    from engine.search.tuning import new_tuning
    from engine.search.values import leaders, root_lead, root_value, value_margin, weigh_paths

    tree, batch = new_tree(SIZE), new_batch(SIZE, 1)
    tuning = new_tuning(SearchOptions(c_puct=1.0, virtual_loss=0.5), None, None)._replace(is_plain=True)
    move_filter = np.ones((1, len(new_board(SIZE).color)), np.uint8)
    leaders(tree)
    value_margin(tree, tuning.rollout_weight, RIVAL_SHARE)
    count = select(tree, batch, 1, tuning, move_filter, False)
    release(tree, batch, count)
    count = select(tree, batch, 1, tuning, move_filter, False)
    moves = SIZE * SIZE + 1
    batch.n_listed[0], batch.listed[0] = moves, np.arange(moves)
    policy, values = np.zeros((1, moves), np.float32), np.zeros(1, np.float32)
    take_results(batch, count, symmetry_table(SIZE), policy, values, values, True, True, new_cache(1 << 20, moves))
    rank_moves(batch, count, 1.0)
    complete(tree, batch, count, tuning.rollout_weight, True, False)
    read_root(tree, tuning, move_filter[0], 1, new_root_table(SIZE))
    root_value(tree, tuning)
    root_lead(tree)
    complete(tree, batch, select(tree, batch, 1, tuning, move_filter, False), tuning.rollout_weight, True, False)
    weigh_paths(tree, batch, 1, 0.5)
    edge = follow(tree, int(tree.meta[META_ROOT]), int(batch.move[0, 0]))
    edge_visits(tree, edge)
    advance_root(tree, edge)


def _leaves(encoder: str) -> None:
    """A leaf without its evaluation: replayed, its moves listed, a finished game counted."""
    from engine.go.position import new_position
    from engine.go.scoring import final_score_black
    from engine.search.leaves import finish_leaf, list_moves, new_batch, replay

    root, position, batch = new_position(SIZE), new_position(SIZE), new_batch(SIZE, 1)
    replay(root, position, batch, 0)
    list_moves(position, np.zeros(SIZE * SIZE + 1, np.uint16))
    finish_leaf(batch, np.int64(0), float(final_score_black(position)))


def _network_leaves(encoder: str) -> None:
    """Leaves encoded for the network."""
    from engine.features.encoder import ENCODERS
    from engine.go.position import new_position
    from engine.inference.cache import new_cache
    from engine.search.leaves import new_batch, prepare_for_network

    known, batch = ENCODERS[encoder], new_batch(SIZE, 1)
    prepare_for_network(
        new_position(SIZE), new_position(SIZE), batch, 1, new_cache(1 << 20, SIZE * SIZE + 1), known.new_scratch(SIZE),
        np.uint64(1), True, np.zeros((1, known.planes, SIZE, SIZE), np.float32),
        np.zeros((1, known.globals), np.float32),
    )  # fmt: skip


def _owners(encoder: str) -> None:
    """Who owns what, as the whole tree sees it."""
    from engine.features.symmetry import symmetry_table
    from engine.go.position import META_TO_MOVE, new_position
    from engine.inference.cache import new_owner_caches
    from engine.search.leaves import FINISHED, new_batch
    from engine.search.owners import OwnerRows, finished_owners, keep_owners, take_owners
    from engine.search.tree import new_tree

    tree, batch, rows = new_tree(SIZE), new_batch(SIZE, 1), OwnerRows(SIZE * SIZE)
    owners, answers = np.zeros((1, SIZE * SIZE), np.float32), np.zeros((1, SIZE * SIZE), np.float32)
    cache, root = new_owner_caches(1 << 20, SIZE * SIZE + 1).owners, new_position(SIZE)
    take_owners(batch, 1, root.meta[META_TO_MOVE], symmetry_table(SIZE), answers, cache, owners)
    batch.kind[0] = FINISHED
    finished_owners(root, new_position(SIZE), batch, 1, owners)
    rows.grow(len(tree.state))
    keep_owners(batch, 1, owners, rows.rows)
    rows.add_up(tree)


def _rollouts(encoder: str) -> None:
    """Who owns what, by rollouts of the learnt policy."""
    from engine.go.board import new_board
    from engine.rollout.model import load_rollout
    from engine.rollout.ownership import rollout_ownership
    from weights import find_patterns

    rollout_ownership(new_board(SIZE), load_rollout(find_patterns("rollout")), 1, 1)


def _rollout_search(encoder: str) -> None:
    """A search without the network, which chooses moves where that does not answer in time."""
    from engine.go.position import new_position
    from engine.go.random import seed_state
    from engine.rollout.last_good_replies import new_last_good_replies
    from engine.rollout.model import load_both
    from engine.rollout.policy import new_weights
    from engine.rollout.softmax import new_candidates
    from engine.search.leaves import new_batch, prepare_by_patterns, roll_out_by_policy
    from weights import find_patterns

    patterns = load_both(find_patterns("rollout"), find_patterns("tree"))
    moves = new_candidates(SIZE)
    leaf = (new_position(SIZE), new_position(SIZE), new_batch(SIZE, 1), 1)
    prepare_by_patterns(*leaf, moves, patterns.numbers, patterns.theta)
    policy = (new_weights(SIZE), patterns.tables, new_last_good_replies(), SearchOptions().reply_probability)
    roll_out_by_policy(*leaf, seed_state(1, 0), True, *policy, moves.cell)


def _endings(encoder: str) -> None:
    """Whether a game is finished, and its score."""
    from engine.go.geometry import BLACK, WHITE, point_at
    from engine.go.position import new_position, play_move
    from engine.play.life_and_death import chains_with, estimate_end
    from engine.rollout.model import load_rollout
    from weights import find_patterns

    position = new_position(SIZE)
    for color, column in ((BLACK, 2), (WHITE, 3)):
        for row in range(SIZE):
            play_move(position, int(point_at(row, column, SIZE)), color)
    chains_with("seki", position, estimate_end(position, None, load_rollout(find_patterns("rollout"))).dead)


def _network(encoder: str) -> None:
    """Networks on processors without a matrix unit; others, and GPUs, compute them otherwise."""
    from engine.nets.compute import program_kernels
    from engine.nets.compute.lanes import FEATURES
    from engine.nets.compute.winograd_tiles import padded, tiles_a_line

    if "+amx-tile" in FEATURES.split(","):
        return
    padded(1), tiles_a_line(1, 3)
    numbers, nothing = np.zeros(1, np.float32), np.zeros(0, program_kernels.LINE)
    inputs = np.zeros((0, 1, 1), np.float32), np.zeros((0, 1), np.float32)
    program_kernels.run(nothing, numbers, np.zeros(2, np.int64), *inputs, 1, 3, 1, numbers, numbers, numbers, numbers)


PIECES: dict[str, Callable[[str], None]] = {
    "game": _game,
    "tree": _tree,
    "encoder": _encoder,
    "leaves": _leaves,
    "network leaves": _network_leaves,
    "network": _network,
    "owners": _owners,
    "rollouts": _rollouts,
    "endings": _endings,
    "rollout search": _rollout_search,
}
FIRST = ("game", "encoder", "tree", "leaves", "network leaves", "network")
"""What the first move waits for"""
LATER = tuple(piece for piece in PIECES if piece not in FIRST)
OF_ENCODER = ("encoder", "network leaves")


def _named(piece: str, encoder: str) -> str:
    """What the stamp of a piece is called."""
    return f"{piece} {encoder}" if piece in OF_ENCODER else piece


def missing(encoder: str, pieces: tuple[str, ...] = tuple(PIECES)) -> list[str]:
    """Pieces that are not compiled yet; none where nothing can be kept on disk."""
    if jit.FOLDER is None:
        return []
    return [piece for piece in pieces if not jit.is_stamped(_named(piece, encoder))]


def compile_pieces(encoder: str, pieces: tuple[str, ...] = tuple(PIECES)) -> None:
    """Compile what no other process compiles at this moment, until there is nothing left of these pieces."""
    while left := missing(encoder, pieces):
        for piece in left:
            with _claimed(piece, encoder) as mine:
                if mine:
                    PIECES[piece](encoder)
                    jit.stamp(_named(piece, encoder))
                    break
        else:
            # Others have them all; the first to end may still be followed by one that fails.
            with contextlib.suppress(Timeout), _lock_of(left[0], encoder).acquire(timeout=1.0):
                pass


def _lock_of(piece: str, encoder: str) -> FileLock:
    """What a process holds while it compiles a piece."""
    stamp = jit.stamp_of(_named(piece, encoder))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    return FileLock(stamp.with_suffix(".lock"))


@contextlib.contextmanager
def _claimed(piece: str, encoder: str) -> Iterator[bool]:
    """Whether a piece is this process's for the block."""
    try:
        with _lock_of(piece, encoder).acquire(blocking=False):
            yield not jit.is_stamped(_named(piece, encoder))
    except Timeout:
        yield False


def start_helpers(encoder: str) -> list["subprocess.Popen[bytes]"]:
    """Start processes that compile beside this one, where there are cores for them; they end by themselves."""
    # -P: not what lies in the folder that a client has started us in.
    command = [sys.executable, "-P", "-m", "engine.play.ahead", encoder, str(os.getpid())]
    found = [str(jit.ENGINE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, found))}
    flags, quiet = getattr(subprocess, "CREATE_NO_WINDOW", 0), subprocess.DEVNULL
    return [
        subprocess.Popen(command, env=environment, creationflags=flags, stdin=quiet, stdout=quiet, stderr=quiet)
        for _ in range(min(core_count() - 1, MAX_HELPERS))
    ]


def load_later(encoder: str, helpers: Sequence["subprocess.Popen[bytes]"] = ()) -> None:
    """Load into this process what comes after the first move, each piece once it is compiled; compile what is left.

    A thread that waited for another process within a kernel would keep this process from loading any other.

    Args:
        helpers: waited for in the end.
    """
    for piece in LATER:
        while missing(encoder, (piece,)) and _is_claimed(piece, encoder):
            time.sleep(POLL_S)
        PIECES[piece](encoder)
        jit.stamp(_named(piece, encoder))
    for helper in helpers:
        helper.wait()


def _is_claimed(piece: str, encoder: str) -> bool:
    """Whether another process is compiling a piece."""
    with _claimed(piece, encoder) as mine:
        return not mine


def _end_with(parent: int) -> None:
    """End this process when the one that has started it has ended; what is compiled by then stays. Not on Windows."""
    while os.getppid() == parent or sys.platform == "win32":
        time.sleep(POLL_S)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=[int(sys.argv[2])], daemon=True).start()
    compile_pieces(sys.argv[1])
