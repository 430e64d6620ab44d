"""Moves in time from a player whose network is slow, hangs or fails. Time is planned by a clock of the test's."""

import contextlib
import threading

import numpy as np
import pytest

import engine.play.factory
import engine.rollout.ownership
import engine.search.worker
from engine.config import PlayOptions, SearchOptions
from engine.features.encoder import KEIMA
from engine.go.geometry import BLACK, PASS, WHITE
from engine.insight.overlays import policy
from engine.nets import notices
from engine.nets.fakes import HashNetwork
from engine.play.clock import NO_CLOCK, absolute, byoyomi
from engine.play.game_session import Purpose
from engine.play.player import PROMPT_S, Player
from engine.play.pondering import Ponder
from engine.rollout.ownership import average_ownership
from engine.search.report import Watcher
from tests.clock import stop_the_machines
from tests.playing import DEAD_STONES, is_pondering, ponder_to_the_end, position, scatter

STUCK_S = 60.0
"""Far longer than anything here takes; a thread that is alive after it never ends"""


class Network(HashNetwork):
    """A hash network that can be made to cost time of the test's clock, to hang, to fail or to say nonsense."""

    def __init__(self):
        super().__init__(KEIMA.name)
        self.cost, self.clock, self.error, self.nonsense = 0.0, None, None, ""
        self.hanging, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def evaluate(self, planes, globals_):
        if self.clock is not None:
            self.clock.advance(self.cost * len(planes))
        if not self.gate.is_set():
            self.hanging.set()
            assert self.gate.wait(2 * STUCK_S)
        if self.error is not None:
            raise self.error
        output = super().evaluate(planes, globals_)
        return output._replace(**{self.nonsense: getattr(output, self.nonsense) * np.nan}) if self.nonsense else output


@pytest.fixture
def network():
    notices.say.cache_clear()
    return Network()


@pytest.fixture
def make(network, monkeypatch, tmp_path):
    """Players by that network on 9x9, a board of isolated stones unless another is set up; one evaluator."""
    monkeypatch.setattr(engine.play.factory, "load_network", lambda *_: network)
    players = []

    def make_player(options=None, moves=40):
        search = SearchOptions(threads=1, evaluators=1, seed=1)
        players.append(Player(search, options or PlayOptions(), network=tmp_path, size=9))
        players[-1].warm_up()
        scatter(players[-1], moves, BLACK)
        return players[-1]

    yield make_player
    network.gate.set()
    for player in players:
        player.close()


@pytest.mark.parametrize(("cost", "period_s"), [(0.001, 0.5), (0.05, 0.5), (0.4, 1.5), (0.4, 8.0), (1.5, 5.0)])
@pytest.mark.parametrize("ask", ["move", "move with ownership", "cleanup", "after a pass"])
def test_a_move_is_in_time_whatever_an_evaluation_costs(make, network, monkeypatch, cost, period_s, ask):
    """With 0.4 s a move in a byo-yomi of 1.5 s once took 2.07 s, with 1.5 s one of 5 s took 7.64 s."""
    player = make()
    if ask in ("cleanup", "after a pass"):
        position(player, DEAD_STONES, WHITE)
    if ask == "after a pass":
        player.play(BLACK, PASS)
    player.clock.configure(byoyomi(0.0, period_s, 1))
    player.server.pace.seconds_per_position = player.server.pace.seconds_per_call = cost
    network.cost, network.clock = cost, stop_the_machines(monkeypatch, look_s=1e-5)
    watcher = Watcher(lambda report: None, 0.5, 0.03, ownership=True) if ask == "move with ownership" else None
    begun_s = network.clock()
    player.genmove(WHITE, watcher=watcher, purpose=Purpose.CLEAN_UP if ask == "cleanup" else Purpose.PLAY)
    assert network.clock() - begun_s < period_s


@pytest.mark.parametrize("ask", ["move", "cleanup", "after a pass"])
def test_a_move_is_in_time_where_rollouts_are_slow(make, monkeypatch, ask):
    """On a machine with twenty busy processes the rollouts to the game's end take a second of a byo-yomi of 1.5 s."""
    player = position(make(PlayOptions(visits=2)), DEAD_STONES, WHITE)
    if ask == "after a pass":
        player.play(BLACK, PASS)
    player.clock.configure(byoyomi(0.0, 1.5, 1))
    clock = stop_the_machines(monkeypatch, look_s=1e-5)

    def slow(*arguments):
        average_ownership(*arguments)
        clock.advance(0.15)

    monkeypatch.setattr(engine.rollout.ownership, "average_ownership", slow)
    begun_s = clock()
    player.genmove(WHITE, purpose=Purpose.CLEAN_UP if ask == "cleanup" else Purpose.PLAY)
    assert clock() - begun_s < 1.2


