"""What a front end drives: one game, its search and its clock, and the judgement when to resign.

Start at :meth:`Player.genmove`. What is searched for, and when a pass is better, :mod:`engine.play.move_choice`
decides.
"""

import secrets
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from engine.config import PlayOptions, SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.position import META_PASSES, META_TO_MOVE, Position, with_capacity
from engine.go.scoring import result_text
from engine.inference.server import InferenceServer
from engine.play.analysis import analyze
from engine.play.assembly import (
    check_size,
    for_play,
    judging_tables,
    load_parts,
    new_server,
    plays_size,
    warn_of_komi,
    with_options,
    without_network,
)
from engine.play.clock import Budget, limits
from engine.play.keeper import RESIGN, GameKeeper
from engine.play.life_and_death import Settlement, chains_with
from engine.play.move_choice import Choice, judged, trusted
from engine.play.pondering import Ponder
from engine.play.resignation import Resignation
from engine.search.report import Report, Watcher
from engine.search.root import choose
from engine.search.search import Search

WARM_UP_VISITS = 8
RUSHED_S = 0.15
"""With less on the clock than this for a move, nothing is judged that can wait: it would take half of it."""
AT_ONCE_S = 0.01
"""With less than this a move is the policy's first choice, or the best of a tree that was kept."""


