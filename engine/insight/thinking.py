"""How a search thinks, for pictures: the six panels of AlphaGo's Figure 5, the tree's main lines, and a rollout.

All win rates are for the side to move at the root, except in the tree, where Q is for the player of each move. Results
are made of JSON's types; points are policy indices, -1 = pass.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 2016, Figure 5: "How
AlphaGo (black, to play) selected its move in an informal game against Fan Hui".
"""

import math
import time
from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from engine.config import SearchOptions
from engine.go.board import META_SIZE
from engine.go.geometry import EMPTY, PASS, index_of, on_board_points
from engine.go.points import color_letter, color_word, other
from engine.go.position import META_N_MOVES, META_TO_MOVE, Position, with_capacity
from engine.go.random import seed_state
from engine.go.scoring import result_text
from engine.inference.server import NetworkFailed
from engine.play.factory import tables_of
from engine.rollout.last_good_replies import new_last_good_replies
from engine.rollout.policy import new_weights, play_out_by_policy
from engine.rollout.run import play_out
from engine.search.leaves import begin_rollout, end_rollout
from engine.search.search import Search
from engine.search.state import Setup
from engine.search.successors import Successors
from engine.search.tree import new_tree
from engine.search.tree_top import TreeTop, new_tree_top, read_top

PARTS = ("values", "qValue", "qRollout", "policy", "visits", "line", "tree")
"""The parts of :meth:`Thinking.now`: panels (a) to (f) of the figure, and the tree"""
INTERVAL_S = 0.25
"""Minimum time between two results: what people can follow, at a cost that a search does not notice"""
POLL_S = 0.005
"""Interval between checks whether outputs have come"""
VALUES_SHARE = 0.25
"""Share of the network's time for the values after every move, until all are known"""
BEST_SHARE = 0.01
"""Minimum share of the visits of a move that is marked as the best by its win rate in the search"""
ROLLOUTS_WANTED = "no rollouts in this search: --rollout-weight 0.5 adds them"
NO_NETWORK = "no network plays this board: values come from rollouts alone"