def test_where_the_network_hangs_a_move_comes_from_rollouts_and_a_line_says_so(make, network, capfd):
    player = make(PlayOptions(visits=16))
    player.clock.configure(byoyomi(0.0, 0.4, 1))
    network.gate.clear()
    for color in (WHITE, BLACK, WHITE):
        assert player.genmove(color) > 0
        report = player.last_genmove_report
        assert report.visits > 0 and not report.has_values
    assert capfd.readouterr().err.splitlines() == [
        "network hash has not answered in time: rollouts choose moves until it does"
    ]
    network.gate.set()
    player.clock.configure(NO_CLOCK)
    player.options = PlayOptions(visits=16, seconds=0.0)
    assert player.genmove(BLACK) > 0
    assert player.last_genmove_report.has_values and player.last_genmove_report.evaluations > 0


@pytest.mark.parametrize(("seconds", "on_gpu"), [(0.01, False), (0.2, False), (0.01, True)])
def test_the_fallback_waits_for_a_move_that_needs_it_beside_a_prompt_network(make, network, seconds, on_gpu):
    player = make(PlayOptions(visits=16))
    player.server.pace.seconds_per_call, network.batches_requests = seconds, on_gpu
    player.fallback_loaded.clear()
    player.load_fallback()
    assert player.fallback_loaded.is_set()
    assert (player._backend._fallback is not None) == (on_gpu or seconds > PROMPT_S)


@pytest.mark.parametrize("first", ["network", "rollouts"])
def test_rollouts_that_are_still_being_compiled_are_not_waited_for(make, network, monkeypatch, first):
    """On a first start a move waits for what comes first: the network's answer, or rollouts that can be played."""
    monkeypatch.setattr(engine.search.worker, "HANG_S", 2 * STUCK_S)
    player = make(PlayOptions(visits=16))
    player.clock.configure(byoyomi(0.0, 0.4, 1))
    player.fallback_loaded.clear()
    network.gate.clear()
    thread = threading.Thread(target=player.genmove, args=(WHITE,), daemon=True)
    thread.start()
    assert network.hanging.wait(STUCK_S)
    thread.join(1.0)
    assert thread.is_alive()
    (network.gate if first == "network" else player.fallback_loaded).set()
    thread.join(STUCK_S)
    assert not thread.is_alive()
    assert player.last_genmove_report.has_values == (first == "network")


def test_where_the_network_hangs_a_tree_that_there_is_gives_the_move(make, network):
    player = make(PlayOptions(visits=50, seconds=0.0))
    expected = player.genmove(WHITE, Purpose.ANSWER)
    player.options = PlayOptions()
    player.clock.configure(byoyomi(0.0, 0.4, 1))
    network.gate.clear()
    assert player.genmove(WHITE) == expected
    assert player.last_genmove_report.has_values


