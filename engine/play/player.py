"""What a front end drives: one game, its search and its clock, and when to resign.

Start at :meth:`Player.genmove`. What is searched for, and when a pass is better, a plan of
:mod:`engine.play.move_plan` says.

An analysis is a search without a limit of time (:func:`analyze`): its tree is there for the move or the analysis that
comes next. It ends with an interruption; a tree that has reached the limit of memory is only reported on from then on.
"""

import threading
import time
from dataclasses import replace

import numpy as np

from engine.config import PlayOptions, SearchOptions
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.position import META_PASSES, META_TO_MOVE, Position, with_capacity
from engine.go.scoring import result_text
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.notices import say_once
from engine.play.backend import Backend
from engine.play.clock import Budget, move_limits
from engine.play.factory import Loader, for_play
from engine.play.game_session import RESIGN, GameSession, Purpose
from engine.play.life_and_death import EndEstimate, chains_with, estimate_end
from engine.play.move_plan import SETTLED_A_MOVE, MovePlan, is_endgame, unsearched_move
from engine.play.move_time import ESTIMATE_SHARE, FIRST_SHARE, NETWORK_SHARE, RUSHED_S, WHOLE, MoveTime, Part
from engine.play.pondering import Ponder
from engine.play.resignation import Resignation
from engine.play.score import Score, root_ending, score, strict_end
from engine.search.choosing import choose
from engine.search.endings import RootEnding
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from weights import NetworkPath

WARM_UP = SearchLimits(visits=8)
STAND_IN_WAIT_S = 0.25
"""How often it is asked whether rollouts can choose a move by now"""
UNSEEN_S = 0.02
"""Of a move's time, what passes before its command is read and after it is answered; an account of our own without it
was half a second behind the referee's after 40 moves on a busy machine."""
FINAL_S = 10.0
"""Time for the network's part of an estimate of the game's end that no clock limits"""


