"""The command: its address, its options, its end, and what it refuses."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from gtp.cli.play import play
from gtp.web.connections import listen
from tests.conftest import ROOT
from tests.gtp.web.served import Tab, serving

OPTIONS = ("--weights", "none", "--uniform-rollouts", "--size", "9", "--visits", "8", "--seconds", "0")


def run(*options):
    """What the command says when it refuses to start: one line."""
    found = CliRunner().invoke(play, [*OPTIONS, *options])
    assert found.exit_code != 0
    return found.output.strip().splitlines()[-1]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "keima.example"])
def test_other_machines_need_a_password(host):
    assert run("--host", host) == f"Error: --host {host} serves other machines, expected --password or $KEIMA_PASSWORD"


@pytest.mark.parametrize(
    ("given", "seconds"), [((), 3.0), (("--visits", "8"), 0.0), (("--visits", "8", "--seconds", "2"), 2.0)]
)
def test_visits_take_the_place_of_seconds_as_in_keima_gtp(monkeypatch, given, seconds):
    served = []
    monkeypatch.setattr("gtp.web.app.App", lambda one: served.append(one) or sys.exit())
    CliRunner().invoke(play, ["--config", "none", "--weights", "none", *given])
    assert served[0].play.seconds == seconds


def test_a_port_that_is_taken_is_named():
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        assert f"cannot listen on 127.0.0.1, port {port}" in run("--port", str(port), "--no-browser")


def test_an_address_of_another_machine_is_refused():
    assert "cannot listen on" in run("--host", "192.0.2.1", "--password", "x", "--no-browser")


def test_the_next_port_is_taken_without_a_choice():
    with listen("127.0.0.1", 0) as first, listen("127.0.0.1", 0) as second:
        assert first.getsockname()[1] != second.getsockname()[1]


def test_only_this_machine_is_served():
    with listen("127.0.0.1", 0) as heard:
        assert heard.getsockname()[0] == "127.0.0.1" and heard.family == socket.AF_INET


def test_standard_output_is_the_address_alone(tmp_path, interruptible):
    """And the page is opened in the browser that the user chose."""
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    browser.chmod(0o755)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "BROWSER": f"{browser} %s"}
    command = [sys.executable, "-m", "gtp.cli", "play", *OPTIONS]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, env=environment, **pipes) as process:
        address = process.stdout.readline().strip()
        host, _, token = address.removeprefix("http://127.0.0.1:").partition("/?token=")
        Tab(int(host)).enter(token).wait(lambda state: state["engine"]["state"] == "ready")
        while not opened.exists():
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate()
    assert (process.returncode, rest, errors) == (0, "", "")
    assert opened.read_text() == address


def test_every_start_has_its_own_token(tmp_path):
    """A cookie of an earlier start opens nothing."""
    with serving(tmp_path) as (_, port):
        old = Tab(port).enter()
        assert old.request("GET", "/api/state")[0] == 200
    with serving(tmp_path) as (_, port):
        assert Tab(port, old.cookie.replace(str(old.port), str(port))).request("GET", "/api/state")[0] == 403