class Thinking:
    """The thoughts of a search about its position. Threads: one, at any time but during ``Search.set_position``."""

    def __init__(self, search: Search, parts: Collection[str] = PARTS) -> None:
        """Make it for the search's present position and later ones.

        Args:
            parts: of PARTS.
        Raises:
            ValueError: an unknown part; one line.
        """
        if unknown := sorted(set(parts) - set(PARTS)):
            raise ValueError(f"unknown part {unknown[0][:40]!r}, expected {', '.join(PARTS)}")
        self._search, self._parts = search, tuple(part for part in PARTS if part in parts)
        self._root: Position | None = None
        self._successors: Successors | None = None
        self._failure = ""
        self._last_s = 0.0
        # The kernel is compiled here, where no search waits for the tree's lock.
        read_top(new_tree(2), 0.0, new_tree_top(2))

    def now(self) -> dict[str, Any] | None:
        """What the search has found so far; None within INTERVAL_S of the last result, and before the root is expanded.

        Each call also continues the evaluation of the positions after every move, without waiting for it.

        Returns:
            ``toMove``: black or white. For each panel ``points``: pairs of index and a win rate, probability or share,
            0 to 1; ``text``: what it was computed by; ``missing``: why there are no points, if there are none.
            ``line``: ``moves``, the principal variation. ``tree``: moves with ``move``, ``color``, visits ``N``, prior
            ``P``, win rate ``Q`` for the player of the move, and ``children``. ``best``: for each panel the index with
            the largest number; in the search's win rates among moves with BEST_SHARE of the visits.
        """
        now_s = time.perf_counter()
        elapsed_s = now_s - self._last_s
        if elapsed_s < INTERVAL_S:
            return None
        top, moves, rows = self._search.top()
        if moves == 0:
            return None
        self._last_s = now_s
        self._set_root()
        if "values" in self._parts:
            self._evaluate(top, moves, min(elapsed_s, 2 * INTERVAL_S))
        return self._found(top, moves, rows)

    def whole(self) -> dict[str, Any] | None:
        """The result of :meth:`now` with the value after every move, which it waits for; to be called after a search.

        None before the root is expanded.
        """
        top, moves, rows = self._search.top()
        if moves == 0:
            return None
        self._set_root()
        if "values" in self._parts:
            while self._evaluate(top, moves, math.inf):
                time.sleep(POLL_S)
        return self._found(top, moves, rows)

    def _set_root(self) -> None:
        """Begin anew if the search has another position."""
        root = self._search.root
        if root is not self._root:
            self.close()
            self._root, self._successors, self._failure = root, None, ""

    def _found(self, top: TreeTop, moves: int, rows: int) -> dict[str, Any]:
        """The result of :meth:`now` from a snapshot of the tree."""
        root = self._search.root
        size, to_move = int(root.board.meta[META_SIZE]), int(root.meta[META_TO_MOVE])
        found: dict[str, Any] = {"toMove": color_word(to_move)}
        if "values" in self._parts:
            found["values"] = self._values(size)
        indices = [_index(point, size) for point in top.point[:moves].tolist()]
        panels = _panels(self._search.setup, top, moves, indices)
        found |= {name: panel for name, panel in panels.items() if name in self._parts}
        if "line" in self._parts:
            points = top.main[: top.main_length[0]].tolist()
            found["line"] = _panel("", []) | {"moves": [_index(point, size) for point in points]}
        # A lucky rollout alone makes no best move.
        shares = dict(panels["visits"]["points"])
        often = {index for index, share in shares.items() if share >= BEST_SHARE}
        among = {"qValue": often, "qRollout": often}
        bests = {name: _best(found[name], among.get(name)) for name in self._parts if name in found}
        found["best"] = {name: best for name, best in bests.items() if best is not None}
        if "tree" in self._parts:
            found["tree"] = _lines(top, rows, size, to_move)
        return found

    def close(self) -> None:
        """Cancel the outstanding evaluation, if there is one."""
        if self._successors is not None:
            self._successors.cancel()

    def _evaluate(self, top: TreeTop, moves: int, elapsed_s: float) -> bool:
        """Continue the evaluation of the positions after every move, likeliest moves first; False = there is no more.

        Args:
            elapsed_s: time of whose VALUES_SHARE the network may spend; infinite = all that it needs.
        """
        network = self._search.setup.network
        if self._failure or network is None:
            return False
        if self._successors is None:
            order = np.argsort(-top.prior[:moves], kind="stable")
            self._successors = self._search.successors(top.point[order].tolist())
        if self._successors is not None:
            server = network.server
            each_s = server.pace.seconds_per_position / max(1, server.evaluators)
            share_s = VALUES_SHARE * elapsed_s
            most = moves if share_s == math.inf else int(share_s / each_s) if each_s > 0.0 else 1
            try:
                return self._successors.step(max(1, most))
            except NetworkFailed as error:
                self._failure = str(error)
        return False

    def _values(self, size: int) -> dict[str, Any]:
        """Panel (a): the network's values after every move."""
        if self._failure:
            return _panel("", [], self._failure)
        name, missing = _value_network(self._search.setup)
        if missing or self._successors is None:
            return _panel(name, [], missing)
        values = self._successors.values
        known = np.flatnonzero(~np.isnan(values)).tolist()
        points = [(-1 if index == size**2 else index, _rate(float(values[index]))) for index in known]
        return _panel(name, points)


def _panels(setup: Setup, top: TreeTop, moves: int, indices: list[int]) -> dict[str, dict[str, Any]]:
    """Panels (b) to (e) from the statistics of the root's moves."""
    name, missing = _value_network(setup)
    weight = setup.options.rollout_weight if setup.network is not None else 1.0
    by_policy = "learnt patterns" if setup.patterns is not None else "uniformly random moves"
    visits = np.maximum(top.N_v[:moves], top.N_r[:moves])
    shares = visits / max(1, int(visits.sum()))
    has_policy = setup.network is not None and setup.network.has_policy
    policy = setup.network.server.spec.name if has_policy and setup.network is not None else by_policy
    priors = [round(prior, 5) for prior in top.prior[:moves].tolist()]
    of_network = [] if missing else _means(top.N_v[:moves], top.W_v[:moves], indices)
    of_rollouts = _means(top.N_r[:moves], top.W_r[:moves], indices) if setup.uses_rollouts else []
    seen = [(index, round(share, 5)) for index, share in zip(indices, shares.tolist(), strict=True) if share > 0.0]
    return {
        "qValue": _panel(name, of_network, missing),
        "qRollout": _panel(f"{by_policy}, weight {weight:g} in the search", of_rollouts,
                           "" if setup.uses_rollouts else ROLLOUTS_WANTED),
        "policy": _panel(policy, list(zip(indices, priors, strict=True))),
        "visits": _panel(f"{int(visits.sum())} visits", seen),
    }  # fmt: skip


