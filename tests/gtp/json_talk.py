"""The JSON engine in this process, with a network that answers when it may."""

import json
import threading

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.insight.analyses import Analyses
from engine.nets.fakes import HashNetwork
from engine.play.factory import Parts, new_server
from engine.play.human import HumanNetwork
from gtp.json.engine import JsonEngine
from gtp.json.settings import Settings

ANSWER_S = 300.0
QUERY = {"id": "q", "moves": [["b", "C3"]], "rules": "chinese", "boardXSize": 5, "boardYSize": 5, "maxVisits": 30}


class Gate:
    """A network that answers when it may."""

    def __init__(self, network) -> None:
        self._network = network
        self.spec, self.device, self.batches_requests = network.spec, network.device, network.batches_requests
        self.opened, self.asked = threading.Event(), threading.Event()
        self.opened.set()
        self.broken = False

    def evaluate(self, planes, globals_):
        self.asked.set()
        assert self.opened.wait(ANSWER_S)
        if self.broken:
            raise RuntimeError("out of order")
        return self._network.evaluate(planes, globals_)


class Talk:
    """An engine, and what it has said."""

    def __init__(self, network: HashNetwork | None = None, at_once: int = 2, human: HumanNetwork | None = None) -> None:
        self.gate = Gate(network or HashNetwork("keima-1"))
        encoder = ENCODERS[self.gate.spec.encoder]
        self.parts = parts = Parts(SearchOptions(threads=1, seed=7, memory=64), [self.gate], None, encoder, None)
        self.server = new_server(parts, shared=True)
        self._said, self._more = [], threading.Condition()
        analyses = Analyses(parts, self.server, at_once, human)
        self.engine = JsonEngine(analyses, Settings(parts.options, 20), self._hear, [{"name": "hash"}])

    def _hear(self, text: str) -> None:
        with self._more:
            self._said.append(text)
            self._more.notify_all()

    def send(self, **values) -> None:
        self.engine.take(json.dumps(values))

    def hold(self) -> None:
        """Let no evaluation end from now on."""
        self.gate.opened.clear()
        self.gate.asked.clear()

    def lines(self, count: int) -> list[dict]:
        """The first ``count`` lines, once they are there."""
        with self._more:
            assert self._more.wait_for(lambda: len(self._said) >= count, ANSWER_S), self._said
            return [json.loads(line) for line in self._said[:count]]

    def ask(self, **values) -> dict:
        """The next line after this query; evaluated anew, since the cache rounds."""
        self.server.forget()
        before = len(self._said)
        self.send(**QUERY | values)
        return self.lines(before + 1)[before]

    def all(self) -> list[dict]:
        """Everything, at the end."""
        self.engine.finish()
        return self.lines(len(self._said))