FAULTS = {"error": "out of order", **dict.fromkeys(("policy", "value", "score", "ownership"), "are NaN or infinite")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("has_tree", [False, True])
def test_a_game_goes_on_whatever_the_network_fails_in(make, network, capfd, fault, has_tree):
    player = make(PlayOptions(visits=16, seconds=0.0), moves=16)
    if has_tree:
        player.genmove(WHITE, Purpose.ANSWER)
    capfd.readouterr()
    if fault == "error":
        network.error = ValueError("out of order")
    else:
        network.nonsense = fault
    for color in (WHITE, BLACK):
        assert player.genmove(color) > 0
        assert np.isfinite(player.last_genmove_report.value_stm)
    said = capfd.readouterr().err
    assert f"network hash: {FAULTS[fault]}" in said or "network hash: its outputs" in said
    assert "Traceback" not in said
    assert player.final_score()[0] in "BW0"
    with pytest.raises(ValueError, match="network hash"):
        player.analyze(WHITE, Watcher(lambda report: None))
    with pytest.raises(ValueError, match="network hash"):
        policy(player, WHITE, 0)


@pytest.mark.parametrize("what", ["genmove", "final_score", "analyze", "look", "policy"])
def test_an_interruption_does_not_wait_for_a_network_that_hangs(make, network, what):
    player = make(PlayOptions(visits=16, seconds=0.0))
    network.gate.clear()
    calls = {
        "genmove": lambda: player.genmove(WHITE),
        "final_score": player.final_score,
        "analyze": lambda: player.analyze(WHITE, Watcher(lambda report: None, ownership=True)),
        "look": lambda: player.look(WHITE),
        "policy": lambda: policy(player, WHITE, 0),
    }

    def call():
        with contextlib.suppress(ValueError):
            calls[what]()

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    assert network.hanging.wait(STUCK_S)
    player.interrupt()
    thread.join(STUCK_S)
    assert not thread.is_alive()


def test_a_policy_that_does_not_come_is_one_line(make, network, monkeypatch):
    player = make()
    monkeypatch.setattr("engine.insight.overlays.PATIENCE_S", 0.1)
    network.gate.clear()
    with pytest.raises(ValueError, match="network hash has not answered"):
        policy(player, WHITE, 0)
    network.gate.set()
    assert policy(player, WHITE, 0).probabilities.sum() == pytest.approx(1)


def test_an_interruption_is_not_taken_for_a_slow_network(make, network, capfd):
    """The line that says so comes once: it must be there for the real case."""
    player = make(PlayOptions(visits=16, seconds=0.0))
    network.gate.clear()
    thread = threading.Thread(target=player.genmove, args=(WHITE,), daemon=True)
    thread.start()
    assert network.hanging.wait(STUCK_S)
    player.interrupt()
    thread.join(STUCK_S)
    assert not thread.is_alive() and capfd.readouterr().err == ""


def test_pondering_ends_in_a_line_where_the_network_fails(make, network, capfd):
    player = make(PlayOptions(visits=4, ponder=True, ponder_visits=10**6), moves=4)
    player.genmove(BLACK)
    network.error = ValueError("out of order")
    ponder_to_the_end()
    assert capfd.readouterr().err == "network hash: out of order\n"


def test_a_thread_that_cannot_be_had_for_pondering_costs_no_move(make_player, monkeypatch, capfd):
    """The move was on the board, but the client was told of an error."""
    notices.say.cache_clear()
    player = make_player(PlayOptions(visits=4, ponder=True, ponder_visits=10**6))
    start = threading.Thread.start

    def fails(thread):
        if thread.name == "ponder":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fails)
    assert player.genmove(BLACK) > 0 and player.game.n_moves == 1
    assert not is_pondering()
    assert capfd.readouterr().err == "no pondering: can't start new thread\n"


def test_the_clock_runs_from_when_the_move_was_asked_for(make_player, monkeypatch):
    """Waiting for pondering to end, or for the command's turn, is time of the move."""
    player = make_player(PlayOptions(early_stop=False, ponder=True))
    player.warm_up()
    clock = stop_the_machines(monkeypatch)
    player.clock.configure(byoyomi(0.0, 1.5, 1))
    monkeypatch.setattr(Ponder, "stop", lambda ponder: clock.advance(0.2))
    monkeypatch.setattr(Ponder, "start", lambda *_: None)
    asked_s = clock() - 0.3
    player.genmove(BLACK, asked_s=asked_s)
    assert 0.3 < player.last_genmove_report.seconds < 0.55, "of the target of 1 s"
    assert 0.9 < clock() - asked_s < 1.1
    # A move that was asked for long ago could not begin before the one before it was chosen.
    begun_s = clock()
    player.genmove(WHITE, asked_s=asked_s)
    assert 0.9 < clock() - begun_s < 1.1
    # Without a clock nobody counts.
    player.clock.configure(NO_CLOCK)
    player.options = PlayOptions(seconds=0.5, early_stop=False)
    player.genmove(BLACK, asked_s=1.0)
    assert 0.2 < player.last_genmove_report.seconds < 0.4


def test_our_account_is_never_ahead_of_a_referees_whose_pipe_takes_its_time(make_player, monkeypatch):
    player = make_player(PlayOptions(visits=1, seconds=0.0))
    player.clock.configure(absolute(10.0))
    clock = stop_the_machines(monkeypatch)
    left_s = 10.0
    for _ in range(20):
        begun_s = clock()
        player.genmove(BLACK)
        left_s -= clock() - begun_s + 0.015
    assert player.clock._time_left(BLACK).seconds < left_s


def test_what_was_waited_for_is_charged(make_player, monkeypatch):
    player = make_player(PlayOptions(visits=2))
    player.clock.configure(absolute(100.0))
    clock = stop_the_machines(monkeypatch)
    player.genmove(BLACK, asked_s=clock() - 50.0)
    full = player.clock.budget(WHITE, 1, 81).soft_s
    assert player.clock.budget(BLACK, 1, 81).soft_s < 0.6 * full