def _value_network(setup: Setup) -> tuple[str, str]:
    """The name of the network that gives values, and why there is none, if there is none."""
    if setup.network is None:
        return "", NO_NETWORK
    spec = setup.network.server.spec
    return spec.name, "" if "value" in spec.heads else f"network {spec.name} has no value head"


def _panel(text: str, points: Iterable[tuple[int, float]], missing: str = "") -> dict[str, Any]:
    """One panel for JSON."""
    panel: dict[str, Any] = {"text": text, "points": [list(point) for point in points]}
    return panel | {"text": "", "missing": missing} if missing else panel


def _means(counts: np.ndarray, sums: np.ndarray, indices: list[int]) -> list[tuple[int, float]]:
    """Index and win rate of each move that has results."""
    rows = zip(indices, counts.tolist(), sums.tolist(), strict=True)
    return [(index, _rate(total / count)) for index, count, total in rows if count]


def _rate(value: float) -> float:
    """The win rate, 0 to 1, of a value from -1 to 1."""
    return round((1.0 + value) / 2.0, 4)


def _index(point: int, size: int) -> int:
    """Policy index of a point, -1 for PASS."""
    return -1 if point == PASS else int(index_of(point, size))


def _lines(top: TreeTop, rows: int, size: int, to_move: int) -> list[dict[str, Any]]:
    """The tree of the most visited lines: the root's moves, each with its children, by visits."""
    made: list[dict[str, Any]] = [{"children": []}]
    for row in range(1, rows):
        color = to_move if top.line_depth[row] % 2 else other(to_move)
        made.append(
            {
                "move": _index(int(top.line_point[row]), size),
                "color": color_letter(color).lower(),
                "N": int(top.line_visits[row]),
                "P": round(float(top.line_prior[row]), 5),
                "Q": _rate(float(top.line_value[row])),
                "children": [],
            }
        )
        made[int(top.line_parent[row])]["children"].append(made[row])
    lines: list[dict[str, Any]] = made[0]["children"]
    return lines


def _best(panel: dict[str, Any], among: Collection[int] | None) -> int | None:
    """The index with the largest number of a panel, or the first move of the line; None if there is none.

    Args:
        among: the indices to choose from; None = all.
    """
    if "moves" in panel:
        return int(panel["moves"][0]) if panel["moves"] else None
    points = [pair for pair in panel["points"] if among is None or pair[0] in among]
    return int(max(points, key=lambda pair: pair[1])[0]) if points else None


def rollout(position: Position, options: SearchOptions, seed: int) -> dict[str, Any]:
    """Play one rollout from a position, as a search with these options does.

    Args:
        position: not changed.
        options: name the rollout policy.
        seed: any int; determines the rollout.
    Returns:
        ``moves``: policy indices, -1 = pass, the side to move first, colours alternating; ``result``: as ``B+3.5``, by
        area with all stones alive, or 0.
    Threads: any.
    """
    board_size, played = int(position.board.meta[META_SIZE]), int(position.meta[META_N_MOVES])
    mine, state = with_capacity(position, played), seed_state(seed, 0)
    board, color, moves = mine.board, int(mine.meta[META_TO_MOVE]), list[int]()
    last, captured = int(mine.moves[played - 1]) if played else PASS, 0
    policy = None
    if not options.uniform_rollouts:
        policy = (new_weights(board_size), tables_of(options), new_last_good_replies(), 0.0)
    points, lead = on_board_points(board_size), begin_rollout(mine)
    # One move a call gives the moves of one call for all of them: a rollout has no memory but board and random state.
    while len(moves) < 3 * board_size**2 and moves[-2:] != [-1, -1]:
        before = board.color[points]
        if policy is None:
            play_out(board, color, state, 1)
        else:
            play_out_by_policy(board, *policy, color, last, captured, state, 1)
        changed = points[(before == EMPTY) & (board.color[points] == color)]
        last = int(changed[0]) if len(changed) else PASS
        captured = int(np.count_nonzero((before != EMPTY) & (board.color[points] == EMPTY)))
        moves.append(_index(last, board_size))
        color = other(color)
    return {"moves": moves, "result": result_text(float(end_rollout(mine, lead)))}
