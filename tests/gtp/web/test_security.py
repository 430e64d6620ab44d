"""Attacks on the server: each is refused, and the game goes on."""

import contextlib
import json
import socket
import threading

import pytest

from gtp.web.connections import MAX_CONNECTIONS, host_names
from gtp.web.events import MAX_STREAMS
from tests.gtp.web.served import TOKEN, Tab, ready, serving


@pytest.fixture(autouse=True)
def alive(port):
    """After every attack the game is alive."""
    yield
    tab = Tab(port).enter()
    tab.post("new", size=9, color="both")
    tab.play("E5")
    assert tab.state["number"] == 1


@pytest.mark.parametrize("path", ["/", "/play.js", "/api/state", "/events", "/api/games", "/review/x", "/nothing"])
def test_without_a_session_nothing_is_answered(port, path):
    status, _, body = Tab(port).request("GET", path)
    assert status == 403 and body.startswith(b"no session. Open the address") and body.count(b"\n") == 1


def test_a_move_without_a_session_is_refused(port):
    assert Tab(port).request("POST", "/api/new", b"{}")[0] == 403


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", TOKEN[:-1], "%C3%A9"])
def test_a_wrong_token_is_refused(port, token):
    status, headers, _ = Tab(port).request("GET", f"/?token={token}")
    assert status == 403 and "set-cookie" not in headers


def test_a_token_gives_a_cookie_and_leaves_the_address(port):
    status, headers, _ = Tab(port).request("GET", f"/?token={TOKEN}")
    assert status == 303 and headers["location"] == "/"
    assert "httponly" in headers["set-cookie"].lower() and "samesite=strict" in headers["set-cookie"].lower()
    assert TOKEN not in headers["set-cookie"]


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost.evil:{port}", "[::2]:{port}"]
)
def test_a_forged_host_is_refused(tab, host):
    """DNS rebinding: a foreign name that resolves to this machine."""
    for method in ("GET", "POST"):
        path, body = ("/api/state", None) if method == "GET" else ("/api/new", b"{}")
        assert tab.request(method, path, body, Host=host.format(port=tab.port))[0] == 403
    assert tab.request("GET", f"/?token={TOKEN}", Host=host.format(port=tab.port))[0] == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "[::1]", "127.0.0.1"])
def test_the_machine_s_own_names_are_served(tab, host):
    assert tab.request("GET", "/api/state", Host=f"{host}:{tab.port}")[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
def test_requests_of_other_pages_are_refused(tab, origin):
    assert tab.request("POST", "/api/resign", b"{}", Origin=origin.format(port=tab.port))[0] == 403
    assert tab.request("GET", "/events", Origin=origin.format(port=tab.port))[0] == 403


def test_requests_of_the_own_page_are_served(tab):
    headers = {"Origin": f"http://127.0.0.1:{tab.port}", "Sec_Fetch_Site": "same-origin"}
    assert tab.request("POST", "/api/hint", b'{"on": false}', **headers)[0] == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_browsers_call_foreign_is_refused(tab, site):
    assert tab.request("GET", "/api/state", Sec_Fetch_Site=site)[0] == 403
    assert tab.request("GET", f"/?token={TOKEN}", Sec_Fetch_Site=site)[0] == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_forms_are_refused(tab, kind):
    """A form on a foreign page can send these without asking; not JSON."""
    assert tab.request("POST", "/api/new", b"{}", Content_Type=kind)[0] == 415


@pytest.mark.parametrize("path", ["/events", "/", "/ws", "/api/state"])
def test_websockets_are_refused(tab, path):
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13",
               "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
    status, found, _ = tab.request("GET", path, **headers)
    assert status == 403 and "upgrade" not in found


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml", "/%2e%2e/pyproject.toml", "/..%2fpyproject.toml", "/static/../../etc/passwd",
        "//etc/passwd", "/app.py", "/review/../../games/x", "/review/..%2f..%2fgames%2fx", "/review/%2e%2e",
        "/api/sgf/../../../etc/passwd",
    ],
)  # fmt: skip
def test_paths_reach_no_file(tab, path):
    status, _, body = tab.request("GET", path)
    assert status == 404 and b"root:" not in body and b"project" not in body


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..", "20260101-000000/../x", "20260101-000000", "20260101-000000\n", "", "adaptive.json"],
)
def test_ids_reach_no_file(tab, name):
    assert tab.refused("load", id=name).startswith(("no such game", "no game"))


