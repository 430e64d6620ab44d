"""The application of ``keima play``: its routes, and the table's thread behind them.

The event loop answers requests; the table's thread changes the game; the engine has a thread of its own, and so have
questions about a position. Modules that need Numba are imported in the table's thread, so the page comes before them.
"""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.system import whole_line
from gtp.web.early import early_state
from gtp.web.events import Hub
from gtp.web.guard import TooLargeError
from gtp.web.settings import GameSettings
from weights import NetworkPath

if TYPE_CHECKING:
    from engine.live.engine import EngineState
    from engine.play.player import Player
    from gtp.web.games import Games
    from gtp.web.reviews import Reviews
    from gtp.web.table import Table

WEB = Path(__file__).resolve().parent
PICTURES = WEB.parents[1] / "engine" / "pictures"
SHARED = ("page.css", "board.js", "charts.js")
"""Files of :mod:`engine.pictures` that the page uses"""
PAGE = "play.html"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
POSITION = "/api/position"
"""Path that analyses a position for the page of a review"""
GAMES, REVIEWS = "games", "reviews"
"""Names of the folders of games and their reviews, within the user's data folder"""


@dataclass
class Served:
    """What the command serves."""

    folder: Path
    """the user's data folder"""
    setup: SetupOptions
    play: PlayOptions
    search: SearchOptions
    """with a seed"""
    network: NetworkPath | None
    """network of ``setup.weights``; None = rollouts alone"""
    load: "Callable[[Callable[[str], None]], Player]"
    """loads the player, as for :class:`engine.live.engine.Engine`"""
    given: dict[str, Any] = field(default_factory=dict)
    """settings of a game that the command line names, which prevail over those that the page remembers"""

    @property
    def first(self) -> GameSettings:
        """Settings of the first game."""
        return GameSettings(self.setup.size, self.setup.rules, self.setup.komi, level=self.play.level)


