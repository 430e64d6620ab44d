"""The player behind a front end: one game, its search, its clock, pondering, analysis and scoring.

The main entry is :meth:`Player.genmove`; :mod:`engine.play.move_plan` decides on searches and passes.

An analysis (:func:`analyze`) is a search without a time limit that ends with an interruption; the next move or analysis
continues its tree. Once the tree has reached its memory limit, the analysis repeats its last report.
"""

import math
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from engine.config import ADAPTIVE, FULL, PlayOptions, SearchOptions
from engine.features.encoder import Encoder
from engine.go.game import DEFAULT_KOMI, DEFAULT_RULES, Game
from engine.go.geometry import BLACK, PASS, WHITE
from engine.go.position import META_PASSES, META_TO_MOVE, Position, new_position, with_capacity
from engine.go.random import seed_state
from engine.go.scoring import result_text
from engine.inference.server import InferenceServer, NetworkFailed
from engine.nets.notices import say_once
from engine.play import levels
from engine.play.backend import Backend
from engine.play.clock import Budget, move_limits
from engine.play.factory import Loader, Parts, for_play
from engine.play.game_session import RESIGN, GameSession, Purpose
from engine.play.human import EXPLORED_MIB, HumanNetwork, HumanOutput, choose_human
from engine.play.life_and_death import EndEstimate, chains_with, estimate_end
from engine.play.move_plan import SETTLED_A_MOVE, Decision, MovePlan, Resignation, is_endgame, unsearched_move
from engine.play.move_time import ESTIMATE_SHARE, FIRST_SHARE, NETWORK_SHARE, RUSHED_S, WHOLE, MoveTime, Part
from engine.play.pondering import Ponder
from engine.play.score import Score, root_ending, score, strict_end
from engine.search.choosing import choose
from engine.search.endings import RootEnding
from engine.search.level_choice import Level
from engine.search.move_filter import EVERY_MOVE, MoveFilter
from engine.search.report import Report, Watcher
from engine.search.search import Search
from engine.search.stoppers import SearchLimits
from weights import NetworkPath

WARM_UP = SearchLimits(visits=8)
FALLBACK_WAIT_S = 0.25
"""Interval between checks whether the kernels of the fallback search are compiled"""
PROMPT_S = 0.1
"""A network on the CPU whose calls take less than this is hardly ever late"""
UNSEEN_S = 0.02
"""Time of a move before its command is read and after its answer is written; when it was not counted, our clock was
half a second behind the referee's after 40 moves on a busy machine"""
HUMAN_SHARE = 0.5
"""Longest wait for the human network, as a share of a move's time"""
LEVEL_STREAM = 1
"""Stream of the seed's random numbers by which levels draw moves"""
FINAL_S = 10.0
"""Longest wait for the network's ownership in an estimate of the game's end that a client asks for"""


def _check_level(level: str, human: object | None) -> None:
    """Refuse a level beside a human network: each of them chooses the moves.

    Raises:
        ValueError: one line.
    """
    if human is not None and level != FULL:
        raise ValueError(f"level {level} and a human network both choose the moves, expected level {FULL}")


