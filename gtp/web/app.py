"""The application of ``keima play``: its routes, and the table's thread behind them.

The event loop answers requests; the table's thread changes the game; the engine has a thread of its own. Modules that
need Numba are imported in the table's thread, so the page is answered before them.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from engine.config import PlayOptions, SearchOptions
from gtp.web.early import early_state
from gtp.web.events import Hub
from gtp.web.guard import TooLargeError
from gtp.web.settings import GameSettings

if TYPE_CHECKING:
    from engine.play.player import Player
    from gtp.web.table import Table

WEB = Path(__file__).resolve().parent
PICTURES = WEB.parents[1] / "engine" / "pictures"
PAGE = "play.html"
TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@dataclass
class Served:
    """What the command serves."""

    folder: Path
    """folder of the user's games"""
    settings: GameSettings
    """settings of the first game"""
    play: PlayOptions
    search: SearchOptions
    load: "Callable[[Callable[[str], None]], Player]"
    """loads the player, as for :class:`engine.live.engine.Engine`"""


class App:
    """The application's state. Threads: the event loop's, except where a method says otherwise."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self.hub = Hub()
        self._table: Table | None = None
        self._problem = ""
        """why there is no table, in one line"""
        self._early = json.dumps(early_state(served.settings, "loading")).encode()
        self._thread = ThreadPoolExecutor(1, "table")
        self._files = _static_files()

    def starlette(self) -> Starlette:
        """The ASGI application, without its guard."""
        static = [Route(f"/{name}", self._static) for name in self._files if name != PAGE]
        return Starlette(
            routes=[
                Route("/", self._page),
                *static,
                Route("/events", self._events),
                Route("/api/state", self._state),
                Route("/api/games", self._games),
                Route("/api/sgf", self._sgf),
                Route("/api/{action:str}", self._act, methods=["POST"]),
            ],
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self.hub.open()
        self._thread.submit(self._open)
        yield
        self.hub.close()

    def close(self) -> None:
        """Leave the game on disk; the table's thread does no more."""
        if self._table is not None:
            self._thread.submit(self._table.close)
        self._thread.shutdown(wait=self._table is not None, cancel_futures=self._table is None)

    # --- in the table's thread

    def _open(self) -> None:
        """Import what needs kernels, start the engine, and lay the table."""
        try:
            from engine.live.engine import Engine
            from gtp.web.games import Games
            from gtp.web.table import Setup, Table

            served, games = self._served, Games(self._served.folder)
            engine = Engine(served.load, lambda state: self._post(self._engine_changed, state))
            setup = Setup(games, engine, served.settings, served.play, served.search, self.hub.publish, self._post)
            self._table = Table(setup)
            self.hub.publish("state", self._table.state())
        except Exception as error:
            self._problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
            state = early_state(self._served.settings, self._problem)
            self._early = json.dumps({**state, "engine": {"state": "failed", "text": self._problem}}).encode()
            self.hub.publish("state", self._early)
            raise

    def _engine_changed(self, state: Any) -> None:
        if self._table is not None:
            self._table.engine_changed(state)

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Run a function in the table's thread, later. Threads: any."""
        try:
            self._thread.submit(function, *arguments).add_done_callback(_report)
        except RuntimeError:
            pass  # The application is being closed.

    def _do(self, name: str, body: dict[str, Any]) -> tuple[int, bytes]:
        """Do an action; returns the status and the body of the answer."""
        from gtp.web.table import StaleError

        table = self._table
        if table is None:
            return 503, json.dumps({"error": self._problem, "state": json.loads(self._early)}).encode()
        try:
            more, status = table.act(name, body), 200
        except StaleError as error:
            more, status = {"error": str(error)}, 409
        except ValueError as error:
            more, status = {"error": " ".join(str(error).split())}, 400
        return status, json.dumps(more)[:-1].encode() + (b", " if more else b"") + b'"state": ' + table.state() + b"}"

    async def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """The result of a function in the table's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    # --- routes

    async def _page(self, request: Request) -> Response:
        return _file(PAGE, self._files.get(PAGE, b"<!doctype html><title>Keima</title>"))

    async def _static(self, request: Request) -> Response:
        name = request.url.path[1:]
        return _file(name, self._files[name])

    async def _events(self, request: Request) -> Response:
        if self.hub.is_full:
            return JSONResponse({"error": "too many open tabs"}, 503)
        stream = self.hub.stream(await self._current())
        return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})

    async def _current(self) -> bytes:
        """The state, at once even while the table is being laid."""
        if self._table is None:
            return self._early
        state: bytes = await self._call(self._table.state)
        return state

    async def _state(self, request: Request) -> Response:
        return Response(await self._current(), media_type="application/json")

    async def _games(self, request: Request) -> Response:
        rows = await self._call(lambda: [one.to_json() for one in self._table.games()] if self._table else [])
        return JSONResponse({"games": rows})

    async def _sgf(self, request: Request) -> Response:
        if self._table is None:
            return JSONResponse({"error": "loading"}, 503)
        data = await self._call(self._table.sgf)
        name = f"keima-{self._table.id}.sgf"
        return Response(data, media_type="application/x-go-sgf",
                        headers={"Content-Disposition": f'attachment; filename="{name}"'})  # fmt: skip

    async def _act(self, request: Request) -> Response:
        try:
            body = json.loads(await request.body() or b"{}")
        except TooLargeError as error:
            return JSONResponse({"error": str(error)}, 413)
        except (ValueError, RecursionError) as error:
            return JSONResponse({"error": f"the body is not JSON ({' '.join(str(error).split())})"}, 400)
        if not isinstance(body, dict):
            return JSONResponse({"error": "the body is not a JSON object"}, 400)
        status, answer = await self._call(self._do, request.path_params["action"], body)
        return Response(answer, status, media_type="application/json")


def _report(done: Any) -> None:
    """Print what went wrong in the table's thread: a bug."""
    if not done.cancelled() and done.exception() is not None:
        import traceback

        traceback.print_exception(done.exception())


def _file(name: str, data: bytes) -> Response:
    return Response(data, media_type=TYPES[Path(name).suffix] + "; charset=utf-8")


def _static_files() -> dict[str, bytes]:
    """The page's files: name -> content."""
    paths = [path for path in WEB.iterdir() if path.suffix in TYPES] + [PICTURES / "page.css", PICTURES / "board.js"]
    return {path.name: path.read_bytes() for path in paths}