class App:
    """The application. Threads: the event loop's, except where a heading or a method says otherwise."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.hub = Hub()
        self._table: Table | None = None
        self._games: Games
        self._reviews: Reviews
        self._state_of: Callable[[Table], dict[str, Any]]
        self._problem = ""
        """why there is no table, in one line"""
        self._early = json.dumps(self._early_state("loading")).encode()
        """the state before there is a table"""
        self._thread = ThreadPoolExecutor(1, "table")
        self._questions = ThreadPoolExecutor(1, "questions")
        self._files = _static_files()

    def starlette(self) -> Starlette:
        """The ASGI application, without its guard."""
        static = [Route(f"/{name}", self._static) for name in self._files if name != PAGE]
        routes = [
            Route("/", self._page),
            *static,
            Route("/events", self._events),
            Route("/api/state", self._state),
            Route("/api/games", self._list),
            Route("/api/sgf", self._sgf),
            Route("/api/rollout", self._question, methods=["POST"]),
            Route("/api/layers", self._question, methods=["POST"]),
            Route(POSITION, self._position, methods=["POST"]),
            Route("/api/{action:str}", self._action, methods=["POST"]),
            Route("/review/{name:str}", self._review),
        ]
        return Starlette(routes=routes, lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.hub.open()
        self.hub.on_tabs = partial(self._post, self._tabs_changed)
        self._post(self._open)
        yield
        self.hub.close()

    def close(self) -> None:
        """Leave the game on disk; returns when that is done, and the table's thread ends."""
        if self._table is not None:
            self._post(self._reviews.stop)
            self._post(self._compiling.close)
            self._post(self._table.close)
        self._questions.shutdown(wait=False, cancel_futures=True)
        self._thread.shutdown(wait=self._table is not None, cancel_futures=self._table is None)

    def _early_state(self, text: str) -> dict[str, Any]:
        return early_state(self._served.first, self._served.folder / GAMES, self._served.given, text)

    # --- in the table's thread

    def _open(self) -> None:
        """Import the modules that need kernels, start the engine, and make the :class:`Table`."""
        try:
            self._make_table()
        except Exception as error:
            self._problem = f"{type(error).__name__}: {whole_line(error)}"
            engine = {"state": "failed", "text": self._problem}
            self._early = json.dumps({**self._early_state(""), "engine": engine}).encode()
            self.hub.publish("state", self._early)
            raise

    def _make_table(self) -> None:
        from engine.live.engine import Engine
        from gtp.web.compiling import Compiling
        from gtp.web.games import Games
        from gtp.web.opponent import Opponent
        from gtp.web.ranks import Ranks
        from gtp.web.reviews import Reviews, ReviewSettings
        from gtp.web.shown import state_of
        from gtp.web.table import Table

        served, setup = self._served, self._served.setup
        self._games = Games(served.folder / GAMES)
        self._engine = Engine(served.load, partial(self._post, self._engine_changed))
        self._state_of = state_of
        opponent = Opponent(self._engine, served.play, served.search, partial(self.hub.publish, "search"), self._post)
        ranks = Ranks(served.network, self._games.folder)
        settings = ReviewSettings(served.folder / REVIEWS, served.search, served.network, setup.device, setup.rules,
                                  setup.komi)  # fmt: skip
        self._reviews = Reviews(settings, partial(self._post, self._review_changed))
        self._table = Table(self._games, opponent, ranks, served.first, self._publish, self._post)
        self._compiling = Compiling(partial(self._post, self._table.set_compiling))
        self._publish(self._table)

    def _publish(self, table: "Table") -> None:
        """Send the state to all tabs."""
        self.hub.publish("state", self._encoded(table), table.rev)

    def _encoded(self, table: "Table") -> bytes:
        """The state as JSON."""
        state = self._state_of(table) | {"given": self._served.given}
        return json.dumps(state, separators=(",", ":"), allow_nan=False).encode()

    def _engine_changed(self, state: "EngineState") -> None:
        if self._table is None:
            return
        self._table.engine_changed(state)
        if state.name == "ready" and (server := self._engine.player.server) is not None:
            self._table.set_network(server.spec.name, server.spec.sizes)

    def _review_changed(self, name: str, state: dict[str, Any]) -> None:
        if self._table is not None:
            self._table.set_review(name, state)

    def _tabs_changed(self, has_tabs: bool) -> None:
        if self._table is not None:
            self._table.set_tabs(has_tabs)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run a function in the table's thread, later. Threads: any."""
        with suppress(RuntimeError):  # The application is being closed.
            self._thread.submit(function, *arguments).add_done_callback(_report)

    def _do(self, name: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Do an action; returns the status and the body of the answer."""
        from gtp.web.table import StaleError

        table, status, error = self._table, 200, ""
        if table is None:
            return 503, _answer({"error": self._problem}, self._early)
        try:
            if name == "review":
                table.set_review(table.id, self._reviews.start(table.id, self._games.path(table.id)))
            else:
                table.act(name, body)
        except StaleError as problem:
            status, error = 409, str(problem)
        except ValueError as problem:
            status, error = 400, whole_line(problem)
        return status, _answer({"error": error} if error else {}, self._encoded(table))

    # --- routes

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function in the table's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def _page(self, request: Request) -> Response:
        return _file(PAGE, self._files[PAGE])

    async def _static(self, request: Request) -> Response:
        name = request.url.path[1:]
        return _file(name, self._files[name])

    async def _events(self, request: Request) -> Response:
        if self.hub.is_full:
            return JSONResponse({"error": "too many open tabs"}, 503)
        stream = self.hub.stream(self._current)
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _current(self) -> tuple[int, bytes]:
        """Revision and state, at once, even before there is a table."""
        if self._table is None:
            return 0, self._early
        found: tuple[int, bytes] = await self._call(lambda table: (table.rev, self._encoded(table)), self._table)
        return found

    async def _state(self, request: Request) -> Response:
        return Response((await self._current())[1], media_type="application/json")

    async def _list(self, request: Request) -> Response:
        return JSONResponse({"games": await self._call(lambda: self._games.list_json() if self._table else [])})

    async def _sgf(self, request: Request) -> Response:
        if self._table is None:
            return JSONResponse({"error": "the board is being loaded"}, 503)
        from gtp.web.saved import without

        data = await self._call(without, self._table.record)
        headers = {"Content-Disposition": f'attachment; filename="keima-{self._table.id}.sgf"'}
        return Response(data, media_type="application/x-go-sgf", headers=headers)

    async def _review(self, request: Request) -> Response:
        found = self._reviews.page(request.path_params["name"], POSITION) if self._table is not None else None
        if found is None:
            return JSONResponse({"error": "there is no such review"}, 404)
        return Response(found[0], media_type=TYPES[".html"], headers={"Content-Security-Policy": found[1]})

    async def _action(self, request: Request) -> Response:
        body = await _body_of(request)
        if isinstance(body, Response):
            return body
        status, answer = await self._call(self._do, request.path_params["action"], body)
        return Response(answer, status, media_type="application/json")

    async def _question(self, request: Request) -> Response:
        body = await _body_of(request)
        if isinstance(body, Response):
            return body
        state = await self._call(self._current_position)
        if state is None:
            return JSONResponse({"error": "the board is being loaded"}, 503)
        name = request.url.path.rpartition("/")[2]
        status, more = await asyncio.get_running_loop().run_in_executor(
            self._questions, self._answer_question, name, body, state
        )
        return Response(_answer(more, (await self._current())[1]), status, media_type="application/json")

    async def _position(self, request: Request) -> Response:
        """The analysis of any position, for the page of a review."""
        body = await _body_of(request)
        if isinstance(body, Response):
            return body
        try:
            future = await self._call(self._submit_position, body)
        except ValueError as error:
            return JSONResponse({"error": whole_line(error)}, 400)
        if future is None:
            return JSONResponse({"error": "the engine is being loaded"}, 503)
        try:
            found = await asyncio.wrap_future(future)
        except RuntimeError as error:
            return JSONResponse({"error": whole_line(error)}, 503)
        except asyncio.CancelledError:
            if not future.cancelled():
                raise
            return JSONResponse({"error": "another action at the board stopped the analysis"}, 409)
        self._post(self._follow)
        return JSONResponse(found)

    def _submit_position(self, body: dict[str, Any]) -> "Future[dict[str, Any]] | None":
        from gtp.web.questions import analysed, game_of

        is_ready = self._table is not None and self._table.opponent.is_ready
        return analysed(self._engine, game_of(body)) if is_ready else None

    def _follow(self) -> None:
        """Continue the live search that another search has ended."""
        if self._table is not None:
            self._table.follow()

    def _current_position(self) -> Any:
        """A copy of the shown position, for another thread; None = there is no table."""
        return None if self._table is None else self._table.game.copy().position

    def _answer_question(self, name: str, body: dict[str, Any], position: Any) -> tuple[int, dict[str, Any]]:
        """Status and answer; called in the thread of questions."""
        from gtp.web.questions import answer

        try:
            return 200, answer(name, position, body, self._served.network, self._served.search)
        except ValueError as error:
            return 400, {"error": whole_line(error)}


async def _body_of(request: Request) -> dict[str, Any] | Response:
    """The JSON object in a request, or the answer to a wrong one."""
    try:
        body = json.loads(await request.body() or b"{}")
    except ClientDisconnect:
        return Response(status_code=400)  # which nobody reads
    except TooLargeError as error:
        return JSONResponse({"error": str(error)}, 413)
    except (ValueError, RecursionError) as error:
        return JSONResponse({"error": f"the body is not JSON ({whole_line(error)})"}, 400)
    return body if isinstance(body, dict) else JSONResponse({"error": "the body is not a JSON object"}, 400)


def _answer(more: dict[str, Any], state: bytes) -> bytes:
    """The body of an action's answer: the state, and more keys before it."""
    return json.dumps(more)[:-1].encode() + (b", " if more else b"") + b'"state": ' + state + b"}"


def _report(done: "Future[None]") -> None:
    """Print what went wrong in the table's thread: a bug."""
    if not done.cancelled() and (error := done.exception()) is not None:
        traceback.print_exception(error)


def _file(name: str, data: bytes) -> Response:
    return Response(data, media_type=TYPES[Path(name).suffix])


def _static_files() -> dict[str, bytes]:
    """The page's files: name -> content."""
    paths = [path for path in WEB.iterdir() if path.suffix in TYPES] + [PICTURES / name for name in SHARED]
    return {path.name: path.read_bytes() for path in paths}
