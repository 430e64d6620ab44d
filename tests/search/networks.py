"""Networks for tests of the search."""

from engine.features.encoder import KEIMA
from engine.nets.fakes import HashNetwork
from tests.clock import Clock


class CostlyNetwork(HashNetwork):
    """A hash network that takes its time over every position, by a clock of the test's."""

    def __init__(self, seconds: float, clock: Clock):
        super().__init__(KEIMA.name)
        self.seconds, self.clock = seconds, clock

    def evaluate(self, planes, globals_):
        self.clock.advance(self.seconds * len(planes))
        return super().evaluate(planes, globals_)