def test_a_large_sgf_is_refused(tab):
    body = json.dumps({"sgf": "(;" + "C[" + "x" * (10 << 20) + "])"}).encode()
    # The server may close the connection before it has all.
    with contextlib.suppress(ConnectionError):
        assert tab.request("POST", "/api/open", body)[0] == 413


def test_an_sgf_beyond_the_reader_s_limits_is_refused(tab):
    assert "at most" in tab.refused("open", sgf="(;SZ[9]" + ";B[aa]" * 110_000 + ")")
    assert tab.refused("open", sgf="(;SZ[9];B[aa]" + "(;W[bb]" * 5000 + ")" * 5001).startswith("SGF")


@pytest.mark.parametrize("sgf", ["", "nothing", "(;GM[2])", "(;SZ[9];B[zz])", "(;SZ[9];B[aa];B[aa])", "(;SZ[99])"])
def test_a_broken_sgf_is_refused(tab, sgf):
    tab.play("C3")
    assert tab.refused("open", sgf=sgf).startswith("SGF")
    assert tab.get("/api/state")["number"] == 1


def test_other_bodies_are_small(tab):
    assert tab.request("POST", "/api/play", b'{"point": ' + b" " * 70_000 + b"1}")[0] == 413


def test_a_body_without_length_is_limited_too(tab):
    head = (
        f"POST /api/play HTTP/1.1\r\nHost: 127.0.0.1:{tab.port}\r\nCookie: {tab.cookie}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", tab.port)) as raw:
        raw.sendall(head.encode())
        with contextlib.suppress(ConnectionError):
            for _ in range(20):
                raw.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("body", [b"", b"[]", b"3", b"{", b"\xff", b"[" * 60_000, b'{"point": NaN, "rev": 1e999}'])
def test_a_body_that_is_no_object_is_refused(tab, body):
    assert tab.request("POST", "/api/play", body)[0] == 400


def test_names_stay_text(tab):
    name = '<img src=x onerror=alert(1)>"&\u2028</script>'
    tab.post("open", sgf=f"(;SZ[9]PB[{name}]PW[\u9ed2];B[cc])")
    assert tab.state["players"]["black"]["name"] == name and tab.state["players"]["white"]["name"] == "\u9ed2"
    _, headers, body = tab.request("GET", "/api/state")
    assert headers["content-type"] == "application/json" and b"\xe2\x80\xa8" not in body
    assert name in [game["players"]["black"] for game in tab.get("/api/games")["games"]]


