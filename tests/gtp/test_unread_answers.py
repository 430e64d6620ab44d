"""What becomes of answers that a client of ``keima analysis`` does not read."""

import threading

from gtp.cli import analysis as start
from gtp.cli.analysis import Sender
from tests.gtp.json_talk import ANSWER_S, QUERY, Talk


class Pipe:
    """A standard output that is read when it may be."""

    def __init__(self):
        self.opened, self.read = threading.Event(), []

    def write(self, text):
        assert self.opened.wait(ANSWER_S)
        self.read.append(text)


def test_queries_wait_while_too_much_is_unread(monkeypatch):
    monkeypatch.setattr(start, "MOST_UNREAD", 100)
    pipe = Pipe()
    sender = Sender(pipe)
    sender("x" * 60)
    sender.await_room()
    assert not sender.is_full()
    sender("x" * 60)
    assert sender.is_full()
    taken = threading.Event()
    threading.Thread(target=lambda: (sender.await_room(), taken.set()), daemon=True).start()
    assert not taken.is_set()
    pipe.opened.set()
    assert taken.wait(ANSWER_S)
    sender.finish()
    assert pipe.read == ["x" * 60] * 2 and not sender.is_full()


def test_reports_are_left_out_while_too_much_is_unread():
    talk = Talk()
    is_full, asked = threading.Event(), threading.Event()
    is_full.set()
    talk.engine._is_full = lambda: asked.set() or is_full.is_set()
    talk.send(**QUERY | {"maxVisits": 10**9, "reportDuringSearchEvery": 0.01})
    assert asked.wait(ANSWER_S)
    assert not talk._said
    is_full.clear()
    assert talk.lines(1)[0]["isDuringSearch"]
    is_full.set()
    talk.send(id="t", action="terminate_all")
    assert [line["isDuringSearch"] for line in talk.all() if line["id"] == "q"][-1] is False
