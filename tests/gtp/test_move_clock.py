"""When the clock of a move begins: as its line is read, not as its turn comes."""

import queue
import time

import pytest

from engine.go.geometry import PASS
from gtp.commands import COMMANDS
from gtp.host import Host
from gtp.protocol import Registry
from gtp.session import Session


class Player:
    """Notes since when the time of its moves runs."""

    def __init__(self):
        self.asked = []
        self.last_genmove_report = self.server = None

    def genmove(self, *_, asked_s=0.0, **more):
        self.asked.append(asked_s)
        return PASS

    def __getattr__(self, name):
        return self

    def __call__(self, *_):
        return self

    size = 9
    search_summary = False
    live_graphics = ""


@pytest.mark.parametrize("command", ["kgs-genmove_cleanup b", "kata-genmove_analyze b 50", "lz-genmove_analyze b"])
def test_every_command_that_plays_a_move_hands_on_when_it_was_read(command):
    host = Host(COMMANDS)
    host._player, host._early = Player(), None
    host._loaded.set()
    host._has_record.set()
    host.resume(123.0)
    COMMANDS.answer(host, command)
    assert host._player.asked == [123.0]


class Program:
    """Notes what it is told of lines."""

    quitting = sigint_interrupts = is_loading = False

    def __init__(self):
        self.read = queue.Queue()

    def interrupt(self):
        pass

    def resume(self, read_s):
        self.read.put((read_s, time.perf_counter()))


def test_a_line_keeps_the_time_at_which_it_was_read(monkeypatch):
    program = Program()
    session = Session(Registry(), program, None)
    begun_s = time.perf_counter()
    session._take(b"first")
    between_s = time.perf_counter()
    session._take(b"second")
    after_s = time.perf_counter()
    monkeypatch.setattr(session, "_write", lambda text: None)
    for _ in range(2):
        session._answer(*session._lines.get())
    (first_s, _), (second_s, answered_s) = program.read.get(), program.read.get()
    assert begun_s <= first_s <= between_s <= second_s <= after_s <= answered_s
