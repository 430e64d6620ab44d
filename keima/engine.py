"""The engine: it plays moves and analyses positions, in blocking calls, coroutines and live."""

import asyncio
import math
import weakref
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from contextlib import closing
from dataclasses import dataclass, fields, replace
from os import PathLike, fspath
from typing import Self, TypeAlias, TypeVar, overload

from engine.config import FULL, RANKS, PlayOptions, SearchOptions, SetupOptions
from engine.go.game import Game
from engine.go.geometry import MAX_SIZE, MIN_SIZE
from engine.insight.batches import Batch, Batches, Searched
from engine.live.engine import Chosen
from engine.live.engine import Engine as LiveEngine
from engine.pictures.drawing import Picture, stand_alone
from engine.play.game_session import RESIGN, Purpose
from engine.play.player import Player
from engine.search.move_filter import EVERY_MOVE, MoveFilter, only, without
from engine.search.report import Report, Watcher
from engine.search.stoppers import SearchLimits
from engine.system import one_line
from gtp.startup import PlayerSettings, load_player
from keima.analysis import Analysis, unwrapped
from keima.board import Board, checked_board
from keima.info import Info, info_of, ownership_of
from keima.moves import Color, Move, MoveLike, move_at, moves_in
from keima.network import Network
from keima.perspective import Lead, Ownership
from keima.tree import Tree
from weights import DEFAULT, NO_NETWORK, find_network, players

T = TypeVar("T")
R = TypeVar("R")
Options = TypeVar("Options", SetupOptions, PlayOptions, SearchOptions)
Start: TypeAlias = Callable[["Future[T]"], object]
"""Submits a work whose result the given future gets"""
LEVELS = (*RANKS, FULL)


@dataclass(frozen=True)
class Limit:
    """The limits of a search, which ends at the first one that it reaches; None = no limit.

    An engine continues the tree of its last search if the position follows from that one. ``visits`` counts the visits
    that are kept, so a search may have more and end at once; ``playouts`` counts what this search adds.

    Raises:
        ValueError: no limit is given, or one is not positive; one line.
    """

    visits: int | None = None
    """visits of the position, those kept from earlier searches of the game included (KataGo's ``maxVisits``)"""
    seconds: float | None = None
    """thinking time"""
    playouts: int | None = None
    """visits that this search adds (KataGo's ``maxPlayouts``)"""

    def __post_init__(self) -> None:
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        for name, value in given.items():
            least = "more than 0" if name == "seconds" else "1 or more"
            if value is not None and not 0 < value < math.inf:
                raise ValueError(f"limit of {name} is {value}, expected {least}, or None for no limit")
        if all(value is None for value in given.values()):
            raise ValueError("limit is empty, expected visits, seconds or playouts")

    def __repr__(self) -> str:
        given = [f"{item.name}={getattr(self, item.name)}" for item in fields(self) if getattr(self, item.name)]
        return f"Limit({', '.join(given)})"


DEFAULT_LIMIT = Limit(visits=500)
"""The limit of :meth:`Engine.play` and :meth:`Engine.analyse` if none is given, as in KataGo's analysis engine"""


@dataclass(frozen=True)
class Played:
    """The choice of a move."""

    move: Move | None
    """the move; None = the engine resigns"""
    info: Info | None
    """results of the search; None if the move needed no search, as a pass that ends the game"""

    @property
    def resigned(self) -> bool:
        """Whether the engine resigns."""
        return self.move is None


@dataclass(frozen=True, eq=False)
class Estimate:
    """The position as it would be counted if play ended now, by rollouts and the network."""

    lead: Lead
    """lead in points by the rules of the board, dead stones removed"""
    ownership: Ownership
    """expected owners"""
    dead: list[Move]
    """points of the dead stones of both colours"""


