"""Downloads over HTTP by the standard library: resumed after a break, bounded in size, checked, then renamed.

:func:`download` is the entry. The bytes go to ``FILE.part`` in the target's folder; ``FILE.part.json`` beside it holds
the URL and the server's validator (ETag or date), with which the rest is asked for (``Range`` and ``If-Range``): a file
that has changed on the server is fetched anew. The target is written by renaming, after length, SHA-256 and the
caller's check; what fails one of them is deleted.

Proxies are those of the environment (``https_proxy``, ``http_proxy``, ``no_proxy``).
"""

import errno
import http.client
import json
import re
import shutil
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from email.message import Message
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import urlsplit

from engine.system import one_line
from engine.system.files import alone_in, sha256_of, synced

CHUNK = 1 << 16
TIMEOUT_S = 30.0
"""Longest wait for a connection, or for the next bytes"""
MOST_BYTES = 2 << 30
"""Maximum size of a file whose size the caller does not know"""
TRIES, MOST_TRIES = 4, 200
"""Connections that may fail one after the other without a new byte, and connections in all"""
WAIT_S = 1.0
"""Wait before the second try; it doubles with each failure"""
PASSING = (408, 425, 429, 500, 502, 503, 504)
"""Statuses of a server that may answer a moment later"""


class Source(NamedTuple):
    """A file on a server."""

    url: str
    """http or https; https is never redirected to http"""
    bytes: int = 0
    """size; 0 = unknown"""
    sha256: str = ""
    """64 hexadecimal digits; empty = unknown"""


class Watcher(NamedTuple):
    """The caller's part in a download."""

    agree: Callable[[int], None]
    """called once with the size in bytes (0 = unknown) before anything is written; raises to decline"""
    progress: Callable[[int, int], None]
    """called with the bytes so far, and with the size (0 = unknown)"""
    notice: Callable[[str], None]
    """called with a line about a failure that is not the end"""


class Interrupted(Exception):
    """The connection failed or broke off; the next one may succeed."""


def download(
    source: Source,
    target: Path,
    check: Callable[[Path], object],
    watcher: Watcher,
    pause: Callable[[float], None] = time.sleep,
) -> str:
    """Download a file, or the rest of it.

    Args:
        target: path of the file; its folder is created.
        check: raises ``ValueError`` if the file at a path is not of the expected kind; it is then deleted.
        pause: waits for a number of seconds between two connections.
    Returns:
        the file's SHA-256.
    Raises:
        ValueError: the server refuses, or the file is not the expected one; one line. Nothing of it is kept.
        OSError: no connection, or the disk is full; one line. What has arrived is kept for the next call.
    """
    if urlsplit(source.url).scheme not in ("http", "https") or not urlsplit(source.url).hostname:
        raise ValueError(f"{source.url[:80]!r}: expected an address that begins with https:// or http://")
    with alone_in(target.parent, f"-{target.name}"):
        return _Download(source, target, check, watcher).run(pause)