def test_every_answer_forbids_foreign_content(tab):
    for path in ("/", "/play.js", "/api/state", "/nothing"):
        _, headers, _ = tab.request("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store"
        assert headers["referrer-policy"] == "no-referrer" and "server" not in headers


def test_idle_connections_keep_nobody_out(tab):
    """Old ones are closed when there are too many; requests and streams of a tab stay."""
    stream = tab.events()
    next(stream)
    held = []
    with contextlib.ExitStack() as stack:
        for _ in range(3 * MAX_CONNECTIONS):
            with contextlib.suppress(OSError):
                held.append(stack.enter_context(socket.create_connection(("127.0.0.1", tab.port), 60.0)))
        tab.post("new", size=9, color="both")
        tab.play("C3")
        assert next(data for kind, data in stream if kind == "state" and data["number"] == 1)
        held[0].settimeout(60.0)
        with contextlib.suppress(ConnectionError):
            assert held[0].recv(1) == b""


def test_half_a_request_keeps_nobody_out(tab):
    with contextlib.ExitStack() as stack:
        for _ in range(2 * MAX_CONNECTIONS):
            with contextlib.suppress(OSError):
                raw = stack.enter_context(socket.create_connection(("127.0.0.1", tab.port), 60.0))
                raw.sendall(b"POST /api/new HTTP/1.1\r\nHost: 127.0")
        tab.play("C3")


def raw_requests(tab):
    """Requests that no browser sends, or that end too early."""
    known = f"Host: 127.0.0.1:{tab.port}\r\nCookie: {tab.cookie}\r\n".encode()
    json_body = known + b"Content-Type: application/json\r\nContent-Length: "
    return [
        b"POST /api/play HTTP/1.1\r\n" + json_body + b'100\r\n\r\n{"po',
        b"POST /api/rollout HTTP/1.1\r\n" + json_body + b"100\r\n\r\n",
        b"GET /events HTTP/1.1\r\n" + known + b"\r\n",
        b"\x16\x03\x01\x02garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST /login HTTP/1.1\r\n" + known + b"Content-Length: 9999999\r\n\r\nx",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n" + known + b"\r\n",
        b"GET /?" + b"a=1&" * 200 + b"token=x HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % tab.port,
        b"GET /?token=%%ff%%00 HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % tab.port,
        b"GET /api/state HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: evil\r\n\r\n" % tab.port,
        b"GET /api/state HTTP/1.1\r\n" + known + b"Cookie: \xff\xfe\r\n\r\n",
        b"POST /api/%00 HTTP/1.1\r\n" + json_body + b"2\r\n\r\n{}",
        b"POST /api/play HTTP/1.1\r\n" + json_body + b"-1\r\n\r\n{}",
        b"DELETE /api/play HTTP/1.1\r\n" + known + b"\r\n",
        b"OPTIONS * HTTP/1.1\r\n" + known + b"\r\n",
    ]


def test_broken_requests_leave_no_error(tab, caplog, capfd):
    """They are refused, or end; none of them is a bug that is printed."""
    for request in raw_requests(tab):
        for waits in (True, False):
            with socket.create_connection(("127.0.0.1", tab.port), 60.0) as raw:
                raw.sendall(request)
                if waits and b"Content-Length: 100" not in request:
                    assert not raw.recv(12).startswith(b"HTTP/1.1 5"), request
    tab.play("C3")
    assert not caplog.records and capfd.readouterr().err == ""


def test_streams_are_limited(tab):
    streams = [tab.events() for _ in range(MAX_STREAMS)]
    for stream in streams:
        next(stream)
    assert tab.request("GET", "/events")[0] == 503
    for stream in streams:
        stream.close()


def test_requests_side_by_side_do_no_harm(tab):
    """Many tabs at once: every answer is the state or a refusal."""
    wrong = []

    def click(point):
        status, _, body = tab.request("POST", "/api/play", json.dumps({"point": point, "rev": 10**9}).encode())
        if status not in (200, 400, 409) or b'"state"' not in body:
            wrong.append((status, body))

    threads = [threading.Thread(target=click, args=(point,)) for point in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and tab.get("/api/state")["number"] == 40


def test_other_machines_are_asked_for_the_password(tmp_path):
    with serving(tmp_path, password="open sesame") as (_, port):
        stranger, form = Tab(port), {"Content_Type": "application/x-www-form-urlencoded"}
        status, _, page = stranger.request("GET", "/")
        assert status == 200 and b'name="password"' in page
        assert stranger.request("GET", "/api/state")[0] == 403
        assert stranger.request("POST", "/login", b"password=wrong", **form)[0] == 403
        assert stranger.request("POST", "/login", b"x" * 5000, **form)[0] == 403
        origin = {"Origin": "http://evil.example"}
        assert stranger.request("POST", "/login", b"password=open+sesame", **form, **origin)[0] == 403
        status, headers, _ = stranger.request("POST", "/login", b"password=open+sesame", **form)
        assert status == 303
        stranger.cookie = headers["set-cookie"].partition(";")[0]
        stranger.wait(ready)


def test_names_of_the_machine():
    assert host_names("127.0.0.1", 8361)[:3] == ["127.0.0.1:8361", "localhost:8361", "[::1]:8361"]
    assert "keima.example:80" in host_names("keima.example", 80) and "keima.example" in host_names("keima.example", 80)