class Player(GameSession):
    """One player of one game at a time.

    Threads: one caller, except for methods whose text has "Threads: any".
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
        human: NetworkPath | None = None,
    ) -> None:
        """Load the networks and set up the board.

        Args:
            search_options: seed 0 = a random seed.
            network, device, load: as for :func:`engine.play.factory.load_parts`.
            size: first board size, or the nearest one that the network plays.
            any_size: whether rollouts alone play board sizes that the network does not play; else these are refused.
            human: file of a human network, which moves are drawn from (:mod:`engine.play.human`); None = none.
        Raises:
            ValueError: network, device, rules or komi cannot be used, or the level with the network; one clear line.
        """
        self.options, self.search_options = play_options, search_options.seeded()
        levels.check_network(play_options.level, network)
        _check_level(play_options.level, human)
        self.last_genmove_report: Report | None = None
        """report of the search for the latest move; None if the move needed no search"""
        self.network_path = network
        self.human = HumanNetwork(human, device, load) if human is not None else None
        """the human network that moves are drawn from; None = the search chooses them"""
        self._human_sizes: set[int] = set()
        """board sizes for which the human network is warm"""
        self._explored: Search | None = None
        """the search of human moves, once it is needed"""
        self._backend = Backend(self._options_of_search(self.search_options, play_options), network, device, load)
        super().__init__(size, rules, komi, play_options.lag, None if any_size else self._backend.sizes)
        self.interrupted = threading.Event()
        """set from :meth:`interrupt` to :meth:`resume`: searches end at once"""
        self._answered_s = 0.0
        """``time.perf_counter`` when the latest move was chosen"""
        self._proposed: tuple[int, int, float] | None = None
        """colour, point and seconds of the latest move if it was proposed and not played yet"""
        self.fallback_loaded = threading.Event()
        """unset while another thread compiles the kernels of the fallback search; that thread clears and sets it"""
        self.fallback_loaded.set()
        self._unsettled_until = 0
        """number of moves before which the game's end is not estimated"""
        self._seed()
        self._adaptive = levels.Adaptive()
        self._standing: tuple[float, int, int] | None = None
        """at the engine's latest move in this game: its value for the engine, number of moves played, board size"""
        self._resignation = Resignation()
        self._backend.fit(self.game.size)
        self._make_search()
        self._begin()

    def _seed(self) -> None:
        """Seed the random numbers of the move choice by the search's seed."""
        self._random = np.random.default_rng(self.search_options.seed)
        self._state = seed_state(self.search_options.seed, LEVEL_STREAM)

    @property
    def server(self) -> InferenceServer | None:
        """The inference server; None without a network for the current board size."""
        return self._backend.server

    @property
    def search(self) -> Search:
        """The search, whose tree may be read during a run; another one after a change of options or board size."""
        return self._search

    @property
    def parts(self) -> Parts:
        """The loaded network and what else searches are made of, for searches beside the player's own."""
        return self._backend.loaded

    @property
    def encoder(self) -> Encoder | None:
        """The network's encoder, with the human profile; None without a network for the current board size."""
        return self._backend.encoder

    def _options_of_search(self, search: SearchOptions, play: PlayOptions) -> SearchOptions:
        """The options of the main network's search; a human network beside it takes the human profile.

        Raises:
            ValueError: the human network does not know the profile; one line.
        """
        if self.human is not None:
            self.human.check_profile(search.human_profile)
            search = replace(search, human_profile="")
        return for_play(search, play)

    def _make_search(self) -> None:
        """Make a search with an empty tree, and the :class:`Ponder` that runs it in the opponent's time."""
        self._search = self._backend.new_search()
        self.ponder = Ponder(self._search)
        """the search in the opponent's time; stopped before the game changes"""

    def configure(self, play: PlayOptions, search: SearchOptions) -> None:
        """Set the options of the next moves; the tree is kept unless search options change.

        Raises:
            ValueError: a changed option cannot change any more; all options stay unchanged.
        """
        self.ponder.stop()
        levels.check_network(play.level, self.network_path)
        _check_level(play.level, self.human)
        search = search.seeded()
        if self._backend.configure(self._options_of_search(search, play)):
            self._replace_search()
        reseeds = search.seed != self.search_options.seed
        self.clock.lag_s = play.lag
        self.options, self.search_options = play, search
        if reseeds:
            self._seed()

    def _replace_search(self) -> None:
        """Make a new search after a change of options or board size, and warm it up before a clock runs."""
        self._search.close()
        self._explored = None
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
        if self.human is not None:
            self.human.close()

    def interrupt(self) -> None:
        """Stop the search in progress, and following ones at their start, until :meth:`resume`. Threads: any."""
        self.interrupted.set()
        self._search.stop()
        if (explored := self._explored) is not None:
            explored.stop()

    def resume(self) -> None:
        """End an interruption. Threads: any."""
        self.interrupted.clear()

    def _before_change(self) -> None:
        self._proposed = None
        self.ponder.stop()

    def play(self, color: int, point: int) -> None:
        """Play a move; if :meth:`genmove` has just proposed it, its time is charged and pondering starts."""
        proposed = self._proposed
        super().play(color, point)
        if proposed is not None and proposed[:2] == (color, point):
            self.clock.spend(color, proposed[2])
            self._ponder_after(color, point)

    def take_over(self, session: GameSession) -> None:
        """Continue another session's game and clock."""
        self._before_change()
        if session.game.size != self.game.size or session.game.n_moves < self.game.n_moves:
            self._unsettled_until = 0  # Another game, or one that was taken back.
        self.game, self.clock = session.game, session.clock
        self._fit_search()

    def _begin(self) -> None:
        super()._begin()
        if self.options.level == ADAPTIVE and self._standing and levels.is_decided(*self._standing):
            value, _, size = self._standing
            print(self._adaptive.note(value > 0, size), file=sys.stderr, flush=True)
        self._standing = None
        self._unsettled_until = 0
        self._fit_search()

    def _fit_search(self) -> None:
        """Choose the search for the game's board size: with the network if it plays that size."""
        if self._backend.fit(self.game.size):
            self._replace_search()
        self._backend.warm_up(self.game.size)
        if self.human is not None and self.game.size not in self._human_sizes:
            self._human_sizes.add(self.game.size)
            self._human_output(new_position(self.game.size), math.inf)
        self.last_genmove_report = None

    def genmove(
        self,
        color: int,
        purpose: Purpose = Purpose.PLAY,
        watcher: Watcher | None = None,
        moves: MoveFilter = EVERY_MOVE,
        asked_s: float = 0.0,
        limits: SearchLimits | None = None,
    ) -> int:
        """Choose a move for a colour, in or out of turn: a point, PASS or RESIGN.

        Args:
            watcher, moves: as for :meth:`engine.search.search.Search.run`.
            limits: in place of the limits of options and clock; at a level, the level's visits are a limit too.
            asked_s: ``time.perf_counter`` when the move was requested, from which the clock is charged (but not before
                the previous move was chosen); 0 = now.
        """
        started_s, clock, cleanup = time.perf_counter(), self._clock_budget(color), purpose is Purpose.CLEAN_UP
        if clock is not None and asked_s:
            started_s = min(started_s, max(asked_s, self._answered_s))
        self._before_change()
        self._backend.warn_of_komi(self.game.komi)
        position = self._search.set_position(self.position_for(color))
        level = levels.settings_of(self.level, self.game.size)
        if self.options.policy_only or level.visits:
            self._search.clear()  # A tree kept from an analysis would change the choice of the policy or the level.
        move_time = MoveTime(self._move_limits(level, clock, limits), started_s, self.interrupted, self.server)
        is_rushed = clock is not None and move_time.left_s < RUSHED_S
        # With a clock, no estimate while its kernels are still being compiled, not even after a pass.
        is_late = clock is not None and not self.fallback_loaded.is_set()
        estimate = None
        if not is_late and is_endgame(position, cleanup, is_rushed or self.game.n_moves < self._unsettled_until):
            deadline_s = move_time.deadline_s(ESTIMATE_SHARE)
            owners = self._network_owners(move_time.deadline_s(NETWORK_SHARE))
            before_s = move_time.used_s
            estimate = estimate_end(position, owners, self._backend.tables(), deadline_s)
            self._unsettled_until = self.game.n_moves + estimate.n_open // SETTLED_A_MOVE
            if position.meta[META_PASSES] > 0:
                # After a pass the end may be estimated twice more after the search.
                move_time.reserve_s = 2 * (move_time.used_s - before_s)
        plan = MovePlan(self.game, position, estimate, self._backend, moves, cleanup)
        human = self._ask_human(position, plan, move_time)
        share = 1.0 - self.options.human_explore if human is not None else 1.0
        reports = [self._run(position, move_time, one.part.scaled(share), one.moves, watcher) for one in plan.searches]
        decision = plan.decide(reports, time.perf_counter() + max(0.0, move_time.left_s))
        self.last_genmove_report = decision.report
        point = self._chosen(decision, position, moves, plan, move_time, level, human)
        self._answered_s = time.perf_counter()
        used_s = self._answered_s - started_s + UNSEEN_S
        if purpose.plays:
            self.clock.spend(color, used_s)
        is_proposed = purpose is Purpose.PROPOSE and not self.interrupted.is_set()
        if (purpose is Purpose.PLAY or is_proposed) and self._gives_up(color, decision, level):
            return RESIGN
        if purpose.plays:
            self.game.play(color, point)
            self._ponder_after(color, point)
        elif is_proposed:
            self._proposed = color, point, used_s
        return point

    def _move_limits(self, level: Level, clock: Budget | None, given: SearchLimits | None) -> SearchLimits:
        """The limits of the next move: those given, at a level with its visits, or else of options and clock."""
        options = levels.limits(self.options, level)
        if given is None:
            return move_limits(options, clock)
        return given & move_limits(options, None) if level.visits else given

    @property
    def level(self) -> str:
        """The level of the next move: a rank, or ``max``."""
        return self._adaptive.level if self.options.level == ADAPTIVE else self.options.level

    def _gives_up(self, color: int, decision: Decision, level: Level) -> bool:
        """Whether to resign instead of the move decided on; levels resign later than full strength does."""
        options, value, game = self.options, decision.value_stm, self.game
        if level.visits:
            options, lead = levels.resigning(options), decision.report.score_stm if decision.report else None
            value = value if levels.is_far_behind(game.n_moves, lead, game.size) else max(0.0, value)
        resigns = self._resignation.is_due(game, color, value, options)
        self._standing = -1.0 if resigns else decision.value_stm, game.n_moves, game.size
        return resigns

    def _draw(self, report: Report, position: Position, level: Level) -> int:
        """The move to play from a report: that of the level, or one drawn in the opening if a temperature is set."""
        if level.visits and report.moves:
            return levels.drawn(report, position, level, self._state)
        is_opening = self.game.n_moves < self.options.temperature_moves
        return choose(report, self.options.temperature if is_opening else 0.0, self._random)

    def _chosen(
        self, decision: Decision, position: Position, moves: MoveFilter, plan: MovePlan, move_time: MoveTime,
        level: Level, human: HumanOutput | None,
    ) -> int:  # fmt: skip
        """The move to play: one of the human network's, or of the level, or the report's.

        Args:
            moves: the caller's filter.
            human: the human network's output; None = it has no part in the choice.
        """
        color, report, options = int(position.meta[META_TO_MOVE]), decision.report, self.options
        if report is None or decision.passes:
            return unsearched_move(self.game, color, moves)
        if human is None:
            return self._draw(report, position, level)
        allowed = plan.searches[0].moves
        explored = self._explore(position, human, allowed, move_time) if options.human_explore > 0.0 else None
        return choose_human(
            human, report, explored, lambda point: allowed.allows(color, point), self.game.n_moves, self.game.size,
            options, self._random,
        )  # fmt: skip

    def _ask_human(self, position: Position, plan: MovePlan, move_time: MoveTime) -> HumanOutput | None:
        """The human network's output for a move; None if it has no part in the choice or the move is interrupted, or,
        with a line on standard error, if it gives none in time.

        It is asked before the search, which uses up the move's time. A plan of two searches captures dead stones, and a
        plan of none passes: both do without it.
        """
        if self.human is None or len(plan.searches) != 1 or self.interrupted.is_set():
            return None
        return self._human_output(position, move_time.deadline_s(HUMAN_SHARE))

    def _human_output(self, position: Position, deadline_s: float) -> HumanOutput | None:
        """The human network's output; None, with a line on standard error, if it gives none."""
        assert self.human is not None
        try:
            output = self.human.output(position, self.search_options.human_profile, deadline_s)
        except NetworkFailed as error:
            say_once(f"human network: {error}; the search chooses the moves")
            return None
        if output is None:
            reason = "has not answered in time" if self.human.spec.plays(self.game.size) else "does not play this board"
            say_once(f"human network {self.human.spec.name} {reason}: the search chooses the move")
        return output

    def _explore(
        self, position: Position, output: HumanOutput, moves: MoveFilter, move_time: MoveTime
    ) -> Report | None:
        """Search likely human moves within the rest of the move's time and visits; None without a network or time."""
        if self.server is None or move_time.left_s < RUSHED_S or self.interrupted.is_set():
            return None
        if self._explored is None:
            self._explored = self._backend.new_search()
            self._explored.limit_memory(EXPLORED_MIB << 20)
        self._explored.set_position(position)
        limits = move_time.limits(Part(1.0 - self.options.human_explore, 1.0))
        try:
            return self._explored.run(limits, moves, policy=output.root_policy(self.options))
        except NetworkFailed as error:
            say_once(f"{error}; human moves are not searched")
            return None

    def analyze(
        self, color: int, watcher: Watcher, moves: MoveFilter = EVERY_MOVE, limits: SearchLimits | None = None,
        wide_root_noise: float | None = None,
    ) -> Report | None:  # fmt: skip
        """Analyse the position for a colour, in or out of turn (:func:`analyze`).

        Args:
            limits: None = until interrupted.
            wide_root_noise: None = that of the options.
        Returns:
            Report: the last one; None = interrupted before the search began.
        Raises:
            ValueError: the network failed or does not answer.
        """
        self.ponder.stop()
        noise = self.search_options.wide_root_noise if wide_root_noise is None else wide_root_noise
        position = self._search.set_position(self.position_for(color))
        ending = root_ending(self._search, position, self._backend.tables)
        try:
            return analyze(self._search, self.interrupted, watcher, moves, noise, ending, limits)
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
        """Search ``position``, which the search has been set to; by rollouts if the network fails or is late."""
        try:
            report = self._search.run(move_time.limits(part), moves, watcher, ownership)
        except NetworkFailed as error:
            say_once(f"{error}; the move is chosen by what has been searched, or by rollouts")
            report = self._search.report()
        if report.visits or self.server is None:
            return report
        while not self.fallback_loaded.is_set() and not self.interrupted.is_set():
            # The fallback's kernels are still being compiled, which may take longer than the network.
            report = self._wait_for_network(moves, watcher, ownership)
            if report.visits:
                return report
        if not self.interrupted.is_set():
            say_once(f"network {self.server.spec.name} has not answered in time: rollouts choose moves until it does")
        fallback = self._backend.fallback()
        fallback.set_position(position)
        limits = move_time.limits(part)
        # Waiting for the network may have used up the target time.
        limits = replace(limits, soft_s=max(limits.soft_s, (1.0 - FIRST_SHARE) * limits.hard_s), first_s=0.0)
        return fallback.run(limits, moves, watcher, ownership)

    def _ponder_after(self, color: int, point: int) -> None:
        """Ponder after our own move if options ask for it, except at the game's end or if visits alone are limited."""
        options, has_clock = self.options, self._clock_budget(color) is not None
        has_time = has_clock or not options.visits or options.seconds > 0.0 or options.ponder_visits > 0
        is_over = point == PASS or self.game.is_over or self.interrupted.is_set()
        is_searching = not options.policy_only and not levels.settings_of(self.level, self.game.size).visits
        if options.ponder and is_searching and has_time and not is_over:
            self.ponder.start(self.game.position, options.ponder_visits, options.ponder_seconds)

    def position_for(self, color: int) -> Position:
        """The current position with ``color`` to move."""
        position = self.game.position
        if self.game.to_move != color:
            position = with_capacity(position, self.game.n_moves)
            position.meta[META_TO_MOVE] = color
        return position

    def _wait_for_network(self, moves: MoveFilter, watcher: Watcher | None, ownership: bool) -> Report:
        """Search until the root has one visit, for at most ``FALLBACK_WAIT_S``.

        If the network fails, wait as long for the fallback search instead; then the report may have no visit.
        """
        limits = SearchLimits(1, FALLBACK_WAIT_S, FALLBACK_WAIT_S, self.interrupted, first_s=FALLBACK_WAIT_S)
        try:
            return self._search.run(limits, moves, watcher, ownership)
        except NetworkFailed:
            self.fallback_loaded.wait(FALLBACK_WAIT_S)
            return self._search.report()

    def load_fallback(self) -> None:
        """Make the fallback search, which plays if the network does not answer in time. Threads: any.

        Its pattern policies take 120 MB and half a second: beside a prompt network the move that needs it makes it.
        """
        server = self.server
        if server is not None and (server.batches_requests or server.pace.seconds_per_call > PROMPT_S):
            self._backend.fallback()
        self.fallback_loaded.set()

    def look(
        self, color: int, visits: int = 0, moves: MoveFilter = EVERY_MOVE, watcher: Watcher | None = None
    ) -> Report:
        """Search the current position for a colour, with ownership; ``visits`` 0 = within the limits of a move."""
        started_s, position = time.perf_counter(), self.position_for(color)
        self.ponder.stop()
        self._search.set_position(position)
        limits = SearchLimits(visits) if visits else move_limits(self.options, self._clock_budget(color))
        move_time = MoveTime(limits, started_s, self.interrupted, self.server)
        return self._run(position, move_time, WHOLE, moves, watcher, ownership=True)

    def search_anew(self, position: Position, visits: int) -> Report:
        """Search a position of the game's board size with empty tree and cache, without a clock.

        Raises:
            NetworkFailed: the network failed or does not answer.
        """
        self.forget()
        self._search.set_position(position)
        return self._search.run(SearchLimits(visits, interrupt=self.interrupted))

    def forget(self) -> None:
        """Clear the tree and the result cache."""
        self.ponder.stop()
        self._search.clear()
        self._backend.forget()

    def _clock_budget(self, color: int) -> Budget | None:
        """The clock's budget for a colour's next move; None without a clock."""
        return self.clock.budget(color, self.game.n_moves, self.game.size**2)

    def score(self) -> Score:
        """The score of the current position: by the rules once the game is over, an estimate before."""
        return score(self.game, self.estimate_end, self._network_lead_black)

    def _network_lead_black(self) -> float | None:
        """Black's lead in points by a search of one visit; None without a score head."""
        if self.server is None or "score" not in self.server.spec.heads:
            return None
        score_stm = self.look(self.game.to_move, visits=1).score_stm
        assert score_stm is not None
        return score_stm if self.game.to_move == BLACK else -score_stm

    def final_score(self) -> str:
        """The lead of :meth:`score` as ``B+3.5``, ``W+0.5`` or ``0``."""
        return result_text(self.score().lead_black)

    def final_status(self, status: str) -> list[list[int]]:
        """The chains that the score counts as ``alive``, ``dead`` or in ``seki``, each as a list of points.

        Raises:
            ValueError: "syntax error": no such status.
        """
        if strict_end(self.game):
            return chains_with(status, self.game.position, [], all_alive=True)
        return chains_with(status, self.game.position, self.estimate_end().dead)

    def estimate_end(self) -> EndEstimate:
        """Estimate ownership, dead stones and score of the current position if play ended now."""
        self.ponder.stop()
        position = self._search.set_position(self.game.position)
        owners = self._network_owners(time.perf_counter() + FINAL_S)
        return estimate_end(position, owners, self._backend.tables())

    def _network_owners(self, deadline_s: float) -> np.ndarray | None:
        """The network's ownership of the search's position, float32[N*N], 1 = Black's; None = no output in time."""
        return self._search.network_ownership_black(deadline_s, self.interrupted)

    def warm_up(self) -> None:
        """Play some moves, so that kernels are compiled and files loaded before the clock starts.

        The game must be new, and is new again afterwards.
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
"""Longest wait of an analysis for the network's ownership before a report; the next report tries again"""