class _Download:
    """One call of :func:`download`."""

    def __init__(self, source: Source, target: Path, check: Callable[[Path], object], watcher: Watcher) -> None:
        self._source, self._target, self._check, self._watcher = source, target, check, watcher
        self._part = target.with_name(f"{target.name}.part")
        self._origin = target.with_name(f"{target.name}.part.json")
        self._total = source.bytes
        """size of the file; 0 = not known yet"""
        self._is_agreed = False

    def run(self, pause: Callable[[float], None]) -> str:
        """See :func:`download`."""
        failures = 0
        for _ in range(MOST_TRIES):
            before = self._held()
            try:
                if not before or before != self._total:
                    self._receive()
                return self._finish()
            except Interrupted as error:
                failures = 1 if self._held() > before else failures + 1
                if failures >= TRIES:
                    raise OSError(self._given_up(str(error))) from error
                self._watcher.notice(f"{error}; trying again")
                pause(WAIT_S * 2 ** (failures - 1))
        raise OSError(self._given_up(f"{MOST_TRIES} connections broke off"))

    def _held(self) -> int:
        """Number of bytes that have arrived."""
        return self._part.stat().st_size if self._part.is_file() else 0

    def _given_up(self, reason: str) -> str:
        """The message of a download that can be resumed later."""
        kept = f"{_mib(self._held())} are kept, and the same command resumes; " if self._held() else ""
        return f"{reason}; {kept}to fetch it by hand, save {self._source.url} as {self._target}"

    def _drop(self) -> None:
        """Delete what has arrived."""
        for path in (self._part, self._origin):
            path.unlink(missing_ok=True)

    def _receive(self) -> None:
        """Receive the file, or the rest of it, over one connection.

        Raises:
            Interrupted: the connection failed or broke off.
            ValueError, OSError: as for :func:`download`.
        """
        start, validator = self._resumable()
        with self._opened(start, validator) as response:
            at = self._start_of(response, start)
            if start and not at:
                self._watcher.notice("the server sends the whole file: it has changed, or cannot be resumed")
            self._agree(at)
            self._keep_origin(response.headers)
            with self._part.open("ab" if at else "wb") as file:
                at = self._copied(response, file, at)
        if at < self._total:
            raise Interrupted(f"the connection broke off after {_mib(at)} of {_mib(self._total)}")

    def _resumable(self) -> tuple[int, str]:
        """Number of bytes to keep, and the validator of the file that they are from.

        Bytes from another URL are not kept, nor bytes that nothing ties to the file, neither a validator nor a SHA-256.
        """
        with suppress(OSError, ValueError, KeyError, TypeError):
            origin = json.loads(self._origin.read_text(encoding="utf-8"))
            fits = not self._total or self._held() < self._total
            if origin["url"] == self._source.url and fits and (origin["validator"] or self._source.sha256):
                return self._held(), str(origin["validator"])
        return 0, ""

    def _keep_origin(self, headers: Message) -> None:
        """Write the URL and the validator of the file beside the bytes."""
        tag = headers.get("ETag", "")
        validator = tag if tag.startswith('"') else headers.get("Last-Modified", "")
        self._origin.write_text(json.dumps({"url": self._source.url, "validator": validator}), encoding="utf-8")

    def _opened(self, start: int, validator: str) -> Any:
        """The server's response to the request for the bytes from ``start`` on."""
        headers = {"User-Agent": "keima", "Accept-Encoding": "identity"}
        if start:
            headers["Range"] = f"bytes={start}-"
            headers |= {"If-Range": validator} if validator else {}
        host = urlsplit(self._source.url).hostname
        try:
            request = urllib.request.Request(self._source.url, headers=headers)
            return urllib.request.build_opener(_Redirects()).open(request, timeout=TIMEOUT_S)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416 and start:
                self._drop()
                raise Interrupted("the server has no more bytes than arrived") from error
            text = f"{self._source.url}: the server answers {error.code} {one_line(Exception(error.reason))}"
            if error.code in PASSING:
                raise Interrupted(text) from error
            raise ValueError(f"{text}, expected the file") from error
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise ValueError(f"the certificate of {host} is not trusted ({reason.verify_message})") from error
            raise Interrupted(f"{host} cannot be reached ({_reason(reason)})") from error

    def _start_of(self, response: Any, start: int) -> int:
        """The offset of the response's bytes in the file: ``start`` or 0. Learns the file's size."""
        headers, total, at = response.headers, 0, 0
        if response.status == 206:
            found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", headers.get("Content-Range", "").strip())
            if not start or not found or int(found[1]) != start:
                self._drop()
                raise Interrupted("the server sends other bytes than were asked for")
            at, total = start, int(found[2])
        elif response.status == 200:
            length = headers.get("Content-Length", "")
            total = int(length) if length.isdecimal() else 0
        else:
            raise ValueError(f"{self._source.url}: the server answers {response.status}, expected the file")
        if headers.get("Content-Encoding", "identity").lower() != "identity":
            raise ValueError(f"{self._source.url}: the server compresses the file, expected its own bytes")
        if self._source.bytes and total and total != self._source.bytes:
            raise ValueError(
                f"{self._source.url}: the server's file has {total:,} bytes, expected {self._source.bytes:,}"
            )
        if total > MOST_BYTES:
            raise ValueError(f"{self._source.url}: {total:,} bytes, at most {MOST_BYTES:,} are downloaded")
        self._total = self._source.bytes or total
        return at

    def _agree(self, at: int) -> None:
        """Ask the caller, once, and look for room on the disk."""
        if not self._is_agreed:
            self._watcher.agree(self._total)
            self._is_agreed = True
        free = shutil.disk_usage(self._target.parent).free
        if free < self._total - at:
            raise OSError(self._is_full(self._total - at))

    def _is_full(self, missing: int) -> str:
        """The message of a full disk, for bytes that are still to come."""
        free = shutil.disk_usage(self._target.parent).free
        more = f"has {_mib(free)} free" + f", and {_mib(missing)} are still to come" * (missing > 0)
        kept = f": {_mib(self._held())} are kept, and the same command resumes" if self._held() else ""
        return f"the disk is full: {self._target.parent} {more}{kept}"

    def _copied(self, response: Any, file: IO[bytes], at: int) -> int:
        """Write the response's bytes to the file, from offset ``at``; returns the offset of the end."""
        limit = self._total or MOST_BYTES
        self._watcher.progress(at, self._total)
        while True:
            try:
                piece = response.read1(CHUNK)
            except TimeoutError as error:
                raise Interrupted(f"the server has sent nothing for {TIMEOUT_S:g} s") from error
            except (OSError, http.client.HTTPException) as error:
                raise Interrupted(f"the connection broke off ({_reason(error)})") from error
            if not piece:
                return at
            if at + len(piece) > limit:
                self._drop()
                raise ValueError(f"{self._source.url}: the server sends more than {limit:,} bytes, expected no more")
            try:
                file.write(piece)
                file.flush()
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise OSError(self._is_full(self._total - at)) from error
            at += len(piece)
            self._watcher.progress(at, self._total)

    def _finish(self) -> str:
        """Check the whole file and give it its name; returns its SHA-256."""
        try:
            found, expected = sha256_of(self._part), self._source.sha256
            if expected and found != expected:
                raise ValueError(f"{self._source.url}: the file's SHA-256 is {found}, expected {expected}")
            try:
                self._check(self._part)
            except ValueError as error:
                reason = str(error).replace(str(self._part), self._source.url)
                raise ValueError(reason) from error
        except ValueError:
            self._drop()
            raise
        synced(self._part)
        self._part.replace(self._target)
        synced(self._target.parent)
        self._origin.unlink(missing_ok=True)
        return found


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but none from https to anything else."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """See :meth:`urllib.request.HTTPRedirectHandler.redirect_request`.

        Raises:
            ValueError: a redirection from https to another scheme.
        """
        scheme = urlsplit(newurl).scheme
        if scheme != "https" and (req.type == "https" or scheme != "http"):
            raise ValueError(f"{req.full_url}: the server redirects to {newurl[:80]!r}, expected https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _reason(error: object) -> str:
    """Why a connection failed, in a few words."""
    if isinstance(error, TimeoutError):
        return f"no answer for {TIMEOUT_S:g} s"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return one_line(error if isinstance(error, BaseException) else Exception(str(error)))


def _mib(count: int) -> str:
    """A number of bytes as text, in MiB."""
    return f"{count / 2**20:,.1f} MiB"