class Engine:
    """A network and a search, loaded once; boards of any game and size come with each call.

    Use it as a context manager, or call :meth:`close`. Calls run one after another in a thread of the engine's own;
    those of several threads and coroutines wait for each other. Searches continue the tree of the call before if the
    position follows from that one. Nothing is printed on standard output; the progress of loading appears on standard
    error. Threads: any.
    """

    def __init__(
        self, weights: "str | PathLike[str]" = DEFAULT, *, human_weights: "str | PathLike[str] | None" = None,
        level: str = FULL, device: str = "auto", threads: int = 0, memory: int | None = None, seed: int = 0,
        search: SearchOptions | None = None,
    ) -> None:  # fmt: skip
        """Load the network; returns when the engine is ready. The first start on a machine compiles for minutes.

        Args:
            weights: name of a shipped or downloaded network or player, or a file; ``"none"`` = rollouts alone.
            human_weights: human network, which :meth:`play` draws moves from, as ``keima gtp --human-weights``.
            level: level of :meth:`play`, ``"20k"`` to ``"5d"``, or ``"max"``.
            device: ``"auto"``, ``"cpu"``, ``"mps"``, ``"cuda"`` or ``"cuda:0,cuda:1"``.
            threads: search threads; 0 = the device's default. With one thread and a seed, searches are reproducible.
            memory: MiB for trees and cached evaluations; None = an eighth of the machine's, at most 1024.
            seed: seed of all random numbers; 0 = a new one at each start.
            search: other options of the search; the arguments above replace its fields.
        Raises:
            ValueError: network, device, level or an option cannot be used; one line.
        """
        settings = _settings(fspath(weights), fspath(human_weights or ""), level, device)
        own = search or settings.search
        own = replace(own, threads=threads or own.threads, seed=seed or own.seed, memory=memory or own.memory)
        settings = replace(settings, search=own)
        failures: list[Exception] = []

        def load(say: Callable[[str], None]) -> Player:
            try:
                return load_player(settings, freezes=False)
            except Exception as error:
                failures.append(error)
                raise

        self.weights = fspath(weights)
        """name or file of the network, as given"""
        self.level = level
        """level of :meth:`play`; may be changed"""
        self._live = LiveEngine(load)
        self._batches: list[Batches] = []
        """the threads that search many positions, once they are needed"""
        self._closer = weakref.finalize(self, _close, self._live, self._batches)
        try:
            self._sizes = self._live.submit(_sizes_of).result()
        except RuntimeError:
            self.close()
            error = failures[0]
            raise (ValueError(one_line(error)) if isinstance(error, ValueError) else error) from None
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"<Engine {self.weights}, level {self.level}{', closed' if self.is_closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all searches, end the threads and free the network; calls that wait raise ``ValueError``."""
        self._closer()

    @property
    def is_closed(self) -> bool:
        """Whether the engine was closed."""
        return not self._closer.alive

    @property
    def name(self) -> str:
        """The network's name; empty without a network."""
        spec = self._live.player.parts.spec
        return "" if spec is None else spec.name

    @property
    def network(self) -> Network:
        """The engine's network, for evaluations without a search; it is closed with the engine.

        Raises:
            ValueError: the engine has no network, or is closed; one line.
        """
        self._check_open()
        player = self._live.player
        if player.server is None or player.network_path is None:
            raise ValueError("the engine has no network, expected other weights than 'none'")
        return Network._of_server(player.network_path, player.server)

    @property
    def sizes(self) -> tuple[int, int]:
        """Smallest and largest board size that the engine plays."""
        return self._sizes

    def play(
        self, board: Board, limit: Limit | None = None, *, level: str | None = None, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, may_resign: bool = True,
    ) -> Played:  # fmt: skip
        """Choose a move for the side to move; the board does not change.

        Args:
            limit: None = 500 visits; at a level its visits, which end the search in any case.
            level: level of this move; None = the engine's.
            avoid: moves that must not be chosen.
            allow: the only moves that may be chosen; None = all.
            may_resign: whether the engine may resign instead, after some hopeless moves.
        Raises:
            ValueError: the network does not play this board size, the level is unknown or was measured with another
                network, the filter leaves no legal move, or the engine is closed; one line.
            RuntimeError: the network failed; one line.
        """
        game = self._game_of(board)
        return self._wait(
            self._chosen(game, limit, level, avoid, allow, may_resign), lambda found: _played(game, found)
        )

    async def play_async(
        self, board: Board, limit: Limit | None = None, *, level: str | None = None, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, may_resign: bool = True,
    ) -> Played:  # fmt: skip
        """:meth:`play` as a coroutine; cancelling it stops the search."""
        game = self._game_of(board)
        found = self._chosen(game, limit, level, avoid, allow, may_resign)
        return await self._wait_async(found, lambda found: _played(game, found))

    @overload
    def analyse(
        self, board: Board, limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> Info: ...  # fmt: skip

    @overload
    def analyse(
        self, board: Iterable[Board], limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> list[Info]: ...  # fmt: skip

    def analyse(
        self, board: Board | Iterable[Board], limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> Info | list[Info]:  # fmt: skip
        """Search a position, or many positions at once; boards do not change.

        Many positions are searched side by side, each from an empty tree, and share batches of the network: far faster
        than one by one. Their boards may differ in size.

        Args:
            board: a board, or boards.
            limit: limit for each position; None = 500 visits.
            avoid: moves that are not searched in the position.
            allow: the only moves that are searched in the position; None = all.
            ownership: whether the results have ownership, which costs memory and some time.
            wide_root_noise: makes the search explore more moves (KataGo's ``wideRootNoise``).
        Returns:
            Info for a board, a list of them for boards, in their order.
        Raises:
            ValueError: as for :meth:`play`.
            RuntimeError: the network failed; one line.
        """
        if isinstance(board, Board):
            game = self._game_of(board)
            report = self._report(game, limit, avoid, allow, ownership, wide_root_noise)
            return self._wait(report, lambda found: _info(game, found, ownership))
        return self._wait(self._batch(board, limit, avoid, allow, ownership, wide_root_noise), lambda found: found)

    @overload
    async def analyse_async(
        self, board: Board, limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> Info: ...  # fmt: skip

    @overload
    async def analyse_async(
        self, board: Iterable[Board], limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> list[Info]: ...  # fmt: skip

    async def analyse_async(
        self, board: Board | Iterable[Board], limit: Limit | None = None, *, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> Info | list[Info]:  # fmt: skip
        """:meth:`analyse` as a coroutine; cancelling it stops the search."""
        if isinstance(board, Board):
            game = self._game_of(board)
            report = self._report(game, limit, avoid, allow, ownership, wide_root_noise)
            return await self._wait_async(report, lambda found: _info(game, found, ownership))
        batch = self._batch(board, limit, avoid, allow, ownership, wide_root_noise)
        return await self._wait_async(batch, lambda found: found)

    def analysis(
        self, board: Board, limit: Limit | None = None, *, interval: float = 0.1, avoid: Iterable[MoveLike] = (),
        allow: Iterable[MoveLike] | None = None, ownership: bool = True, wide_root_noise: float = 0.0,
    ) -> Analysis:  # fmt: skip
        """Search a position and give results while the search runs.

        The search runs until a limit is reached, it is stopped, its loop is left, or another call of the engine comes::

            for info in engine.analysis(board):
                if info.visits > 1000:
                    break

        Args:
            limit: None = none.
            interval: seconds between two results.
            avoid, allow, ownership, wide_root_noise: as for :meth:`analyse`.
        Raises:
            ValueError: as for :meth:`play`, or the interval is not positive.
        """
        if not 0.0 < interval < math.inf:
            raise ValueError(f"interval is {interval}, expected more than 0 seconds")
        game, moves = self._game_of(board), _filter(board, avoid, allow)
        limits = None if limit is None else limits_of(limit)
        found = Analysis(lambda report: _info(game.copy(), report, ownership), self._live.cancel)
        watcher = Watcher(found._on_report, interval, interval, ownership=ownership)
        self._check_open()
        found._begin(self._live.analyse(game, watcher, moves, limits, wide_root_noise=_noise(wide_root_noise)))
        return found

    def estimate(self, board: Board) -> Estimate:
        """Estimate lead, ownership and dead stones if play ended in the position.

        Raises:
            ValueError: as for :meth:`play`.
        """
        game = self._game_of(board)
        self._check_open()
        found = self._live.estimate_end(game).result()
        to_move, size = Color(game.to_move), game.size
        dead = [move_at(point, size) for point in found.dead]
        return Estimate(Lead(found.lead_black, to_move), ownership_of(found.ownership_black, to_move, size), dead)

    def picture(self, board: Board, kind: str = "figure5", *, visits: int = 800, layer: str = "") -> Picture:
        """Draw a position as the network and a search see it, as ``keima picture``.

        Args:
            kind: ``"figure5"``, the six panels of AlphaGo's Figure 5; one of them: ``"value"`` (the network's win rate
                after every move), ``"q"`` and ``"q-rollouts"`` (mean values of the search by network and by rollouts),
                ``"policy"``, ``"visits"``, ``"pv"``; ``"ownership"``; or ``"layers"``, the channels of a layer.
            visits: visits of the search.
            layer: layer of the network, for ``"layers"``; empty = the input planes.
        Raises:
            ValueError: as for :meth:`play`, or network or search lack what is to be drawn.
            RuntimeError: the network failed; one line.
        """
        from engine.insight.position_pictures import KINDS, picture

        if kind not in KINDS:
            raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
        game = self._game_of(board)
        self._check_open()

        def draw(player: Player) -> str:
            return picture(player, kind, visits, layer)

        return self._wait(lambda future: self._live.on_game(game, draw, future), stand_alone)

    def tree(self) -> Tree:
        """The tree of the latest search of a single board, also while an analysis runs; the copy does not change.

        Raises:
            ValueError: nothing was searched, or the latest search was of many boards; one line.
        """
        self._check_open()
        if (found := self._live.tree()) is None:
            raise ValueError("the engine has no tree: nothing was searched, or many boards were searched last")
        return Tree(Board._of_game(found[0]), found[1])

    def clear(self) -> None:
        """Forget the tree and all cached evaluations."""
        self._check_open()

        def work(player: Player) -> None:
            self._live.release_tree(player)
            player.forget()

        self._live.submit(work).result()

    def _game_of(self, board: Board) -> Game:
        """A copy of a board's game."""
        checked_board(board)
        low, high = self._sizes
        if not low <= board.size <= high:
            raise ValueError(f"board size is {board.size}, but the network plays {low} to {high}")
        return board._game.copy()

    def _chosen(
        self, game: Game, limit: Limit | None, level: str | None, avoid: Iterable[MoveLike],
        allow: Iterable[MoveLike] | None, may_resign: bool,
    ) -> "Start[Chosen]":  # fmt: skip
        level = _checked_level(level or self.level)
        if limit is None and level == FULL:
            limit = DEFAULT_LIMIT
        moves = _filter(Board._of_game(game), avoid, allow)
        self._check_open()
        return lambda future: self._live.genmove(
            game,
            purpose=Purpose.PLAY if may_resign else Purpose.ANSWER,
            prepare=lambda player: player.configure(replace(player.options, level=level), player.search_options),
            moves=moves,
            limits=None if limit is None else limits_of(limit),
            future=future,
        )

    def _report(
        self, game: Game, limit: Limit | None, avoid: Iterable[MoveLike], allow: Iterable[MoveLike] | None,
        ownership: bool, wide_root_noise: float,
    ) -> "Start[Report | None]":  # fmt: skip
        moves = _filter(Board._of_game(game), avoid, allow)
        watcher = Watcher(lambda report: None, math.inf, math.inf, ownership=ownership)
        self._check_open()
        limits, noise = limits_of(limit or DEFAULT_LIMIT), _noise(wide_root_noise)
        return lambda future: self._live.analyse(game, watcher, moves, limits, False, noise, future)

    def _batch(
        self, boards: Iterable[Board], limit: Limit | None, avoid: Iterable[MoveLike], allow: Iterable[MoveLike] | None,
        ownership: bool, wide_root_noise: float,
    ) -> "Start[list[Info]]":  # fmt: skip
        avoided, allowed = _kept(avoid), None if allow is None else _kept(allow)
        games, filters = list[Game](), list[MoveFilter]()
        for board in boards:
            games.append(self._game_of(board))
            filters.append(_filter(board, avoided, allowed))
        limits = limits_of(limit or DEFAULT_LIMIT)
        batch = Batch([game.position for game in games], filters, limits, ownership, _noise(wide_root_noise))

        def info(one: Searched) -> Info:
            owners = one.analysis.ownership_black if ownership else None
            return info_of(games[one.number], one.analysis.report, owners)

        return self._searched(batch, info)

    def _searched(self, batch: Batch, made: Callable[[Searched], R]) -> "Start[list[R]]":
        """Search a batch; results are made in the engine's thread, in the order of the positions."""

        def work(player: Player) -> list[R]:
            if not batch.positions:
                return []
            # The trees of the batch get the memory of the player's.
            self._live.release_tree(player)
            if not self._batches:
                self._batches.append(Batches(player))
            # Closed at once if `made` fails: then the searches left end.
            with closing(self._batches[0].search(batch)) as searched:
                found = {one.number: made(one) for one in searched}
            return [found[number] for number in sorted(found)]

        self._check_open()
        return lambda future: self._live.submit(work, on_interrupt=batch.interrupt, future=future)

    def _check_open(self) -> None:
        if self.is_closed:
            raise ValueError("the engine is closed")

    def _wait(self, start: "Start[T]", made: Callable[[T], R]) -> R:
        """Start a work and wait for it; any exception in between, as Ctrl-C, interrupts it."""
        # Made before the work is submitted, so that no interruption leaves a search behind that cannot be stopped.
        future: Future[T] = Future()
        try:
            start(future)
            found = future.result()
        except CancelledError:
            raise ValueError("the engine is closed") from None
        except BaseException as error:
            if not future.done():
                self._live.cancel(future)
            if isinstance(error, Exception):
                self._check_open()
            raise unwrapped(error) from None
        self._check_open()
        return made(found)

    async def _wait_async(self, start: "Start[T]", made: Callable[[T], R]) -> R:
        """Start a work and wait for it; the coroutine's cancellation interrupts it."""
        future: Future[T] = Future()
        try:
            start(future)
            found = await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self.is_closed and not (task and task.cancelling()):
                raise ValueError("the engine is closed") from None
            self._live.cancel(future)
            raise
        except Exception as error:
            self._check_open()
            raise unwrapped(error) from None
        self._check_open()
        return made(found)


def _close(live: LiveEngine, batches: list[Batches]) -> None:
    """Close an engine."""
    live.close()
    for one in batches:
        one.close()


def _sizes_of(player: Player) -> tuple[int, int]:
    """The board sizes that a player plays, without those that rollouts alone would play."""
    spec = player.parts.spec
    return (MIN_SIZE, MAX_SIZE) if spec is None else spec.sizes


def _settings(weights: str, human: str, level: str, device: str) -> PlayerSettings:
    """The settings of a player, a shipped player's own among them.

    Raises:
        ValueError: a name or a value is unknown; one line.
    """
    from gtp.cli.settings import read_settings

    shipped = players().get(weights)
    own = read_settings(shipped) if shipped else {}

    def options(kind: type[Options], **given: object) -> Options:
        names = [item.name for item in fields(kind)]
        return kind(**{name: value for name, value in (own | given).items() if name in names})

    weights = str(own.get("weights", weights))
    network = None if weights == NO_NETWORK else find_network(weights)
    return PlayerSettings(
        options(SetupOptions, weights=weights, device=device),
        options(PlayOptions, level=_checked_level(level)),
        options(SearchOptions),
        network,
        human=find_network(human) if human else None,
    )


def _checked_level(level: str) -> str:
    """A level's name.

    Raises:
        ValueError: there is no such level, or it changes with results, which the engine does not see; one line.
    """
    if level not in LEVELS:
        raise ValueError(f"level is {level!r}, expected {RANKS[0]} to {RANKS[-1]}, or {FULL}")
    return level


def limits_of(limit: Limit) -> SearchLimits:
    """A limit as the search takes it."""
    if not isinstance(limit, Limit):
        raise TypeError(f"limit is {limit!r}, expected keima.Limit(visits=...), or with seconds or playouts")
    seconds = limit.seconds or 0.0
    return SearchLimits(limit.visits or 0, seconds, seconds, playouts=limit.playouts or 0)


def _noise(wide_root_noise: float) -> float:
    """The noise, if it is in the range of the option.

    Raises:
        ValueError: it is not; one line.
    """
    return SearchOptions(wide_root_noise=wide_root_noise).wide_root_noise


def _kept(moves: Iterable[MoveLike]) -> Iterable[MoveLike]:
    """Moves that can be iterated over for each board."""
    return moves if isinstance(moves, str) else list(moves)


def _filter(board: Board, avoid: Iterable[MoveLike], allow: Iterable[MoveLike] | None) -> MoveFilter:
    """The filter of the moves at a board's position.

    Raises:
        ValueError: a move is no point of the board, or no legal move is left; one line.
    """
    color, size, moves = board.to_move, board.size, EVERY_MOVE
    if avoided := [move.point for move in moves_in(avoid, size)]:
        moves &= without(color, avoided)
    if allow is not None:
        moves &= only(color, [move.point for move in moves_in(allow, size)])
    if moves.restrictions and not any(moves.allows(color, move.point) for move in board.legal_moves):
        raise ValueError(f"avoid and allow leave {color} no legal move")
    return moves


def _info(game: Game, report: Report | None, ownership: bool) -> Info:
    """Results for the caller, who keeps the game."""
    assert report is not None
    return info_of(game, report, report.ownership_black if ownership else None)


def _played(game: Game, chosen: Chosen) -> Played:
    """A choice for the caller, who keeps the game."""
    info = None if chosen.report is None else info_of(game, chosen.report, None)
    return Played(None if chosen.point == RESIGN else move_at(chosen.point, game.size), info)