def analyze(
    search: Search,
    interrupted: threading.Event,
    watcher: Watcher,
    moves: MoveFilter,
    wide_root_noise: float = 0.0,
    ending: RootEnding | None = None,
    limits: SearchLimits | None = None,
) -> Report | None:
    """Run a search of its current position, and report at intervals, until a limit is reached or it is interrupted.

    Args:
        interrupted: ends the analysis once it is set.
        wide_root_noise, ending: as for :meth:`engine.search.search.Search.run`; reports are corrected by the ending.
        limits: None = none; once the tree is full, the last report is then repeated.
    Returns:
        Report: the last one, which the watcher has not got if the analysis was interrupted; None = interrupted before
        the search began.
    Raises:
        NetworkFailed: the network failed or does not answer.
    """
    if interrupted.is_set():
        return None

    def with_ending(report: Report) -> Report:
        return ending.applied(report) if ending is not None and ending.matters(ownership) else report

    def ownership() -> np.ndarray | None:
        return search.network_ownership_black(time.perf_counter() + OWNERSHIP_S, interrupted)

    def on_report(report: Report) -> None:
        # No report after an interruption, though the search still backs some leaves up.
        if not interrupted.is_set():
            watcher.on_report(with_ending(report))

    # Before the search, when no other evaluation delays these.
    if ending is not None:
        ending.matters(ownership)

    ends = SearchLimits(interrupt=interrupted) if limits is None else replace(limits, interrupt=interrupted)
    last = search.run(
        ends, moves, replace(watcher, on_report=on_report), wide_root_noise=wide_root_noise, ending=ending
    )
    due_s = time.perf_counter()
    while limits is None and not interrupted.wait(max(0.0, due_s - time.perf_counter())):
        on_report(last)
        due_s += watcher.interval_s
    return with_ending(last)


BENCHMARK_POSITIONS = 10
BENCHMARK_SPACING = 0.03
"""Number of moves between two positions of the benchmark, as a share of the board's points: 11 on 19x19"""


def benchmark(player: Player, visits: int) -> Iterator[tuple[int, Report]]:
    """Search positions from the opening into the middle game, each with empty tree and cache.

    The positions are those of a game of moves with the highest prior, so they suit every board size. The player's game
    stays. There are fewer positions after an interruption or at the end of the game.

    Returns:
        iterator of pairs: number of moves before a position, and report of its search.
    Raises:
        NetworkFailed: the network failed or does not answer.
    """
    game = Game(player.game.size, player.game.rules, player.game.komi)
    spacing = max(1, round(BENCHMARK_SPACING * game.size**2))
    for _ in range(BENCHMARK_POSITIONS):
        yield game.n_moves, player.search_anew(game.position, visits)
        for _ in range(spacing):
            moves = player.search_anew(game.position, 1).moves
            if not moves or game.is_over:
                return
            game.play(game.to_move, moves[0].point)