class Player(GameSession):
    """One player of one game at a time.

    Threads: one caller, but for :meth:`interrupt`, which any thread may call.
    """

    def __init__(
        self,
        search_options: SearchOptions,
        play_options: PlayOptions,
        network: NetworkPath | None = None,
        device: str = "auto",
        size: int = 19,
        rules: str = DEFAULT_RULES,
        komi: float = DEFAULT_KOMI,
        any_size: bool = False,
        load: Loader | None = None,
    ) -> None:
        """Load the network and set up the board.

        Args:
            search_options: a seed of 0 stands for a random one.
            network, device, load: as for :func:`engine.play.factory.load_parts`.
            size: of the board at first, or the nearest one that the network plays.
            any_size: play without the network on boards it does not play, instead of refusing them.
        Raises:
            ValueError: network, device, rules or komi cannot be used; one clear line.
        """
        self.options, self.search_options = play_options, search_options.seeded()
        self.last_genmove_report: Report | None = None
        """what the search for the latest move found; None where the move needed none"""
        self.network_path = network
        self._backend = Backend(for_play(self.search_options, play_options), network, device, load)
        super().__init__(size, rules, komi, play_options.lag, None if any_size else self._backend.sizes)
        self.interrupted = threading.Event()
        """set while nothing may take time; :meth:`interrupt` and :meth:`resume` change it"""
        self._answered_s = 0.0
        """when the latest move was chosen"""
        self._said: tuple[int, int, float] | None = None
        """colour, point and seconds of a move that was chosen but not played; None = another one, or none"""
        self.stand_in_loaded = threading.Event()
        """unset while what replaces a late network is being compiled elsewhere; who does that clears and sets it"""
        self.stand_in_loaded.set()
        self._unsettled_until = 0
        """moves of the game before which it is not looked whether it has come to its end"""
        self._random = np.random.default_rng(self.search_options.seed)
        self._resignation = Resignation()
        self._backend.fit(self.game.size)
        self._make_search()
        self._begin()

    @property
    def server(self) -> InferenceServer | None:
        """What evaluates positions for the network; None while none plays."""
        return self._backend.server

    def _make_search(self) -> None:
        """A search without a tree."""
        self._search = self._backend.new_search()
        self.ponder = Ponder(self._search)
        """the search in the opponent's time; stopped before the game changes"""

    def configure(self, play: PlayOptions, search: SearchOptions) -> None:
        """Play with other options from the next move on; the tree is kept unless they are options of the search.

        Raises:
            ValueError: an option that cannot change any more; all stay as they are.
        """
        self.ponder.stop()
        search = search.seeded()
        if self._backend.configure(for_play(search, play)):
            self._replace_search()
        if search.seed != self.search_options.seed:
            self._random = np.random.default_rng(search.seed)
        self.clock.lag_s = play.lag
        self.options, self.search_options = play, search

    def _replace_search(self) -> None:
        """Search the game's position anew, with all that is new compiled before a clock runs."""
        self._search.close()
        self._make_search()
        self._search.set_position(self.game.position)
        try:
            self._search.run(WARM_UP)
        except NetworkFailed as error:
            say_once(str(error))
        self._search.clear()

    def close(self) -> None:
        """Stop searching and end all threads."""
        self.interrupt()
        self.ponder.stop()
        self._search.close()
        self._backend.close()

    def interrupt(self) -> None:
        """End the search in progress, or the next one at its start, until :meth:`resume`. Threads: any."""
        self.interrupted.set()
        self._search.stop()

    def resume(self) -> None:
        """Let searches take their time again. Threads: any."""
        self.interrupted.clear()

    def _before_change(self) -> None:
        self._said = None
        self.ponder.stop()

    def play(self, color: int, point: int) -> None:
        """Play a move; one that :meth:`genmove` has just said counts as if it had played it: clock and pondering."""
        said = self._said
        super().play(color, point)
        if said is not None and said[:2] == (color, point):
            self.clock.spend(color, said[2])
            self._ponder_behind(color, point)

    def take_over(self, session: GameSession) -> None:
        """Go on with another session's game and clock."""
        self._before_change()
        self.game, self.clock = session.game, session.clock
        self._fit_search()

    def _begin(self) -> None:
        super()._begin()
        self._unsettled_until = 0
        self._fit_search()

    def _fit_search(self) -> None:
        """Search by the network if it plays boards of the game's size, else without it."""
        if self._backend.fit(self.game.size):
            self._replace_search()
        self._backend.warm_up(self.game.size)
        self.last_genmove_report = None

    def genmove(
        self,
        color: int,
        purpose: Purpose = Purpose.PLAY,
        watcher: Watcher | None = None,
        moves: MoveFilter = EVERY_MOVE,
        asked_s: float = 0.0,
    ) -> int:
        """Choose a move for a colour, in or out of turn: a point, PASS or RESIGN.

        Args:
            watcher, moves: as for :meth:`engine.search.search.Search.run`.
            asked_s: ``time.perf_counter`` when the move was asked for: from then on a game clock runs, but not before
                the move before it was chosen; 0 = now.
        """
        started_s, clock, cleanup = time.perf_counter(), self._clock_budget(color), purpose is Purpose.CLEAN_UP
        if clock is not None and asked_s:
            started_s = min(started_s, max(asked_s, self._answered_s))
        self._before_change()
        self._backend.warn_of_komi(self.game.komi)
        position = self._search.set_position(self.position_for(color))
        if self.options.policy_only:
            self._search.clear()  # What an analysis found is no first choice.
        move_time = MoveTime(move_limits(self.options, clock), started_s, self.interrupted, self.server)
        is_rushed = clock is not None and move_time.left_s < RUSHED_S
        # A clock does not wait for kernels that are still being compiled, not even after a pass.
        is_late = clock is not None and not self.stand_in_loaded.is_set()
        estimate = None
        if not is_late and is_endgame(position, cleanup, is_rushed or self.game.n_moves < self._unsettled_until):
            deadline_s = move_time.deadline_s(ESTIMATE_SHARE)
            owners = self._network_owners(move_time.deadline_s(NETWORK_SHARE))
            before_s = move_time.used_s
            estimate = estimate_end(position, owners, self._backend.tables(), deadline_s)
            self._unsettled_until = self.game.n_moves + estimate.n_open // SETTLED_A_MOVE
            if position.meta[META_PASSES] > 0:
                # After a pass the end is estimated twice more when the search is over.
                move_time.reserve_s = 2 * (move_time.used_s - before_s)
        plan = MovePlan(self.game, position, estimate, self._backend, moves, cleanup)
        reports = [self._run(position, move_time, one.part, one.moves, watcher) for one in plan.searches]
        decision = plan.decide(reports, time.perf_counter() + max(0.0, move_time.left_s))
        self.last_genmove_report = report = decision.report
        point = unsearched_move(self.game, color, moves) if report is None or decision.passes else self._draw(report)
        self._answered_s = time.perf_counter()
        used_s = self._answered_s - started_s + UNSEEN_S
        if purpose.plays:
            self.clock.spend(color, used_s)
        is_proposed = purpose is Purpose.PROPOSE and not self.interrupted.is_set()
        may_resign = purpose is Purpose.PLAY or is_proposed
        if may_resign and self._resignation.is_due(self.game, color, decision.value_stm, self.options):
            return RESIGN
        if purpose.plays:
            self.game.play(color, point)
            self._ponder_behind(color, point)
        elif is_proposed:
            self._said = color, point, used_s
        return point

    def _draw(self, report: Report) -> int:
        """The move to play of those that a search found."""
        is_opening = self.game.n_moves < self.options.temperature_moves
        return choose(report, self.options.temperature if is_opening else 0.0, self._random)

    def analyze(self, color: int, watcher: Watcher, moves: MoveFilter = EVERY_MOVE) -> None:
        """Search for a colour, in or out of turn, until interrupted; see :mod:`engine.play.player`.

        Raises:
            ValueError: the network failed, or does not answer.
        """
        self.ponder.stop()
        noise = self.search_options.wide_root_noise
        position = self._search.set_position(self.position_for(color))
        ending = root_ending(self._search, position, self._backend.tables)
        try:
            analyze(self._search, self.interrupted, watcher, moves, noise, ending)
        except NetworkFailed as error:
            raise ValueError(str(error)) from error

    def _run(
        self,
        position: Position,
        move_time: MoveTime,
        part: Part,
        moves: MoveFilter,
        watcher: Watcher | None,
        ownership: bool = False,
    ) -> Report:
        """Search a position, which the search has; by rollouts if the network does not answer in time, or fails."""
        try:
            report = self._search.run(move_time.limits(part), moves, watcher, ownership)
        except NetworkFailed as error:
            say_once(f"{error}; the move is chosen by what has been searched, or by rollouts")
            report = self._search.report()
        if report.visits or self.server is None:
            return report
        while not self.stand_in_loaded.is_set() and not self.interrupted.is_set():
            # It is still being compiled, which may take longer than the network.
            report = self._wait_for_network(moves, watcher, ownership)
            if report.visits:
                return report
        if not self.interrupted.is_set():
            say_once(f"network {self.server.spec.name} has not answered in time: rollouts choose moves until it does")
        fallback = self._backend.fallback()
        fallback.set_position(position)
        limits = move_time.limits(part)
        # What the network did not use of the move's target, it may have used in waiting.
        limits = replace(limits, soft_s=max(limits.soft_s, (1.0 - FIRST_SHARE) * limits.hard_s), first_s=0.0)
        return fallback.run(limits, moves, watcher, ownership)

    def _ponder_behind(self, color: int, point: int) -> None:
        """Search on after our own move, but not at the game's end, nor where visits alone are the limit."""
        options, has_clock = self.options, self._clock_budget(color) is not None
        has_time = has_clock or not options.visits or options.seconds > 0.0 or options.ponder_visits > 0
        is_over = point == PASS or self.game.is_over or self.interrupted.is_set()
        if options.ponder and not options.policy_only and has_time and not is_over:
            self.ponder.start(self.game.position, options.ponder_visits, options.ponder_seconds)

    def position_for(self, color: int) -> Position:
        """The current position with the colour to move."""
        position = self.game.position
        if self.game.to_move != color:
            position = with_capacity(position, self.game.n_moves)
            position.meta[META_TO_MOVE] = color
        return position

    def _wait_for_network(self, moves: MoveFilter, watcher: Watcher | None, ownership: bool) -> Report:
        """Search on for a moment, until there is one visit."""
        limits = SearchLimits(1, STAND_IN_WAIT_S, STAND_IN_WAIT_S, self.interrupted, first_s=STAND_IN_WAIT_S)
        try:
            return self._search.run(limits, moves, watcher, ownership)
        except NetworkFailed:
            self.stand_in_loaded.wait(STAND_IN_WAIT_S)
            return self._search.report()

    def load_stand_in(self) -> None:
        """Load what chooses moves where the network does not answer in time. Threads: any."""
        if self.server is not None:
            self._backend.fallback()
        self.stand_in_loaded.set()

    def look(
        self, color: int, visits: int = 0, moves: MoveFilter = EVERY_MOVE, watcher: Watcher | None = None
    ) -> Report:
        """Search the current position for a colour, ownership too; no visits given = as long as a move may take."""
        started_s, position = time.perf_counter(), self.position_for(color)
        self.ponder.stop()
        self._search.set_position(position)
        limits = SearchLimits(visits) if visits else move_limits(self.options, self._clock_budget(color))
        move_time = MoveTime(limits, started_s, self.interrupted, self.server)
        return self._run(position, move_time, WHOLE, moves, watcher, ownership=True)

    def search_anew(self, position: Position, visits: int) -> Report:
        """Search a position of the game's size, clock aside, from nothing; what ``search.run`` raises goes on."""
        self.forget()
        self._search.set_position(position)
        return self._search.run(SearchLimits(visits, interrupt=self.interrupted))

    def forget(self) -> None:
        """Drop the tree and the network's cached results, as if nothing had been searched so far."""
        self.ponder.stop()
        self._search.clear()
        self._backend.forget()

    def _clock_budget(self, color: int) -> Budget | None:
        """What the colour's clock gives its next move; None without a clock."""
        return self.clock.budget(color, self.game.n_moves, self.game.size**2)

    def score(self) -> Score:
        """The current position's score: the rules' count once the game is over, an estimate before."""
        return score(self.game, self.estimate_end, self._network_lead_black)

    def _network_lead_black(self) -> float | None:
        """Black's lead in points as the network sees the position; None if it gives none."""
        if self.server is None or "score" not in self.server.spec.heads:
            return None
        score_stm = self.look(self.game.to_move, visits=1).score_stm
        assert score_stm is not None
        return score_stm if self.game.to_move == BLACK else -score_stm

    def final_score(self) -> str:
        """The lead of :meth:`score` as ``B+3.5``, ``W+0.5`` or ``0``."""
        return result_text(self.score().lead_black)

    def final_status(self, status: str) -> list[list[int]]:
        """The chains that are ``alive``, ``dead`` or in ``seki``, each as its points, as the score counts them.

        Raises:
            ValueError: "syntax error": no such status.
        """
        if strict_end(self.game):
            return chains_with(status, self.game.position, [], all_alive=True)
        return chains_with(status, self.game.position, self.estimate_end().dead)

    def estimate_end(self) -> EndEstimate:
        """Owners, dead stones and score of the current position as if play ended now."""
        self.ponder.stop()
        position = self._search.set_position(self.game.position)
        owners = self._network_owners(time.perf_counter() + FINAL_S)
        return estimate_end(position, owners, self._backend.tables())

    def _network_owners(self, deadline_s: float) -> np.ndarray | None:
        """Whose the points of the position that the search has are by the network; None where it has no answer."""
        return self._search.network_ownership_black(deadline_s, self.interrupted)

    def warm_up(self) -> None:
        """Use everything that the first move uses once, so that compiling and loading fall before the clock starts.

        The game must be new; it is so again afterwards.
        """
        self._search.warm_up()
        for color in (BLACK, WHITE, BLACK):
            self._search.set_position(self.game.position)
            point = choose(self._search.run(WARM_UP))
            self.game.is_legal(color, point)
            self.game.play(color, point)
        self.undo()
        self.new_game(self.game.size)
        self._search.set_position(self.game.position)
        self._search.clear()


