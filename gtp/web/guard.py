"""Who may talk to the server: checks of every request before the application sees it.

* ``Host`` must be the server's own name: a foreign page whose name resolves to this machine (DNS rebinding) is refused.
* ``Origin`` and ``Sec-Fetch-Site``, if the browser sends them, must be the server's own page (cross-site requests).
* A session cookie is needed, which the address with the start's token or the password gives.
* Bodies are JSON (a foreign form cannot send it) of a limited size. WebSockets, which no same-origin policy protects,
  are refused.
"""

import asyncio
import hmac
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

CSP = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": CSP,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Headers of every answer, unless the answer has its own"""
MAX_BODY, MAX_SGF_BODY = 64 << 10, 5 << 20
SGF_PATH = "/api/open"
MAX_LOGIN, MAX_FIELDS = 1024, 20
WRONG_S = 1.0
"""Time that a wrong password takes"""
MAX_ATTEMPTS = 8
"""Maximum number of passwords that are checked at once"""
HOW = "Open the address that `keima play` printed, with its token, in this browser."
LOGIN = """<!doctype html><html lang="en"><meta charset="utf-8"><title>Keima</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/page.css">
<form method="post" action="/login"><h1>Keima</h1><p>%s</p>
<label>Password <input type="password" name="password" autofocus autocomplete="current-password"></label>
<button>Log in</button></form></html>"""
OPEN_PATHS = ("/page.css",)
"""Paths that the form for the password needs"""


def new_token() -> str:
    """A token for one start."""
    return secrets.token_urlsafe(32)


class Guard:
    """Middleware with the checks of this module."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str], token: str, password: str = "") -> None:
        """Guard an application.

        Args:
            hosts: accepted values of ``Host``, each with its port.
            token: the start's token.
            password: for browsers without the token; empty = no such access.
        """
        self._app, self._hosts, self._token, self._password = app, {host.lower() for host in hosts}, token, password
        self._session = secrets.token_urlsafe(32)
        """value of the cookie"""
        self._attempts = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI; answers refused requests itself."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        if refused := self._refused(scope, headers):
            await PlainTextResponse(f"{refused}\n", 403)(scope, receive, with_headers)
            return
        if response := await self._entrance(scope, headers, receive):
            await response(scope, receive, with_headers)
            return
        if response := _body_refused(scope, headers):
            await response(scope, receive, with_headers)
            return
        limit = MAX_SGF_BODY if scope["path"] == SGF_PATH else MAX_BODY
        await self._app(scope, _limited(receive, limit), with_headers)

    def _refused(self, scope: Scope, headers: Headers) -> str:
        """Why a request is refused whoever sends it; empty = it is not."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) != 1 or host.lower() not in self._hosts:
            return "wrong Host: open the address that `keima play` printed"
        if "upgrade" in headers:
            return "no WebSocket here"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return "requests from other pages are refused (Origin)"
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            return "requests from other pages are refused (Sec-Fetch-Site)"
        return ""

    async def _entrance(self, scope: Scope, headers: Headers, receive: Receive) -> Response | None:
        """The answer to a request without a session, or that begins one; None = the request has a session."""
        is_get, path = scope["method"] in ("GET", "HEAD"), scope["path"]
        if is_get and path == "/" and (token := _field(scope["query_string"], "token")) is not None:
            if _same(token, self._token):
                return self._begun(scope)
            return PlainTextResponse(f"wrong token, perhaps of an earlier start. {HOW}\n", 403)
        if self._password and scope["method"] == "POST" and path == "/login":
            return await self._login(scope, headers, receive)
        if _same(HTTPConnection(scope).cookies.get(self._cookie_name(scope), ""), self._session):
            return None
        if self._password and is_get:
            return None if path in OPEN_PATHS else HTMLResponse(LOGIN % "", 403 if path != "/" else 200)
        return PlainTextResponse(f"no session. {HOW}\n", 403)

    async def _login(self, scope: Scope, headers: Headers, receive: Receive) -> Response:
        """Check a password; a wrong one takes time, and only few are checked at once."""
        if self._attempts >= MAX_ATTEMPTS:
            return HTMLResponse(LOGIN % "Too many attempts, try again in a minute.", 429)
        self._attempts += 1
        try:
            body, more = b"", True
            while more and len(body) <= MAX_LOGIN:
                message = await asyncio.wait_for(receive(), 5.0)
                body, more = body + message.get("body", b""), message.get("more_body", False)
            if _same(_field(body[:MAX_LOGIN], "password") or "", self._password):
                return self._begun(scope)
            await asyncio.sleep(WRONG_S)
            return HTMLResponse(LOGIN % "Wrong password.", 403)
        except TimeoutError:
            return PlainTextResponse("no password\n", 400)
        finally:
            self._attempts -= 1

    def _begun(self, scope: Scope) -> Response:
        """Redirect to the page, with the session's cookie."""
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie_name(scope), self._session, httponly=True, samesite="strict", path="/")
        return response

    @staticmethod
    def _cookie_name(scope: Scope) -> str:
        """The cookie's name: servers on other ports of the machine have other ones."""
        return f"keima-{(scope.get('server') or ('', 0))[1]}"


def _body_refused(scope: Scope, headers: Headers) -> Response | None:
    """The answer to a body of the wrong kind or size; None = it may be read."""
    if scope["method"] != "POST":
        return None
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return PlainTextResponse("expected Content-Type: application/json\n", 415)
    limit, length = MAX_SGF_BODY if scope["path"] == SGF_PATH else MAX_BODY, headers.get("content-length", "0")
    if not length.isascii() or not length.isdigit() or len(length) > 12 or int(length) > limit:
        return PlainTextResponse(f"a body of {length[:12]} bytes, at most {limit} are read\n", 413)
    return None


def _limited(receive: Receive, limit: int) -> Receive:
    """A receiver that fails once a body without a length has more than ``limit`` bytes."""
    total = 0

    async def limited() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        if total > limit:
            raise TooLargeError(f"more than {limit} bytes, expected at most that")
        return message

    return limited


class TooLargeError(ValueError):
    """A body is larger than its limit."""


def _field(encoded: bytes, name: str) -> str | None:
    """A field of a query or a form; None = it is missing, or there are too many fields."""
    try:
        fields = parse_qs(encoded.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        return None
    return fields[name][0] if name in fields else None


def _same(given: str, expected: str) -> bool:
    """Compare secrets in constant time."""
    return bool(expected) and hmac.compare_digest(given.encode("utf-8", "replace"), expected.encode())
