"""The live engine: works in their order, interruptions, failures, and games that it does not change."""

import threading

import pytest

import engine.play.player as engine_player
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, point_at
from engine.live.engine import Engine
from engine.play.clock import Clock, absolute
from engine.search.report import Watcher


@pytest.fixture
def engine(make_player):
    """A loaded engine on 9x9, rollouts alone."""
    engine = Engine(lambda say: make_player(uniform_rollouts=True))
    yield engine
    engine.close()


def silent():
    """A watcher that hears nothing before a second has passed."""
    return Watcher(lambda report: None)


def test_works_run_one_after_another_in_the_engine_s_thread(engine):
    seen = []
    futures = [engine.submit(lambda player, n=n: seen.append((n, threading.current_thread().name))) for n in range(5)]
    for future in futures:
        future.result()
    assert seen == [(n, "engine") for n in range(5)]


def test_works_wait_for_the_player(make_player):
    may_load, states = threading.Event(), []

    def load(say):
        say("half of it")
        may_load.wait()
        return make_player(uniform_rollouts=True)

    engine = Engine(load, states.append)
    future = engine.submit(lambda player: player.game.size)
    assert not future.done()
    with pytest.raises(RuntimeError, match="not loaded"):
        _ = engine.player
    may_load.set()
    assert future.result() == 9
    assert [state.name for state in states] == ["loading", "ready"] and states[0].text == "half of it"
    engine.close()


def test_a_player_that_cannot_be_loaded_fails_all_works():
    may_fail = threading.Event()

    def load(say):
        may_fail.wait()
        raise ValueError("no such network\nsecond line")

    engine = Engine(load)
    before = engine.submit(lambda player: None)
    may_fail.set()
    with pytest.raises(RuntimeError, match=r"^no such network$"):
        before.result()
    with pytest.raises(RuntimeError, match=r"^no such network$"):
        engine.submit(lambda player: None).result()
    assert engine.state.name == "failed"
    engine.close()


def test_a_work_s_error_is_its_future_s(engine):
    def fail(player):
        raise KeyError("wrong")

    with pytest.raises(KeyError):
        engine.submit(fail).result()
    assert engine.submit(lambda player: 1).result() == 1


def test_a_move_leaves_the_caller_s_game_alone(engine):
    game = Game(9)
    game.play(BLACK, point_at(4, 4, 9))
    chosen = engine.genmove(game).result()
    assert game.n_moves == 1 and game.to_move == WHITE
    assert game.is_legal(WHITE, chosen.point) and chosen.report.visits > 1


def test_a_move_keeps_to_the_clock_and_leaves_it_alone(engine):
    game, clock = Game(9), Clock(0.0)
    clock.configure(absolute(30.0))
    before = clock.budget(BLACK, 0, 81)
    engine.genmove(game, clock).result()
    assert clock.budget(BLACK, 0, 81) == before


def test_an_analysis_lasts_until_the_next_work(engine):
    heard = threading.Event()
    analysis = engine.analyse(Game(9), Watcher(lambda report: heard.set(), 0.01))
    heard.wait()
    assert not analysis.done()
    assert engine.submit(lambda player: 2).result() == 2
    assert analysis.result().visits > 0


def test_a_waiting_analysis_never_runs_once_another_work_comes(engine):
    may_end, heard = threading.Event(), []
    first = engine.submit(lambda player: may_end.wait())
    analysis = engine.analyse(Game(9), Watcher(heard.append))
    last = engine.submit(lambda player: 3)
    may_end.set()
    assert last.result() == 3 and analysis.cancelled() and not heard and first.done()


def test_stop_ends_what_runs_and_cancels_what_waits(engine):
    heard = threading.Event()
    analysis = engine.analyse(Game(9), Watcher(lambda report: heard.set(), 0.01))
    heard.wait()
    engine.stop()
    assert analysis.result() is not None
    # And the next work is not interrupted.
    assert engine.genmove(Game(9)).result().report.visits > 1


def test_an_analysis_continues_the_tree_of_the_position_before(engine):
    game, heard = Game(9), threading.Event()

    def on_report(report):
        if report.visits > 200:
            heard.set()

    first = engine.analyse(game, Watcher(on_report, 0.01))
    heard.wait()
    engine.stop()
    best = first.result().moves[0]
    game.play(BLACK, best.point)
    visits = []
    seen = threading.Event()

    def on_next(report):
        visits.append((report.visits, report.playouts_this_run))
        seen.set()

    engine.analyse(game, Watcher(on_next, 0.01))
    seen.wait()
    assert visits[0][0] > visits[0][1]


def test_a_game_s_end_does_not_wait_for_that_of_the_game_before(engine, monkeypatch):
    """In a long game the end may not be worth an estimate for some moves; the next game has its own."""
    estimated, estimate = [], engine_player.estimate_end
    monkeypatch.setattr(
        engine_player, "estimate_end", lambda *arguments: estimated.append(arguments) or estimate(*arguments)
    )
    long, short = Game(9), Game(5)
    for at in range(81 - 9):
        # Diagonals of three colours, of which one is empty: nothing is settled.
        row, column = divmod(at, 9)
        if (row + column) % 3:
            long.play((row + column) % 3, point_at(row, column, 9))
    for row in range(5):
        for column, color in ((1, BLACK), (3, WHITE), (0, BLACK), (4, WHITE)):
            if (row, column) not in ((0, 0), (2, 0), (0, 4), (2, 4)):
                short.play(color, point_at(row, column, 5))
    engine.genmove(long).result()
    assert estimated
    estimated.clear()
    engine.genmove(short).result()
    assert estimated


def test_the_end_is_estimated(engine):
    game = Game(5)
    for row in range(5):
        game.play(BLACK, point_at(row, 1, 5))
        game.play(WHITE, point_at(row, 3, 5))
    estimate = engine.estimate_end(game).result()
    assert estimate.dead == [] and len(estimate.ownership_black) == 25


def test_a_closed_engine_refuses_works(make_player):
    engine = Engine(lambda say: make_player(uniform_rollouts=True))
    engine.submit(lambda player: None).result()
    analysis = engine.analyse(Game(9), silent())
    engine.close()
    assert analysis.done()
    with pytest.raises(RuntimeError, match="closed"):
        engine.submit(lambda player: None).result()