class Player(GameKeeper):
    """One player of one game at a time.

    Threads: one caller, but for :meth:`interrupt`, which any thread may call.
    """

    def __init__(
        self,
        search_options: SearchOptions,
        play_options: PlayOptions,
        network: Path | tuple[Path, Path] | None = None,
        device: str = "auto",
        size: int = 19,
        rules: str = DEFAULT_RULES,
        komi: float = DEFAULT_KOMI,
        any_size: bool = False,
    ) -> None:
        """Load the network and set up the board.

        Args:
            search_options: a seed of 0 stands for one that nobody has chosen.
            network, device: as for :func:`engine.play.assembly.load_parts`.
            any_size: play without the network on boards it does not play, instead of refusing them.
        Raises:
            ValueError: network, device, rules, komi or size cannot be used; one clear line.
        """
        if not search_options.seed:
            search_options = replace(search_options, seed=1 + secrets.randbits(62))
        self.options = play_options
        self.search_options = search_options
        self.report: Report | None = None
        """what the latest search found; None where a move needed none"""
        self.network_path = network
        self._any_size = any_size
        self._loaded = load_parts(for_play(search_options, play_options), network, device)
        super().__init__(size, rules, komi, play_options.lag)
        self._server = new_server(self._loaded)
        self._sizes_seen: set[int] = set()
        self._interrupted = threading.Event()
        self._watcher: Watcher | None = None
        self._barred: np.ndarray | None = None
        self._random = np.random.default_rng(search_options.seed)
        self._resignation = Resignation(play_options.resign_below, play_options.resign_count)
        self._make_search(size)
        self._begin()

    def _make_search(self, size: int) -> None:
        """A search without a tree: by the network if it plays boards of this size, else by rollouts alone."""
        has_network = plays_size(self._loaded, size)
        self.server: InferenceServer | None = self._server if has_network else None
        """what answers for the network; None while none plays"""
        self._parts = parts = self._loaded if has_network else without_network(self._loaded)
        tables = partial(judging_tables, parts)
        self._search = Search(parts.options, self.server, parts.encoder, parts.patterns, tables)
        self.ponder = Ponder(self._search)
        """the search in the opponent's time; stopped before the game changes"""

    def configure(self, play: PlayOptions, search: SearchOptions) -> None:
        """Play with other options from the next move on; the tree is kept unless they are options of the search.

        Raises:
            ValueError: an option that cannot change any more; all stay as they are.
        """
        parts = with_options(self._loaded, for_play(search, play))
        self.ponder.stop()
        is_new = parts is not self._loaded
        if is_new:
            self._loaded = parts
            self._replace_search()
        if (play.resign_below, play.resign_count) != (self.options.resign_below, self.options.resign_count):
            self._resignation = Resignation(play.resign_below, play.resign_count)
        self.clock.lag_s = play.lag
        self.options, self.search_options = play, search

    def _replace_search(self) -> None:
        """Search the game's position anew, with all that is new compiled before a clock runs."""
        self._search.close()
        self._make_search(self.game.size)
        self._search.set_position(self.game.position)
        self._search.run(visits=WARM_UP_VISITS)
        self._search.clear()

    def close(self) -> None:
        """Stop searching and end all threads."""
        self.interrupt()
        self.ponder.stop()
        self._search.close()
        if self._server is not None:
            self._server.close()

    def interrupt(self) -> None:
        """End the search in progress, or the next one at its start, until :meth:`resume`. Threads: any."""
        self._interrupted.set()
        self._search.stop()

    def resume(self) -> None:
        """Let searches take their time again. Threads: any."""
        self._interrupted.clear()

    def _check_size(self, size: int) -> None:
        """Refuse boards the network does not play, unless it may stand aside."""
        if not self._any_size:
            check_size(self._loaded, size)

    def _before_change(self) -> None:
        self.ponder.stop()

    def take_over(self, keeper: GameKeeper) -> None:
        """Go on with another keeper's game and clock."""
        self._before_change()
        self.game, self.clock = keeper.game, keeper.clock
        self._fit_search()

    def _begin(self) -> None:
        super()._begin()
        self._fit_search()

    def _fit_search(self) -> None:
        """Search by the network if it plays boards of the game's size, else without it."""
        if plays_size(self._loaded, self.game.size) != (self._parts is self._loaded):
            self._replace_search()
        self._warm_server(self.game.size)
        self.report = None

    def genmove(
        self, color: int, update: bool = True, watcher: Watcher | None = None, barred: np.ndarray | None = None,
        cleanup: bool = False,
    ) -> int:  # fmt: skip
        """Choose a move for a colour, whoever's turn it is.

        Args:
            update: play it, charge the clock, perhaps resign, perhaps ponder; False = only say it.
            watcher, barred: as for :meth:`engine.search.search.Search.run`; moves barred are not searched for.
            cleanup: the players could not agree which stones are dead: capture those of the opponent before passing,
                whatever the rules, and never resign.
        Returns:
            int: a point, PASS or RESIGN.
        """
        started_s = time.perf_counter()
        self.ponder.stop()
        warn_of_komi(self.server, self.game.komi)
        position = self.position_for(color)
        self._search.set_position(position)
        self._watcher, self._barred = watcher, barred
        if self.options.policy_only:
            self._search.clear()  # What an analysis found is no first choice.
        clock = self._clock_budget(color)
        choice = Choice(
            self.game, position, self._search, self._parts, partial(self._run, color, started_s),
            may_pass=barred is None or not barred[0, PASS], cleanup=cleanup,
            is_rushed=clock is not None and clock.hard_s < RUSHED_S,
        )  # fmt: skip
        self.report, passes = choice.search()
        is_opening = self.game.n_moves < self.options.temperature_moves
        point = PASS if passes else choose(self.report, self.options.temperature if is_opening else 0.0, self._random)
        if not update:
            return point
        self.clock.spend(color, time.perf_counter() - started_s)
        if not cleanup and self._gives_up(color, point):
            return RESIGN
        self.game.play(color, point)
        if self._may_ponder(color, point):
            self.ponder.start(self.game.position, self.options.ponder_visits, self.options.ponder_seconds)
        return point

    def analyze(self, color: int, watcher: Watcher, barred: np.ndarray | None = None) -> None:
        """Search for a colour, whoever's turn it is, until interrupted; see :mod:`engine.play.analysis`."""
        self.ponder.stop()
        self._search.set_position(self.position_for(color))
        analyze(self._search, self._interrupted, watcher, barred)

    def _may_ponder(self, color: int, point: int) -> bool:
        """Whether to search on after this move: not at the game's end, nor where visits alone are the limit."""
        has_time = self._clock_budget(color) is not None or not self.options.visits or self.options.ponder_visits > 0
        is_over = point == PASS or self.game.is_over or self._interrupted.is_set()
        return self.options.ponder and not self.options.policy_only and has_time and not is_over

    def position_for(self, color: int) -> Position:
        """The current position with the colour to move."""
        position = self.game.position
        if self.game.to_move != color:
            position = with_capacity(position, self.game.n_moves)
            position.meta[META_TO_MOVE] = color
        return position

    def _run(
        self, color: int, started_s: float, allowed: list[int] | None, avoid: list[int], share: float = 1.0
    ) -> Report:
        """Search within what is left of the move's budget, or of a share of it."""
        visits, seconds, hard_seconds = limits(self.options, self._clock_budget(color))
        if visits:
            visits = max(1, int(visits * share))
        seconds, hard_seconds = seconds * share, hard_seconds * share
        # After a pass the position is judged twice more when the search has ended.
        used = (time.perf_counter() - started_s) * (3 if self.game.position.meta[META_PASSES] > 0 else 1)
        if self._interrupted.is_set() or (seconds and hard_seconds - used < AT_ONCE_S):
            visits, seconds, hard_seconds = 1, 0.0, 0.0
        elif seconds:
            seconds, hard_seconds = max(1e-3, seconds - used), hard_seconds - used
        return self._search.run(
            visits, seconds, hard_seconds, self._watcher, self._interrupted, allowed, avoid, self._barred,
            stop_when_decided=self.options.early_stop,
        )  # fmt: skip

    def look(
        self, color: int, visits: int = 0, allowed: list[int] | None = None, watcher: Watcher | None = None
    ) -> Report:
        """Search the current position for a colour, ownership too; no visits given = as long as a move may take."""
        self.ponder.stop()
        self._search.set_position(self.position_for(color))
        visits = 1 if self._interrupted.is_set() else visits
        budget = (visits, 0.0, 0.0) if visits else limits(self.options, self._clock_budget(color))
        return self._search.run(*budget, watcher, self._interrupted, allowed, ownership=True)

    def forget(self) -> None:
        """Drop the tree and the network's answers, as if nothing had been thought so far."""
        self.ponder.stop()
        self._search.clear()
        if self.server is not None:
            self.server.forget()

    def _clock_budget(self, color: int) -> Budget | None:
        """What the colour's clock gives its next move; None without a clock."""
        return self.clock.budget(color, self.game.n_moves, self.game.size**2)

    def _gives_up(self, color: int, point: int) -> bool:
        """Whether to resign instead of playing this move."""
        is_judged = self.report is not None and point != PASS
        if not is_judged:
            return False
        return self._resignation.is_due(self.game, color, trusted(self.report.value_stm, self.report, self._parts))

    def final_score(self) -> str:
        """The result with the dead stones off, whether or not the game is over: ``B+3.5``, ``W+0.5`` or ``0``."""
        return result_text(self.settlement().lead_black)

    def final_status(self, status: str) -> list[list[int]]:
        """The chains that are ``alive``, ``dead`` or in ``seki``, each as its points.

        Raises:
            ValueError: "syntax error": no such status.
        """
        return chains_with(status, self.game.position, self.settlement().dead)

    def settlement(self) -> Settlement:
        """The current position judged as if play ended now."""
        self.ponder.stop()
        self._search.set_position(self.game.position)
        return judged(self.game.position, self._search, self._parts)

    def _warm_server(self, size: int) -> None:
        """Let the network see its first board of a size before a clock runs."""
        if self.server is not None and size not in self._sizes_seen:
            encoder = ENCODERS[self.server.spec.encoder]
            self.server.warm_up(size, encoder.planes, encoder.globals)
            self._sizes_seen.add(size)

    def warm_up(self) -> None:
        """Use everything that the first move uses once, so that compiling and loading fall before the clock starts.

        The game must be new; it is so again afterwards.
        """
        self._search.warm_up()
        for color in (BLACK, WHITE, BLACK):
            self._search.set_position(self.game.position)
            point = choose(self._search.run(visits=WARM_UP_VISITS))
            self.game.is_legal(color, point)
            self.game.play(color, point)
        self.undo()
        self.new_game(self.game.size)
        self._search.set_position(self.game.position)
        self._search.clear()
