"""Server-sent events: the state of the game and the live search, to every open tab.

A slow tab never holds a queue: of each kind of event only the latest waits for it. An event is encoded once for all
tabs.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

HEARTBEAT_S = 15.0
"""Interval of comments on a silent stream, by which the server notices a closed tab"""
COMMENT = b": \n\n"
RETRY_MS = 500
"""Time after which a browser connects again"""
MAX_STREAMS = 32


class Hub:
    """The open streams. Threads: :meth:`publish` any, the rest the event loop's."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._streams: set[_Stream] = set()
        self.is_closed = False
        self.on_tabs: Callable[[bool], None] = lambda has_tabs: None
        """called in the event loop when the first tab opens, and when the last one has closed"""

    def open(self) -> None:
        """Begin; called in the event loop, before anything is published."""
        self._loop = asyncio.get_running_loop()

    @property
    def is_full(self) -> bool:
        """Whether no more streams are accepted."""
        return len(self._streams) >= MAX_STREAMS

    def publish(self, kind: str, data: bytes, revision: int = 0) -> None:
        """Send an event to all tabs; it replaces one of the same kind that a tab has not read. Threads: any.

        Args:
            revision: of a state; a tab that has a later one does not get it.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._put, kind, event(kind, data), revision)

    def _put(self, kind: str, encoded: bytes, revision: int) -> None:
        for stream in self._streams:
            stream.put(kind, encoded, revision)

    async def stream(self, current: Callable[[], Awaitable[tuple[int, bytes]]]) -> AsyncIterator[bytes]:
        """The events of one tab until it is closed.

        Args:
            current: gives revision and state, the stream's first event.
        """
        stream = _Stream()
        # Before the state is read, so that no change is lost between them.
        self._streams.add(stream)
        if len(self._streams) == 1:
            self.on_tabs(True)
        try:
            revision, state = await current()
            stream.put("state", event("state", state), revision)
            yield b"retry: %d\n\n" % RETRY_MS
            while not self.is_closed:
                yield await stream.next()
        finally:
            self._streams.discard(stream)
            if not self._streams:
                self.on_tabs(False)

    def close(self) -> None:
        """End all streams."""
        self.is_closed = True
        for stream in self._streams:
            stream.wake()


class _Stream:
    """The events that wait for one tab: the latest of each kind, the oldest kind first."""

    def __init__(self) -> None:
        self._latest: dict[str, bytes] = {}
        self._revision = -1
        self._ready = asyncio.Event()

    def put(self, kind: str, encoded: bytes, revision: int) -> None:
        """Let an event wait, unless it is a state older than the latest one."""
        if kind == "state":
            if revision < self._revision:
                return
            self._revision = revision
        self._latest.pop(kind, None)
        self._latest[kind] = encoded
        self._ready.set()

    def wake(self) -> None:
        self._ready.set()

    async def next(self) -> bytes:
        """The next events, or a comment after :data:`HEARTBEAT_S`."""
        try:
            await asyncio.wait_for(self._ready.wait(), HEARTBEAT_S)
        except TimeoutError:
            return COMMENT
        found, self._latest = b"".join(self._latest.values()), {}
        self._ready.clear()
        return found or COMMENT


def event(kind: str, data: bytes) -> bytes:
    """One event of the stream; the data are one line of JSON."""
    return b"event: %s\ndata: %s\n\n" % (kind.encode(), data)
