"""The HTTP server: uvicorn, with limits on open connections."""

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 200
"""Maximum number of open connections. A further one closes the oldest that has no request in progress, so idle ones
cannot keep a browser out; less than the 256 files that some systems allow a process"""
FIRST_REQUEST_S = 10.0
"""Time for a new connection's first request"""
CLOSE_S = 1
"""Longest time that open connections delay the end of the server"""


class LimitedProtocol(H11Protocol):
    """A connection among :data:`MAX_CONNECTIONS`."""

    def connection_made(self, transport: Any) -> None:
        """See :class:`asyncio.Protocol`; makes room and sets a limit of time."""
        super().connection_made(transport)
        asked = self.app_state.setdefault("connections", {})
        asked[self] = None
        if len(asked) > MAX_CONNECTIONS:
            idle = next((one for one in asked if not one.is_busy), self)
            asked.pop(idle, None)
            idle.transport.abort()
        self._first = self.loop.call_later(FIRST_REQUEST_S, self._expire)

    def connection_lost(self, exc: Exception | None) -> None:
        """See :class:`asyncio.Protocol`."""
        self._first.cancel()
        self.app_state["connections"].pop(self, None)
        super().connection_lost(exc)

    @property
    def is_busy(self) -> bool:
        """Whether a request is in progress."""
        return self._has_asked and not self.cycle.response_complete

    @property
    def _has_asked(self) -> bool:
        """Whether a request has come; uvicorn's cycle is None before."""
        return getattr(self, "cycle", None) is not None

    def _expire(self) -> None:
        """Close the connection if it has sent no request yet."""
        if not self._has_asked:
            self.transport.abort()


class Server(uvicorn.Server):
    """A server that ends its streams when it is stopped."""

    def __init__(self, app: Any, on_stop: Callable[[], None]) -> None:
        """Prepare the server of an application.

        Args:
            app: the ASGI application.
            on_stop: ends the streams; called in the event loop.
        """
        super().__init__(
            uvicorn.Config(
                app, http=LimitedProtocol, ws="none", loop="asyncio", lifespan="on", log_config=None, access_log=False,
                log_level="error", server_header=False, date_header=False, proxy_headers=False, timeout_keep_alive=30,
                timeout_graceful_shutdown=CLOSE_S, backlog=128,
            )
        )  # fmt: skip
        self._on_stop = on_stop

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """See :class:`uvicorn.Server`; a signal ends the server, and the program goes on to its own end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """See :class:`uvicorn.Server`."""
        self._on_stop()
        await asyncio.sleep(0)
        await super().shutdown(sockets)


USUAL_PORT = 8361
PORTS = 20
"""Number of ports from the usual one on that are tried"""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket.

    Args:
        port: 0 = the usual port, or the next free one.
    Raises:
        OSError: the address cannot be used; one line.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for one in [port] if port else [*range(USUAL_PORT, USUAL_PORT + PORTS), 0]:
        # With the protocol named, asyncio sends small packets at once; without it each answer took 40 ms more.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        if sys.platform != "win32":
            # After a restart at once; on Windows this option would share the port with another process.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, one))
            # Another process may listen on a port that could be bound.
            made.listen(128)
        except OSError as error:
            made.close()
            if port or not one:
                raise OSError(f"cannot listen on {host}, port {one}: {error.strerror}") from error
            continue
        return made
    raise AssertionError


def host_names(host: str, port: int) -> list[str]:
    """The values of ``Host`` under which the server is reached."""
    names = ["127.0.0.1", "localhost", "[::1]"]
    if host in ("0.0.0.0", "::"):
        name = socket.gethostname()
        names += [name, f"{name}.local"]
        with contextlib.suppress(OSError):
            found = {(one[0], str(one[4][0])) for one in socket.getaddrinfo(name, None)}
            names += [f"[{at}]" if family == socket.AF_INET6 else at for family, at in sorted(found)]
    else:
        names.append(f"[{host}]" if ":" in host else host)
    return [f"{name}:{port}" for name in dict.fromkeys(names)] + (names if port == 80 else [])