OWNERSHIP_S = 0.1
"""The longest that an analysis waits for the network's ownership before a report; the next report tries again"""


def analyze(
    search: Search,
    interrupted: threading.Event,
    watcher: Watcher,
    moves: MoveFilter,
    wide_root_noise: float = 0.0,
    ending: RootEnding | None = None,
) -> None:
    """Search the position that the search has been given, until interrupted.

    Args:
        wide_root_noise, ending: as of :meth:`engine.search.search.Search.run`; reports are given the ending.
    Raises:
        RuntimeError: the network failed.
    """
    if interrupted.is_set():
        return

    def with_ending(report: Report) -> Report:
        return ending.applied(report) if ending is not None and ending.matters(ownership) else report

    def ownership() -> np.ndarray | None:
        return search.network_ownership_black(time.perf_counter() + OWNERSHIP_S, interrupted)

    def tell(report: Report) -> None:
        # After an interruption no more is wanted, though the search still has some leaves to bring home.
        if not interrupted.is_set():
            watcher.on_report(with_ending(report))

    # Before the search the evaluations have the network to themselves.
    if ending is not None:
        ending.matters(ownership)

    telling = replace(watcher, on_report=tell)
    limits = SearchLimits(interrupt=interrupted)
    last = search.run(limits, moves, telling, wide_root_noise=wide_root_noise, ending=ending)
    due_s = time.perf_counter()
    while not interrupted.wait(max(0.0, due_s - time.perf_counter())):
        tell(last)
        due_s += watcher.interval_s
